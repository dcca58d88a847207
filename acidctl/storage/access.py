"""Who may do what with a file or a directory, and what takes the place of several of them may grant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

_FILE, _DIRECTORY = 0o600, 0o700


@dataclass(frozen=True, slots=True)
class Access:
    """What a store keeps with an entry; of a symbolic link its own, not that of what it leads to.

    Attributes:
        owner, group: as the store names them, numbers on the local disk; an empty owner is who runs this.
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

    def lets_read(self, user: str, *, is_dir: bool) -> bool:
        """Whether a user of whose groups nothing is known may certainly read it."""
        needed = 5 if is_dir else 4
        rights = self.mode >> 6 if user == self.owner else self.without_group().mode
        return rights & needed == needed

    def of_someone(self, now: Access) -> Access:
        """With the owner that it has now, where none is named."""
        return replace(self, owner=self.owner or now.owner)

    def without_group(self) -> Access:
        """Where it cannot have this group, or this ACL: whom they kept away counts among all others then."""
        others = 0 if self.acl else self.mode & self.mode >> 3 & 7
        return replace(self, mode=self.mode & 0o700 | others, acl=())


def narrowest(found: Sequence[Access], place: Access, *, is_dir: bool) -> Access:
    """What all of several entries grant: nobody gets to see in one what was hidden in another.

    Args:
        found: of the entries whose rows come together; none where there are none.
        place: of the directory that they lie in, whose group decides where theirs differ; and whose owner, if he may
            read them all. If he may not, the first of their owners who may, and else nobody but who runs this.
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
    """The first owner who may read all of it; empty where nobody may."""
    owners = (first, *(access.owner for access in found))
    return next((one for one in owners if all(access.lets_read(one, is_dir=is_dir) for access in found)), "")


def _is_same(values: Iterable[object]) -> bool:
    return len(set(values)) == 1
