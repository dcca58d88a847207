"""Tables and scans as what other libraries read: Arrow's C stream, pandas, polars, and notebooks."""

from __future__ import annotations

import builtins
import datetime
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from support.files.acid_files import damage_stripe, write_deletes, write_delta

import acidctl
from acidctl.base.errors import BadDataError, EnvironmentProblem, UsageProblem
from acidctl.orc.types import OrcType
from acidctl.rows.scan.table_scan import ArrowRows

TYPES = OrcType("struct", children=(OrcType("int"), OrcType("string")), names=("id", "name"))
ROWS = pa.RecordBatch.from_pydict(
    {"id": pa.array([1, 2, 3], pa.int32()), "name": pa.array(["a", None, "<b>x</b>\x1b[31m"])}
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two partitions of three rows, of which the first has one deleted."""
    for day in ("2024-01-01", "2024-01-02"):
        write_delta(tmp_path / "t" / f"day={day}", 1, ROWS, row=TYPES)
    write_deletes(tmp_path / "t" / "day=2024-01-01", 2, 1, [0], row=TYPES)
    return tmp_path / "t"


@pytest.mark.parametrize("of", ["table", "scan"])
def test_all_libraries_see_the_same_rows(table: Path, of: str) -> None:
    opened = acidctl.open_table(table)
    rows = opened if of == "table" else opened.scan()
    whole = opened.scan().to_table()
    assert whole["id"].to_pylist() == [2, 3, 1, 2, 3]
    assert rows.schema == whole.schema
    assert all(batch.schema == rows.schema for batch in rows.to_batches())
    assert pa.table(rows) == whole  # by the C stream
    assert pa.RecordBatchReader.from_stream(rows).schema == rows.schema
    assert rows.to_reader().read_all() == whole
    assert rows.to_table() == whole
    assert pl.DataFrame(rows).equals(pl.DataFrame(whole))
    pd.testing.assert_frame_equal(rows.to_pandas(), whole.to_pandas())
    assert rows.head(2) == whole.slice(0, 2)
    assert rows.head(0) == whole.slice(0, 0)
    assert rows.head() == whole


@pytest.mark.parametrize("threads", [2, 7])
def test_threads_read_the_same_rows_in_the_same_order(table: Path, threads: int) -> None:
    for number in range(3, 9):
        write_delta(table / "day=2024-01-01", number, ROWS, ROWS, row=TYPES)
    write_deletes(table / "day=2024-01-01", 9, 4, [0, 5], row=TYPES)
    for scan in (acidctl.open_table(table).scan(), acidctl.open_table(table).scan(["name"], "id > 1", row_id=True)):
        wanted = list(scan.to_batches())
        assert list(scan.to_batches(threads=threads)) == wanted
        assert pa.Table.from_batches(scan.to_batches(7, threads=threads)) == pa.Table.from_batches(scan.to_batches(7))
    assert list(acidctl.open_table(table).to_batches(threads=threads)) == list(acidctl.open_table(table).to_batches())


def test_an_error_comes_after_the_rows_before_it_whoever_reads(table: Path) -> None:
    damage_stripe(table / "day=2024-01-02/delta_0000001_0000001_0000/bucket_00000", 0)
    scan = acidctl.open_table(table).scan()
    for threads in (1, 4):
        batches = scan.to_batches(threads=threads)
        assert next(batches)["id"].to_pylist() == [2, 3]
        with pytest.raises(BadDataError, match="rows 1 to 3 of its 3 cannot be read") as caught:
            next(batches)
        assert caught.value.hint.endswith("; on_loss reads the rest")


def test_a_reader_that_stops_early_leaves_no_thread(table: Path) -> None:
    batches = acidctl.open_table(table).scan().to_batches(threads=3)
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert not [one for one in threading.enumerate() if one.name.startswith("acidctl-read")]


@pytest.mark.parametrize("of", ["table", "scan"])
def test_duckdb_queries_what_it_is_given(table: Path, of: str) -> None:
    opened = acidctl.open_table(table)
    rows = opened if of == "table" else opened.scan(["id", "day"], "id > 1")  # what the stream has, DuckDB reads
    found = duckdb.sql("SELECT day, count(*) AS n, sum(id) AS s FROM rows WHERE id > 1 GROUP BY day ORDER BY day")
    days = [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)]
    assert found.fetchall() == [(day, 2, 5) for day in days]
    assert rows is not None


def test_tables_of_delta_and_iceberg_are_written_from_a_stream_of_a_table(table: Path, tmp_path: Path) -> None:
    scan = acidctl.open_table(table).scan()
    deltalake.write_deltalake(tmp_path / "delta", scan.to_reader())
    in_delta = pa.table(deltalake.DeltaTable(tmp_path / "delta").to_pyarrow_table())
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/w")
    catalog.create_namespace("s")
    copy = catalog.create_table("s.t", schema=scan.schema)
    copy.append(scan.to_reader())
    wanted = sorted(map(str, scan.to_table().to_pylist()))
    assert sorted(map(str, in_delta.to_pylist())) == sorted(map(str, copy.scan().to_arrow().to_pylist())) == wanted


def test_a_stream_asked_for_in_other_types(table: Path) -> None:
    wanted = pa.schema([("id", pa.int64()), ("name", pa.large_string()), ("day", pa.date32())])
    found = pa.RecordBatchReader.from_stream(acidctl.open_table(table), schema=wanted).read_all()
    assert found.schema == wanted
    assert found["id"].to_pylist() == [2, 3, 1, 2, 3]


def test_schema_and_rows_of_a_reader_are_of_one_snapshot(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = acidctl.open_table(table)
    reader = opened.to_reader()
    later = pa.RecordBatch.from_pydict({"id": pa.array([9], pa.int32()), "name": pa.array(["later"])})
    write_delta(table / "day=2024-01-02", 7, later, row=TYPES)
    assert reader.read_all()["id"].to_pylist() == [2, 3, 1, 2, 3]
    for read in ("to_reader", "to_table", "head"):
        fresh, scans = acidctl.open_table(table), []
        real = fresh.scan
        monkeypatch.setattr(fresh, "scan", lambda real=real, scans=scans: scans.append(1) or real())
        getattr(fresh, read)()
        assert len(scans) == 1, read
    assert opened.to_table()["id"].to_pylist() == [2, 3, 1, 2, 3, 9]


def test_a_damaged_file_is_said_by_a_reader(table: Path) -> None:
    (path,) = table.glob("day=2024-01-02/delta_*/*")
    damage_stripe(path, 0)
    reader = acidctl.open_table(table).to_reader()
    assert reader.schema.names == ["id", "name", "day"]
    with pytest.raises(BadDataError):
        reader.read_all()


def test_what_notebooks_and_prompts_show(table: Path) -> None:
    opened = acidctl.open_table(table)
    scan = opened.scan(["id"], "name = '<i>'", deleted=True)
    assert repr(opened) == f"<acidctl table {table}, locations: 2>"
    assert repr(scan) == "<acidctl scan of (id), where name = '<i>', deleted rows, locations: 2>"
    shown = opened._repr_html_()
    assert "<td>name</td><td>string</td>" in shown
    assert "<td>day</td><td>date32[day]</td>" in shown
    assert "&lt;acidctl table" in shown
    assert "&lt;i&gt;" in scan._repr_html_()
    assert "<i>" not in scan._repr_html_()


def test_names_of_columns_cannot_break_out_of_a_page(tmp_path: Path) -> None:
    name = "<script>alert(1)</script>\x1b[31m"
    types = OrcType("struct", children=(OrcType("int"),), names=(name,))
    write_delta(tmp_path / "t", 1, pa.RecordBatch.from_pydict({name: pa.array([1], pa.int32())}), row=types)
    shown = acidctl.open_table(tmp_path / "t")._repr_html_()
    assert "<script>" not in shown
    assert "\x1b" not in shown


def test_pandas_is_missing(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *more: Any) -> Any:
        if name == "pandas":
            raise ModuleNotFoundError(f"No module named {name!r}")
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(EnvironmentProblem, match="cannot import pandas") as caught:
        acidctl.open_table(table).to_pandas()
    assert caught.value.hint == "pip install pandas"


class _Union(ArrowRows):
    """One row with a union."""

    batch = pa.RecordBatch.from_arrays(
        [pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1]), pa.array(["x"])])], names=["either"]
    )

    @property
    def schema(self) -> pa.Schema:
        return self.batch.schema

    def to_batches(self, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        yield self.batch


def test_a_union_is_refused_by_name_where_pandas_has_none() -> None:
    with pytest.raises(UsageProblem, match="pandas") as caught:
        _Union().to_pandas()
    assert "to_table" in caught.value.hint


def test_dates_of_partitions_reach_pandas_and_polars(table: Path) -> None:
    opened = acidctl.open_table(table)
    assert opened.to_pandas()["day"][0] == datetime.date(2024, 1, 1)
    assert pl.DataFrame(opened)["day"][0] == datetime.date(2024, 1, 1)
