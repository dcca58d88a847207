"""The listing of a location is the value that every rule starts from; it has the ages of its children."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

from acidctl.acid.names import BucketFile, Kind, acid_directory, is_hidden, is_visible_path, parse_file


class TableType(StrEnum):
    """The kinds of transactional table (section 11)."""

    FULL_ACID = "full-acid"
    INSERT_ONLY = "insert-only"


class Entry(NamedTuple):
    """One file or directory below a location; a tuple, since warehouses have millions of them.

    Attributes:
        path: relative to the location, components joined by ``/``, never starting with ``/``.
        size: bytes; 0 for a directory.
        modified: seconds since the epoch, UTC; None if the store has no time (object store prefixes).
        is_dir: a directory, not a file.
    """

    path: str
    size: int
    modified: float | None
    is_dir: bool


@dataclass(frozen=True)
class Listing:
    """All files and directories below a location.

    Attributes:
        location: the path inside its file system, for messages only: no rule uses it.
        entries: everything below it, sorted by path, hidden ones included.
        table_type: decides what Hive reads; None if it is not known.
        partitions: the ``k=v`` directories at its top that hold files; they count as locations of their own.
    """

    location: str
    entries: tuple[Entry, ...]
    table_type: TableType | None = None
    partitions: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<listing of {self.location}: {len(self.entries):,} entries>"

    def __reduce__(self) -> tuple[type[Listing], tuple[str, tuple[Entry, ...], TableType | None, tuple[str, ...]]]:
        """Leave cached properties out when it is sent to another process."""
        return Listing, (self.location, self.entries, self.table_type, self.partitions)

    @cached_property
    def by_child(self) -> Mapping[str, list[Entry]]:
        """Return every direct child with everything below it, the child included, in the order of the listing."""
        children: dict[str, list[Entry]] = {}
        for entry in self.entries:
            children.setdefault(entry.path.partition("/")[0], []).append(entry)
        return children

    @cached_property
    def files_by_child(self) -> Mapping[str, list[Entry]]:
        """Return the files below each direct child (a file at the location is its own child), sorted by path."""
        files = {name: [entry for entry in entries if not entry.is_dir] for name, entries in self.by_child.items()}
        return {name: sorted(entries, key=itemgetter(0)) for name, entries in files.items() if entries}

    @property
    def is_full_acid(self) -> bool:
        """Return whether the table is known to be full ACID; if its type is unknown, whether names alone show it."""
        return self.shows_full_acid if self.table_type is None else self.table_type is TableType.FULL_ACID

    @cached_property
    def shows_full_acid(self) -> bool:
        """Return whether names alone show a full-ACID table: a delete delta that holds anything, or a ``bucket_N``.

        Hidden names do not count. Without either it is an insert-only table, or a full one that holds nothing but raw
        files so far (section 11).
        """
        for entry in self.entries:
            child, slash, rest = entry.path.partition("/")
            directory = acid_directory(child) if slash else None
            if directory is None or not is_visible_path(entry.path):
                continue
            if directory.kind is Kind.DELETE_DELTA or isinstance(parse_file(rest.rpartition("/")[2]), BucketFile):
                return True
        return False


def without(listing: Listing, names: AbstractSet[str]) -> Listing:
    """Return the listing without some direct children."""
    return with_entries(listing, (entry for entry in listing.entries if entry.path.partition("/")[0] not in names))


def with_entries(listing: Listing, entries: Iterable[Entry]) -> Listing:
    """Replace the entries of a listing; the new ones must be sorted by path."""
    return replace(listing, entries=tuple(entries))


# --- ages: the time of a child is that of the newest entry in it, the child itself included -----------------------
#
# A directory is published by a rename, which does not change its times, or by a commit after it was written in place.
# So it became visible at or shortly after that time.

LAST_SECONDS = datetime.max.replace(tzinfo=UTC).timestamp() - 86400
"""The latest time that datetime can represent, in seconds since the epoch."""

CLOCKS_SECONDS = 300.0
"""A time further ahead of our clock than this is ignored."""


@dataclass(frozen=True, slots=True)
class Ages:
    """The times at which the children of a location were last written.

    Attributes:
        times: seconds since the epoch by name; None if the store has none.
    """

    listing: Listing
    times: Mapping[str, float | None]

    @classmethod
    def of(cls, listing: Listing) -> Ages:
        """Return the ages of a listing's children."""
        times: dict[str, float | None] = {}
        for path, _, modified, is_dir in listing.entries:
            name = path.partition("/")[0]
            if modified is not None:
                # A damaged file system may have times outside of the calendar.
                time = modified if 0.0 <= modified <= LAST_SECONDS else min(max(modified, 0.0), LAST_SECONDS)
                newest = times.get(name, -math.inf)
                times[name] = None if newest is None else max(newest, time)
            elif not is_dir:
                times[name] = None
            else:  # object stores have no directories, so they have no times
                times.setdefault(name, -math.inf)
        return cls(listing, {name: None if time == -math.inf else time for name, time in times.items()})

    def is_old(self, name: str, moment: float, *, unknown: bool = False) -> bool:
        """Return whether a child existed at a moment; `unknown` is the answer if the store has no time."""
        time = self.times.get(name)
        return unknown if time is None else time <= moment

    def young_at(self, moment: float, *, unknown: bool = False) -> frozenset[str]:
        """Return the visible children that appeared, or changed, after a moment."""
        return frozenset(
            name
            for name, time in self.times.items()
            if (not unknown if time is None else time > moment) and not is_hidden(name)
        )

    def listing_without(self, young: frozenset[str]) -> Listing:
        """Return the listing without the young children; what was removed since is missing from it."""
        return without(self.listing, young) if young else self.listing
