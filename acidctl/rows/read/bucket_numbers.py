"""The buckets that the events in files belong to, which decide which deletes a task has to read.

A file's name does not show it: a delete event may lie in the file of another bucket (format section 4.2), and a row
keeps its bucket when it is rewritten.  The statistics of each stripe do; if a writer left none, or if they span several
buckets, the ``bucket`` column is read.
A number is the one that Hive gives to ``bucket_N``, the same in both forms of the column
(format section 2); a value of no known form counts as a number of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acidctl.rows.read.bucket_values import decode_all
from acidctl.rows.read.delete_set import Bools, Longs
from acidctl.rows.read.events import EventFile

_READERS = 16
"""Remote files whose column is read side by side."""


def numbers(values: NDArray[Any]) -> Longs:
    """The number of the bucket of each value of the column."""
    known = decode_all(values).bucket
    return np.where(known < 0, values.astype(np.int64, copy=False) & 0xFFFFFFFF, known)


def is_among(values: Longs, wanted: frozenset[int]) -> Bools | None:
    """Which values of the column are of the buckets wanted; None when all are."""
    if not len(values):
        return None
    # Mostly a file holds one bucket, and then two values tell.
    least, most = int(values.min()), int(values.max())
    if (between := _between(least, most)) is not None and between <= wanted:
        return None
    found: Bools = np.isin(numbers(values), list(wanted))
    return None if found.all() else found


def _between(least: int, most: int) -> frozenset[int] | None:
    """The bucket numbers of all values from the least to the greatest; None if these two do not determine them."""
    first, last = numbers(np.array([least, most], np.int64)).tolist()
    is_one = first == last and (least == most or least >> 16 == most >> 16)
    return frozenset((first,)) if is_one else None


def numbers_of(source: EventFile) -> frozenset[int]:
    """The buckets that events of a file are of.

    Raises:
        BadDataError, NotFoundError, AccessError: the file had to be read, and cannot be.
    """
    found: set[int] = set()
    unclear = []
    for stripe, known in enumerate(source.ranges):
        between = None if known is None else _between(*known.bucket)
        if between is None:
            unclear.append(stripe)
        else:
            found |= between
    if unclear:
        with source.open() as events:
            for stripe in unclear:
                found.update(np.unique(numbers(events.buckets(stripe))).tolist())
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class Kills:
    """The part of all delete events that a task needs.

    Attributes:
        files: that hold events of its buckets, in the order given.
        buckets: numbers of its buckets: events of others need not be kept in memory; None for all.
    """

    files: tuple[EventFile, ...]
    buckets: frozenset[int] | None = None


class BucketNumbers:
    """The buckets of the events of many files, each file looked at once."""

    def __init__(self, sources: Sequence[EventFile]) -> None:
        """Look at the files; errors as for :func:`numbers_of`."""
        if len(sources) > 1 and not sources[0].fs.is_local:
            from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - with logging: only for remote stores

            with ThreadPoolExecutor(min(_READERS, len(sources)), "acidctl-buckets") as pool:
                found = list(pool.map(numbers_of, sources))
        else:
            found = [numbers_of(source) for source in sources]
        self._numbers = {source.path: one for source, one in zip(sources, found, strict=True)}

    def of(self, sources: Iterable[EventFile]) -> frozenset[int]:
        """The buckets of some of the files together."""
        return frozenset().union(*(self._numbers[source.path] for source in sources))

    def kills_of(self, groups: Sequence[Sequence[EventFile]], kills: Sequence[EventFile]) -> list[Kills]:
        """What may kill rows of each group of files.

        Args:
            groups: the files whose rows each task reads; a group without files gets nothing.
            kills: all files with events that kill or replace rows.

        Returns:
            One for each group. A file whose events hit no group goes to the first one: whoever reads a file finds out
            where its statistics are wrong (:func:`acidctl.rows.read.visibility.load_deletes`).
        """
        holders: dict[int, list[int]] = {}
        for place, source in enumerate(kills):
            for number in self._numbers[source.path]:
                holders.setdefault(number, []).append(place)
        wanted = [self.of(group) for group in groups]
        places = [{place for number in own for place in holders.get(number, ())} for own in wanted]
        if (first := next((at for at, group in enumerate(groups) if group), None)) is not None:
            places[first] |= set(range(len(kills))).difference(*places)
        found = [tuple(kills[place] for place in sorted(own)) for own in places]
        return [Kills(files, own) for files, own in zip(found, wanted, strict=True)]
