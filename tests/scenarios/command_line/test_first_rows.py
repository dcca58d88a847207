"""`dump --limit` and `cat --limit` show the first rows of all, though they read no more than these take."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc
from support.files.acid_files import acid_batch, acid_file, write_acid

from acidctl.orc.read.reader import OrcFile
from acidctl.orc.types import OrcType

Acidctl = Callable[..., Any]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two original files of one bucket and a delta, all larger than what is asked for."""
    rows = pa.table({"a": pa.array(range(900), pa.int32()), "b": [f"text {i}" for i in range(900)]})
    for name in ("000000_0", "000000_0_copy_1"):
        orc.write_table(rows, tmp_path / name)
    row = OrcType("struct", children=(OrcType("int"), OrcType("string")), names=("a", "b"))
    data, _ = acid_file(
        row, [acid_batch(pa.StructArray.from_arrays([c.combine_chunks() for c in rows.columns], names=["a", "b"]))]
    )
    delta = tmp_path / "delta_0000007_0000007_0000"
    delta.mkdir()
    (delta / "bucket_00000").write_bytes(data)
    return tmp_path


def refused(*_: object) -> None:
    raise AssertionError("a whole stripe was read")


@pytest.mark.sampled(7)
@pytest.mark.parametrize("what", ["", "000000_0", "000000_0_copy_1", "delta_0000007_0000007_0000/bucket_00000"])
@pytest.mark.parametrize("limit", [1, 100, 910, 2000])
def test_limited_dump_is_the_beginning_of_the_whole(acidctl: Acidctl, table: Path, what: str, limit: int) -> None:
    for more in ((), ("--decode",), ("--columns", "row.b,rowId"), ("--columns", "rowId"), ("--where", "rowId > 3")):
        whole = acidctl("dump", *more, table / what).lines()
        found = acidctl("dump", *more, "--limit", str(limit), table / what).lines()
        assert found == whole[:limit]


def test_ids_alone_are_checked_as_ever(acidctl: Acidctl, table: Path) -> None:
    """Where one is NULL, nobody can say which row it is."""
    bucket = table / "delta_0000007_0000007_0000" / "bucket_00000"
    columns = orc.read_table(bucket).combine_chunks()
    ids = columns.column("rowId").to_pylist()
    columns = columns.set_column(3, "rowId", pa.array([None, *ids[1:]], pa.int64()))
    bucket.unlink()
    orc.write_table(columns, bucket)
    for more in ((), ("--limit", "3")):
        result = acidctl("dump", "--columns", "rowId,bucket", *more, bucket)
        assert result.status
        assert "1 rows have no rowId" in result.err
    # Where nothing was deleted, the ids of rows are nobody's concern.
    for name in ("000000_0", "000000_0_copy_1"):
        (table / name).unlink()
    whole = acidctl("cat", table)
    assert whole.status == 0
    assert acidctl("cat", "--limit", "3", table).lines() == whole.lines()[:3]


def test_no_stripe_is_read(acidctl: Acidctl, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    delta = table / "delta_0000007_0000007_0000"
    expected = acidctl("dump", delta).lines()[:10]
    monkeypatch.setattr(OrcFile, "read_stripe", refused)
    assert acidctl("dump", "--limit", "10", delta).lines() == expected


@pytest.mark.sampled(7)
@pytest.mark.parametrize("limit", [1, 10, 85, 100, 112, 113, 1000, 3000])
@pytest.mark.parametrize("gone", [range(0), range(3), range(100), range(5, 900, 2), range(900)])
def test_cat_shows_the_same_rows(acidctl: Acidctl, table: Path, gone: range, limit: int) -> None:
    """Be the first rows deleted, or most of them."""
    keys = [(2, 0, 1 << 29, row, 9, None) for row in gone]
    if keys:
        write_acid(table / "delete_delta_0000009_0000009_0000" / "bucket_00000", *keys)
    for more in ((), ("--row-id",), ("--columns", "b"), ("--where", "a > 20")):
        whole = acidctl("cat", *more, table).lines()
        assert acidctl("cat", *more, "--limit", str(limit), table).lines() == whole[:limit]


def test_cat_reads_no_stripe(acidctl: Acidctl, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(table / "delta_0000007_0000007_0000")
    expected = acidctl("cat", table).lines()[:10]
    monkeypatch.setattr(OrcFile, "read_stripe", refused)
    assert acidctl("cat", "--limit", "10", table).lines() == expected
