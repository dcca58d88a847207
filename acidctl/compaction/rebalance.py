"""A rebalance: the sort order of all rows, and the shares of the buckets with their new row ids.

All live rows, in the order of their ids, are numbered from 0 over all buckets. Each bucket gets the quotient of rows
and buckets, rounded up; the last bucket has fewer, and some may have none. Live rows are counted as runs of ascending
ids: a few numbers represent thousands of rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from acidctl.acid.bucket import encode
from acidctl.base.errors import RefusedError
from acidctl.compaction.proof.checksum import Key, is_sorted
from acidctl.orc.read.wide_timestamps import WideTimestamp, parts
from acidctl.rows.read.delete_set import Bools, Keys, Longs

SORTABLE = frozenset(("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "date")) | {
    "string", "varchar", "char", "timestamp",
}  # fmt: skip
"""Types of columns that acidctl sorts as Hive does."""

_BEFORE = re.compile(r"\s*order\s+by\s+", re.IGNORECASE)
_COLUMN = re.compile(
    r"\s*(?:`([^`]+)`|(\w+))(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?\s*", re.ASCII | re.IGNORECASE
)

_WAYS = {False: "ascending", True: "descending"}


@dataclass(frozen=True, slots=True)
class SortColumn:
    """A column by which rows are sorted, with its position among the table's columns."""

    position: int
    descending: bool = False
    nulls_first: bool = False


def parse_order(text: str, columns: Sequence[str]) -> tuple[SortColumn, ...]:
    """Parse the names of columns after ORDER BY in SQL; the keywords ORDER BY are optional.

    Args:
        columns: the names of the table's columns.

    Raises:
        RefusedError: the text has anything but columns of the table.
    """
    places = {name.lower(): place for place, name in enumerate(columns)}
    order = []
    start = _BEFORE.match(text)
    for part in text[start.end() if start else 0 :].split(","):
        match = _COLUMN.fullmatch(part)
        name = (match[1] or match[2]).lower() if match else ""
        if match is None or name not in places:
            raise RefusedError(
                f"rows cannot be sorted by {text}",
                f"{part.strip()!r} is not a column of the table, with or without asc, desc, nulls first or nulls last",
                "sort by columns, or let Hive's own workers do it",
            )
        descending = (match[3] or "").lower() == "desc"
        nulls_first = match[4].lower() == "first" if match[4] else descending
        order.append(SortColumn(places[name], descending, nulls_first))
    return tuple(order)


def sort_keys(rows: pa.StructArray, order: Sequence[SortColumn]) -> pa.Table:
    """Return the keys of rows for :func:`sorted_places`: if a column is NULL or NaN, and its values."""
    columns: list[pa.Array] = []
    names: list[str] = []
    for by in order:
        is_stored = by.position < rows.type.num_fields  # a column that was added later is in no file
        column = rows.field(by.position) if is_stored else pa.nulls(len(rows), pa.int8())
        values = _values(column)
        columns += [column.is_null(), *values]
        ways = (by.nulls_first, *[by.descending] * len(values))
        names += [f"{len(names) + place} {_WAYS[way]}" for place, way in enumerate(ways)]
    return pa.table(columns, names=names)


def sorted_places(keys: Sequence[pa.Table]) -> NDArray[np.int64]:
    """Return the indices of rows in sorted order; equal rows keep their order.

    Args:
        keys: from :func:`sort_keys`, in the order of the rows.
    """
    table = pa.concat_tables(keys)
    by = [(name, name.partition(" ")[2]) for name in table.column_names]
    return np.asarray(pc.sort_indices(table, sort_keys=by).to_numpy(), np.int64)


def _values(column: pa.Array) -> list[pa.Array]:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if isinstance(column.type, WideTimestamp) or pa.types.is_timestamp(column.type):
        return [pa.array(part) for part in parts(column)]
    if pa.types.is_floating(column.type):
        is_nan = pc.fill_null(pc.is_nan(column), fill_value=False)  # above all others, as in Java
        return [is_nan, pc.if_else(is_nan, pa.scalar(0, column.type), column)]
    if pa.types.is_boolean(column.type):
        return [column.cast(pa.uint8())]
    if pa.types.is_decimal(column.type) or pa.types.is_integer(column.type) or pa.types.is_date32(column.type):
        return [column]
    return [column.cast(pa.large_binary())]


_RUN_ROWS = 1 << 14
"""The most rows of a run: a bucket reads its first and last run whole, with rows of its neighbours."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Live rows that are adjacent in one stripe, with the same write id and value of the bucket column.

    Attributes:
        file: its index among the files that are read.
        first, last: the least and the greatest row id.
        count: number of live rows.
    """

    file: Longs
    stripe: Longs
    original: Longs
    bucket: Longs
    first: Longs
    last: Longs
    count: Longs

    def __len__(self) -> int:
        return len(self.count)

    @classmethod
    def of(cls, file: int, stripe: int, keys: Keys) -> Runs:
        """Return the runs of the live keys of a stripe, given in any order."""
        if not is_sorted(keys):
            keys = keys.take(np.lexsort((keys.row_id, keys.bucket, keys.original)))
        count = len(keys)
        changes = np.flatnonzero(np.diff(keys.original) | np.diff(keys.bucket)) + 1
        starts = np.union1d(np.arange(0, count, _RUN_ROWS), changes)
        ends = np.append(starts[1:], count)[: len(starts)]
        return cls._at(file, stripe, keys.take(starts), keys.row_id[ends - 1], ends - starts)

    @classmethod
    def counting(cls, file: int, stripe: int, first: Key, count: int) -> Runs:
        """Return the runs of `count` live keys with consecutive row ids."""
        starts = np.arange(0, count, _RUN_ROWS)
        ends = np.append(starts[1:], count)[: len(starts)]
        original, bucket, row_id = first
        keys = Keys(np.full(len(starts), original), np.full(len(starts), bucket), starts + row_id)
        return cls._at(file, stripe, keys, ends - 1 + row_id, ends - starts)

    @classmethod
    def _at(cls, file: int, stripe: int, keys: Keys, last: Longs, count: Longs) -> Runs:
        files, stripes = (np.full(len(keys), place, np.int64) for place in (file, stripe))
        return cls(files, stripes, keys.original, keys.bucket, keys.row_id, last, count)

    @classmethod
    def concat(cls, parts: Sequence[Runs]) -> Runs:
        """Concatenate runs in the given order."""
        columns = (np.concatenate([getattr(part, name) for part in parts] or [_NONE]) for name in cls.__slots__)
        return cls(*columns)

    def take(self, selection: Bools | slice | Longs) -> Runs:
        """Return the selected runs."""
        return Runs(*(getattr(self, name)[selection] for name in self.__slots__))


_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Share:
    """Rows that are adjacent in the order of their ids, and go to one bucket.

    Attributes:
        low, high: the least and the greatest key of the rows that are read for the share.
        skip: how many of the rows that are read come before the share.
        count: number of rows.
        number: the new row id of the first row.
        spans: (first, end) of the stripes of each file that contain the rows, by the file's index.
    """

    low: Key
    high: Key
    skip: int
    count: int
    number: int
    spans: Mapping[int, tuple[int, int]]

    def holds(self, keys: Keys) -> Bools:
        """Return which rows are read for the share."""
        return _is_at_least(keys, self.low) & ~_is_at_least(keys, (*self.high[:2], self.high[2] + 1))

    def new_keys(self, original: Longs, bucket: int, first: int = 0) -> Keys:
        """Return new ids for rows with these write ids; `first` is the index of the first row in the share."""
        return _numbered(original, bucket, self.number + first)


@dataclass(frozen=True, slots=True)
class SortedShare:
    """Rows that are adjacent once all rows are sorted.

    Attributes:
        number: the new row id of the first row.
        count: number of rows.
        total: number of all rows in the location.
        write_id: the write id that all rows get.
    """

    order: tuple[SortColumn, ...]
    number: int
    count: int
    total: int
    write_id: int

    def new_keys(self, bucket: int, first: int, end: int) -> Keys:
        """Return the new ids of some of the rows."""
        return _numbered(np.full(end - first, self.write_id, np.int64), bucket, self.number + first)


def sorted_shares(runs: Runs, buckets: int, order: tuple[SortColumn, ...]) -> list[SortedShare]:
    """Return the share of each bucket that gets rows, if rows are sorted."""
    total = int(runs.count.sum())
    each, write_id = -(-total // buckets), int(runs.original.max(initial=0))
    return [
        SortedShare(order, first, min(each, total - first), total, write_id) for first in range(0, total, each or 1)
    ]


def _numbered(original: Longs, bucket: int, start: int) -> Keys:
    values = np.full(len(original), encode(bucket, 0), np.int64)
    return Keys(original, values, np.arange(start, start + len(original), dtype=np.int64))


def shares_of(runs: Runs, buckets: int, most: int) -> list[tuple[Share, ...]]:
    """Return the shares of each bucket that gets rows.

    Args:
        runs: all live rows.
        buckets: the requested number of buckets.
        most: the most rows in a share.
    """
    if not len(runs):
        return []
    groups = _Groups(runs)
    each = -(-groups.total // buckets)
    ends = ((first, min(first + each, groups.total)) for first in range(0, groups.total, each))
    return [
        tuple(groups.share(start, min(start + most, end)) for start in range(first, end, most)) for first, end in ends
    ]


class _Groups:
    """Groups of runs in order; runs that overlap, as updates of ACID v1 do, are one group."""

    def __init__(self, runs: Runs) -> None:
        runs = runs.take(np.lexsort((runs.last, runs.first, runs.bucket, runs.original)))
        is_other = np.append(True, (np.diff(runs.original) | np.diff(runs.bucket)) != 0)
        # Find the greatest row id so far within each write id and bucket, using ranks of row ids.
        ids = np.unique(np.concatenate((runs.first, runs.last)))
        above = np.cumsum(is_other) * len(ids)
        reached = np.maximum.accumulate(above + np.searchsorted(ids, runs.last))
        starts = np.append(True, above[1:] + np.searchsorted(ids, runs.first)[1:] > reached[:-1])
        self._runs = runs
        self._first = np.flatnonzero(starts)
        self._after = np.append(self._first[1:], len(runs))
        self._greatest = ids[reached[self._after - 1] - above[self._after - 1]]
        self._ends = np.cumsum(np.add.reduceat(runs.count, self._first))
        self.total = int(self._ends[-1])

    def share(self, start: int, end: int) -> Share:
        """Return the share of the rows with numbers from `start` up to but not including `end`."""
        low, high = (int(place) for place in np.searchsorted(self._ends, (start, end - 1), "right"))
        runs, at, last = self._runs, int(self._first[low]), int(self._first[high])
        before = int(self._ends[low - 1]) if low else 0
        return Share(
            (int(runs.original[at]), int(runs.bucket[at]), int(runs.first[at])),
            (int(runs.original[last]), int(runs.bucket[last]), int(self._greatest[high])),
            start - before,
            end - start,
            start,
            _spans(runs.take(slice(at, int(self._after[high])))),
        )


def _spans(runs: Runs) -> dict[int, tuple[int, int]]:
    order = np.lexsort((runs.stripe, runs.file))
    file, stripe = runs.file[order], runs.stripe[order]
    firsts = np.flatnonzero(np.append(True, np.diff(file) != 0))
    lasts = np.append(firsts[1:], len(file)) - 1
    return {
        place: (first, last + 1)
        for place, first, last in zip(
            file[firsts].tolist(), stripe[firsts].tolist(), stripe[lasts].tolist(), strict=True
        )
    }


def _is_at_least(keys: Keys, key: Key) -> Bools:
    original, bucket, row_id = key
    is_same = keys.original == original
    is_at_least: Bools = (keys.original > original) | is_same & (
        (keys.bucket > bucket) | (keys.bucket == bucket) & (keys.row_id >= row_id)
    )
    return is_at_least
