"""Check whether a store's options need Kerberos, and find the tokens that replace a ticket.

A cluster, or a scheduler that starts commands, gives a job the tokens that were fetched for it in a file, whose name is
in ``HADOOP_TOKEN_FILE_LOCATION``.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import suppress

from acidctl.storage.hdfs.conf import HadoopConf
from acidctl.storage.port import FileSystemSpec
from acidctl.tokens import VARIABLE, tokens_of_job

_RPC_KIND = "HDFS_DELEGATION_TOKEN"
_WEB_KINDS = {"webhdfs": "WEBHDFS delegation", "swebhdfs": "SWEBHDFS delegation"}
_ADDRESS_KINDS = {"webhdfs": "http", "swebhdfs": "https"}
_NAMESERVICE = "ha-hdfs:"


def wants_kerberos(options: Mapping[str, str]) -> bool:
    """Return whether the storage options ask for a Kerberos login."""
    return options.get("kerberos", "").lower() in ("true", "yes", "1") or bool(options.get("keytab"))


def rpc_address(authority: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return a NameNode's address, or the nameservice, as a token of this job names it; None without a token.

    Tokens hold numeric addresses, unless a cluster is configured differently.

    Raises:
        UsageProblem: the file of tokens cannot be read.
    """
    services = {token.service for token in tokens_of_job(environ) if token.kind == _RPC_KIND}
    if f"{_NAMESERVICE}{authority}" in services:
        return authority
    return next((address for address in _spellings(authority) if address in services), None) if services else None


def web_token(spec: FileSystemSpec, environ: Mapping[str, str] = os.environ) -> str:
    """Return a token of this job that opens a WebHDFS, as text; empty if there is none.

    Raises:
        UsageProblem: the file of tokens cannot be read.
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
