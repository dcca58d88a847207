"""Checksums of rows: the same whatever the order and the files, another where one value, row or id is another."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from support.command_line import Result
from support.files.acid_files import AB, insert, write_acid

from acidctl.api import Location
from acidctl.compaction.proof.values import RowDigest

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


def test_cat_prints_it_of_all_rows_or_of_some(acidctl: Callable[..., Result], crud: Path, tmp_path: Path) -> None:
    found = acidctl("cat", "--checksum", crud)
    digest = Location(crud).row_digest()
    assert found.status == 0, found.err
    assert json.loads(found.out) == {
        "schema_version": 1,
        "rows": digest.rows,
        "values": digest.values,
        "rowIds": digest.row_ids,
        "columns": digest.columns,
    }
    copy = shutil.copytree(crud, tmp_path / "copy")
    assert acidctl("cat", "--checksum", copy).out == found.out
    shutil.rmtree(copy / "delete_delta_0000003_0000003_0000")
    assert acidctl("cat", "--checksum", copy).json()["values"] != digest.values
    assert acidctl("cat", "--checksum", "--where", "id = 1", crud).json()["rows"] == 1
    assert acidctl("cat", "--checksum", "--count", crud).status == 2


def test_nothing_is_printed_where_something_cannot_be_read(acidctl: Callable[..., Result], crud: Path) -> None:
    path = crud / "delta_0000001_0000001_0000" / "bucket_00000"
    path.write_bytes(path.read_bytes()[:50])
    found = acidctl("cat", "--checksum", crud)
    assert (found.status, found.out) == (4, "")
