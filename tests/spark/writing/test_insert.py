"""Inserts whose rows are written share by share, as tasks do it; without Spark."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.metastore.fake_hive import FakeHive
from support.metastore.writable import INSERT_ONLY, client, files_of, rows_of, table_of, writable

import acidctl
from acidctl.base.errors import BadDataError, ConflictError, NotFoundError, RefusedError, StorageError, UsageProblem
from acidctl.metastore import interface
from acidctl.spark.writing import share as share_module
from acidctl.spark.writing.insert import FrameInsert
from acidctl.spark.writing.share import ROUTE, Attempt, InsertTask, with_route, without_route, write_share
from acidctl.storage.local.filesystem import LocalFileSystem

Shares = list[list[pa.RecordBatch]]


@pytest.fixture
def hive() -> Iterator[FakeHive]:
    with FakeHive(4, remembers=True) as made:
        yield made


def shares_of(rows: pa.Table, count: int = 3) -> Shares:
    """Rows in turn; a share may be empty."""
    return [rows.take(np.arange(rows.num_rows)[at::count]).to_batches() for at in range(count)]


def plain(count: int = 10) -> pa.Table:
    return pa.table({"a": pa.array(range(count), pa.int32()), "b": [f"n{i}" for i in range(count)]})


def in_turn(shares: Shares) -> Callable[[InsertTask], list[Attempt]]:
    def run(task: InsertTask) -> list[Attempt]:
        sent = pickle.dumps(task)
        return [write_share(pickle.loads(sent), number, share) for number, share in enumerate(shares)]

    return run


def routed(shares: Shares, parts: int = 2) -> Callable[[InsertTask], list[Attempt]]:
    """Run the shares as the driver has Spark do it for buckets: rows of one file meet in one task."""

    def run(task: InsertTask) -> list[Attempt]:
        task = replace(task, is_routed=True)
        batches = list(chain(*(with_route(task, number, share) for number, share in enumerate(shares))))
        moved: Shares = [
            [batch.filter(pa.array(np.asarray(batch[ROUTE]) % parts == part)) for batch in batches]
            for part in range(parts)
        ]
        return [write_share(task, number, list(without_route(share))) for number, share in enumerate(moved)]

    return run


def insert(hive: FakeHive, rows: pa.Table, run: Any = None, partition: Any = None, **more: Any) -> Any:
    run = run or in_turn(shares_of(rows))
    return FrameInsert(client(hive), table_of(hive), rows.schema, run, partition, **more).run()


def unique_ids(hive: FakeHive) -> int:
    """Count the rows; all have ids of their own in their location."""
    found = acidctl.open_table("hive:db.t", metastore=hive.address).scan(row_id=True).to_table()
    places = [name for name in found.column_names if name in ("p", "q")]
    rows = [
        (tuple(row["ROW__ID"].values()), *(row[name] for name in places))
        for row in found.select(["ROW__ID", *places]).to_pylist()
    ]
    assert len(set(rows)) == len(rows)
    return len(rows)


def test_each_share_has_a_file_of_its_own(hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path)
    done = insert(hive, plain())
    assert (done.inserted, done.files, done.write_id) == (10, 3, 1)
    assert rows_of(hive) == [(i, f"n{i}") for i in range(10)]
    assert unique_ids(hive) == 10
    assert files_of(tmp_path) == [
        f"delta_0000001_0000001_0000/{name}" for name in ("_orc_acid_version", *(f"bucket_0000{n}" for n in range(3)))
    ]


def test_a_task_makes_one_directory_however_many_partitions_its_rows_have(hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path / "t", "a int, b string", "p int")
    rows = plain(40).append_column("p", pa.array([at // 2 for at in range(40)], pa.int32()))
    found: list[str] = []

    def run(task: InsertTask) -> list[Attempt]:
        attempts = in_turn(shares_of(rows, 2))(task)
        found.extend(str(path.relative_to(task.room)) for path in Path(task.room).rglob("*") if path.is_dir())
        return attempts

    assert insert(hive, rows, run).files == 20 + 20
    assert len(found) == 2, found
    assert unique_ids(hive) == 40


def test_a_retried_task_doubles_no_rows(hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path)

    def run(task: InsertTask) -> list[Attempt]:
        shares = shares_of(plain())
        with pytest.raises(RuntimeError, match="the executor died"):
            write_share(task, 1, chain(shares[1], broken()))
        late = write_share(task, 1, shares[1])  # a speculative attempt, which ends later than the one that counts
        attempts = in_turn(shares)(task)
        assert late.name not in {attempt.name for attempt in attempts}
        return attempts

    def broken() -> Iterator[pa.RecordBatch]:
        raise RuntimeError("the executor died")
        yield

    insert(hive, plain(), run)
    assert rows_of(hive) == [(i, f"n{i}") for i in range(10)]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith((".", "_tmp"))]


def test_an_attempt_that_ends_after_the_commit_adds_nothing(hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path)
    tasks: list[InsertTask] = []

    def run(task: InsertTask) -> list[Attempt]:
        tasks.append(task)
        return in_turn(shares_of(plain()))(task)

    insert(hive, plain(), run)
    with pytest.raises(NotFoundError):
        write_share(tasks[0], 1, plain(3).to_batches())
    assert [path.name for path in tmp_path.iterdir()] == ["delta_0000001_0000001_0000"]
    assert len(rows_of(hive)) == 10


def test_a_file_that_a_task_makes_while_its_directory_is_removed(
    hive: FakeHive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writable(hive, tmp_path)
    remove_tree, late = LocalFileSystem.remove_tree, [True]

    def overtaken(store: LocalFileSystem, path: str) -> None:
        remove_tree(store, path)
        if ".hive-staging" in path and late:
            late.clear()
            Path(path).mkdir()
            (Path(path) / "late").touch()
            raise StorageError("cannot remove it", "Directory not empty")

    def run(task: InsertTask) -> list[Attempt]:
        in_turn(shares_of(plain()))(task)
        raise RuntimeError("a task died")

    monkeypatch.setattr(LocalFileSystem, "remove_tree", overtaken)
    with pytest.raises(RuntimeError, match="died"):
        insert(hive, plain(), run)
    assert not late
    assert not list(tmp_path.iterdir())


def test_a_failing_task_leaves_the_table_as_it_was(hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path)
    rows = pa.table({"a": pa.array([1, 2, 1 << 40], pa.int64())})
    with pytest.raises(BadDataError, match="row 1 of partition 2 of the DataFrame does not fit"):
        insert(hive, rows)
    assert not list(tmp_path.iterdir())
    assert not hive.locks


def test_two_files_of_one_name_are_refused(hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path)
    shares = shares_of(plain())
    with pytest.raises(ConflictError):
        insert(hive, plain(), lambda task: [write_share(task, 0, share) for share in shares])
    assert not list(tmp_path.iterdir())


def test_more_shares_than_numbers_of_files_take_further_statements(
    hive: FakeHive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writable(hive, tmp_path)
    monkeypatch.setattr(share_module, "MOST_SHARES", 2)
    insert(hive, plain())
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"delta_0000001_0000001_000{n}" for n in range(2)]
    assert unique_ids(hive) == 10
    with pytest.raises(RefusedError, match="too many partitions"):  # a base has no statements
        insert(hive, plain(), overwrite=True)
    assert len(rows_of(hive)) == 10


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_buckets_that_meet_in_one_task(hive: FakeHive, tmp_path: Path, version: str, *, overwrite: bool) -> None:
    rows = plain(50)
    found = []
    for name, run in (("ours", routed(shares_of(rows))), ("one", in_turn([rows.to_batches()]))):
        path = tmp_path / name
        writable(hive, path, parameters={"bucketing_version": version}, buckets=4, bucket_columns=("a",))
        hive.write_ids.pop("db.t", None)
        insert(hive, rows, run, overwrite=overwrite)
        assert unique_ids(hive) == 50
        scan = acidctl.open_table("hive:db.t", metastore=hive.address).scan(row_id=True)
        found.append({(row["ROW__ID"]["bucketid"], row["a"]) for row in scan.to_table().to_pylist()})
        assert len(files_of(path)) == 5
    assert found[0] == found[1]


def test_buckets_of_tasks_that_share_them_are_told_apart_by_statements(hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path, buckets=4, bucket_columns=("a",))
    insert(hive, plain(50))
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"delta_0000001_0000001_000{n}" for n in range(3)]
    assert unique_ids(hive) == 50
    with pytest.raises(RefusedError, match="too many partitions"):
        insert(hive, plain(50), overwrite=True)


def test_partitions_new_and_old_and_elsewhere(hive: FakeHive, tmp_path: Path) -> None:
    table = tmp_path / "t"
    writable(hive, table, keys={"p": "int", "q": "string"})
    hive.partition("db", "t", "p=1/q=x")
    elsewhere = interface.PartitionStorage(str(tmp_path / "elsewhere"))
    hive.partitions["db", "t"]["p=2/q=x"] = interface.Partition(("2", "x"), elsewhere)
    (tmp_path / "elsewhere").mkdir()
    rows = pa.table(
        {"a": pa.array(range(12), pa.int32()), "P": pa.array([1, 2, 3] * 4, pa.int32()), "q": ["x"] * 6 + ["a/b"] * 6}
    )
    done = insert(hive, rows, in_turn(shares_of(rows, 2)))
    assert set(done.partitions) == {f"p={p}/q={q}" for p in (1, 2, 3) for q in ("x", "a%2Fb")}
    assert unique_ids(hive) == 12
    assert any((tmp_path / "elsewhere").iterdir())
    assert not (table / "p=2" / "q=x").exists()
    rows = pa.table({"a": pa.array([7], pa.int32())})
    assert insert(hive, rows, partition={"p": "3", "q": "x"}, overwrite=True).replaces
    assert [row for row in rows_of(hive) if row[2:] == (3, "x")] == [(7, None, 3, "x")]
    assert not [path for path in table.rglob("*") if path.name.startswith((".", "_tmp"))]


@pytest.mark.parametrize("stored_as", ["orc", "parquet", "text"])
def test_insert_only(hive: FakeHive, tmp_path: Path, stored_as: str) -> None:
    writable(hive, tmp_path, stored_as=stored_as, parameters=INSERT_ONLY)
    insert(hive, plain())
    assert files_of(tmp_path) == [f"delta_0000001_0000001_0000/00000{n}_0" for n in range(3)]
    assert rows_of(hive) == [(i, f"n{i}") for i in range(10)]


def test_no_rows(hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path)
    assert insert(hive, plain(0)).files == 0
    assert not list(tmp_path.iterdir())
    insert(hive, plain(2))
    assert insert(hive, plain(0), overwrite=True).files == 1
    assert rows_of(hive) == []


def test_columns_that_do_not_fit_are_refused_before_a_transaction_is_opened(hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path, keys="p int")
    for columns, error in (
        ({"a": [1], "c": [1]}, UsageProblem),
        ({"a": [1]}, UsageProblem),
        ({"a": ["1"], "p": [1]}, BadDataError),
        ({"a": [1], "p": [1.5]}, BadDataError),
        ({"a": [1], "A": [1], "p": [1]}, UsageProblem),
    ):
        with pytest.raises(error):
            insert(hive, pa.table(columns))
    assert "open_txns" not in hive.calls


def test_a_transaction_that_was_lost_meanwhile_adds_no_rows(hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path)

    def run(task: InsertTask) -> list[Attempt]:
        attempts = in_turn(shares_of(plain()))(task)
        for txn in hive.txns:
            hive.end(txn, commit=False)  # it timed out while the tasks ran
        return attempts

    with pytest.raises(ConflictError):
        insert(hive, plain(), run)
    assert not list(tmp_path.iterdir())
