"""Bucket numbers of events, which decide which deletes a task has to read.

A file's name does not show them: a delete event may be in the file of another bucket (format section 4.2), and a row
keeps its bucket when it is rewritten. The statistics of each stripe show them; if a writer left none, or if they span
several buckets, the ``bucket`` column is read. A number is the N of Hive's ``bucket_N``, the same in both codecs of the
column (format section 2); a value without a known codec is its own number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acidctl.acid.bucket import MAX_BUCKET, MAX_STATEMENT
from acidctl.acid.layout import NO_BUCKET, DataFile
from acidctl.base import parallel
from acidctl.orc.tail import Tail
from acidctl.rows.read.delete_set import Bools, Longs
from acidctl.rows.read.events import EventFile

_NONE = -1
_BUCKET = 3
"""The column of an ACID file, counted depth first."""


@dataclass(frozen=True, slots=True)
class BucketParts:
    """Decoded values of the ``bucket`` column.

    Attributes:
        version: the highest three bits: 0 or 1, or another value without a codec.
        bucket: the number in the name of a file; -1 without a codec.
        statement: 0 for version 0, -1 without a codec.
    """

    version: NDArray[np.int64]
    bucket: NDArray[np.int64]
    statement: NDArray[np.int64]


def versions_of(values: NDArray[Any]) -> NDArray[np.int64]:
    """Return the highest three bits of each value, from integers of any width and sign."""
    versions: NDArray[np.int64] = _unsigned(values) >> 29
    return versions


def decode_all(values: NDArray[Any]) -> BucketParts:
    """Decode values like :func:`acidctl.acid.bucket.decode`, but without an error for values without a codec."""
    unsigned, version = _unsigned(values), versions_of(values)
    old, new = version == 0, version == 1
    bucket = np.where(old, unsigned, np.where(new, unsigned >> 16 & MAX_BUCKET, _NONE))
    return BucketParts(version, bucket, np.where(old, 0, np.where(new, unsigned & MAX_STATEMENT, _NONE)))


def _unsigned(values: NDArray[Any]) -> NDArray[np.int64]:
    unsigned: NDArray[np.int64] = values.astype(np.int64, copy=False) & 0xFFFFFFFF
    return unsigned


def numbers(values: NDArray[Any]) -> Longs:
    """Return the bucket number of each value of the column."""
    decoded = decode_all(values).bucket
    return np.where(decoded < 0, _unsigned(values), decoded)


def is_among(values: Longs, wanted: frozenset[int]) -> Bools | None:
    """Return a mask of the values whose bucket is wanted; None if all are."""
    if not len(values):
        return None
    # Usually a file holds one bucket, and then the least and the greatest value prove it.
    least, most = int(values.min()), int(values.max())
    if (between := _between(least, most)) is not None and between <= wanted:
        return None
    mask: Bools = np.isin(numbers(values), list(wanted))
    return None if mask.all() else mask


def _between(least: int, most: int) -> frozenset[int] | None:
    """Return the bucket numbers of all values between two values; None if these two do not determine them."""
    first, last = numbers(np.array([least, most], np.int64)).tolist()
    is_one = first == last and (least == most or least >> 16 == most >> 16)
    return frozenset((first,)) if is_one else None


def numbers_of(source: EventFile) -> frozenset[int]:
    """Return the bucket numbers of the events of a file.

    Raises:
        BadDataError, NotFoundError, AccessError: the file had to be read, and cannot be.
    """
    buckets: set[int] = set()
    unclear = []
    for stripe, keys in enumerate(source.ranges):
        between = None if keys is None else _between(*keys.bucket)
        if between is None:
            unclear.append(stripe)
        else:
            buckets |= between
    if unclear:
        with source.open() as events:
            for stripe in unclear:
                buckets.update(np.unique(numbers(events.buckets(stripe))).tolist())
    return frozenset(buckets)


def is_misplaced(file: DataFile, tail: Tail) -> bool:
    """Return whether a file surely has events of another bucket than its name's, by the statistics of its footer.

    Statistics of a file without a row index mean nothing (format section 3.4).
    """
    is_shown = file.bucket != NO_BUCKET and tail.is_acid and tail.stride
    statistics = tail.column_statistics(_BUCKET) if is_shown else None
    if statistics is None or not statistics.numberOfValues or not statistics.HasField("intStatistics"):
        return False
    ends = statistics.intStatistics
    buckets = decode_all(np.array([ends.minimum, ends.maximum], np.int64)).bucket
    return bool(((buckets != _NONE) & (buckets != file.bucket)).any())


@dataclass(frozen=True, slots=True)
class Kills:
    """The delete events that a task needs.

    Attributes:
        files: that hold events of its buckets, in the order given.
        buckets: numbers of its buckets: events of others need not be kept in memory; None for all.
    """

    files: tuple[EventFile, ...]
    buckets: frozenset[int] | None = None


class BucketNumbers:
    """The bucket numbers of the events of many files; each file is inspected once."""

    def __init__(self, sources: Sequence[EventFile]) -> None:
        """Inspect the files; for errors see :func:`numbers_of`."""
        is_local = not sources or sources[0].fs.is_local
        numbers_by_file = map(numbers_of, sources) if is_local else parallel.results(numbers_of, sources)
        self._numbers = {source.path: buckets for source, buckets in zip(sources, numbers_by_file, strict=True)}

    def of(self, sources: Iterable[EventFile]) -> frozenset[int]:
        """Return the bucket numbers of several files together."""
        return frozenset().union(*(self._numbers[source.path] for source in sources))

    def kills_of(self, groups: Sequence[Sequence[EventFile]], kills: Sequence[EventFile]) -> list[Kills]:
        """Return the files that may delete rows of each group of files.

        Args:
            groups: the files whose rows each task reads; a group without files gets nothing.
            kills: all files with events that delete or replace rows.

        Returns:
            One for each group. A file whose events match no group goes to the first, because reading it detects wrong
            statistics (:func:`acidctl.rows.read.visibility.load_deletes`).
        """
        holders: dict[int, list[int]] = {}
        for place, source in enumerate(kills):
            for number in self._numbers[source.path]:
                holders.setdefault(number, []).append(place)
        wanted = [self.of(group) for group in groups]
        places = [{place for number in buckets for place in holders.get(number, ())} for buckets in wanted]
        if (first := next((at for at, group in enumerate(groups) if group), None)) is not None:
            places[first] |= set(range(len(kills))).difference(*places)
        files = [tuple(kills[place] for place in sorted(group_places)) for group_places in places]
        return [Kills(*pair) for pair in zip(files, wanted, strict=True)]
