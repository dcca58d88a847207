"""Access HDFS over HTTP (``webhdfs://`` and, with TLS, ``swebhdfs://``) or by its own protocol (``hdfs://``)."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from acidctl.acid.listing import Entry, Listing
from acidctl.base.errors import AccessError, AcidctlError, ConflictError, NotFoundError, StorageError
from acidctl.base.printable import printable
from acidctl.storage import os_errors
from acidctl.storage.hdfs.cluster import wants_kerberos, web_token
from acidctl.storage.hdfs.errors import QuotaError
from acidctl.storage.hdfs.new_file import CutShortError, NewFile
from acidctl.storage.port import Access, FileSystemSpec, base_name, join
from acidctl.storage.ranged import RangedReader, behind_the_end, clamp
from acidctl.storage.read_back import require_content, require_length
from acidctl.storage.remote import RemoteStore
from acidctl.storage.retry import PassingError

if TYPE_CHECKING:
    from acidctl.storage.hdfs.native import NativeClient
    from acidctl.storage.hdfs.webhdfs import WebHdfsClient

_WRITE_BUFFER = 1 << 20
_LISTERS = 16
"""The most threads that list, for all trees together: at most as many as connections are kept."""

_RIGHTS = ("---", "--x", "-w-", "-wx", "r--", "r-x", "rw-", "rwx")
_AGAIN = 4  # A tree is listed this many times at most, if directories vanish from it
_NOT_PASSED_ON = ("kerberos", "keytab", "principal")  # options that executors do not get with a delegation token


class HdfsFileSystem(RemoteStore):
    """One HDFS.  Files and directories are created with the server's default permissions, by the spec's user.

    A call that changes something is never simply repeated.  If its answer was lost, or if one of several NameNodes may
    have done it before another was asked, the present state of the paths decides whether it was done.
    """

    def __init__(self, spec: FileSystemSpec) -> None:
        super().__init__(spec)
        self.can_rename = True
        self.can_lock = True
        self._client: WebHdfsClient | NativeClient = _client(spec)
        self._has_several = "," in spec.authority or any("dfs.ha.namenodes" in key for key, _ in spec.options)
        # Not acidctl.base.parallel: all listings of this store share these threads, as they share its connections.
        self._listers = ThreadPoolExecutor(_LISTERS, "acidctl-list")

    def list_tree(self, path: str, top: Listing | None = None) -> Listing:
        """List with one LISTSTATUS per directory, for all directories of one depth at the same time.

        If a directory vanishes meanwhile, everything is listed again: a cleaner removes what a newer directory
        replaces, which may have appeared after the first listing.
        """
        for _ in range(_AGAIN):
            entries, is_whole = self._tree(path, top)
            if is_whole:
                break
            top = None
        entries.sort(key=lambda entry: entry.path)
        return self._tails.listed(Listing(path, tuple(entries)), whole=True)

    def _tree(self, path: str, top: Listing | None) -> tuple[list[Entry], bool]:
        """Return everything below a directory, and whether nothing vanished meanwhile."""
        is_whole = True
        entries: list[Entry] = list(top.entries) if top else []
        level = [entry.path for entry in entries if entry.is_dir] if top else [""]
        while level:
            below: list[str] = []
            gone: set[str] = set()
            answers = self._listers.map(partial(self._below, path), level)
            for prefix, children in zip(level, answers, strict=True):
                if children is None:
                    gone.add(prefix)
                    continue
                entries += children
                below += [entry.path for entry in children if entry.is_dir]
            if gone:
                is_whole = False
                entries = [entry for entry in entries if entry.path not in gone]
            level = below
        return entries, is_whole

    def list_dir(self, path: str) -> Listing:
        entries = sorted(self._children(path, ""), key=lambda entry: entry.path)
        return self._tails.listed(Listing(path, tuple(entries)), whole=False)

    def stat(self, path: str) -> Entry:
        return self._tails.looked(path, _entry(self._client.status(path, "look at"), base_name(path)))

    def open_input(self, path: str) -> BinaryIO:
        size, fetch = self._client.open_reader(path)
        return cast(BinaryIO, RangedReader(fetch, size, printable(self.display(path))))

    def _read(self, path: str, offset: int, length: int | None) -> bytes:
        if offset >= 0 and length:  # the common case: one request if the file has the whole range
            try:
                data = self._client.read(path, offset, length)
            except StorageError as error:  # WebHDFS refuses an offset behind the end
                return behind_the_end(error, offset, lambda: self._client.open_reader(path)[0])
            if len(data) == length:
                return data
        size, fetch = self._client.open_reader(path)
        start, end = clamp(offset, length, size)
        data = fetch(start, end) if start < end else b""
        if len(data) != end - start:
            why = f"asked for {end - start} bytes at offset {start}, got {len(data)}"
            hint = "the connection broke, or the file changes: try again"
            raise StorageError(f"cannot read {printable(self.display(path))}", why, hint)
        return data

    def write_bytes(self, path: str, data: bytes) -> None:
        self._create(path, data)
        require_length(self, path, len(data))

    def create_exclusive(self, path: str, data: bytes) -> None:
        self._create(path, data)
        require_content(self, path, data)

    def access(self, path: str) -> Access | None:
        return self._access(path, self._client.status(path, "look at"))

    def access_below(self, path: str, name: str | None = None) -> dict[str, Access]:
        statuses = {str(status["pathSuffix"]): status for status in self._client.list_status(path)}
        return {key: self._access(join(path, key), status) for key, status in statuses.items() if name in (None, key)}

    def set_access(self, path: str, access: Access) -> None:
        now = self.access(path)
        assert now is not None
        access = access.of_someone(now)
        if (now.owner, now.group) != (access.owner, access.group):
            try:
                self._client.set_owner(path, access.owner, access.group)
            except AccessError:  # only the superuser gives files away
                access = self._with_group(path, access, now)
        if now.acl and not access.acl:
            self._client.set_acl(path, ())
        if access.acl:
            owner, mask, other = (_RIGHTS[access.mode >> shift & 7] for shift in (6, 3, 0))
            # With the entries that HDFS keeps in the mode.
            self._client.set_acl(path, (f"user::{owner}", *access.acl, f"mask::{mask}", f"other::{other}"))
        elif now.mode != access.mode or now.acl:
            self._client.set_permission(path, access.mode)

    def _with_group(self, path: str, access: Access, now: Access) -> Access:
        if now.group == access.group:
            return access
        try:
            self._client.set_owner(path, "", access.group)
        except AccessError:
            return access.without_group()
        return access

    def _access(self, path: str, status: dict[str, Any]) -> Access:
        owner, mode = str(status["owner"]), int(str(status["permission"]), 8)
        acl = self._client.acl(path) if status.get("aclBit") else ()
        return Access(owner, str(status["group"]), mode & 0o777, acl, owner in self._trusted)

    @cached_property
    def _trusted(self) -> frozenset[str]:
        """Return the present user and the superuser, who owns the root."""
        return frozenset({self._client.user(), str(self._client.status("/", "look at")["owner"])})

    def open_output(self, path: str, *, private: bool = False) -> BinaryIO:
        self._require_free(path)
        return cast(BinaryIO, _Output(self, self._client.open_output(path, 0o600 if private else None), path))

    def _create(self, path: str, data: bytes) -> None:
        self._pace.passed(len(data))
        self._require_free(path)  # otherwise a big body meets a closed connection instead of the reason
        try:
            self._client.create(path, data)
        except PassingError as error:
            if not data or not self._holds(path, data):  # an empty file may be anybody's
                raise _unsure(error, "what it wrote may be there, incomplete") from error
        except QuotaError:
            self._remove_part(path)
            raise

    def _remove_part(self, path: str) -> None:
        """Remove a new file that HDFS has only in part.

        The file is ours: HDFS checks quotas of space when it allocates a block for a file that it has created.
        """
        with suppress(AcidctlError):
            self._client.delete(path, recursive=False)

    def make_dirs(self, path: str, *, below: str = "") -> None:
        if below:
            self.stat(below)
        self._client.make_dirs(path)

    def rename(self, source: str, target: str) -> None:
        self._tails.forget()
        doing = f"rename {printable(self.display(source))} to"
        if self.exists(target):  # the server refuses too, but HttpFS would nest
            raise os_errors.already_exists(doing, self.display(target))
        try:
            is_safe = self._client.rename(source, target)
        except (PassingError, NotFoundError) as error:
            if isinstance(error, NotFoundError) and not self._has_several:
                raise
            if self._look(source) is False and self._look(target):
                return
            if isinstance(error, NotFoundError):
                raise
            raise _unsure(error, "it may still be moved") from error
        except ConflictError:
            raise
        except StorageError:
            if self._look(source) and self._look(target):  # each kind of target has a refusal of its own
                raise os_errors.already_exists(doing, self.display(target)) from None
            raise
        if not is_safe:
            nested = join(target, base_name(source))
            if base_name(source) != base_name(target) and self.exists(nested):
                why = f"the target appeared meanwhile and HttpFS moved the source into it: {printable(nested)}"
                hint = "move it out by hand; use the NameNode's WebHDFS, whose rename is safe"
                raise StorageError(f"cannot {doing} {printable(self.display(target))}", why, hint)

    def replace(self, source: str, target: str) -> None:
        self._tails.forget()
        for path in (source, target):
            if self.stat(path).is_dir:
                raise os_errors.is_a_directory("replace", self.display(path))
        self._client.replace(source, target)

    def trash_root(self, path: str) -> str | None:
        """Return the user's ``.Trash`` for a path, in its encryption zone if it has one; None if unknown."""
        return self._client.trash_root(path)

    def remove_tree(self, path: str) -> None:
        if path == "/":
            raise os_errors.root_is_kept(self.display(path))
        self._tails.forget()
        was_there = self._has_several and self.exists(path)
        try:
            done = self._client.delete(path) or was_there
        except PassingError as error:
            if self._look(path) is not False:
                raise _unsure(error, "it may still be removed") from error
            done = True
        if not done:
            raise os_errors.missing("remove", self.display(path))

    def remove_empty(self, path: str) -> None:
        try:
            self._client.delete(path, recursive=False)
        except AcidctlError:
            if self._look(path) and not self.list_dir(path).entries:
                raise

    def _look(self, path: str) -> bool | None:
        """Return whether an entry exists; None if the store cannot tell."""
        try:
            return self.exists(path)
        except AcidctlError:
            return None

    def _below(self, root: str, prefix: str) -> list[Entry] | None:
        """Return the children of a directory below `root`; None if it vanished after its parent was listed."""
        try:
            return self._children(root, prefix)
        except NotFoundError:
            if not prefix:
                raise
            return None

    def _children(self, root: str, prefix: str) -> list[Entry]:
        directory = join(root, prefix) if prefix else root
        statuses = self._client.list_status(directory)
        # For a file, a NameNode returns its status without a name, HttpFS with its name.
        if len(statuses) == 1 and statuses[0]["type"] != "DIRECTORY":
            name = statuses[0]["pathSuffix"]
            if not name or (name == base_name(directory) and not self.stat(directory).is_dir):
                raise os_errors.not_a_directory("list", self.display(directory))
        start = f"{prefix}/" if prefix else ""
        return [_entry(status, start + status["pathSuffix"]) for status in statuses]


class _Output(io.BufferedWriter):
    """A new file, which HDFS has confirmed in full once ``close()`` has returned."""

    def __init__(self, fs: HdfsFileSystem, raw: NewFile, path: str) -> None:
        super().__init__(raw, _WRITE_BUFFER)
        self._fs, self._path = fs, path

    def write(self, data: Any, /) -> int:
        size = super().write(data)
        self._fs._pace.passed(size)
        return size

    def close(self) -> None:
        if self.closed:
            return
        try:
            super().close()
        except (QuotaError, CutShortError):
            self._fs._remove_part(self._path)
            raise
        require_length(self._fs, self._path, self.raw.tell())


def _entry(status: dict[str, Any], path: str) -> Entry:
    is_dir = status["type"] == "DIRECTORY"
    return Entry(path, 0 if is_dir else int(status["length"]), status["modificationTime"] / 1000, is_dir)


def _client(spec: FileSystemSpec) -> WebHdfsClient | NativeClient:
    if spec.protocol == "hdfs":
        from acidctl.storage.hdfs.native import NativeClient  # noqa: PLC0415 - one of two clients

        return NativeClient(spec)
    from acidctl.storage.hdfs.webhdfs import WebHdfsClient  # noqa: PLC0415 - with requests: one of two

    return WebHdfsClient(spec)


def _unsure(error: PassingError, may_be: str) -> StorageError:
    """Return the error for a call that was not answered and has not taken effect so far."""
    return StorageError(error.what, f"{error.why}, and {may_be}", f"look what is there, then: {error.hint}")


@lru_cache(maxsize=16)
def delegated(spec: FileSystemSpec) -> FileSystemSpec:
    """Return the spec to send to executors: for WebHDFS with Kerberos it holds a delegation token instead of a ticket.

    All tasks of a process share one token, which the server ends after its renewal interval (default: a day).  Specs
    of other stores are returned unchanged: over ``hdfs://`` executors use the tokens that Spark fetches for them
    (:func:`acidctl.storage.hdfs.cluster.rpc_address`), or a ticket or keytab of their own.

    Raises:
        AccessError: the server gives no token, or there is no ticket.
        StorageError: the server cannot be reached.
    """
    options = dict(spec.options)
    if spec.protocol not in ("webhdfs", "swebhdfs") or options.get("token") or not wants_kerberos(options):
        return spec
    from acidctl.storage.hdfs.webhdfs import WebHdfsClient  # noqa: PLC0415 - with requests: only for WebHDFS

    options["token"] = web_token(spec) or WebHdfsClient(spec).delegation_token()
    kept = {key: value for key, value in options.items() if key not in _NOT_PASSED_ON}
    return FileSystemSpec(spec.protocol, tuple(sorted(kept.items())), spec.authority)
