"""Who may do what with a file or a directory, and what takes the place of several of them may grant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

_FILE, _DIRECTORY = 0o600, 0o700


@dataclass(frozen=True, slots=True)
class Access:
    """What a store keeps with an entry; of a symbolic link its own, not that of what it leads to.

    Attributes:
        owner, group: as the store names them, numbers on the local disk.
        mode: the nine bits of POSIX; with an ACL those of the group are its mask.
        acl: beyond the mode, as the store writes it; empty where there is none.
        is_own: its owner is who runs this, or the store's superuser.
        is_link: a symbolic link.
    """

    owner: str
    group: str
    mode: int
    acl: tuple[str, ...] = ()
    is_own: bool = True
    is_link: bool = False

    def without_group(self) -> Access:
        """Where it cannot have this group, or this ACL: whom they kept away counts among all others then."""
        others = 0 if self.acl else self.mode & self.mode >> 3 & 7
        return replace(self, mode=self.mode & 0o700 | others, acl=())


def narrowest(found: Sequence[Access], place: Access, *, is_dir: bool) -> Access:
    """What all of several entries grant: nobody gets to see in one what was hidden in another.

    Args:
        found: of the entries whose rows come together; none where there are none.
        place: of the directory that they lie in, whose owner and group decide where theirs differ.
    """
    if not found:
        return place if is_dir else replace(place, mode=place.mode & 0o666, acl=())
    first = found[0]
    alike = _is_same(access.group for access in found) and _is_same(access.acl for access in found)
    mode = 0o777
    for access in found:
        mode &= access.mode if alike else access.without_group().mode
    owner = first.owner if _is_same(access.owner for access in found) else place.owner
    group = first.group if _is_same(access.group for access in found) else place.group
    return Access(owner, group, mode | (_DIRECTORY if is_dir else _FILE), first.acl if alike else ())


def _is_same(values: Iterable[object]) -> bool:
    return len(set(values)) == 1
