"""Hadoop's configuration files, as far as they say where a file system is.

They are looked for where Hadoop's own clients look: in ``HADOOP_CONF_DIR``, else in ``HADOOP_HOME/etc/hadoop``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from acidctl.errors import UsageProblem
from acidctl.storage.os_errors import printable

_FILES = ("core-site.xml", "hdfs-site.xml")
_VARIABLE = re.compile(r"\$\{([^}$\s]+)\}")
_DEPTH = 20  # as Hadoop's own limit for variables within variables


@dataclass(frozen=True, slots=True)
class HadoopConf:
    """The properties of ``core-site.xml`` and ``hdfs-site.xml``; empty when there are none."""

    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def find(cls) -> HadoopConf:
        """Read the files that the environment leads to.

        Raises:
            UsageProblem: one of them is not XML or cannot be read.
        """
        directory = os.environ.get("HADOOP_CONF_DIR")
        if not directory and (home := os.environ.get("HADOOP_HOME")):
            directory = f"{home}/etc/hadoop"
        found: dict[str, str] = {}
        for name in _FILES if directory else ():
            found.update(_read(Path(directory or "", name)))
        return cls(found)

    def get(self, name: str) -> str:
        """A property with its ``${variables}`` filled in; empty when it is not there."""
        value = self.properties.get(name, "")
        for _ in range(_DEPTH):
            filled = _VARIABLE.sub(lambda match: self.properties.get(match[1], match[0]), value)
            if filled == value:
                break
            value = filled
        return value.strip()

    def name_nodes(self, nameservice: str, kind: str) -> list[str]:
        """The addresses of a nameservice's NameNodes, in the order of the configuration; none when it is not one.

        Args:
            kind: ``rpc``, ``http`` or ``https``.
        """
        ids = [name.strip() for name in self.get(f"dfs.ha.namenodes.{nameservice}").split(",") if name.strip()]
        found = [self.get(f"dfs.namenode.{kind}-address.{nameservice}.{name}") for name in ids]
        return [address for address in found if address]

    def ha_properties(self, nameservice: str) -> dict[str, str]:
        """What another process needs to find the NameNodes of a nameservice without these files."""
        keys = [f"dfs.ha.namenodes.{nameservice}"]
        keys += [name for name in self.properties if name.startswith(f"dfs.namenode.rpc-address.{nameservice}.")]
        return {key: self.get(key) for key in keys if self.get(key)}


def _read(path: Path) -> dict[str, str]:
    try:
        root = ElementTree.parse(path).getroot()
    except FileNotFoundError:
        return {}
    except (OSError, ElementTree.ParseError) as error:
        raise UsageProblem(
            f"cannot read {printable(str(path))}",
            f"it is not a Hadoop configuration: {error}",
            "correct it, or point HADOOP_CONF_DIR elsewhere",
        ) from error
    pairs = ((item.findtext("name"), item.findtext("value")) for item in root.iter("property"))
    return {name.strip(): value for name, value in pairs if name and value is not None}
