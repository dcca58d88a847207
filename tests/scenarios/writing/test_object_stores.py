"""Rows in a table on a store that cannot rename: files are copied to their places before the commit."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from support.metastore.writable import client, table_of
from support.writing import WrittenTable, written_table

import acidctl
from acidctl.base.errors import AcidctlError, ConflictError, RefusedError
from acidctl.spark.writing.insert import FrameInsert
from acidctl.spark.writing.share import Attempt, InsertTask, write_share
from acidctl.storage.registry import open_location
from acidctl.writing.transaction import WriteTransaction

OBJECTS = {"objects": "true"}


@pytest.fixture
def table(tmp_path: Path) -> Iterator[WrittenTable]:

    with written_table(tmp_path / "t", {"a": "int", "b": "string"}) as made:
        found = made.hive.tables["db", "t"]
        assert found.storage
        place = f"memory://bucket/{uuid.uuid4()}"
        made.hive.tables["db", "t"] = dataclasses.replace(
            found, storage=dataclasses.replace(found.storage, location=place)
        )
        yield made


def rows(table: WrittenTable) -> list[tuple[int, str]]:
    found = acidctl.open_table("hive:db.t", metastore=table.hive.address, storage_options=OBJECTS).scan().to_table()
    return sorted(zip(found["a"].to_pylist(), found["b"].to_pylist(), strict=True))


def names(table: WrittenTable) -> list[str]:
    storage = table.hive.tables["db", "t"].storage
    assert storage
    fs, path = open_location(storage.location, OBJECTS)
    return sorted(entry.path for entry in fs.list_tree(path).entries if not entry.is_dir)


def test_statements_write_to_a_store_without_renames(table: WrittenTable) -> None:
    door = acidctl.Hive(table.hive.address, OBJECTS).table("db.t")
    door.insert(pa.table({"a": [1, 2], "b": ["x", "y"]}))
    door.update("b = 'z'", "a = 2")
    assert rows(table) == [(1, "x"), (2, "z")]
    assert not [name for name in names(table) if name.startswith("_tmp")]


@pytest.mark.parametrize("overwrite", [False, True])
def test_files_that_other_processes_wrote_are_copied(table: WrittenTable, overwrite: bool) -> None:
    batches = [pa.record_batch({"a": pa.array([n], pa.int32()), "b": ["x"]}) for n in range(3)]
    hive = table.hive

    def run(task: InsertTask) -> list[Attempt]:
        write_share(task, 1, batches[1:])  # an attempt that does not count
        return [write_share(task, number, [batch]) for number, batch in enumerate(batches)]

    made = FrameInsert(client(hive), table_of(hive), batches[0].schema, run, overwrite=overwrite)
    assert made.run(storage=OBJECTS).inserted == 3
    assert rows(table) == [(0, "x"), (1, "x"), (2, "x")]
    assert [name.rpartition("/")[2] for name in names(table)] == [
        "_orc_acid_version",
        *(f"bucket_0000{n}" for n in range(3)),
    ]


def test_a_copy_that_fails_leaves_no_file(table: WrittenTable, monkeypatch: pytest.MonkeyPatch) -> None:
    door = acidctl.Hive(table.hive.address, OBJECTS).table("db.t")
    door.insert(pa.table({"a": [1], "b": ["x"]}))
    before = names(table)
    table.hive.fault("commit_txn", "failed", times=9)
    with pytest.raises(AcidctlError):
        door.insert(pa.table({"a": [2], "b": ["y"]}))
    table.hive.faults.clear()
    assert (names(table), rows(table)) == (before, [(1, "x")])


@pytest.mark.parametrize("is_late", [False, True], ids=["before", "meanwhile"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_that_is_there_already_stays(
    table: WrittenTable, overwrite: bool, is_late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy would replace it, unlike a rename."""
    storage = table.hive.tables["db", "t"].storage
    assert storage
    fs, path = open_location(storage.location, OBJECTS)
    theirs = f"{path}/{'base_0000001' if overwrite else 'delta_0000001_0000001_0000'}/bucket_00000"
    if is_late:  # the last step before the files are copied
        monkeypatch.setattr(WriteTransaction, "give_up_statistics", lambda *_: fs.write_bytes(theirs, b"theirs"))
    else:
        fs.write_bytes(theirs, b"theirs")
    with pytest.raises(ConflictError) if is_late else pytest.raises(RefusedError, match="never gave"):
        acidctl.Hive(table.hive.address, OBJECTS).table("db.t").insert(pa.table({"a": [1]}), overwrite=overwrite)
    assert fs.read_bytes(theirs) == b"theirs"
    assert names(table) == [theirs.removeprefix(f"{path}/")]
