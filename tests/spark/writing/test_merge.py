"""Merges and deletes whose parts are done one by one, as tasks do them; without Spark."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.metastore.fake_hive import FakeHive
from support.metastore.writable import client, files_of, rows_of, table_of, writable

from acidctl.base.errors import BadDataError, UsageProblem
from acidctl.spark.writing import merge as merge_module
from acidctl.spark.writing import merge_tasks
from acidctl.spark.writing.merge import FrameMerge, MergeJobs
from acidctl.spark.writing.share import ROUTE, with_route, write_share
from acidctl.writing.insert import Insert
from acidctl.writing.merge import Merge

Shares = list[list[pa.RecordBatch]]
SHARES = 3


@pytest.fixture
def hive() -> Iterator[FakeHive]:
    with FakeHive(4, remembers=True) as made:
        yield made


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file is a part of its own, and each share a chunk."""
    monkeypatch.setattr(merge_module, "_PART_BYTES", 1)
    monkeypatch.setattr(merge_tasks, "_CHUNK_BYTES", 1)


def by_route(batches: Iterator[pa.RecordBatch]) -> Shares:
    """Bring equal routes together, as Spark does."""
    held = list(batches)
    return [
        [batch.filter(pa.array(np.asarray(batch[ROUTE]) % SHARES == at)).drop_columns([ROUTE]) for batch in held]
        for at in range(SHARES)
    ]


def jobs(rows: pa.Table, twice: bool = False) -> MergeJobs:
    """Run all tasks here; the first attempt of each does not count if they run twice."""

    def source(task: Any) -> list[Any]:
        shares: Shares = [rows.take(np.arange(rows.num_rows)[at::SHARES]).to_batches() for at in range(SHARES)]
        shares = by_route(chain(*(merge_tasks.with_key_route(task, *pair) for pair in enumerate(shares))))
        write = partial(merge_tasks.write_source, pickle.loads(pickle.dumps(task)))
        for number, share in enumerate(shares if twice else ()):
            list(write(number, share))
        return list(chain(*(write(*pair) for pair in enumerate(shares))))

    def change(task: Any, parts: Sequence[Any]) -> Iterator[Any]:
        for part in map(pickle.dumps, parts):
            for _ in range(1 + twice):
                changed = merge_tasks.change_part(task, pickle.loads(part))
            yield changed

    def insert(task: Any, missing: Sequence[Any]) -> list[Any]:
        shares = [list(merge_tasks.missing_rows(task, share)) for share in missing]
        own = replace(task.insert, names=())
        if own.new_files.table.buckets:
            own = replace(own, is_routed=True)
            shares = by_route(chain(*(with_route(own, *pair) for pair in enumerate(shares))))
        return [write_share(own, *pair) for pair in enumerate(shares)]

    return MergeJobs(source, change, insert)


def merge(hive: FakeHive, rows: pa.Table, key: Any = ("a",), *, twice: bool = False, **more: Any) -> Any:
    return FrameMerge(client(hive), table_of(hive), rows.schema, jobs(rows, twice), key, **more).run()


def insert(hive: FakeHive, rows: pa.Table) -> None:
    Insert(client(hive), table_of(hive), rows.to_reader()).run()


def table(ids: Any, name: str = "n", **more: Any) -> pa.Table:
    ids = np.asarray(ids, np.int32)
    return pa.table({"a": ids, "b": [f"{name}{number}" for number in ids], **more})


FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "partitions": {"keys": "p string"},
    "buckets": {"buckets": 3, "bucket_columns": ("a",), "parameters": {"bucketing_version": "2"}},
    "both": {
        "keys": "p string", "buckets": 2, "bucket_columns": ("a",), "parameters": {"bucketing_version": "2"},
    },
}  # fmt: skip


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("inserts", [True, False])
def test_a_merge_does_as_the_local_one(tmp_path: Path, form: str, inserts: bool) -> None:
    has_keys = "keys" in FORMS[form]

    def rows(ids: Any, name: str) -> pa.Table:
        moved = name == "new"  # every row that is replaced goes to another partition
        more = {"p": pa.array([f"p{number % 4 + moved}" for number in ids])} if has_keys else {}
        return table(ids, name, **more)

    found = []
    for how in ("local", "spark"):
        with FakeHive(4, remembers=True) as hive:
            writable(hive, tmp_path / how, "a int, b string, kept string", **FORMS[form])
            for start in (0, 10, 20):
                part = rows(range(start, start + 10), "old")
                insert(hive, part.append_column("kept", pa.array([f"k{number}" for number in part["a"].to_pylist()])))
            changes = rows([*range(3, 38, 3), 5, 5], "new")
            changes = changes.append_column("op", pa.array([*"uididuiduidu", "u", "d"]))
            changes = changes.append_column("n", pa.array(range(changes.num_rows)))
            more: dict[str, Any] = {"operation": "op", "order": "n", "inserts": inserts}
            if how == "local":
                done = Merge(client(hive), table_of(hive), changes, ["a"], **more).run()
            else:
                done = merge(hive, changes, twice=True, **more)
            found.append((done.inserted, done.updated, done.deleted, sorted(rows_of(hive), key=str)))
            names = files_of(tmp_path / how)
            assert not [name for name in names if "staging" in name or "_tmp" in name]
    assert found[0] == found[1]
    assert found[0][1], "some rows were updated"


@pytest.mark.usefixtures("tiny")
def test_deletes_of_one_bucket_by_several_parts(hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path)
    for start in (0, 10, 20):
        insert(hive, table(range(start, start + 10)))
    keys = pa.table({"A": pa.array([*range(0, 30, 2), None, 0], pa.int64())})
    done = merge(hive, keys, None, twice=True)
    assert (done.deleted, done.inserted, done.files) == (15, 0, 3)
    assert sorted(rows_of(hive)) == [(number, f"n{number}") for number in range(1, 30, 2)]
    names = {name.partition("/")[0] for name in files_of(tmp_path) if name.startswith("delete_delta")}
    assert names == {f"delete_delta_0000004_0000004_000{at}" for at in range(3)}


@pytest.mark.usefixtures("tiny")
def test_one_row_that_would_replace_rows_of_two_parts_is_refused(hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path)
    insert(hive, table([1, 2]))
    insert(hive, table([2, 3]))
    before = files_of(tmp_path)
    with pytest.raises(BadDataError, match="several rows of a key"):
        merge(hive, table([2], "new"))
    assert files_of(tmp_path) == before
    deletes = table([2]).append_column("op", pa.array(["d"]))
    assert merge(hive, deletes, operation="op").deleted == 2


def test_only_partitions_of_the_keys_are_read(hive: FakeHive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writable(hive, tmp_path, keys="p string")
    insert(hive, table(range(8), p=pa.array(list("xyzxyzxy"))))
    read = []
    real = merge_tasks.change_part

    def seen(task: Any, part: Any) -> Any:
        read.extend(name for name, _ in part.splits)
        return real(task, part)

    monkeypatch.setattr(merge_tasks, "change_part", seen)
    keys = pa.table({"a": pa.array([0, 1], pa.int32()), "p": ["x", "x"]})
    assert merge(hive, keys, None).deleted == 1
    assert read == ["p=x"]


SAME = {
    "timestamp": ["2020-01-01 00:00:00", "2020-01-01T00:00:00"],
    "char(3)": ["a", "a "],
    "double": [0.0, -0.0],
    "float": pa.array([float("nan"), -float("nan")], pa.float32()),
    "binary": [b"x", b"x"],
}


@pytest.mark.parametrize("kind", SAME)
def test_equal_keys_meet_in_one_share(hive: FakeHive, tmp_path: Path, kind: str) -> None:
    writable(hive, tmp_path, f"k {kind}, v string")
    rows = pa.table({"k": SAME[kind], "v": ["one", "two"], "n": [2, 1]})
    with pytest.raises(BadDataError, match="several times"):
        merge(hive, rows.drop_columns("n"), ["k"])
    merge(hive, rows, ["k"], order="n")
    assert [row[1] for row in rows_of(hive)] == ["one"]
    done = merge(hive, pa.table({"k": rows["k"][1:], "v": ["new"]}), ["k"])
    assert (done.updated, done.inserted) == (1, 0)


def test_keys_of_bytes_that_differ_are_spread(hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path, "k binary, v string")
    rows = pa.table({"k": [b"\xff", b"\xfe", None, b""], "v": ["a", "b", "c", "d"]})
    made, routes = jobs(rows), []

    def source(task: Any) -> Any:
        routes.extend(next(merge_tasks.with_key_route(task, 0, rows.to_batches()))[ROUTE].to_pylist())
        return made.source(task)

    FrameMerge(client(hive), table_of(hive), rows.schema, replace(made, source=source), ["k"]).run()
    assert (len(set(routes)), routes[2], len(rows_of(hive))) == (4, 0, 4)
    assert merge(hive, rows, ["k"]).updated == 3


def test_what_cannot_be_merged_opens_no_transaction(hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path)
    for rows, key in ((table([1]), ["x"]), (pa.table({"x": [1]}), None), (table([1]), [])):
        with pytest.raises(UsageProblem):
            merge(hive, rows, key)
    assert not hive.txns


def test_a_source_without_rows_changes_nothing(hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path)
    assert merge(hive, table([])).inserted == 0
    assert merge(hive, table([1, 2])).inserted == 2, "the table has no files"
    assert merge(hive, table([]), None).deleted == 0
    assert len(rows_of(hive)) == 2


@pytest.mark.parametrize("job", ["source", "change", "insert"])
def test_a_job_that_fails_leaves_the_table_as_it_was(hive: FakeHive, tmp_path: Path, job: str) -> None:
    writable(hive, tmp_path)
    insert(hive, table(range(10)))
    before, rows = files_of(tmp_path), table([1, 77], "new")
    made = jobs(rows)

    def dying(*arguments: Any) -> Any:
        list(getattr(made, job)(*arguments))
        raise RuntimeError("the executors are gone")

    with pytest.raises(RuntimeError, match="gone"):
        FrameMerge(client(hive), table_of(hive), rows.schema, replace(made, **{job: dying}), ["a"]).run()
    assert files_of(tmp_path) == before
    assert not hive.locks


def test_kept_values_that_spark_cannot_hold_stay(hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path, "a int, t timestamp, v string")
    times = pa.array(["9999-12-31 23:59:59.123456789", "2020-01-01 00:00:00.000000001"])
    insert(hive, pa.table({"a": pa.array([1, 2], pa.int32()), "t": times, "v": ["x", "y"]}))
    before = [row[1] for row in sorted(rows_of(hive), key=str)]
    assert merge(hive, pa.table({"a": pa.array([1, 2], pa.int32()), "v": ["new", "new"]})).updated == 2
    assert [row[1] for row in sorted(rows_of(hive), key=str)] == before
