"""The ids of a stripe as a check sees them: other than a reader's, they may be NULL, and need not be in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acidctl.rows.deletes import Bools, Keys, Longs
from acidctl.rows.events import ID_COLUMNS


@dataclass(frozen=True, slots=True)
class Events:
    """Events in columns of equal length."""

    operation: Longs
    keys: Keys
    current: Longs

    def __len__(self) -> int:
        return len(self.current)

    def slice(self, start: int, end: int | None) -> Events:
        """Some of them."""
        part = slice(start, end)
        return Events(self.operation[part], self.keys.take(part), self.current[part])

    def after(self, row: Sequence[int]) -> Events:
        """With a row before the first; its operation does not matter."""

        def put(value: int, column: Longs) -> Longs:
            return np.concatenate([np.array([value], np.int64), column])

        keys = Keys(put(row[0], self.keys.original), put(row[1], self.keys.bucket), put(row[2], self.keys.row_id))
        return Events(put(0, self.operation), keys, put(row[3], self.current))

    def at(self, place: int) -> tuple[int, int, int, int]:
        """Key and current write id of one."""
        keys = self.keys
        return int(keys.original[place]), int(keys.bucket[place]), int(keys.row_id[place]), int(self.current[place])

    def event(self, place: int) -> str:
        """One event for people."""
        key = self.at(place)
        return f"{shown_key(key[:3])}, operation {int(self.operation[place])}, currentTransaction {key[3]}"


def shown_key(key: Sequence[int]) -> str:
    """A key for people."""
    return f"({key[0]}, {key[1]}, {key[2]})"


def whole_events(batch: pa.RecordBatch) -> tuple[Events | None, Bools | None]:
    """The events that have all of their ids, and which of the batch they are; None for all of them.

    Without columns of integers there are no events: the tail's check says so.
    """
    columns = [batch.column(name) for name in ID_COLUMNS]
    if any(not pa.types.is_integer(column.type) for column in columns):
        return None, None
    there: Bools | None = None
    if any(column.null_count for column in columns):
        there = np.logical_and.reduce([column.is_valid().to_numpy(zero_copy_only=False) for column in columns])
        columns = [column.filter(pa.array(there)) for column in columns]
    operation, original, bucket, row_id, current = (
        np.asarray(column.to_numpy(zero_copy_only=False)).astype(np.int64, copy=False) for column in columns
    )
    return Events(operation, Keys(original, bucket, row_id), current), there


def compare(before: Keys, after: Keys) -> tuple[Bools, Bools]:
    """Where a key equals the one before it, and where it is less."""
    tied: Bools = after.original == before.original
    down: Bools = after.original < before.original
    for now, then in ((after.bucket, before.bucket), (after.row_id, before.row_id)):
        down |= tied & (now < then)
        tied = tied & (now == then)
    return tied, down
