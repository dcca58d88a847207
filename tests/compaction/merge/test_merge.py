"""The merge of stripes and the checksum against sorting everything at once."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from support.made.delete_keys import keys_of, row_keys

from acidctl.compaction.merge.merge import Chunk, StripeRun, merge
from acidctl.compaction.proof.checksum import KeyFacts, add, key_checksum, key_range, subtract
from acidctl.compaction.tasks import StripeCopy
from acidctl.rows.read.delete_set import Keys
from acidctl.rows.read.events import Ids

events = st.tuples(row_keys, st.integers(1, 4), st.sampled_from([0, 2]))
stripes = st.lists(
    st.tuples(st.lists(events, min_size=1, max_size=8), st.integers(-1, 2), st.booleans(), st.booleans()), max_size=6
)


@given(stripes, st.booleans())
def test_merge_gives_the_order_of_one_sort(given_stripes, collapse) -> None:  # type: ignore[no-untyped-def]
    """Format section 8.2: "For every bucket all insert and delete events of the deltas are merged in the order of
    section 4.1".
    """
    pieces, everything = [], []
    for number, (rows, statement, in_order, held) in enumerate(given_stripes):
        listed = sorted(rows, key=lambda e: (e[0], -e[1], -e[2])) if in_order else rows
        keys = keys_of([key for key, _, _ in listed])
        current = np.array([write_id for _, write_id, _ in listed], np.int64)
        operation = np.array([op for _, _, op in listed], np.int64)
        values = pa.array([f"{number}.{place}" for place in range(len(listed))])
        statements, files = (np.full(len(keys), number, np.int64) for number in (statement, number))
        chunk = Chunk(Ids(operation, keys, current), statements, files, values)
        pieces.append(StripeRun(*key_range(keys), lambda chunk=chunk: chunk, held=chunk if held else None))
        everything += [
            (key, -write_id, -statement, -op, f"{number}.{place}") for place, (key, write_id, op) in enumerate(listed)
        ]
    found, left_out = [], []
    for batch, values in merge(pieces, (lambda ids, _: left_out.append(ids.keys)) if collapse else None):
        keys = zip(batch.keys.original.tolist(), batch.keys.bucket.tolist(), batch.keys.row_id.tolist(), strict=True)
        found += list(zip(keys, batch.current.tolist(), batch.operation.tolist(), values.to_pylist(), strict=True))
    wanted = sorted(everything, key=lambda e: e[:4])
    if collapse:
        killers, kept = {}, []
        for event in wanted:
            key, write_id, statement, operation, _ = event
            killer = killers.get((key, write_id))
            if killer is None or not (killer[3] == -2 or killer[2] < statement):
                kept.append(event)
            if operation:
                killers.setdefault((key, write_id), event)
        wanted = kept
    assert [(key, current, op) for key, current, op, _ in found] == [(k, -c, -o) for k, c, _, o, _ in wanted]
    assert sum(len(keys) for keys in left_out) == len(everything) - len(found)
    total = key_checksum(keys_of([key for key, *_ in everything]))
    for keys in left_out:
        total = subtract(total, key_checksum(keys))
    assert total == key_checksum(keys_of([key for key, *_ in found]))
    if collapse:
        return
    assert sorted(value for *_, value in found) == sorted(value for *_, value in wanted)


@given(st.lists(row_keys, max_size=30), st.randoms())
def test_the_checksum_ignores_order_and_splits(rows, random) -> None:  # type: ignore[no-untyped-def]
    whole = key_checksum(keys_of(rows))
    shuffled = list(rows)
    random.shuffle(shuffled)
    cut = len(rows) // 3
    assert add(key_checksum(keys_of(shuffled[:cut])), key_checksum(keys_of(shuffled[cut:]))) == whole


@given(st.lists(row_keys, min_size=1, max_size=10), st.lists(row_keys, min_size=1, max_size=10))
def test_the_checksum_tells_rows_apart(one, other) -> None:  # type: ignore[no-untyped-def]
    same = sorted(one) == sorted(other)
    assert (key_checksum(keys_of(one)) == key_checksum(keys_of(other))) is same


def test_a_doubled_pair_of_rows_does_not_cancel_out() -> None:
    keys = keys_of([(1, 536870912, 0)])
    twice = Keys.concat([keys, keys])
    assert key_checksum(twice) not in (0, key_checksum(keys))


of_one_writer = st.lists(st.integers(0, 9), min_size=1, max_size=12).map(lambda found: [(1, 2, i) for i in found])


@given(st.lists(row_keys, min_size=1, max_size=12) | of_one_writer, st.booleans())
def test_facts_of_keys_are_those_of_a_sorted_list(rows, in_order) -> None:  # type: ignore[no-untyped-def]
    rows = sorted(rows) if in_order else rows
    facts = KeyFacts.of(keys_of(rows))
    assert (facts.first, facts.last) == (min(rows), max(rows))
    assert facts.ascends is (rows == sorted(rows))
    assert facts.repeats is any(one == other for one, other in itertools.pairwise(rows))
    assert facts.checksum == key_checksum(keys_of(rows))


@given(st.lists(st.tuples(st.sampled_from(["large", "small", "encoded"]), st.integers(1, 3)), max_size=9))
def test_small_stripes_are_copied_only_by_themselves(given_pieces: list[tuple[str, int]]) -> None:
    """Encoded again beside others they make one stripe of many; alone they would be what they are."""
    pieces, kinds = [], []
    at = 0
    for kind, rows in given_pieces:
        keys = keys_of([(1, 2, at + i) for i in range(rows)])
        at += rows
        zeros = np.zeros(rows, np.int64)
        chunk = Chunk(Ids(zeros, keys, keys.original), zeros, zeros, pa.array([kind] * rows))
        copy = None if kind == "encoded" else StripeCopy(kind, 0, None, 0, 0)  # type: ignore[arg-type]
        pieces.append(StripeRun(*key_range(keys), lambda chunk=chunk: chunk, copy, is_small=kind == "small"))
        kinds.append(kind)
    found = [item.path if isinstance(item, StripeCopy) else "encoded" for item in merge(pieces)]
    wanted = [
        "encoded"
        if kind == "small" and {"small", "encoded"} & {*kinds[max(0, i - 1) : i], *kinds[i + 1 : i + 2]}
        else kind
        for i, kind in enumerate(kinds)
    ]
    assert found == wanted
