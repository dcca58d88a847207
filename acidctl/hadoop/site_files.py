"""Read configuration files of Hadoop and Hive, ``*-site.xml``, whose values may name properties and variables."""

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
_DEPTH = 20  # variables that are filled in, one after another, those of their values among them: as many as Hadoop does
_MOST_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class SiteFiles:
    """The properties of Hadoop's configuration files, and the file that each comes from. Both may be empty."""

    properties: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, directory: str, names: Iterable[str], variable: str) -> Self:
        """Return the properties of some files of a directory; a later file overrides an earlier one.

        Args:
            variable: the environment variable that names the directory, for hints.

        Raises:
            UsageProblem: a file is not XML.
            AccessError: this user may not read a file.
        """
        properties: dict[str, str] = {}
        files: dict[str, str] = {}
        for name in names:
            path = Path(directory, name)
            read = _read(path, variable)
            properties.update(read)
            files.update(dict.fromkeys(read, str(path)))
        return cls(properties, files)

    def get(self, name: str, default: str = "") -> str:
        """Return a property with all known ``${variables}`` replaced; `default` if the property does not exist."""
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
        # Without O_NONBLOCK, opening a pipe would wait for a writer.
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
        hint = f"ask for the permission, or point {variable} to a readable copy"
        raise AccessError(f"cannot read {printable(str(path))}", "this user may not read it", hint) from error
    except (OSError, ElementTree.ParseError, ValueError, LookupError) as error:
        why = error.strerror if isinstance(error, OSError) else f"it is not a Hadoop configuration: {error}"
        raise _unreadable(path, printable(str(why)), elsewhere) from error
    pairs = ((item.findtext("name"), item.findtext("value")) for item in root.iter("property"))
    return {name.strip(): value for name, value in pairs if name and value is not None}


def _unreadable(path: Path, why: str, hint: str) -> UsageProblem:
    return UsageProblem(f"cannot read {printable(str(path))}", why, hint)
