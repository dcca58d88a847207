"""Delete sets and visibility masks against dictionaries and sets."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.made.delete_keys import keys_of, row_keys

from acidctl.rows.read.delete_set import Bound, DeleteSet, DeleteSetBuilder, Keys, valid_mask

orders = st.tuples(st.integers(1, 5), st.integers(-1, 2))


def bound_of(rows: list[tuple[int, int]]) -> Bound:
    columns = np.array(rows, np.int64).reshape(-1, 2)
    return Bound(columns[:, 0].copy(), columns[:, 1].copy())


def set_of(*parts: tuple[Keys, Bound | None]) -> DeleteSet:
    builder = DeleteSetBuilder()
    for keys, bound in parts:
        builder.add(keys, bound)
    return builder.build()


@settings(deadline=None)
@given(st.lists(row_keys, max_size=30), st.lists(row_keys, max_size=40), st.booleans())
def test_v2_a_listed_key_is_dead(deleted, rows, in_order) -> None:  # type: ignore[no-untyped-def]
    """Format section 4.2: "A row with key K is visible exactly when its own `currentTransaction` is valid in the
    snapshot, and no delete event for K in a current delete delta has a valid `currentTransaction`".
    """
    rows = sorted(rows) if in_order else rows
    half = len(deleted) // 2
    made = set_of((keys_of(deleted[:half]), None), (keys_of(deleted[half:]), None))
    found = made.dead(keys_of(rows))
    assert made.is_absolute
    assert made.size == len(set(deleted))
    wanted = [row in set(deleted) for row in rows]
    assert (found.tolist() if found is not None else [False] * len(rows)) == wanted


@settings(deadline=None)
@given(
    st.lists(st.tuples(row_keys, orders), max_size=30),
    st.lists(st.tuples(row_keys, orders), max_size=40),
    st.booleans(),
)
def test_v1_a_later_change_kills(changes, events, in_order) -> None:  # type: ignore[no-untyped-def]
    """Format section 4.1: "The reader merges all files of a bucket, skips events whose `currentTransaction` is not
    valid in its snapshot, and of what is left takes the first of every key: a row, or none where that is a delete".
    """
    events = sorted(events) if in_order else events
    made = set_of((keys_of([key for key, _ in changes]), bound_of([order for _, order in changes])))
    found = made.dead(keys_of([key for key, _ in events]), bound_of([order for _, order in events]))
    wanted = [any(key == other and order < later for other, later in changes) for key, order in events]
    assert (found.tolist() if found is not None else [False] * len(events)) == wanted
    assert made.size == len({key for key, _ in changes})


@settings(deadline=None)
@given(st.lists(st.integers(0, 12), max_size=20), st.integers(0, 12), st.sets(st.integers(0, 12)))
def test_mask_holds_the_rows_of_valid_write_ids(current, hwm, exceptions) -> None:  # type: ignore[no-untyped-def]
    """Format section 7.2: "An id is *valid* when it is at or below the high watermark and not listed"."""
    found = valid_mask(np.array(current, np.int64), hwm, tuple(sorted(exceptions)))
    wanted = [write_id <= hwm and write_id not in exceptions for write_id in current]
    assert (found.tolist() if found is not None else [True] * len(current)) == wanted


def test_pitfall_7_statement_bits_are_part_of_the_key() -> None:
    deleted = set_of((keys_of([(1, 536870912, 0)]), None))
    found = deleted.dead(keys_of([(1, 536870912, 0), (1, 536870913, 0)]))
    assert found is not None
    assert found.tolist() == [True, False]
