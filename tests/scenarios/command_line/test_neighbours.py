"""A warehouse in which not everything is Hive's ACID: what is not stays as it is, whatever its folders are called."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc, parquet
from support.files.acid_files import insert, write_acid
from support.tables import CLEAN_NOW, read_rows

from acidctl.acid.listing import Listing
from acidctl.base.errors import AccessError, AcidctlError, StorageError
from acidctl.location.find import find, refuse_unusable
from acidctl.location.other_formats import FormatDetector
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.storage.local.filesystem import LocalFileSystem

Call = Callable[..., Any]
PA = pa.table({"id": [1, 2, 3]})
MAJOR = ("compact", "--assume-committed=0s", "--engine", "local", "--major")
OLD = time.time() - 90 * 86400


def put(path: Path, data: bytes | str | pa.Table = b"x") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(data, pa.Table):
        (orc if path.suffix == ".orc" or path.name.endswith("_0") else parquet).write_table(data, str(path))
    else:
        path.write_bytes(data.encode() if isinstance(data, str) else data)


def csv_exports(table: Path) -> None:
    for name in ("base_5", "base_4", "delta_1_1", "delta_2_2", "delta_1_3"):
        put(table / name / "part-00000.csv", "1,a\n")
    put(table / "notes.csv", "1,a\n")


def parquet_exports(table: Path) -> None:
    for name in ("base_5", "base_4", "delta_1_1"):
        put(table / name / "part-00000-x.c000.snappy.parquet", PA)


def files_of_hive(table: Path) -> None:
    """A plain table that Hive wrote: names, copies and all."""
    for name in ("000000_0", "000000_0_copy_1", "000001_0"):
        put(table / name, PA)


def partitions_of_hive(table: Path) -> None:
    for day in (1, 2):
        files_of_hive(table / f"day={day}")


def hudi(table: Path) -> None:
    put(table / ".hoodie" / "hoodie.properties")
    put(table / ".hoodie_partition_metadata")
    for name in ("base_5", "base_4", "delta_1_1"):
        put(table / name / "x_0-1-2_3.parquet", PA)


def delta_lake(table: Path) -> None:
    put(table / "_delta_log" / "00000000000000000000.json", "{}")
    files_of_hive(table)
    put(table / "base_5" / "000000_0", PA)


def iceberg(table: Path) -> None:
    put(table / "metadata" / "00001-x.metadata.json", "{}")
    for name in ("base_5", "base_4", "delta_1_1"):
        put(table / "data" / name / "000000_0", PA)
    put(table / "base_4" / "000000_0", PA)
    put(table / "base_5" / "000000_0", PA)


def spark_stream(table: Path) -> None:
    put(table / "_spark_metadata" / "0")
    for name in ("base_5", "base_4"):
        put(table / name / "bucket_00000", PA)


def hbase(table: Path) -> None:
    put(table / "hbase.version")
    put(table / "data" / "default" / "base_5" / "x")
    put(table / "base_4" / "x")
    put(table / "base_5" / "x")


def kudu(table: Path) -> None:
    put(table / "instance")
    put(table / "wals" / "x")
    put(table / "base_4" / "x")
    put(table / "base_5" / "x")


OTHERS = [
    csv_exports,
    parquet_exports,
    files_of_hive,
    partitions_of_hive,
    hudi,
    delta_lake,
    iceberg,
    spark_stream,
    hbase,
    kudu,
]


def everything(root: Path) -> dict[str, tuple[bytes | None, int]]:
    """Every file with its bytes and time, and every directory."""
    return {
        str(path.relative_to(root)): (path.read_bytes() if path.is_file() else None, path.stat().st_mtime_ns)
        for path in sorted(root.rglob("*"))
    }


def grow_old(root: Path) -> None:
    for path in sorted(root.rglob("*"), reverse=True):
        os.utime(path, (OLD, OLD))


COMMANDS = [
    MAJOR,
    ("compact", "--assume-committed=1h", "--engine", "local", "--auto", "--min-deltas", "1"),
    CLEAN_NOW,
    (*CLEAN_NOW, "--assume-committed=0s", "--leftovers"),
    (*CLEAN_NOW, "--no-trash"),
    ("repair", "--only", "key-index", "--yes"),
    ("repair", "--only", "version-file", "--yes"),
    ("repair", "--only", "nested", "--yes", "--offline"),
]


@pytest.fixture
def warehouse(acidctl: Call, tmp_path: Path) -> Path:
    root = tmp_path / "warehouse" / "stuff"
    for write in OTHERS:
        write(root / write.__name__)
    put(root / "README.txt", "a stray file")
    assert acidctl("demo", root / "crud").status == 0
    grow_old(root)
    return root


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_strangers_in_a_warehouse_stay_as_they_are(acidctl: Call, warehouse: Path, command: tuple[str, ...]) -> None:
    before, rows = everything(warehouse), read_rows(warehouse / "crud")
    done = acidctl(*command, warehouse)
    assert done.status == 0, done.err
    after = everything(warehouse)
    strangers = {name for name in before | after if not name.startswith("crud")}
    assert {name for name in strangers if before.get(name) != after.get(name)} == set()
    assert read_rows(warehouse / "crud") == rows
    assert "not entered" in done.err
    assert "is a Delta Lake table" in done.err
    assert "left alone, not known to be transactional" in done.err
    if command == MAJOR:
        assert (warehouse / "crud" / "base_0000003").is_dir()


@pytest.mark.sampled(11)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("write", OTHERS, ids=lambda write: write.__name__)
def test_named_itself_it_is_refused(acidctl: Call, tmp_path: Path, write: Any, command: tuple[str, ...]) -> None:
    table = tmp_path / "t"
    write(table)
    grow_old(table)
    before = everything(table)
    refused = acidctl(*command, table)
    if write is not partitions_of_hive:
        assert refused.status == 7, (refused.out, refused.err)
        assert (
            "not known to be a transactional table" in refused.err
            or "acidctl enters Hive's ACID tables only" in refused.err
        )
    else:  # a tree of two locations
        assert "2 locations left alone" in refused.err
    assert everything(table) == before
    if (table / "base_5").is_dir():
        inside = acidctl(*command, table / "base_5")
        assert inside.status != 0
        assert everything(table) == before


def test_what_lies_above_many_paths_is_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [tmp_path / "t" / f"day={number}" for number in range(5)]
    for path in paths:
        write_acid(path / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (2, "b")))
    listed: list[str] = []
    real = LocalFileSystem.list_dir

    def counting(fs: LocalFileSystem, path: str) -> Listing:
        listed.append(path)
        return real(fs, path)

    monkeypatch.setattr(LocalFileSystem, "list_dir", counting)
    around = FormatDetector()
    refuse_unusable([*map(str, paths)], {}, SnapshotResolver(), formats=around)
    found = list(find([*map(str, paths)], {}, SnapshotResolver(), formats=around))
    assert [one.evidence.may_change for one in found] == [True] * len(paths)
    assert listed.count(str(tmp_path / "t")) == listed.count(str(tmp_path)) == 1
    listed.clear()  # and so do readers
    assert all(one.evidence.may_change for one in find([*map(str, paths)], {}, SnapshotResolver()))
    assert listed.count(str(tmp_path / "t")) == 1


def test_a_store_that_fails_does_not_say_that_nothing_is_above(
    acidctl: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What may not be listed there is passed over; what did not answer may be a table of another format."""
    table = tmp_path / "t" / "orders"
    assert acidctl("demo", table).status == 0
    real = LocalFileSystem.list_dir
    for kind, status in ((StorageError, 6), (AccessError, 0)):

        def fails(fs: LocalFileSystem, path: str, kind: type[AcidctlError] = kind) -> Listing:
            if path == str(table.parent):
                raise kind(f"cannot list {path}")
            return real(fs, path)

        with monkeypatch.context() as patch:
            patch.setattr(LocalFileSystem, "list_dir", fails)
            assert acidctl(*MAJOR, table).status == status
        assert (table / "base_0000003").exists() == (status == 0)


def test_a_stray_file_does_not_make_tables_original_files(acidctl: Call, tmp_path: Path) -> None:
    """They were: `compact`, `clean` and `validate` said "nothing to do" for ever, or merged two tables into one."""
    for name in ("orders", "items"):
        assert acidctl("demo", tmp_path / "db" / name).status == 0
    put(tmp_path / "db" / "copy.log")
    done = acidctl(*MAJOR, "-o", "jsonl", tmp_path / "db")
    assert [line["result"] for line in done.lines()] == ["compacted"] * 2
    assert not list((tmp_path / "db").glob("base*"))
    found = acidctl("validate", "-o", "jsonl", tmp_path / "db")
    (folder,) = [line for line in found.lines() if line["rule"] == "V41"]
    assert folder["location"] == str(tmp_path / "db")
    assert folder["severity"] == "warning"


def test_a_table_in_a_table(acidctl: Call, tmp_path: Path) -> None:
    """The outer one would take the inner one's files for its own, and clean them away."""
    outer, inner = tmp_path / "outer", tmp_path / "outer" / "inner"
    assert acidctl("demo", outer).status == acidctl("demo", inner).status == 0
    before = everything(inner)
    for command in (MAJOR, CLEAN_NOW):
        refused = acidctl(*command, outer)
        assert refused.status == 7
        assert "it is a folder of tables: inner/del" in refused.err
    assert everything(inner) == before
    assert acidctl(*MAJOR, inner).status == 0


@pytest.mark.parametrize(
    ("mark", "what"),
    [("_delta_log/0.json", "Delta Lake"), (".hoodie/x", "Hudi"), ("metadata/v1.metadata.json", "Iceberg")],
)
def test_a_table_of_another_format_in_a_table(acidctl: Call, crud: Path, mark: str, what: str) -> None:
    """Hive would take its files for original files, and a compaction make that permanent."""
    put(crud / "history" / mark, "{}")
    put(crud / "history" / "000000_0", PA)
    before = everything(crud)
    for command in (MAJOR, CLEAN_NOW, ("repair", "--only", "key-index", "--yes")):
        refused = acidctl(*command, crud)
        assert refused.status == 7
        assert f"history, which lies in it, is a{'n' if what == 'Iceberg' else ''} {what} table" in refused.err
    assert everything(crud) == before
    (crud / "delta_0000001_0000001_0000" / ".hoodie").mkdir()  # in a directory of Hive's, too
    assert acidctl(*MAJOR, crud).status == 7


def test_what_is_not_hive_s_in_an_acid_directory_keeps_it_back(acidctl: Call, crud: Path) -> None:
    assert acidctl(*MAJOR, crud).status == 0
    for name in ("delta_0000001_0000001_0000/thesis.docx", "delete_delta_0000002_0000002_0000/mine/bucket_00000"):
        put(crud / name)
    planned = acidctl("clean", "--dry-run", "--older-than", "0", "-o", "jsonl", crud).lines()[0]
    kept = {one["name"]: one["reason"] for one in planned["keptBack"]}
    assert set(kept) == {"delta_0000001_0000001_0000", "delete_delta_0000002_0000002_0000"}
    assert "Hive does not put delta_0000001_0000001_0000/thesis.docx there" in kept["delta_0000001_0000001_0000"]
    assert acidctl(*CLEAN_NOW, crud).status == 0
    assert (crud / "delta_0000001_0000001_0000" / "thesis.docx").exists()
    assert not (crud / "delete_delta_0000003_0000003_0000").exists()


def test_a_foreign_base_makes_nothing_obsolete(acidctl: Call, crud: Path) -> None:
    """Whatever a list says: write id 5 may be committed elsewhere, and `base_5` be somebody's export."""
    put(crud / "base_5" / "part-0.csv", "1,2\n")
    grow_old(crud)
    lists = ("--snapshot", "test_db.crud_table:5:9223372036854775807::", "--assume-committed=0s")
    before = everything(crud)
    for options in ((), lists, ("--assume-committed=0s",)):
        done = acidctl(*CLEAN_NOW, *options, crud)
        assert everything(crud) == before, options
        assert "Hive does not put base_5/part-0.csv there" in done.err


def insert_only(location: Path) -> None:
    """All that Hive's layout needs, in somebody else's hands."""
    for write_id in (1, 2):
        path = location / f"delta_000000{write_id}_000000{write_id}_0000" / "000000_0"
        path.parent.mkdir(parents=True)
        parquet.write_table(PA, path)


WITHIN = [
    (("_delta_log/0.json", "{}"), "day=1", "a Delta Lake table"),
    ((".hoodie/hoodie.properties", ""), "2024/01", "a Hudi table"),
    (("metadata/0-x.gz.metadata.json", "{}"), "data/day=1", "an Iceberg table"),
    (("_spark_metadata/0", "v1"), "day=1", "the output of a Spark stream"),
    (("_metadata", '{"version":"0.2"}'), "data", "an export of Hive"),
    (("_dumpmetadata", "x"), "db/orders/data", "a replication dump of Hive"),
    ((".Trash/x", ""), ".Trash/Current/orders", "deleted"),
    ((".snapshot/x", ""), ".snapshot/s1", "saved"),
    ((".acidctl-trash/x", ""), ".acidctl-trash/20240101T000000-1234abcd", "deleted"),
]


@pytest.mark.sampled(11)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(("mark", "below", "what"), WITHIN, ids=[one[1] for one in WITHIN])
def test_a_part_of_it_is_refused_too(
    acidctl: Call, tmp_path: Path, mark: tuple[str, str], below: str, what: str, command: tuple[str, ...]
) -> None:
    """A walk from above would not have come there: a partition that is named is not a table of its own."""
    table = tmp_path / "table"
    put(table / mark[0], mark[1])
    insert_only(table / below)
    grow_old(table)
    before = everything(table)
    (tmp_path / "link").symlink_to(table / below)
    for path in (table / below, table / below / "..", tmp_path / "link"):
        done = acidctl(*command, path)
        assert (done.status, what in done.err) == (7, True), (path, done.err)
        assert everything(table) == before
    both = acidctl(*command, table / below, tmp_path)
    assert what in both.err
    assert everything(table) == before


def test_a_path_that_is_none(acidctl: Call) -> None:
    assert acidctl(*MAJOR, "a\0b").status == 3


def test_an_export_is_told_and_left_alone(acidctl: Call, tmp_path: Path) -> None:
    """IMPORT would find the rows of the compacted base beside those of the deltas."""
    put(tmp_path / "w" / "export" / "_metadata", '{"version":"0.2"}')
    insert_only(tmp_path / "w" / "export" / "data")
    put(tmp_path / "w" / "ours" / "_metadata", b"PAR1 a summary of Parquet files")
    insert_only(tmp_path / "w" / "ours")
    before = everything(tmp_path / "w" / "export")
    done = acidctl(*MAJOR, tmp_path / "w")
    assert "export is an export of Hive" in done.err
    assert everything(tmp_path / "w" / "export") == before
    assert (tmp_path / "w" / "ours" / "base_0000002").is_dir()


def test_what_a_plan_of_a_file_names_is_looked_at_again(acidctl: Call, tmp_path: Path, crud: Path) -> None:
    assert acidctl(*MAJOR, crud).status == 0
    plan = tmp_path / "plan.json"
    assert acidctl("clean", "--plan", plan, "--older-than", "0", "--unsafe-retention", crud).status == 0
    put(tmp_path / "_delta_log" / "0.json", "{}")
    before = everything(crud)
    done = acidctl("clean", "--yes", "--unsafe-retention", "--apply", plan)
    assert (done.status, "is a Delta Lake table" in done.err) == (7, True), done.err
    assert everything(crud) == before


@pytest.mark.parametrize("data", [b"1,a\n2,b\n", b"PAR1" * 9, PA], ids=["csv", "parquet", "orc"])
def test_a_foreign_file_with_a_name_of_hive_s_makes_nothing_obsolete(acidctl: Call, crud: Path, data: Any) -> None:
    """Readers could not read the table any more; what is beside that base is all there is of it."""
    (crud / "base_0000009").mkdir()
    if isinstance(data, pa.Table):
        orc.write_table(data, str(crud / "base_0000009" / "bucket_00000"))
    else:
        put(crud / "base_0000009" / "bucket_00000", data)
    grow_old(crud)
    before = everything(crud)
    for options in (("--assume-committed=0s",), ("--snapshot", "crud_table:9:9223372036854775807::")):
        done = acidctl(*CLEAN_NOW, *options, crud)
        assert done.status == 0, done.err
        assert "base_0000009: base_0000009/bucket_00000 " in done.err
        assert everything(crud) == before


def test_ls_says_what_is_not_known_to_be_transactional(acidctl: Call, warehouse: Path) -> None:
    found = acidctl("ls", warehouse)
    assert found.status == 0
    assert "locations not known to be transactional: acidctl changes nothing there" in found.err
    assert "is an Iceberg table" in acidctl("ls", "-o", "jsonl", warehouse / "crud", warehouse / "iceberg").err
    shown = acidctl("ls", warehouse / "csv_exports")
    assert "not known to be transactional: " in shown.out
    report = json.loads(acidctl("ls", "-o", "jsonl", warehouse / "parquet_exports").out)
    assert report["transactional"]["known"] is False
    assert report["transactional"]["code"] == "no-evidence"
    assert report["compaction"] is None


def test_one_type_is_said_of_one_table(acidctl: Call, warehouse: Path) -> None:
    before = everything(warehouse)
    refused = acidctl(*MAJOR, "--table-type", "insert-only", warehouse)
    assert refused.status == 7
    assert "one table type cannot speak for several tables" in refused.err
    assert everything(warehouse) == before
