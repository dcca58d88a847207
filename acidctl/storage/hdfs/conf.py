"""Read from Hadoop's configuration files where a file system is.

The files are read from where Hadoop's clients read them: ``HADOOP_CONF_DIR``, else ``HADOOP_HOME/etc/hadoop``.
"""

from __future__ import annotations

import os

from acidctl.site_files import SiteFiles

_FILES = ("core-site.xml", "hdfs-site.xml")


class HadoopConf(SiteFiles):
    """The properties of ``core-site.xml`` and ``hdfs-site.xml``; empty if the files do not exist."""

    __slots__ = ()

    @classmethod
    def find(cls) -> HadoopConf:
        """Read the files in the directory that the environment names.

        Raises:
            UsageProblem: a file is not XML or cannot be read.
        """
        directory = os.environ.get("HADOOP_CONF_DIR")
        if not directory and (home := os.environ.get("HADOOP_HOME")):
            directory = f"{home}/etc/hadoop"
        return cls.read(directory, _FILES, "HADOOP_CONF_DIR") if directory else cls()

    def name_nodes(self, nameservice: str, kind: str) -> list[str]:
        """Return the addresses of a nameservice's NameNodes in configured order; empty if it is not a nameservice.

        Args:
            kind: ``rpc``, ``http`` or ``https``.
        """
        ids = [name.strip() for name in self.get(f"dfs.ha.namenodes.{nameservice}").split(",") if name.strip()]
        addresses = [self.get(f"dfs.namenode.{kind}-address.{nameservice}.{name}") for name in ids]
        return [address for address in addresses if address]

    def ha_properties(self, nameservice: str) -> dict[str, str]:
        """Return the properties by which another process finds a nameservice's NameNodes without these files."""
        keys = [f"dfs.ha.namenodes.{nameservice}"]
        keys += [name for name in self.properties if name.startswith(f"dfs.namenode.rpc-address.{nameservice}.")]
        return {key: self.get(key) for key in keys if self.get(key)}
