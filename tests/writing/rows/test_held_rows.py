"""All rows of several files in memory, in the types of a table."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from support.metastore.fake_hive import FakeHive
from support.metastore.writable import table_of, writable

from acidctl.base.errors import BadDataError, UsageProblem
from acidctl.metastore.tables import HiveTable
from acidctl.writing.rows.held_rows import held_rows
from acidctl.writing.rows.key_filter import KeyFilter
from acidctl.writing.rows.sources import FileSource, arrow_source


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveTable]:
    with FakeHive(4) as hive:
        writable(
            hive, tmp_path_factory.mktemp("held") / "t", "k int, v string, t timestamp, l array<int>", "day string"
        )
        yield table_of(hive)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def parquet_files(*tables: pa.Table) -> FileSource:
    paths = [f"f{number}.parquet" for number, _ in enumerate(tables, 1)]
    for path, rows in zip(paths, tables, strict=True):
        parquet.write_table(rows, path)
    return FileSource(paths)


def test_files_of_different_types_become_the_types_of_the_table(table: HiveTable) -> None:
    Path("f.csv").write_text("V,K,n,T\n,1,7,9999-12-31 00:00:00\n")
    near = datetime.datetime(2020, 1, 1)
    other = pa.table({"k": pa.array([2], pa.int8()), "n": pa.nulls(1), "v": pa.array(["x"]).dictionary_encode(),
                      "t": pa.array([near], pa.timestamp("us"))})  # fmt: skip
    source = FileSource(["f.csv", *parquet_files(other).paths])
    rows = held_rows(source, table)
    assert rows.column_names == ["v", "k", "n", "t"]
    assert [rows.schema.field(name).type for name in "vkn"] == [pa.string(), pa.int32(), pa.int64()]
    assert rows.select(["v", "k", "n"]).to_pylist() == [{"v": None, "k": 1, "n": 7}, {"v": "x", "k": 2, "n": None}]
    assert [value["seconds"] for value in rows["t"].to_pylist()] == [253402214400, 1577836800]


@pytest.mark.parametrize("lacking", [1, 2])
def test_a_file_that_lacks_a_column_of_another_is_refused(table: HiveTable, lacking: int) -> None:
    tables = [pa.table({"k": [1], "v": ["x"]}), pa.table({"k": [1], "v": ["x"]})]
    tables[lacking - 1] = pa.table({"k": [2]})
    with pytest.raises(BadDataError, match=rf"f{lacking}\.parquet has no column v"):
        held_rows(parquet_files(*tables), table)
    assert held_rows(parquet_files(*tables), table, ["K"]).to_pylist() == [{"k": row["k"][0].as_py()} for row in tables]


def test_other_columns_of_different_types_are_refused(table: HiveTable) -> None:
    source = parquet_files(pa.table({"k": [1], "n": [1]}), pa.table({"k": [2], "n": ["1"]}))
    with pytest.raises(BadDataError, match="different types of the column n: it is int64 in one file, and string"):
        held_rows(source, table)


def test_names_are_those_of_the_rows_and_each_is_there_once(table: HiveTable) -> None:
    rows = pa.table({"K": [1], "why": ["x"]})
    assert held_rows(arrow_source(rows), table).column_names == ["k", "why"]
    with pytest.raises(UsageProblem, match="the keys have no column kk"):
        held_rows(arrow_source(rows), table, ["kk"])
    with pytest.raises(UsageProblem, match="two columns op"):
        held_rows(arrow_source(pa.table({"op": [1], "Op": [2]})), table)


def test_no_rows_have_the_types_too(table: HiveTable) -> None:
    empty = pa.table({"k": pa.array([], pa.int64()), "n": pa.array([], pa.string()).dictionary_encode()})
    rows = held_rows(arrow_source(empty), table)
    assert (rows.num_rows, rows.schema.types) == (0, [pa.int32(), pa.string()])


def test_a_source_without_a_part_has_every_column_that_can_be_a_key(table: HiveTable) -> None:
    Path("empty.jsonl").write_text("\n")
    source = FileSource(["empty.jsonl"])
    rows = held_rows(source, table, extra=["Op"])
    assert (rows.num_rows, rows.column_names) == (0, ["k", "v", "t", "day", "op"])
    assert KeyFilter.of(table, held_rows(source, table)).paths == (("day",), ("k",), ("v",), ("t",))
    assert KeyFilter.of(table, held_rows(source, table, ["K"])).paths == (("k",),)


def test_errors_name_the_file_and_its_row(table: HiveTable) -> None:
    source = parquet_files(pa.table({"k": [1, 2]}), pa.table({"k": [3, 5_000_000_000]}))
    with pytest.raises(BadDataError, match=r"row 2 of f2\.parquet"):
        held_rows(source, table)
