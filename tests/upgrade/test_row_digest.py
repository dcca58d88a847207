"""Checksums of rows: the same whatever the order and the files, another where one value, row or id is another."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from support.files.acid_files import AB, insert, write_acid

from acidctl.api import Location
from acidctl.errors import BadDataError
from acidctl.upgrade.row_digest import RowDigest, compared

Rows = list[tuple[int | None, int | None]]
small = st.one_of(st.none(), st.integers(0, 3))
rows_of = st.lists(st.tuples(small, small), max_size=6)


def digest_of(table: Path, rows: Rows, first: int = 0) -> RowDigest:
    events = [insert(1, first + place, row) for place, row in enumerate(rows)]
    write_acid(table / "db.db" / "t" / "base_0000001" / "bucket_00000", *events, row=AB)
    return Location(table / "db.db" / "t").row_digest()


@settings(max_examples=20, deadline=None, phases=[Phase.generate])
@given(rows_of, rows_of)
def test_digests_are_equal_where_the_rows_are(tmp_path_factory: pytest.TempPathFactory, one: Rows, other: Rows) -> None:
    first, second = (digest_of(tmp_path_factory.mktemp("d"), rows) for rows in (one, other))
    shuffled = digest_of(tmp_path_factory.mktemp("d"), one[::-1], first=5)
    key = str
    assert (first.values == second.values) == (sorted(one, key=key) == sorted(other, key=key))
    assert (first.row_ids == second.row_ids) == (one == other)
    assert (first.rows, first.values) == (shuffled.rows, shuffled.values)


def test_what_becomes_of_locations(tmp_path: Path) -> None:
    one = digest_of(tmp_path / "a", [(1, 2), (3, 4)])
    moved = digest_of(tmp_path / "b", [(3, 4), (1, 2)])
    other = digest_of(tmp_path / "c", [(1, 2), (3, 5)])
    results = {
        "same": compared({"t": one}, {"t": RowDigest.of(one.record)}),
        "row-ids": compared({"t": one}, {"t": moved}),
        "differs": compared({"t": one}, {"t": other}),
        "gone": compared({"t": one}, {}),
        "new": compared({}, {"t": one}),
    }
    assert {name: found[0].result for name, found in results.items()} == {name: name for name in results}
    for bad in ({}, [], None, {**one.record, "rows": "7"}, {**one.record, "values": 7}):
        with pytest.raises(BadDataError):
            RowDigest.of(bad)
