"""Configuration files of Hadoop and Hive, ``*-site.xml``: values may name other properties and the environment."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from xml.etree import ElementTree

from acidctl.base.errors import AccessError, UsageProblem
from acidctl.base.printable import printable

_VARIABLE = re.compile(r"\$\{([^}$\s]+)\}")
_DEPTH = 20
"""Variables that are filled in, one after another, those of their values among them: as many as Hadoop does."""

_MOST_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class SiteFiles:
    """Properties by their names; empty where there is no file.

    Attributes:
        files: the path of the file that says it, by the names of properties.
    """

    properties: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, directory: str, names: Iterable[str], variable: str) -> Self:
        """Return the properties of some files of a directory; a later file overrides an earlier one.

        Args:
            variable: of the environment, that leads to the directory: what a hint names.

        Raises:
            UsageProblem: one of them is not a file of XML.
            AccessError: this user may not read it.
        """
        found: dict[str, str] = {}
        files: dict[str, str] = {}
        for name in names:
            path = Path(directory, name)
            read = _read(path, variable)
            found.update(read)
            files.update(dict.fromkeys(read, str(path)))
        return cls(found, files)

    def get(self, name: str, default: str = "") -> str:
        """A property with its ``${variables}`` filled in, as far as they are known; `default` where it is not there."""
        value = self.properties.get(name, default)
        for _ in range(_DEPTH):
            filled = _VARIABLE.sub(self._value_of, value, count=1)
            if filled == value:
                break
            value = filled
        return value.strip()

    def _value_of(self, match: re.Match[str]) -> str:
        name = match[1]
        if name.startswith("env."):
            return os.environ.get(name.removeprefix("env."), match[0])
        return self.properties.get(name, match[0])


def _read(path: Path, variable: str) -> dict[str, str]:
    elsewhere = f"correct it, or point {variable} elsewhere"
    try:
        # What is no file is not waited for.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _unreadable(path, "it is not a file", elsewhere)
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise _unreadable(path, "it is larger than any configuration", elsewhere)
        root = ElementTree.fromstring(data)
    except FileNotFoundError:
        return {}
    except PermissionError as error:
        raise AccessError(
            f"cannot read {printable(str(path))}",
            "this user may not read it",
            f"ask for the permission, or point {variable} to a readable copy",
        ) from error
    except (OSError, ElementTree.ParseError, ValueError, LookupError) as error:
        why = error.strerror if isinstance(error, OSError) else f"it is not a Hadoop configuration: {error}"
        raise _unreadable(path, printable(str(why)), elsewhere) from error
    pairs = ((item.findtext("name"), item.findtext("value")) for item in root.iter("property"))
    return {name.strip(): value for name, value in pairs if name and value is not None}


def _unreadable(path: Path, why: str, hint: str) -> UsageProblem:
    return UsageProblem(f"cannot read {printable(str(path))}", why, hint)
