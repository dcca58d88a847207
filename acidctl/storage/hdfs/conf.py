"""Hadoop's configuration files, as far as they say where a file system is.

They are looked for where Hadoop's own clients look: in ``HADOOP_CONF_DIR``, else in ``HADOOP_HOME/etc/hadoop``.
"""

from __future__ import annotations

import os

from acidctl.site_files import SiteFiles

_FILES = ("core-site.xml", "hdfs-site.xml")


class HadoopConf(SiteFiles):
    """The properties of ``core-site.xml`` and ``hdfs-site.xml``; empty when there are none."""

    __slots__ = ()

    @classmethod
    def find(cls) -> HadoopConf:
        """Read the files that the environment leads to.

        Raises:
            UsageProblem: one of them is not XML or cannot be read.
        """
        directory = os.environ.get("HADOOP_CONF_DIR")
        if not directory and (home := os.environ.get("HADOOP_HOME")):
            directory = f"{home}/etc/hadoop"
        return cls.read(directory, _FILES, "HADOOP_CONF_DIR") if directory else cls()

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
