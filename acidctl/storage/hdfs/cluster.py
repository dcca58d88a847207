"""Find out how to reach a cluster: from Hadoop's configuration files, Kerberos options, and tokens of this job.

A cluster, or a scheduler that starts commands, gives a job the tokens that were fetched for it in a file, whose name is
in ``HADOOP_TOKEN_FILE_LOCATION``.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import suppress

from acidctl.hadoop.site_files import SiteFiles
from acidctl.hadoop.tokens import VARIABLE, tokens_of_job
from acidctl.storage.port import FileSystemSpec

_SITE_FILES = ("core-site.xml", "hdfs-site.xml")
_RPC_KIND = "HDFS_DELEGATION_TOKEN"
_WEB_KINDS = {"webhdfs": "WEBHDFS delegation", "swebhdfs": "SWEBHDFS delegation"}
_ADDRESS_KINDS = {"webhdfs": "http", "swebhdfs": "https"}
_NAMESERVICE = "ha-hdfs:"


class HadoopConf(SiteFiles):
    """The properties of ``core-site.xml`` and ``hdfs-site.xml``; empty if the files do not exist.

    Like Hadoop's own clients, it reads the files in ``HADOOP_CONF_DIR``, else in ``HADOOP_HOME/etc/hadoop``.
    """

    __slots__ = ()

    @classmethod
    def find(cls) -> HadoopConf:
        """Read the files in the directory that the environment names.

        Raises UsageProblem if a file is not XML or cannot be read.
        """
        directory = os.environ.get("HADOOP_CONF_DIR")
        if not directory and (home := os.environ.get("HADOOP_HOME")):
            directory = f"{home}/etc/hadoop"
        return cls.read(directory, _SITE_FILES, "HADOOP_CONF_DIR") if directory else cls()

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


def wants_kerberos(options: Mapping[str, str]) -> bool:
    """Return whether the storage options ask for a Kerberos login."""
    return options.get("kerberos", "").lower() in ("true", "yes", "1") or bool(options.get("keytab"))


def rpc_address(authority: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return a NameNode's address, or the nameservice, as a token of this job names it; None without a token.

    Tokens hold numeric addresses, unless a cluster is configured differently.  Raises UsageProblem if the file of
    tokens cannot be read.
    """
    services = {token.service for token in tokens_of_job(environ) if token.kind == _RPC_KIND}
    if f"{_NAMESERVICE}{authority}" in services:
        return authority
    return next((address for address in _spellings(authority) if address in services), None) if services else None


def web_token(spec: FileSystemSpec, environ: Mapping[str, str] = os.environ) -> str:
    """Return a token of this job that opens a WebHDFS, as text; empty if there is none.

    Raises UsageProblem if the file of tokens cannot be read.
    """
    tokens = tokens_of_job(environ)
    hosts = spec.authority.split(",")
    services = {spelling for host in hosts for spelling in _spellings(host)} if tokens else set()
    conf = HadoopConf.find() if any(token.service.startswith(_NAMESERVICE) for token in tokens) else HadoopConf()
    for token in tokens:
        if token.kind == _WEB_KINDS[spec.protocol] and token.service in services:
            return token.as_text()
        if token.kind == _RPC_KIND and token.service.startswith(_NAMESERVICE):
            name = token.service.removeprefix(_NAMESERVICE)
            if set(hosts) <= set(conf.name_nodes(name, _ADDRESS_KINDS[spec.protocol])):
                return token.as_text()
    return ""


def is_a_job(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether a cluster or a scheduler started this process, with tokens."""
    return bool(environ.get(VARIABLE))


def _spellings(authority: str) -> list[str]:
    """Return ``host:port`` as it is, and with each address of the host."""
    host, _, port = authority.rpartition(":")
    spellings = [authority.lower()]
    with suppress(OSError, ValueError):
        addresses = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
        spellings += [f"{address[4][0]}:{port}" for address in addresses]
    return spellings
