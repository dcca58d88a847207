"""The one door to where bytes live: what every file system can do, whatever it is.

All paths are absolute inside their file system, ``/``-separated, without scheme and without a trailing ``/``, as
:func:`acidctl.storage.registry.open_location` returns them or as :func:`join` makes them.  They are names, not URLs:
nothing in them is ever percent-decoded, because Hive's partition directories hold percent escapes of their own.

Errors, unless a method says more: :class:`~acidctl.errors.NotFoundError` when the path (or a parent of it) is missing
or is not of the kind asked for, :class:`~acidctl.errors.AccessError` when the store says no,
:class:`~acidctl.errors.StorageError` when it fails or cannot be reached.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol

from acidctl.acid.listing import Entry, Listing
from acidctl.storage.access import Access


@dataclass(frozen=True, slots=True)
class FileSystemSpec:
    """Everything needed to open the same file system again, in another process too: small and picklable.

    :func:`acidctl.storage.registry.open_file_system` does.

    Attributes:
        protocol: ``file``, ``memory``, ``webhdfs``, ``s3``...
        options: sorted pairs; may hold credentials, so they are left out of the repr.
        authority: ``host:port`` or bucket; empty where there is none.
    """

    protocol: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    authority: str = ""


class FileSystem(Protocol):
    """A store.  Implementations may be shared by threads and pickled (they reconnect from their spec).

    Attributes:
        url: scheme and authority, ``webhdfs://host:9870``; for messages.
        can_rename: False where a directory cannot be moved in one step (object stores).
        can_copy: whether :meth:`copy` works; what stores without renames show results with.
        can_lock: whether of several :meth:`create_exclusive` at once exactly one wins.
        is_local: a call costs no request over a network.
        spec: what reopens it.
    """

    url: str
    can_rename: bool
    can_copy: bool
    can_lock: bool
    is_local: bool
    spec: FileSystemSpec

    def display(self, path: str) -> str:
        """The path as a user would type it: plain on the local disk, else with scheme and authority."""
        ...

    def list_tree(self, path: str, top: Listing | None = None) -> Listing:
        """Everything below a directory, hidden entries included, sorted by path, in as few calls as the store allows.

        Never incomplete: a directory that cannot be read is an AccessError, not an empty one.

        Args:
            top: what :meth:`list_dir` said of it a moment ago; a store that lists directory by directory need not ask
                for its own children again.

        Raises:
            NotFoundError: missing, or a file.
        """
        ...

    def list_dir(self, path: str) -> Listing:
        """The direct children of a directory, sorted by name; errors as for :meth:`list_tree`."""
        ...

    def stat(self, path: str) -> Entry:
        """What is at the path; the entry's own `path` is its last component.

        Raises:
            NotFoundError: nothing is there.
        """
        ...

    def exists(self, path: str) -> bool:
        """Whether a file or directory is there; a store that cannot tell raises, it never says no."""
        ...

    def open_input(self, path: str) -> BinaryIO:
        """A seekable file for random access; only the ranges read are fetched.

        Raises:
            NotFoundError: missing, or a directory.
            BadDataError: neither a file nor a directory (a device, a pipe).
        """
        ...

    def local_path(self, path: str) -> str | None:
        """The path on the local disk, for libraries that open files themselves; None when there is none."""
        ...

    def read_bytes(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """A range of a file, cut at its ends as a Python slice is.

        Args:
            offset: bytes from the start; negative from the end.
            length: bytes; None to the end.
        """
        ...

    def write_bytes(self, path: str, data: bytes) -> None:
        """Create a file with this content, durable on return; the store has been asked for its length since.

        The parent directory must exist; WebHDFS before Hadoop 2.8 and stores without directories make it.

        Raises:
            ConflictError: something is there already; it is left as it was.
            StorageError: the store did not take all of it; what is there of it is removed again, where that is safe.
        """
        ...

    def create_exclusive(self, path: str, data: bytes) -> None:
        """As :meth:`write_bytes`, read again, and of several callers at once exactly one wins: a lock.

        Args:
            data: tells whose it is: where an answer was lost, the file is ours when it holds this.

        Raises:
            ConflictError: for the losers.
            StorageError: the store cannot promise it.
        """
        ...

    def access(self, path: str) -> Access | None:
        """Who owns an entry, and who may do what with it; None in stores that do not keep that.

        Raises:
            NotFoundError: nothing is there.
        """
        ...

    def access_below(self, path: str, name: str | None = None) -> Mapping[str, Access]:
        """The same of the direct children of a directory, by their names; errors as for :meth:`list_dir`.

        Args:
            name: of the only one that is asked for.
        """
        ...

    def set_access(self, path: str, access: Access) -> None:
        """Give a new entry this owner, group, mode and ACL: never more rights, and fewer where we may not give it away.

        Raises:
            AccessError: it is not ours.
        """
        ...

    def open_output(self, path: str, *, private: bool = False) -> BinaryIO:
        """A new file to write from start to end; durable, and as long as it should be by the store's own word, once
        ``close()`` has returned.

        Raises:
            ConflictError: something is there already.  A store that cannot know before the bytes have arrived raises
                it from ``close()``.
            StorageError: also from ``close()``: the store did not take all of it; as for :meth:`write_bytes`.
        """
        ...

    def make_dirs(self, path: str, *, below: str = "") -> None:
        """Make a directory with its parents; fine when it exists; nothing to do on stores without directories.

        Args:
            below: a directory above it that is never made, nor what lies above that: a location that was dropped or
                renamed meanwhile is not to come back.  HDFS makes all parents by itself, so there a moment is left.

        Raises:
            ConflictError: a file is there.
            NotFoundError: ``below`` is not there any more.
        """
        ...

    def rename(self, source: str, target: str) -> None:
        """Move a file or directory in one step.  Never nests into a target directory, never replaces anything.

        Raises:
            ConflictError: the target exists; nothing was moved.
            NotFoundError: the source or the parent of the target is missing.
            StorageError: the store cannot rename, or its answer was lost.
        """
        ...

    def replace(self, source: str, target: str) -> None:
        """Move a file to where another file is, in one step: at every moment one of the two is there, and whole.

        Raises:
            NotFoundError: the source is missing, or the target is not a file; nothing was moved.
            StorageError: the store cannot, or its answer was lost.
        """
        ...

    def copy(self, source: str, target: str) -> None:
        """Copy a file inside the store.  The target appears whole or not at all, and never replaces anything.

        Not every store lets only one of several callers win: hold the lock of the location.

        Raises:
            ConflictError: the target exists.
            NotFoundError: the source is missing, or a directory.
            StorageError: the store cannot copy so, or its answer was lost.
        """
        ...

    def remove_tree(self, path: str) -> None:
        """Remove a file, or a directory with all it holds; a symbolic link is removed, never followed.

        Raises:
            NotFoundError: nothing is there.
        """
        ...

    def remove_empty(self, path: str) -> None:
        """Remove a directory if nothing is in it; else, or when it is not there, leave all as it is.

        Raises:
            NotFoundError, AccessError, StorageError: as for :meth:`remove_tree`, but never for what is missing.
        """
        ...


def join(parent: str, *names: str) -> str:
    """The path of something below `parent`; also right when `parent` is the root."""
    return "/".join((parent.rstrip("/"), *names))


def base_name(path: str) -> str:
    """The last component; empty for the root."""
    return path.rstrip("/").rpartition("/")[2]


def parent_of(path: str) -> str:
    """The path without its last component; the root is its own parent."""
    return path.rstrip("/").rpartition("/")[0] or "/"
