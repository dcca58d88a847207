"""Runs of keys, against lists of keys."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidctl.base.errors import BadDataError
from acidctl.iceberg.keys import KeySet, Runs, ranges_outside, without
from acidctl.rows.read.delete_set import Keys

Key = tuple[int, int, int]

KEYS = st.lists(st.tuples(st.integers(1, 3), st.sampled_from((10, 20)), st.integers(0, 40)), unique=True, max_size=60)
"""Keys in any order, as compactions of other tools may leave them."""


def runs_of(keys: list[Key]) -> Runs:
    columns = np.array(keys, np.int64).reshape(-1, 3)
    return Runs.of(Keys(*(np.ascontiguousarray(columns[:, at]) for at in range(3))))


def listed(runs: Runs) -> list[Key]:
    columns = zip(*(column.tolist() for column in (runs.write_id, runs.bucket, runs.first, runs.count)), strict=True)
    return [(write_id, bucket, first + at) for write_id, bucket, first, count in columns for at in range(count)]


@given(KEYS, st.data())
def test_runs_are_their_keys(keys: list[Key], data: st.DataObject) -> None:
    runs = runs_of(keys)
    assert (listed(runs), runs.rows) == (keys, len(keys))
    assert listed(Runs.from_bytes(runs.to_bytes(), "a file")) == keys
    low, high = sorted(data.draw(st.tuples(st.integers(0, len(keys)), st.integers(0, len(keys)))))
    assert listed(runs.slices(low, high)) == keys[low:high]
    parts = [runs.slices(0, low), runs.slices(low, high), runs.slices(high, len(keys))]
    assert Runs.concat(parts).to_bytes() == runs.to_bytes()


@given(KEYS, KEYS, st.data())
def test_ranges_outside_are_the_difference_of_sets(keys: list[Key], others: list[Key], data: st.DataObject) -> None:
    dead = data.draw(st.sets(st.integers(0, max(len(keys) - 1, 0)))) if keys else set()
    shown, starts = without(runs_of(keys), np.array(sorted(dead), np.int64))
    assert listed(shown) == [key for at, key in enumerate(keys) if at not in dead]
    other = KeySet([runs_of(others[:7]), runs_of(others[7:])])
    found = [at for low, high in ranges_outside(shown, starts, other).tolist() for at in range(low, high)]
    assert found == [at for at, key in enumerate(keys) if at not in dead and key not in set(others)]


@given(KEYS)
def test_twins_are_noticed(keys: list[Key]) -> None:
    assert not KeySet([runs_of(keys)]).has_twins()
    assert KeySet([runs_of(keys), runs_of(keys[:1])]).has_twins() is bool(keys)


@pytest.mark.parametrize("damage", [b"", b"no zlib", runs_of([(1, 2, 3), (4, 5, 6)]).to_bytes()[:-5]])
def test_damaged_keys_are_an_error(damage: bytes) -> None:
    with pytest.raises(BadDataError, match="keys in a file are damaged"):
        Runs.from_bytes(damage, "a file")
