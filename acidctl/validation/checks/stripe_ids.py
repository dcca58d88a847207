"""The ids of a stripe in a check: unlike a reader's, they may be NULL, and need not be in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acidctl.rows.read.delete_set import Bools, Keys
from acidctl.rows.read.events import ID_COLUMNS, Ids


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the greatest value of each column, which settle most rules."""

    operation: tuple[int, int]
    original: tuple[int, int]
    bucket: tuple[int, int]
    row_id: tuple[int, int]
    current: tuple[int, int]

    @staticmethod
    def of(events: Ids) -> Bounds:
        """Return the bounds of some events, at least one."""
        keys = events.keys
        columns = (events.operation, keys.original, keys.bucket, keys.row_id, events.current)
        return Bounds(*((int(column.min()), int(column.max())) for column in columns))


def shown_key(key: Sequence[int]) -> str:
    """Format a key for people."""
    return f"({key[0]}, {key[1]}, {key[2]})"


def shown_event(events: Ids, place: int) -> str:
    """Format one event for people."""
    key = shown_key((events.keys.original[place], events.keys.bucket[place], events.keys.row_id[place]))
    return f"{key}, operation {int(events.operation[place])}, currentTransaction {int(events.current[place])}"


def whole_events(batch: pa.RecordBatch) -> tuple[Ids | None, Bools | None]:
    """Return the events that have all ids, and a mask of them in the batch; None if it would select all.

    Without columns of integers there are no events: the check of the footer reports that.
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
    return Ids(operation, Keys(original, bucket, row_id), current), there


def compare(before: Keys, after: Keys) -> tuple[Bools, Bools]:
    """Return masks of the keys that equal the one before, and of those that are less."""
    tied: Bools = after.original == before.original
    down: Bools = after.original < before.original
    for now, then in ((after.bucket, before.bucket), (after.row_id, before.row_id)):
        down |= tied & (now < then)
        tied = tied & (now == then)
    return tied, down
