"""Define the port to files wherever they are: the operations of every file system.

All paths are absolute inside their file system, ``/``-separated, without scheme and without a trailing ``/``, as
:func:`acidctl.storage.registry.open_location` returns them or as :func:`join` makes them.  They are names, not URLs,
and are never percent-decoded, because Hive's partition directories have percent escapes of their own.

Errors, unless a method documents others: :class:`~acidctl.base.errors.NotFoundError` if the path (or a parent of it) is
missing or is not of the expected kind, :class:`~acidctl.base.errors.AccessError` if the store denies access,
:class:`~acidctl.base.errors.StorageError` if it fails or cannot be reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import BinaryIO, Protocol

from acidctl.acid.listing import Entry, Listing

_FILE, _DIRECTORY = 0o600, 0o700


@dataclass(frozen=True, slots=True)
class FileSystemSpec:
    """Everything that :func:`acidctl.storage.registry.open_file_system` needs, also in another process.

    Attributes:
        protocol: ``file``, ``memory``, ``webhdfs``, ``s3``...
        options: sorted pairs; may hold credentials, so they are left out of the repr.
        authority: ``host:port`` or bucket; empty for the local disk.
    """

    protocol: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    authority: str = ""


@dataclass(frozen=True, slots=True)
class Access:
    """The owner, group, mode and ACL of an entry; for a symbolic link, of the link itself.

    Attributes:
        owner, group: as the store names them, numbers on the local disk; an empty owner is the present user.
        mode: the nine bits of POSIX; with an ACL the bits of the group are its mask.
        acl: entries beyond the mode, as the store writes them.
        is_own: the owner is the present user, or the store's superuser.
    """

    owner: str
    group: str
    mode: int
    acl: tuple[str, ...] = ()
    is_own: bool = True
    is_link: bool = False

    def lets_read(self, user: str, *, is_dir: bool) -> bool:
        """Return whether a user whose groups are unknown may certainly read the entry."""
        needed = 5 if is_dir else 4
        rights = self.mode >> 6 if user == self.owner else self.without_group().mode
        return rights & needed == needed

    def of_someone(self, now: Access) -> Access:
        """Return these rights with the owner of `now` if no owner is named."""
        return replace(self, owner=self.owner or now.owner)

    def without_group(self) -> Access:
        """Return rights for an entry that cannot have this group or ACL, so that their members count as others."""
        others = 0 if self.acl else self.mode & self.mode >> 3 & 7
        return replace(self, mode=self.mode & 0o700 | others, acl=())


class FileSystem(Protocol):
    """A store.  Implementations may be shared by threads and pickled (they reconnect from their spec).

    Attributes:
        url: scheme and authority, ``webhdfs://host:9870``, for messages.
        can_rename: False if a directory cannot be moved in one step (object stores).
        can_copy: whether :meth:`copy` works, by which stores without renames publish results.
        can_lock: whether exactly one of several simultaneous :meth:`create_exclusive` succeeds.
        is_local: whether calls cost no request over a network.
    """

    url: str
    can_rename: bool
    can_copy: bool
    can_lock: bool
    is_local: bool
    spec: FileSystemSpec

    def display(self, path: str) -> str:
        """Return the path as a user would type it: plain on the local disk, else with scheme and authority."""

    def list_tree(self, path: str, top: Listing | None = None) -> Listing:
        """Return everything below a directory, including hidden entries, sorted by path.

        This takes as few calls as the store allows.  The listing is always complete: a directory that cannot be read
        is an AccessError.

        Args:
            top: the result of a recent :meth:`list_dir`, so that a store that lists directory by directory need not
                list this directory again.

        Raises:
            NotFoundError: the path is missing, or a file.
        """

    def list_dir(self, path: str) -> Listing:
        """Return the direct children of a directory, sorted by name; errors as for :meth:`list_tree`."""

    def stat(self, path: str) -> Entry:
        """Return the entry at the path; the entry's own `path` is its last component.

        Raises:
            NotFoundError: nothing is there.
        """

    def exists(self, path: str) -> bool:
        """Return whether a file or directory is there; a store that cannot tell raises an error."""

    def open_input(self, path: str) -> BinaryIO:
        """Open a file for random access; only the ranges that are read are fetched.

        Raises:
            NotFoundError: the path is missing, or a directory.
            BadDataError: the path is neither a file nor a directory (a device, a pipe).
        """

    def local_path(self, path: str) -> str | None:
        """Return the path on the local disk, for libraries that open files themselves; None if there is none."""

    def read_bytes(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """Return a range of a file, cut at its ends like a Python slice.

        Args:
            offset: counted from the start; negative from the end.
            length: None for all bytes up to the end.
        """

    def write_bytes(self, path: str, data: bytes) -> None:
        """Create a file with this content, which is durable on return, and check its length in the store.

        The parent directory must exist, but WebHDFS before Hadoop 2.8 and stores without directories create it.

        Raises:
            ConflictError: the path exists already; it is left as it was.
            StorageError: the store did not accept all bytes; an incomplete file is removed again if that is safe.
        """

    def create_exclusive(self, path: str, data: bytes) -> None:
        """Do the same as :meth:`write_bytes`, read the file again, and let exactly one caller win: a lock.

        Args:
            data: identifies the caller: if an answer was lost, the file is ours if it holds this.

        Raises:
            ConflictError: another caller won.
            StorageError: the store cannot guarantee one winner.
        """

    def access(self, path: str) -> Access | None:
        """Return the owner and rights of an entry; None for stores without owners.

        Raises:
            NotFoundError: nothing is there.
        """

    def access_below(self, path: str, name: str | None = None) -> Mapping[str, Access]:
        """Return the owners and rights of a directory's children by name; errors as for :meth:`list_dir`.

        Args:
            name: the only child to return.
        """

    def set_access(self, path: str, access: Access) -> None:
        """Give a new entry this owner, group, mode and ACL; fewer rights, never more, if we may not give it away.

        Raises:
            AccessError: the entry is not ours.
        """

    def open_output(self, path: str, *, private: bool = False) -> BinaryIO:
        """Open a new file to write from start to end.

        Once ``close()`` has returned, the file is durable and the store has confirmed its length.

        Raises:
            ConflictError: the path exists already.  A store that cannot tell before the bytes have arrived raises this
                from ``close()``.
            StorageError: also from ``close()``: the store did not accept all bytes, as for :meth:`write_bytes`.
        """

    def make_dirs(self, path: str, *, below: str = "") -> None:
        """Make a directory with its parents if they do not exist; do nothing on stores without directories.

        Args:
            below: an ancestor; neither it nor directories above it are made, since a location that was dropped or
                renamed meanwhile must not come back.  HDFS makes all parents by itself, so there a race remains.

        Raises:
            ConflictError: the path is a file.
            NotFoundError: ``below`` does not exist any more.
        """

    def rename(self, source: str, target: str) -> None:
        """Move a file or directory in one step, never into a target directory and never replacing anything.

        Raises:
            ConflictError: the target exists; nothing was moved.
            NotFoundError: the source or the parent of the target is missing.
            StorageError: the store cannot rename, or its answer was lost.
        """

    def replace(self, source: str, target: str) -> None:
        """Move a file over another file in one step: at every moment one of the two is there, and whole.

        Raises:
            NotFoundError: the source is missing, or the target is not a file; nothing was moved.
            StorageError: the store cannot do this, or its answer was lost.
        """

    def copy(self, source: str, target: str) -> None:
        """Copy a file inside the store.  The target appears whole or not at all, and never replaces anything.

        Not every store guarantees that only one of several callers wins: hold the lock of the location.

        Raises:
            ConflictError: the target exists.
            NotFoundError: the source is missing, or a directory.
            StorageError: the store cannot copy in this way, or its answer was lost.
        """

    def remove_tree(self, path: str) -> None:
        """Remove a file, or a directory with its content; a symbolic link is removed, never followed.

        Raises:
            NotFoundError: nothing is there.
        """

    def remove_empty(self, path: str) -> None:
        """Remove a directory if it is empty; do nothing if it is not, or does not exist.

        Raises:
            AccessError, StorageError: as for :meth:`remove_tree`.
        """


def join(parent: str, *names: str) -> str:
    """Return the path of something below `parent`, which may be the root."""
    return "/".join((parent.rstrip("/"), *names))


def base_name(path: str) -> str:
    """Return the last component; empty for the root."""
    return path.rstrip("/").rpartition("/")[2]


def parent_of(path: str) -> str:
    """Return the path without its last component; the root is its own parent."""
    return path.rstrip("/").rpartition("/")[0] or "/"


def narrowest(rights: Sequence[Access], directory: Access, *, is_dir: bool) -> Access:
    """Return the rights that all of several entries grant: nobody may see in one what was hidden in another.

    Args:
        rights: the rights of the entries whose rows are merged; may be empty.
        directory: the rights of the directory that holds the entries. Its group is used if theirs differ, and its owner
            if he may read all of them, else the first of their owners who may, else the present user.
    """
    if not rights:
        return directory if is_dir else replace(directory, mode=directory.mode & 0o666, acl=())
    first = rights[0]
    alike = _is_same(access.group for access in rights) and _is_same(access.acl for access in rights)
    mode = 0o777
    for access in rights:
        mode &= access.mode if alike else access.without_group().mode
    owner = first.owner if _is_same(access.owner for access in rights) else _reader(rights, directory.owner, is_dir)
    group = first.group if _is_same(access.group for access in rights) else directory.group
    return Access(owner, group, mode | (_DIRECTORY if is_dir else _FILE), first.acl if alike else ())


def _reader(rights: Sequence[Access], first: str, is_dir: bool) -> str:
    """Return the first owner who may read all entries; empty if nobody may."""
    owners = (first, *(access.owner for access in rights))
    return next((owner for owner in owners if all(access.lets_read(owner, is_dir=is_dir) for access in rights)), "")


def _is_same(values: Iterable[object]) -> bool:
    return len(set(values)) == 1
