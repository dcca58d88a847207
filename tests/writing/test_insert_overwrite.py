"""INSERT OVERWRITE: which rows it replaces, and that a failed one replaces none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.files.acid_files import inserts, write_acid
from support.metastore.fake_hive import FakeHive
from support.metastore.writable import client, files_of, rows_of, table_of, writable, writers_locks

from acidctl.base.errors import AcidctlError, ConflictError, UsageProblem
from acidctl.metastore.interface import LockLevel, LockType, Operation
from acidctl.writing.insert import Insert
from acidctl.writing.write import Written

OLD = [(1, "x", "1"), (2, "y", "2")]


@pytest.fixture(params=[3, 4], ids=["hive-3", "hive-4"])
def hive(request: pytest.FixtureRequest, tmp_path: Path) -> FakeHive:
    """A table with one row in each of two partitions, of the write id 1."""
    fake = FakeHive(request.param, remembers=True)
    request.addfinalizer(fake.__exit__)
    writable(fake, tmp_path / "t", keys="day string")
    for day, row in ("1", (1, "x")), ("2", (2, "y")):
        fake.partition("db", "t", f"day={day}")
        write_acid(tmp_path / "t" / f"day={day}" / "delta_0000001_0000001_0000" / "bucket_00000", *inserts(1, row))
    first = fake.begin()
    fake.end(first)
    fake.write_ids["db.t"] = [first]
    return fake


def overwrite(hive: FakeHive, partition: dict[str, str] | None = None, wait: float = 0.0, **columns: Any) -> Written:
    rows = pa.table(columns).to_reader()
    return Insert(client(hive), table_of(hive), rows, partition, overwrite=True).run(wait=wait)


def test_partitions_that_get_rows_are_replaced_and_no_others(hive: FakeHive, tmp_path: Path) -> None:
    written = overwrite(hive, a=[5, 6], b=["n", "m"], day=["2", "3"])
    assert rows_of(hive) == [(1, "x", "1"), (5, "n", "2"), (6, "m", "3")]
    assert (written.lock, written.write_id) == ("EXCLUSIVE", 2)
    assert files_of(tmp_path / "t" / "day=2" / "base_0000002") == ["_orc_acid_version", "bucket_00000"]
    assert hive.components == [(written.txn, ("day=2", "day=3"), Operation.UPDATE)]


def test_a_named_partition_is_replaced_though_no_row_comes(hive: FakeHive) -> None:
    nothing = pa.array([], pa.int32())
    overwrite(hive, {"DAY": "2"}, a=nothing)
    assert rows_of(hive) == [(1, "x", "1")]
    overwrite(hive, {"day": "9"}, a=nothing)
    assert list(hive.partitions["db", "t"]) == ["day=1", "day=2", "day=9"]


def test_only_an_existing_partition_that_is_named_is_locked_alone(hive: FakeHive) -> None:
    overwrite(hive, {"day": "2"}, a=[5])
    overwrite(hive, {"day": "9"}, a=[6])
    overwrite(hive, a=[7], day=["2"])
    assert [(lock.type, lock.level, lock.partition, lock.is_dynamic) for lock in writers_locks(hive)] == [
        (LockType.EXCLUSIVE, LockLevel.PARTITION, "day=2", False),
        (LockType.EXCLUSIVE, LockLevel.TABLE, None, True),
        (LockType.EXCLUSIVE, LockLevel.TABLE, None, True),
    ]
    assert rows_of(hive) == [(1, "x", "1"), (6, None, "9"), (7, None, "2")]


def test_a_named_partition_that_is_dropped_before_the_lock_is_made_again(hive: FakeHive) -> None:
    hive.before["lock"] = lambda: hive.partitions["db", "t"].pop("day=2") and None
    overwrite(hive, {"day": "2"}, a=[5])
    assert rows_of(hive) == [(1, "x", "1"), (5, None, "2")]


def test_a_table_without_partitions_is_empty_after_no_rows(hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path / "flat")
    write_acid(tmp_path / "flat" / "delta_0000001_0000001_0000" / "bucket_00000", *inserts(1, (1, "x")))
    assert rows_of(hive) == [(1, "x")]
    overwrite(hive, a=pa.array([], pa.int32()))
    assert rows_of(hive) == []
    overwrite(hive, a=[7])
    assert rows_of(hive) == [(7, None)]


@pytest.mark.parametrize("kind", ["failed", "lost", "done"])
@pytest.mark.parametrize("call", ["lock", "add_partitions_req", "add_dynamic_partitions", "heartbeat", "commit_txn"])
def test_a_broken_call_leaves_old_rows_or_new_ones(hive: FakeHive, call: str, kind: str, tmp_path: Path) -> None:
    hive.fault(call, kind)
    try:
        overwrite(hive, a=[5, 6], b=["n", "m"], day=["2", "3"])
        expected = [(1, "x", "1"), (5, "n", "2"), (6, "m", "3")]
    except AcidctlError:
        expected = OLD
    hive.faults.clear()
    assert rows_of(hive) == expected
    if expected == OLD:
        assert not [name for name in files_of(tmp_path / "t") if "base" in name or "_tmp" in name]


def begun(hive: FakeHive) -> int:
    """A writer that has a write id, and has not committed."""
    txn = hive.begin()
    hive.write_ids["db.t"].append(txn)
    return txn


def test_an_open_writer_is_waited_for_and_its_rows_are_not_hidden(hive: FakeHive) -> None:
    other = begun(hive)
    with pytest.raises(ConflictError, match="write id 2 is open"):
        overwrite(hive, a=[5], day=["2"])
    assert "lock" not in hive.calls
    looks: list[str] = []

    def end_after_a_look(name: str, is_done: bool) -> None:
        if name == "get_valid_write_ids" and is_done:
            looks.append(name)
            if len(looks) == 1:
                hive.end(other)

    hive.at_call = end_after_a_look
    assert overwrite(hive, a=[5], day=["2"], wait=60).write_id == 3
    assert len(looks) > 2


def test_a_writer_that_began_between_the_look_and_the_lock_is_waited_for(hive: FakeHive) -> None:
    hive.before["open_txns"] = lambda: begun(hive) and None
    with pytest.raises(ConflictError, match="write id 2 is open"):
        overwrite(hive, a=[5], day=["2"])
    assert rows_of(hive) == OLD


def test_a_writer_that_began_before_a_higher_write_id_was_taken_is_waited_for(hive: FakeHive) -> None:
    def overtake() -> None:
        hive.end(begun(hive))
        hive.before["allocate_table_write_ids"] = lambda: begun(hive) and None

    hive.before["lock"] = overtake
    with pytest.raises(ConflictError, match="is open"):
        overwrite(hive, a=[5], day=["2"])
    assert rows_of(hive) == OLD


def test_an_insert_behind_an_overwrite_takes_a_higher_write_id(hive: FakeHive, tmp_path: Path) -> None:
    def overtake() -> None:
        if len(hive.write_ids["db.t"]) < 3:
            other = begun(hive)
            number = len(hive.write_ids["db.t"])
            path = tmp_path / "t" / "day=2" / f"base_{number:07}" / "bucket_00000"
            write_acid(path, *inserts(number, (8, "over")))
            hive.end(other)

    hive.before["lock"] = overtake
    rows = pa.table({"a": [9], "b": ["late"], "day": ["2"]}).to_reader()
    assert Insert(client(hive), table_of(hive), rows).run().write_id == 4
    assert hive.calls.count("open_txns") == (2 if hive.version == 3 else 1)
    assert rows_of(hive) == [(1, "x", "1"), (8, "over", "2"), (9, "late", "2")]


WRONG: dict[str, tuple[dict[str, str], dict[str, list[Any]]]] = {
    "no key of the table": ({"dya": "1"}, {"a": [1], "day": ["1"]}),
    "no value of a key": ({}, {"a": [1]}),
    "a value twice": ({"day": "1"}, {"a": [1], "day": ["2"]}),
}


@pytest.mark.parametrize("name", WRONG)
def test_partition_keys_must_be_known(hive: FakeHive, name: str) -> None:
    partition, columns = WRONG[name]
    with pytest.raises(UsageProblem):
        overwrite(hive, partition, **columns)
    assert rows_of(hive) == OLD
