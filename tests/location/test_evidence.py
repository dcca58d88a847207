"""What is known to be of a transactional table, and what only has its names."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc, parquet
from support.files.acid_files import delete, insert, write_by_pyorc, write_orc
from support.tables import make
from support.validating import healthy

from acidctl.acid.listing import TableType
from acidctl.acid.reasons import Code, reason
from acidctl.location.evidence import Evidence, evidence_of
from acidctl.location.snapshot import list_location
from acidctl.storage.local.filesystem import LocalFileSystem

FS = LocalFileSystem()


def known(table: Path, said: TableType | None = None) -> Evidence:
    return evidence_of(FS, str(table), list_location(FS, str(table)), said)


def bytes_of(kind: str, **metadata: str) -> bytes:
    sink, table = io.BytesIO(), pa.table({"a": [1, 2]})
    if kind == "parquet":
        parquet.write_table(table.replace_schema_metadata(metadata), sink)
    elif kind == "orc":
        orc.write_table(table, sink)
    else:
        sink.write(b"1,2\n3,4\n")
    return sink.getvalue()


def put(table: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = table / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return table


def test_side_files_and_acid_columns(tmp_path: Path) -> None:
    assert known(make(tmp_path / "a", "delta_1_1")) == Evidence(
        True, reason(Code.BY_FILES, how="side-file", by=("delta_1_1",), file="_orc_acid_version"), TableType.FULL_ACID
    )
    table = healthy(tmp_path / "b")
    for side in table.glob("*/_*"):
        side.unlink()
    found = known(table)
    assert (found.is_known, found.reason.code, found.table_type) == (True, "by-files", TableType.FULL_ACID)
    write_by_pyorc(tmp_path / "c" / "delta_1_1", [insert(1, 0)])
    write_by_pyorc(tmp_path / "c" / "delete_delta_2_2", [delete(1, 0, 2)])
    assert known(tmp_path / "c").table_type is TableType.FULL_ACID


def test_one_damaged_file_does_not_hide_the_others(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        write_by_pyorc(tmp_path / "t" / f"delta_{number}_{number}", [insert(number, 0)])
    for side in (tmp_path / "t").glob("*/_*"):
        side.unlink()
    (tmp_path / "t" / "delta_1_1" / "bucket_00000").write_bytes(b"no ORC")
    assert known(tmp_path / "t").is_known


@pytest.mark.parametrize("kind", ["parquet", "orc"])
@pytest.mark.parametrize("name", ["delta_0000001_0000001_0000", "delta_1_1_0", "delta_0000001_0000004", "delta_1_4_v9"])
def test_insert_only_layout_is_evidence(kind: str, name: str, tmp_path: Path) -> None:
    found = known(put(tmp_path / "t", {f"{name}/000000_0": bytes_of(kind), "base_0000000/000000_0": bytes_of(kind)}))
    assert (found.is_known, found.reason.code) == (True, "by-files")
    assert found.table_type is (TableType.INSERT_ONLY if kind == "parquet" else None)


@pytest.mark.parametrize(
    "files",
    [
        {"base_5/x.csv": b"1,2\n"},
        {"base_5/000000_0": b"1,2\n"},
        {"base_5/000000_0": bytes_of("parquet")},
        {"base_5/000000_0": bytes_of("orc")},
        {"base_0000005/000000_0": bytes_of("parquet")},
        {"delta_1_1/part-00000-x.c000.snappy.parquet": bytes_of("parquet")},
        {"delta_1_1/000000_0": bytes_of("parquet")},
        {"delta_1_1/bucket_00000": b"1,2\n"},
        {"delta_1_1/bucket_00000": bytes_of("orc")},
        {"delta_0000001_0000001_0000/000000_0": b"1\t2\n"},
        {"delta_0000001_0000001_0000/000000_0": bytes_of("parquet", **{"org.apache.spark.version": "3.5"})},
        {"delta_0000001_0000001_0000/000000_0": bytes_of("parquet"), "base_5/x.csv": b"1,2\n"},
        {"delta_0000001_0000001_0000/000000_0": bytes_of("orc"), "base_5/000000_0": bytes_of("orc")},
        {"delta_0000001_0000001_0000/000000_0": bytes_of("orc"), "delta_2_2/000000_0": bytes_of("orc")},
        {
            "delta_0000001_0000001_0000/000000_0": bytes_of("orc"),
            "delete_delta_0000001_0000001_0000/000000_0": bytes_of("orc"),
        },
        {"000000_0": bytes_of("orc")},
        {"base_5/_metadata_acid": b"{}"},
        {"base_5/_orc_acid_version": b""},
        {"base_5/_orc_acid_version": b"2", "base_5/x.csv": b"1,2\n"},
        {"base_5/deep/_orc_acid_version": b"2", "base_5/deep/bucket_00000": b"x"},
        {"base_5/_SUCCESS": b"", "base_5/part-0": b"1"},
    ],
    ids=" ".join,
)
def test_names_alone_are_nothing(files: dict[str, bytes], tmp_path: Path) -> None:
    found = known(put(tmp_path / "t", files))
    assert not found.is_known, found
    assert not found.may_change
    assert found.text
    for said in TableType:
        assert known(tmp_path / "t", said).table_type is said


def test_tables_below_are_never_part_of_one(tmp_path: Path) -> None:
    table = healthy(tmp_path / "t")
    healthy(table / "other")
    for said in (None, *TableType):
        found = known(table, said)
        assert (found.is_known, found.reason.code) == (False, "tables-below"), "not even where somebody says so"
    assert known(table / "other").is_known


def test_a_directory_that_a_rename_put_into_another_is_no_table(tmp_path: Path) -> None:
    table = healthy(tmp_path / "t")
    name = "delta_0000002_0000002_0000"
    (table / name / name).mkdir()
    (table / name / name / "bucket_00000").write_bytes((table / name / "bucket_00000").read_bytes())
    assert known(table).is_known


def test_a_directory_of_a_table_is_none_whatever_is_said(tmp_path: Path) -> None:
    table = put(tmp_path / "t", {"delta_0000001_0000001_0000/000000_0": bytes_of("parquet")})
    inside = table / "delta_0000001_0000001_0000"
    for said in (None, *TableType):
        assert not known(inside, said).is_known
        assert not known(inside, said).may_change
    assert known(inside, TableType.INSERT_ONLY).reason.code == "inside-a-table"
    named = put(tmp_path / "base_5", {"delta_0000001_0000001_0000/000000_0": bytes_of("parquet")})
    assert known(named, TableType.INSERT_ONLY).reason.code == "said"


def test_empty_location_may_change_but_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "t" / "_tmp_1").mkdir(parents=True)
    found = known(tmp_path / "t")
    assert (found.is_known, found.may_change, found.reason.code) == (False, True, "empty")


def test_a_union_of_an_insert_only_table(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_orc(table / "delta_0000005_0000005_0000/HIVE_UNION_SUBDIR_1/000000_0", "struct<a:int>", [(1,)])
    assert known(table).reason.code == "by-files"
