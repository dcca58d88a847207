"""Rule V26: the events of a file ascend by their key; and the ids of a stripe, which this checks.

If keys may be equal, the newest event comes first. Unlike a reader's, the ids may be NULL, and need not be in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acidctl.rows.read.delete_set import Bools, Keys
from acidctl.rows.read.events import ID_COLUMNS, Ids
from acidctl.validation.checks.row_facts import Tally, tally_where
from acidctl.validation.findings import DEEP, ERROR, WARNING, Rule

V26 = Rule(
    "V26", ERROR, DEEP, "Events are not in ascending order of their key, or an event is there twice.",
    "Readers merge sorted files: deletes are missed, and rows appear twice.",
    "Rows: run `compact('major')`, which sorts. Deletes: the same with `apply_all_deletes`, or `INSERT OVERWRITE TABLE "
    "t SELECT * FROM t` in Hive, which keeps what it shows.", "4.2",
)  # fmt: skip
V34 = Rule(
    "V34", WARNING, DEEP, "Several delete events name the same row.",
    "Legal after concurrent deletes; many of them point to a writer that repeats itself.",
    "Nothing; a major compaction removes them.", "4.2",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """The order that the events of a file must have.

    Attributes:
        is_delete: the file holds delete events; several may name one row.
        is_old: its footer has no ``hive.acid.version``: in ACID v1 updates and deletes follow the row's insert.
    """

    is_delete: bool
    is_old: bool

    def check(self, before: Ids, after: Ids) -> Iterator[Tally]:
        """Yield the violations between each event and the one after it (section 4.1)."""
        if not len(after.keys) or _ascend(before, after):
            return
        same, down = compare(before.keys, after.keys)
        yield from tally_where(V26, "events have a lower key than the one before", down, after)
        if not same.any():
            return
        if self.is_delete:
            may_repeat = same
        elif self.is_old:
            may_repeat = same & ((before.operation != 0) | (after.operation != 0))
        else:
            may_repeat = np.zeros_like(same)
        newer = after.current < before.current
        text = "events have the key of the one before and are not older"
        yield from tally_where(V26, text, may_repeat & ~newer, after)
        if self.is_delete:
            yield from tally_where(V34, "delete events name a row again", same & newer, after)


def _ascend(before: Ids, after: Ids) -> bool:
    """Return whether events certainly ascend: most stripes hold consecutive rows of one writer."""
    keys = after.keys
    for then, now in ((before.keys.original, keys.original), (before.keys.bucket, keys.bucket)):
        if now[0] != now[-1] or then[0] != now[0] or not (then == now).all():
            return False
    return bool((before.keys.row_id < keys.row_id).all())


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
