"""Runs of row ids against plain sets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from acidctl.rows.read.delete_set import Keys
from acidctl.validation.checks.row_facts import SpanBuilder, Spans, shared, uncovered, united

Key = tuple[int, int, int]
key = st.tuples(st.integers(1, 2), st.integers(0, 1), st.integers(0, 25))
keys = st.lists(key, max_size=40)


def spans(listed: list[Key], stripes: int = 3) -> Spans:
    builder = SpanBuilder()
    for part in np.array_split(np.array(listed, np.int64).reshape(-1, 3), stripes):
        builder.add(Keys(part[:, 0].copy(), part[:, 1].copy(), part[:, 2].copy()))
    return builder.build()


def as_set(found: Spans) -> set[Key]:
    return {
        (*group, row)
        for group, (first, last) in found.items()
        for low, high in zip(first.tolist(), last.tolist(), strict=True)
        for row in range(low, high + 1)
    }


@given(keys)
def test_runs_hold_the_keys(listed: list[Key]) -> None:
    found = spans(listed)
    assert as_set(found) == set(listed)
    for first, last in found.values():
        assert (first <= last).all()
        assert (first[1:] > last[:-1] + 1).all(), "runs lie apart"


@given(keys, keys)
def test_united_spans_hold_the_rows_of_both(one: list[Key], other: list[Key]) -> None:
    assert as_set(united([spans(one), spans(other)])) == {*one, *other}


@given(keys, keys)
def test_uncovered_counts_the_rows_that_are_missing(wanted: list[Key], there: list[Key]) -> None:
    missing = set(wanted) - set(there)
    found = list(uncovered(spans(wanted), spans(there)))
    assert sum(count for _, count, _ in found) == len(missing)
    assert all((*group, row) in missing for group, _, row in found)
    assert {group for group, _, _ in found} == {one[:2] for one in missing}


@given(st.lists(keys, min_size=2, max_size=4))
def test_shared_names_a_row_that_two_files_have(files: list[list[Key]]) -> None:
    pairs = shared([spans(file) for file in files])
    common = {(a, b): set(files[a]) & set(files[b]) for a in range(len(files)) for b in range(a + 1, len(files))}
    for pair in pairs:
        assert pair.example in common[pair.first, pair.second]
        assert 0 < pair.count <= len(common[pair.first, pair.second])
    everything = set().union(*common.values())
    assert bool(pairs) == bool(everything)
    if len(files) == 2:
        assert sum(pair.count for pair in pairs) == len(everything)
