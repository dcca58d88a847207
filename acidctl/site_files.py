"""Configuration files of Hadoop and Hive, ``*-site.xml``: values may name other properties and the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from xml.etree import ElementTree

from acidctl.errors import UsageProblem
from acidctl.printable import printable

_VARIABLE = re.compile(r"\$\{([^}$\s]+)\}")
_DEPTH = 20  # as Hadoop's own limit for variables within variables


@dataclass(frozen=True, slots=True)
class SiteFiles:
    """Properties by their names; empty where there is no file."""

    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, directory: str, names: Iterable[str], variable: str) -> Self:
        """Those of some files of a directory; of two of one name the later file's counts.

        Args:
            variable: of the environment, that leads to the directory: what a hint names.

        Raises:
            UsageProblem: one of them is not XML or cannot be read.
        """
        found: dict[str, str] = {}
        for name in names:
            found.update(_read(Path(directory, name), variable))
        return cls(found)

    def get(self, name: str, default: str = "") -> str:
        """A property with its ``${variables}`` filled in; `default` where it is not there."""
        value = self.properties.get(name, default)
        for _ in range(_DEPTH):
            filled = _VARIABLE.sub(self._value_of, value)
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
    try:
        root = ElementTree.parse(path).getroot()
    except FileNotFoundError:
        return {}
    except (OSError, ElementTree.ParseError) as error:
        raise UsageProblem(
            f"cannot read {printable(str(path))}",
            f"it is not a Hadoop configuration: {error}",
            f"correct it, or point {variable} elsewhere",
        ) from error
    pairs = ((item.findtext("name"), item.findtext("value")) for item in root.iter("property"))
    return {name.strip(): value for name, value in pairs if name and value is not None}
