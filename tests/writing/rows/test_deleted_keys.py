"""Keys of deleted rows come back in order, by their buckets, and take little memory."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acidctl.acid.bucket import encode
from acidctl.rows.read.delete_set import Keys
from acidctl.writing.rows import deleted_keys
from acidctl.writing.rows.deleted_keys import DeletedKeys

Key = tuple[int, int, int]


def keys_of(rows: Iterable[Key]) -> Keys:
    columns = np.array(list(rows), np.int64).reshape(-1, 3)
    return Keys(columns[:, 0], columns[:, 1], columns[:, 2])


def listed(keys: DeletedKeys) -> dict[int, list[Key]]:
    return {
        number: [
            (int(original), int(bucket), int(row_id))
            for part in parts
            for original, bucket, row_id in zip(part.original, part.bucket, part.row_id, strict=True)
        ]
        for number, parts in keys.by_number()
    }


# Two statements of bucket 1, and the synthetic property of an original file of bucket 1.
BUCKETS = {encode(0, 0): 0, encode(1, 0): 1, encode(1, 3): 1, 1: 1}
ROWS = st.tuples(st.integers(0, 2), st.sampled_from(list(BUCKETS)), st.integers(0, 9))


@settings(deadline=None)
@given(st.lists(ROWS, unique=True), st.integers(1, 5), st.sampled_from([3, 1 << 20]))
def test_they_come_in_order_whatever_batches_they_came_in(rows: list[Key], parts: int, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deleted_keys, "_EVENTS", size)
        keys = DeletedKeys()
        for at in range(parts):
            keys.add(keys_of(rows[at::parts]))
        numbers = {BUCKETS[bucket] for _, bucket, _ in rows}
        expected = {number: sorted(row for row in rows if BUCKETS[row[1]] == number) for number in numbers}
        assert listed(keys) == expected
        assert bool(keys) is bool(rows)


def test_small_groups_of_keys_come_together_in_batches_of_limited_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deleted_keys, "_EVENTS", 3)
    keys = DeletedKeys()
    keys.add(keys_of((original, encode(0, 0), 0) for original in range(7)))
    ((_, parts),) = keys.by_number()
    assert [len(part) for part in parts] == [3, 3, 1]


def test_consecutive_row_ids_take_one_run_a_batch() -> None:
    keys = DeletedKeys()
    for start in range(0, 100_000, 10_000):
        keys.add(keys_of((1, encode(0, 0), row) for row in range(start, start + 10_000)))
    ((_, runs),) = keys._runs.items()
    assert sum(map(len, runs)) == 10
    ((_, parts),) = keys.by_number()
    assert [len(part) for part in parts] == [100_000]
