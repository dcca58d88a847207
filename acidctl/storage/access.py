"""Describe who may do what with a file or a directory, and what the replacement of several entries may grant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

_FILE, _DIRECTORY = 0o600, 0o700


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


def narrowest(found: Sequence[Access], place: Access, *, is_dir: bool) -> Access:
    """Return the rights that all of several entries grant: nobody may see in one what was hidden in another.

    Args:
        found: the rights of the entries whose rows are merged; may be empty.
        place: the rights of the directory that holds the entries. Its group is used if theirs differ; so is its owner
            if he may read them all, else the first of their owners who may, else the present user.
    """
    if not found:
        return place if is_dir else replace(place, mode=place.mode & 0o666, acl=())
    first = found[0]
    alike = _is_same(access.group for access in found) and _is_same(access.acl for access in found)
    mode = 0o777
    for access in found:
        mode &= access.mode if alike else access.without_group().mode
    owner = first.owner if _is_same(access.owner for access in found) else _reader(found, place.owner, is_dir)
    group = first.group if _is_same(access.group for access in found) else place.group
    return Access(owner, group, mode | (_DIRECTORY if is_dir else _FILE), first.acl if alike else ())


def _reader(found: Sequence[Access], first: str, is_dir: bool) -> str:
    """Return the first owner who may read all entries; empty if nobody may."""
    owners = (first, *(access.owner for access in found))
    return next((owner for owner in owners if all(access.lets_read(owner, is_dir=is_dir) for access in found)), "")


def _is_same(values: Iterable[object]) -> bool:
    return len(set(values)) == 1
