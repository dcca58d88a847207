"""Read and set owners, modes and ACLs on the local disk, by descriptors."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from acidctl.storage.local.rooted_directory import held
from acidctl.storage.port import Access

_ACLS = ("system.posix_acl_access", "system.posix_acl_default")
_NONE = (errno.ENODATA, errno.ENOTSUP)


def access_of(info: os.stat_result, descriptor: int | None = None) -> Access:
    """Return the rights of an entry, with its ACL only if a descriptor of it is given."""
    return Access(
        str(info.st_uid),
        str(info.st_gid),
        stat.S_IMODE(info.st_mode) & 0o777,
        () if descriptor is None else _acl(descriptor),
        info.st_uid in (0, os.geteuid()),
        stat.S_ISLNK(info.st_mode),
    )


def all_access(directory: int, name: str | None = None) -> dict[str, Access]:
    """Return the rights of a directory's children, or of the one called `name`."""
    rights = {}
    with os.scandir(directory) as items:
        for item in items:
            with suppress(FileNotFoundError):  # it was removed meanwhile
                if name in (None, item.name):
                    rights[item.name] = _child(directory, item)
    return rights


def _child(directory: int, item: os.DirEntry[str]) -> Access:
    # An entry that we may not read, or that is neither a file nor a directory, has no ACL here.
    info = item.stat(follow_symlinks=False)
    if not (stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode)):
        return access_of(info)
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        opened = os.open(item.name, flags, dir_fd=directory)
    except OSError:
        return access_of(info)
    with held(opened) as descriptor:
        return access_of(os.fstat(descriptor), descriptor)


def set_access(descriptor: int, access: Access) -> None:
    """Give an entry of ours an owner, a group, a mode and ACLs; fewer rights if it cannot be given away.

    Raises OSError if the entry is not ours.
    """
    now = os.fstat(descriptor)
    access = access.of_someone(access_of(now))
    if (now.st_uid, now.st_gid) != (int(access.owner), int(access.group)):
        access = _given(descriptor, access, now)
    for name in _ACLS:
        _remove_acl(descriptor, name)
    os.fchmod(descriptor, access.mode | stat.S_IMODE(now.st_mode) & stat.S_ISGID)
    for entry in access.acl:
        name, _, value = entry.partition("=")
        if name in _ACLS:
            os.setxattr(descriptor, name, bytes.fromhex(value))


def require_made_here(made: int, directory: int) -> None:
    """Refuse, by OSError, an entry that somebody may have exchanged for the entry that we made in our directory.

    Otherwise another user's file could be moved there and be given away. Owners are compared with each other and not
    with this user, as NFS may store everything that root makes under another name.
    """
    now, parent = os.fstat(made), os.fstat(directory)
    is_linked = stat.S_ISREG(now.st_mode) and now.st_nlink != 1
    if now.st_uid != parent.st_uid or is_linked or parent.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise OSError(errno.ESTALE, "it was exchanged meanwhile, or others may write to its directory")


def _given(descriptor: int, access: Access, now: os.stat_result) -> Access:
    """Change owner and group as far as possible, and return the rights that may then be granted."""
    try:
        os.fchown(descriptor, int(access.owner), int(access.group))
    except OSError:  # only root gives files away, and only to known users
        if now.st_gid != int(access.group):
            try:
                os.fchown(descriptor, -1, int(access.group))
            except OSError:
                return access.without_group()
    return access


def _acl(descriptor: int) -> tuple[str, ...]:
    entries = []
    for name in _ACLS:
        try:
            entries.append(f"{name}={os.getxattr(descriptor, name).hex()}")
        except OSError as error:
            if error.errno not in _NONE:
                raise
    return tuple(entries)


def _remove_acl(descriptor: int, name: str) -> None:
    try:
        os.removexattr(descriptor, name)
    except OSError as error:
        if error.errno not in (*_NONE, errno.EACCES):  # a file has no default ACL
            raise
