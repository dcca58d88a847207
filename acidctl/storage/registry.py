"""Open the file system of a URL or path that a user typed, and return the path inside it."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from acidctl.base.arguments import as_path
from acidctl.base.errors import AcidctlError, NotFoundError, UsageProblem
from acidctl.base.nearest import asked, near_names
from acidctl.base.printable import printable
from acidctl.storage.local.filesystem import LocalFileSystem
from acidctl.storage.local.rooted_directory import RootedDirectory, held
from acidctl.storage.options import ALIASES, DEFAULT_PORTS, StorageOptions
from acidctl.storage.os_errors import mapped
from acidctl.storage.port import FileSystem, FileSystemSpec, base_name, join, parent_of

if TYPE_CHECKING:
    from acidctl.storage.hdfs.cluster import HadoopConf

# Hadoop prints the one-slash form of a URL without authority: file:/data, hdfs:/data.
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)(.*)", re.DOTALL)
_SHORT_URL = re.compile(r"(file|hdfs):()(/.*)", re.DOTALL)

_MOST_PARENTS = 3
_ADDRESS_KINDS = {"hdfs": "rpc", "webhdfs": "http", "swebhdfs": "https"}


@dataclass(frozen=True, slots=True)
class AddedStore:
    """A kind of store that another package adds.

    Attributes:
        locate: returns the spec and the path inside the store for a URL's authority and path, and storage options.
        open: opens a file system from its spec.
        is_shared: whether a file system that another process opens from the same spec has the same files.
    """

    locate: Callable[[str, str, Mapping[str, str]], tuple[FileSystemSpec, str]]
    open: Callable[[FileSystemSpec], FileSystem]
    is_shared: bool = True


_added: dict[str, AddedStore] = {}  # of the process, as a URL anywhere may name such a store


def add_store(protocol: str, store: AddedStore) -> None:
    """Open URLs of a protocol by a store of another package from now on, in this process."""
    _added[protocol] = store


def is_shared(spec: FileSystemSpec) -> bool:
    """Return whether other processes can open the same store."""
    return spec.protocol not in _added or _added[spec.protocol].is_shared


def split_url(text: str) -> tuple[str, str, str] | None:
    """Return protocol by its usual name, authority and path of a URL, not decoded; None for a plain path."""
    match = _URL.fullmatch(text) or _SHORT_URL.fullmatch(text)
    return (ALIASES.get(match[1].lower(), match[1].lower()), match[2], match[3]) if match else None


def open_location(
    url_or_path: str | os.PathLike[str], options: Mapping[str, str] | None = None
) -> tuple[FileSystem, str]:
    """Open the file system of a URL or a plain path, and return it with the path inside it.

    A plain path is on the local disk, relative to the current directory; ``~`` and percent signs are literal.  As in
    Hadoop, a URL's path is not decoded either: ``p=a%3Ab`` is the name of a directory.  ``#`` and ``?`` are part of
    the path.

    Args:
        options: options of the store, by their fsspec names (``key``, ``secret``, ``endpoint_url``,
            ``client_kwargs.NAME``); for HDFS ``user``, ``timeout``, ``retries``, ``keytab``, ``principal``; for WebHDFS
            also those of :func:`acidctl.storage.hdfs.webhdfs.log_in`; for ``hdfs://`` also Hadoop's own,
            ``dfs.client...``.  With :class:`StorageOptions` that set `own_links`, the local disk is accessed only below
            this path, and no link is followed there.

    Raises:
        UsageProblem: the URL cannot be used.
        EnvironmentProblem: the package for this kind of store is not installed.
        NotFoundError: the path is relative, and the current directory was removed.
    """
    url_or_path = as_path(url_or_path)
    own_links = False
    if isinstance(options, StorageOptions):
        own_links, options = options.own_links, options.of(url_or_path)
    if not url_or_path:
        raise UsageProblem("the path is empty", "", "give the directory of a table, a partition or a database")
    parts = split_url(url_or_path)
    if parts is None:
        return _local(_absolute(url_or_path, own_links), own_links)
    protocol, authority, path = parts
    if ":" in authority.rpartition("@")[0]:
        # Check this before any other message repeats the password.
        what = f"a URL must not hold a password: {protocol}://***@{printable(authority.rpartition('@')[2])}"
        why = "it would stand in messages, reports and lists of processes"
        raise UsageProblem(what, why, "give it as a storage option, best in the configuration")
    if protocol == "file":
        if authority not in ("", "localhost"):
            hint = f"write three slashes: file:///{authority}{path}"
            raise UsageProblem(f"not a local path: {printable(url_or_path)}", "", hint)
        return _local(_absolute(path or "/", own_links), own_links)
    if added := _added.get(protocol):
        spec, path = added.locate(authority, path, options or {})
        return open_file_system(spec), path
    spec = _spec(protocol, authority, dict(options or {}), url_or_path)
    if protocol in ("s3", "gs", "abfs"):
        return open_file_system(spec), "/" + path.strip("/")
    return open_file_system(spec), "/" + posixpath.normpath("/" + path).lstrip("/")


def open_file_system(spec: FileSystemSpec) -> FileSystem:
    """Open a file system from its spec; errors as for :func:`open_location`."""
    if spec.protocol == "file":
        return LocalFileSystem(spec)
    if added := _added.get(spec.protocol):
        return added.open(spec)
    if spec.protocol in DEFAULT_PORTS:
        from acidctl.storage.hdfs.filesystem import HdfsFileSystem  # noqa: PLC0415 - only for this store

        return HdfsFileSystem(spec)
    from acidctl.storage.fsspec_fs import FsspecFileSystem  # noqa: PLC0415 - with fsspec: only for these stores

    return FsspecFileSystem(spec)


def _spec(protocol: str, authority: str, options: dict[str, str], url: str) -> FileSystemSpec:
    if protocol in DEFAULT_PORTS:
        from acidctl.storage.hdfs.cluster import HadoopConf  # noqa: PLC0415 - with XML: only for HDFS

        url_user, _, hosts = authority.rpartition("@")
        options["user"] = options.get("user") or url_user or os.environ.get("HADOOP_USER_NAME") or _system_user()
        conf = HadoopConf.find()
        if not hosts and protocol == "hdfs" and (default := _URL.fullmatch(conf.get("fs.defaultFS"))):
            hosts = default[2] if default[1] == "hdfs" else ""
        authority = _name_nodes(protocol, hosts, conf)
        if conf.get("hadoop.security.authentication") == "kerberos":
            options.setdefault("kerberos", "true")
        if protocol == "hdfs":
            options = conf.ha_properties(authority) | options
    if not authority:
        raise UsageProblem(f"no host or bucket in {printable(url)}", "", f"write {protocol}://HOST_OR_BUCKET/path")
    return FileSystemSpec(protocol, tuple(sorted(options.items())), authority)


def _name_nodes(protocol: str, hosts: str, conf: HadoopConf) -> str:
    """Return hosts with ports; for WebHDFS a nameservice of Hadoop's configuration becomes its NameNodes."""
    if addresses := conf.name_nodes(hosts, _ADDRESS_KINDS[protocol]):
        if protocol == "hdfs":
            return hosts  # the client resolves it
        hosts = ",".join(addresses)
    port = DEFAULT_PORTS[protocol]
    return ",".join(host if re.search(r":[0-9]+$", host) else f"{host}:{port}" for host in hosts.split(",") if host)


def _system_user() -> str:
    import getpass  # noqa: PLC0415 - with the terminal: only for HDFS

    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError) as error:
        raise UsageProblem("no user for HDFS", "this process's user id has no name", "set HADOOP_USER_NAME") from error


def _local(path: str, own_links: bool) -> tuple[FileSystem, str]:
    return open_file_system(FileSystemSpec("file", (("beneath", path),) if own_links else ())), path


def _absolute(path: str, own_links: bool) -> str:
    """Return the absolute path with symbolic links kept; ``..`` behind a link is resolved as the kernel does it.

    Args:
        own_links: refuse other users' links before a ``..``.
    """
    try:
        full = os.path.abspath(path)  # noqa: PTH100
    except FileNotFoundError as error:
        raise NotFoundError(f"cannot find {printable(path)}", "the current directory was removed") from error
    if ".." in path.split("/") and "\0" not in path:
        real = os.path.realpath(path)
        if os.path.realpath(full) != real:
            full = _behind_links(path) if own_links else real
    return "/" + full.lstrip("/")


def _behind_links(path: str) -> str:
    """Return where a path with ``..`` behind links leads, by a descriptor: links are checked as they are followed.

    Raises:
        RefusedError: a link belongs to another user.
        NotFoundError: the path does not exist, or its name cannot be found out.
    """
    here = os.path.join(os.getcwd(), path)  # noqa: PTH109, PTH118 - with its ".."
    with mapped("find", path), held(RootedDirectory(here).open(here, os.O_PATH)) as descriptor:
        return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115


@contextmanager
def naming_near(fs: FileSystem, path: str) -> Iterator[None]:
    """Add similar names to the hint of a NotFoundError that the block raises, if nothing exists at `path`.

    This costs one listing, of the nearest parent that exists. Object stores are not listed, as a prefix may hold
    millions of objects.
    """
    try:
        yield
    except NotFoundError as error:
        if near := _near(fs, path):
            raise type(error)(error.what, error.why, near) from error
        raise


def _near(fs: FileSystem, path: str) -> str:
    if not fs.can_rename:
        return ""
    try:
        if fs.is_local:  # it may be confined to the path itself
            fs, path = open_location(fs.display(path))
        if fs.exists(path):
            return ""
        for _ in range(_MOST_PARENTS):
            parent = parent_of(path)
            if fs.exists(parent):
                names = [entry.path for entry in fs.list_dir(parent).entries if entry.path != base_name(path)]
                return asked([printable(fs.display(join(parent, name))) for name in near_names(base_name(path), names)])
            path = parent
    except AcidctlError:
        pass  # the error that brought us here says more
    return ""
