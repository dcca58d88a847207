"""Which rows a bucket of a rebalance gets: as a sorted list of all keys, cut into pieces, has it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidctl.acid.bucket import encode
from acidctl.compaction import rebalance as shares_module
from acidctl.compaction.rebalance import Runs, Share, shares_of
from acidctl.rows.read.delete_set import Keys

Key = tuple[int, int, int]
STRIPES = st.lists(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2), st.integers(0, 12)), max_size=8), min_size=1, max_size=6
)


def keys_of(some: list[Key]) -> Keys:
    columns = np.array(some, np.int64).reshape(-1, 3).T
    return Keys(*columns)


def distinct(stripes: list[list[Key]]) -> list[list[Key]]:
    """No key twice, as live rows are."""
    seen: set[Key] = set()
    found = []
    for stripe in stripes:
        found.append([key for key in dict.fromkeys(stripe) if key not in seen])
        seen.update(stripe)
    return found


def rows_of(share: Share, stripes: list[list[Key]]) -> list[Key]:
    """What a task makes of a share: it reads these stripes, sorts what lies between, and cuts off both ends."""
    first, end = share.spans.get(0, (0, 0))
    read = [key for stripe in stripes[first:end] for key in stripe]
    held = [key for key, is_held in zip(read, share.holds(keys_of(read)).tolist(), strict=True) if is_held]
    return sorted(held)[share.skip : share.skip + share.count]


@pytest.fixture(autouse=True)
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares_module, "_RUN_ROWS", 3)


@given(STRIPES, st.integers(1, 7), st.integers(1, 5))
def test_every_row_gets_the_number_of_its_place_and_the_bucket_of_the_number(
    stripes: list[list[Key]], buckets: int, most: int
) -> None:
    stripes = distinct(stripes)
    runs = Runs.concat([Runs.of(0, number, keys_of(stripe)) for number, stripe in enumerate(stripes)])
    ordered = sorted(key for stripe in stripes for key in stripe)
    each = -(-len(ordered) // buckets)
    expected = [((write_id, encode(n // each, 0), n), old) for n, (write_id, *_), old in
                ((n, key, key) for n, key in enumerate(ordered))]  # fmt: skip
    found = []
    for bucket, shares in enumerate(shares_of(runs, buckets, most)):
        assert shares
        for share in shares:
            assert share.count <= most
            rows = rows_of(share, stripes)
            new = share.new_keys(np.array([key[0] for key in rows], np.int64), bucket)
            found += list(
                zip(zip(*(x.tolist() for x in (new.original, new.bucket, new.row_id)), strict=True), rows, strict=True)
            )
    assert found == expected


@given(st.integers(1, 20), st.integers(0, 5))
def test_ids_that_count_make_the_runs_of_their_keys(count: int, first: int) -> None:
    counting = Runs.counting(4, 2, (7, 1, first), count)
    listed = Runs.of(4, 2, keys_of([(7, 1, first + n) for n in range(count)]))
    for name in Runs.__slots__:
        assert getattr(counting, name).tolist() == getattr(listed, name).tolist()


def test_a_share_names_the_stripes_of_each_file_that_hold_it() -> None:
    """Two buckets of one write id each, in two files: the second half of the rows is of the second file alone."""
    runs = Runs.concat(
        [Runs.counting(file, stripe, (1, file, 3 * stripe), 3) for file in (0, 1) for stripe in range(2)]
    )
    assert [[share.spans for share in shares] for shares in shares_of(runs, 4, 100)] == [
        [{0: (0, 1)}], [{0: (1, 2)}], [{1: (0, 1)}], [{1: (1, 2)}]
    ]  # fmt: skip


def test_no_rows_have_no_shares() -> None:
    assert shares_of(Runs.concat([]), 3, 10) == []
