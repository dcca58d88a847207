"""TRUNCATE: which rows go, by which files, and what a failed one leaves."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from support.files.acid_files import inserts, write_acid
from support.metastore.fake_hive import FakeHive
from support.metastore.writable import INSERT_ONLY, client, files_of, rows_of, table_of, writable, writers_locks

from acidctl.base.errors import AcidctlError, NotFoundError, RefusedError
from acidctl.metastore.errors import LostTransaction
from acidctl.metastore.interface import LockLevel, LockType, Operation
from acidctl.writing.insert import Insert
from acidctl.writing.truncate import Truncate
from acidctl.writing.write import Written

PARTITIONS = ("day=1/k=1", "day=1/k=2", "day=2/k=1")
OLD = [(0, "x", "1", "1"), (1, "x", "1", "2"), (2, "x", "2", "1")]


@pytest.fixture(params=[3, 4], ids=["hive-3", "hive-4"])
def hive(request: pytest.FixtureRequest, tmp_path: Path) -> FakeHive:
    """A table with one row in each of three partitions."""
    fake = FakeHive(request.param, remembers=True)
    request.addfinalizer(fake.__exit__)
    writable(fake, tmp_path / "t", keys="day string, k string")
    for number, name in enumerate(PARTITIONS):
        fake.partition("db", "t", name)
        write_acid(tmp_path / "t" / name / "delta_0000001_0000001_0000" / "bucket_00000", *inserts(1, (number, "x")))
    first = fake.begin()
    fake.end(first)
    fake.write_ids["db.t"] = [first]
    return fake


def truncate(hive: FakeHive, partition: dict[str, str] | None = None) -> Written:
    return Truncate(client(hive), table_of(hive), partition).run()


def test_all_partitions_or_those_with_the_values_are_empty(hive: FakeHive) -> None:
    written = truncate(hive, {"K": "1"})
    assert (written.lock, written.partitions) == ("EXCLUSIVE", ("day=1/k=1", "day=2/k=1"))
    assert [lock.partition for lock in writers_locks(hive)] == list(written.partitions)
    assert {(lock.type, lock.level, lock.operation, lock.is_dynamic) for lock in writers_locks(hive)} == {
        (LockType.EXCLUSIVE, LockLevel.PARTITION, Operation.UPDATE, False)
    }
    assert rows_of(hive) == [OLD[1]]
    written = truncate(hive)
    assert (writers_locks(hive)[-1].partition, writers_locks(hive)[-1].level) == (None, LockLevel.TABLE)
    assert hive.components == [(written.txn, written.partitions, Operation.UPDATE)]
    assert rows_of(hive) == []


def test_a_partition_that_appears_before_the_lock_is_not_left_out(hive: FakeHive, tmp_path: Path) -> None:
    def somebody() -> None:
        hive.partition("db", "t", "day=1/k=3")
        write_acid(tmp_path / "t/day=1/k=3" / "delta_0000001_0000001_0000" / "bucket_00000", *inserts(1, (7, "x")))

    hive.before["lock"] = somebody
    with pytest.raises(LostTransaction, match="k=3"):
        truncate(hive, {"day": "1"})
    assert len(rows_of(hive)) == 4
    assert (truncate(hive, {"day": "1"}).files, rows_of(hive)) == (3, [OLD[2]])


def test_so_many_partitions_that_the_table_is_locked(hive: FakeHive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acidctl.writing.truncate.BATCH", 1)
    written = truncate(hive, {"day": "1"})
    assert [lock.partition for lock in writers_locks(hive)] == [None]
    assert hive.components == [(written.txn, written.partitions, Operation.UPDATE)]
    assert rows_of(hive) == [OLD[2]]


def test_the_base_is_one_that_hive_3_reads(hive: FakeHive, tmp_path: Path) -> None:
    truncate(hive, {"day": "2", "k": "1"})
    assert files_of(tmp_path / "t" / PARTITIONS[2] / "base_0000002") == ["_orc_acid_version", "bucket_00000"]


def test_a_table_without_partitions_is_empty(hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path / "flat")
    write_acid(tmp_path / "flat" / "delta_0000001_0000001_0000" / "bucket_00000", *inserts(1, (1, "x")))
    assert truncate(hive).files == 1
    assert rows_of(hive) == []


def test_an_insert_only_table_gets_a_base_in_its_format(hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path / "flat", stored_as="text", parameters=INSERT_ONLY)
    (tmp_path / "flat" / "delta_0000001_0000001_0000").mkdir(parents=True)
    (tmp_path / "flat" / "delta_0000001_0000001_0000" / "000000_0").write_text("1\x01x\n")
    assert rows_of(hive) == [(1, "x")]
    truncate(hive)
    assert rows_of(hive) == []
    assert files_of(tmp_path / "flat" / "base_0000002") == ["000000_0"]


def test_a_table_without_a_partition_has_nothing_to_truncate(hive: FakeHive) -> None:
    hive.partitions["db", "t"].clear()
    written = truncate(hive)
    assert (written.files, written.partitions) == (0, ())
    assert not hive.txns


@pytest.mark.parametrize("partition", [{"day": "7"}, {"dya": "1"}])
def test_a_partition_that_does_not_exist_is_an_error(hive: FakeHive, partition: dict[str, str]) -> None:
    with pytest.raises(NotFoundError):
        truncate(hive, partition)
    assert rows_of(hive) == OLD
    assert not hive.locks


@pytest.mark.parametrize("kind", ["failed", "lost", "done"])
@pytest.mark.parametrize("call", ["lock", "get_partitions_by_names", "add_dynamic_partitions", "commit_txn"])
def test_a_broken_call_leaves_all_rows_or_none(hive: FakeHive, call: str, kind: str, tmp_path: Path) -> None:
    hive.fault(call, kind)
    try:
        truncate(hive)
        expected = []
    except AcidctlError:
        expected = OLD
    hive.faults.clear()
    assert rows_of(hive) == expected
    if expected:
        assert not [name for name in files_of(tmp_path / "t") if "base" in name or "_tmp" in name]


def test_many_partitions_are_looked_up_together(hive: FakeHive, tmp_path: Path) -> None:
    for number in range(150):
        hive.partition("db", "t", f"day=9/k={number}")
    before = len(hive.calls)
    assert truncate(hive).files == 153
    assert hive.calls[before:].count("get_partitions_by_names") < 60
    files = files_of(tmp_path / "t" / "day=9" / "k=149")
    assert files == ["base_0000002/_orc_acid_version", "base_0000002/bucket_00000"]
    assert rows_of(hive) == []
    before = len(hive.calls)
    assert truncate(hive, {"day": "9"}).files == 150
    assert hive.calls[before:].count("get_partitions_by_names") < 60


@pytest.mark.parametrize("insert", [False, True], ids=["truncate", "insert"])
def test_files_newer_than_the_metastore_are_refused_before_a_transaction_where_the_partition_is_known(
    hive: FakeHive, tmp_path: Path, insert: bool
) -> None:
    partition, before = {"day": "2", "k": "1"}, dict(hive.txns)
    write_acid(tmp_path / "t/day=2/k=1/delta_0000009_0000009_0000/bucket_00000", *inserts(9, (7, "x")))
    with pytest.raises(RefusedError, match="never gave"):
        if insert:
            Insert(client(hive), table_of(hive), pa.table({"id": [1], "name": ["x"]}).to_reader(), partition).run()
        else:
            truncate(hive, partition)
    assert hive.txns == before
