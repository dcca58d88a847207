"""What a location holds: the one value every rule starts from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Entry(NamedTuple):
    """One file or directory below a location; a tuple, since warehouses have millions of them.

    Attributes:
        path: relative to the location, components joined by ``/``, never starting with ``/``.
        size: bytes; 0 for a directory.
        modified: seconds since the epoch, UTC; None where the store has no time (object store prefixes).
        is_dir: a directory, not a file.
    """

    path: str
    size: int
    modified: float | None
    is_dir: bool


@dataclass(frozen=True, slots=True)
class Listing:
    """All entries below `location`, sorted by path, hidden ones included.

    `location` is the path inside its file system, for messages only: no rule looks at it.
    """

    location: str
    entries: tuple[Entry, ...]
