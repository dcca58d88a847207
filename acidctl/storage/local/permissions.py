"""Owners, modes and ACLs of the local disk, by descriptors."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from acidctl.storage.access import Access
from acidctl.storage.local.openat2 import held

_ACLS = ("system.posix_acl_access", "system.posix_acl_default")
_NONE = (errno.ENODATA, errno.ENOTSUP)


def access_of(info: os.stat_result, descriptor: int | None = None) -> Access:
    """Of an entry; its ACL only where a descriptor says what it is of."""
    return Access(
        str(info.st_uid),
        str(info.st_gid),
        stat.S_IMODE(info.st_mode) & 0o777,
        () if descriptor is None else _acl(descriptor),
        info.st_uid in (0, os.geteuid()),
        stat.S_ISLNK(info.st_mode),
    )


def all_access(directory: int, name: str | None = None) -> dict[str, Access]:
    """Of the children of a directory, or one; of what we may not read, and of what is not a file, without an ACL."""
    found = {}
    with os.scandir(directory) as items:
        for item in items:
            with suppress(FileNotFoundError):  # it went meanwhile
                if name in (None, item.name):
                    found[item.name] = _child(directory, item)
    return found


def _child(directory: int, item: os.DirEntry[str]) -> Access:
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
    """Give an entry of ours an owner, a group, a mode and ACLs; fewer rights where it cannot be given away.

    Raises:
        OSError: it is not ours.
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
    """Raises OSError where somebody may have put something else at the place of what we made in a directory of ours.

    Another user's file could be moved there, and be given away then. Owners are compared with each other and not with
    this user, as NFS may store all that root makes under another name.
    """
    now, place = os.fstat(made), os.fstat(directory)
    is_linked = stat.S_ISREG(now.st_mode) and now.st_nlink != 1
    if now.st_uid != place.st_uid or is_linked or place.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise OSError(errno.ESTALE, "it was exchanged meanwhile, or others may write to its directory")


def _given(descriptor: int, access: Access, now: os.stat_result) -> Access:
    """What it may grant with the owner and the group that it has in the end."""
    try:
        os.fchown(descriptor, int(access.owner), int(access.group))
    except OSError:  # only root gives files away, and to whom it knows
        if now.st_gid != int(access.group):
            try:
                os.fchown(descriptor, -1, int(access.group))
            except OSError:
                return access.without_group()
    return access


def _acl(descriptor: int) -> tuple[str, ...]:
    found = []
    for name in _ACLS:
        try:
            found.append(f"{name}={os.getxattr(descriptor, name).hex()}")
        except OSError as error:
            if error.errno not in _NONE:
                raise
    return tuple(found)


def _remove_acl(descriptor: int, name: str) -> None:
    try:
        os.removexattr(descriptor, name)
    except OSError as error:
        if error.errno not in (*_NONE, errno.EACCES):  # a file has no default ACL
            raise
