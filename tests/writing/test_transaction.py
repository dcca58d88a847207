"""The transaction around a statement, broken at each of its calls: rows are old or new, and nothing stays behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from support.files.acid_files import inserts, write_acid
from support.metastore.fake_hive import FakeHive
from support.metastore.writable import writable

from acidctl.base.errors import AcidctlError, ConflictError
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import MetastoreError
from acidctl.metastore.interface import (
    AllocateWriteIdsResponse,
    AlterTableRequest,
    AlterTableResponse,
    CommitTxnRequest,
    FieldSchema,
    LockInfo,
    LockState,
    LockType,
    TxnState,
    TxnToWriteId,
)
from acidctl.metastore.lossless import RawStruct, texts_value
from acidctl.metastore.settings import find_settings
from acidctl.metastore.tables import get_table
from acidctl.metastore.txn.transaction import UnknownOutcome
from acidctl.writing.change import Change
from acidctl.writing.insert import Insert
from acidctl.writing.transaction import name_of_partition
from acidctl.writing.write import Written

CLAIM = {"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true"}}'}
NUMBERS = {"numRows": "2", "rawDataSize": "20", "numFiles": "1", "totalSize": "700"}
ACCURATE = CLAIM | NUMBERS
COLUMNS = (FieldSchema("a", "int"), FieldSchema("b", "string"))

Statement = Callable[[Metastore], Written]


def insert(metastore: Metastore) -> Written:
    rows = pa.table({"a": [3], "b": ["z"]}).to_reader()
    return Insert(metastore, get_table(metastore, "db", "t"), rows).run()


STATEMENTS: dict[str, tuple[Statement, list[tuple[int, str]]]] = {
    "insert": (insert, [(1, "x"), (2, "y"), (3, "z")]),
    "delete": (lambda metastore: Change(metastore, get_table(metastore, "db", "t"), "a = 2").run(), [(1, "x")]),
    "update": (
        lambda metastore: Change(metastore, get_table(metastore, "db", "t"), "a = 1", "b = b || '!', a = a + 10").run(),
        [(2, "y"), (11, "x!")],
    ),
}
OLD = [(1, "x"), (2, "y")]


@pytest.fixture(params=[3, 4], ids=["hive-3", "hive-4"])
def hive(request: pytest.FixtureRequest, tmp_path: Path) -> FakeHive:
    table = tmp_path / "t"
    write_acid(table / "delta_0000001_0000001_0000" / "bucket_00000", *inserts(1, (1, "x"), (2, "y")))
    fake = FakeHive(request.param, remembers=True)
    request.addfinalizer(fake.__exit__)
    fake.table("db", "t", str(table), parameters=ACCURATE)
    made = fake.tables["db", "t"]
    assert made.storage
    fake.tables["db", "t"] = replace(made, storage=replace(made.storage, columns=COLUMNS))
    first = fake.begin()
    fake.end(first)
    fake.write_ids["db.t"] = [first]
    return fake


def client(hive: FakeHive) -> Metastore:
    settings = find_settings({"uris": hive.address, "timeout": "5"}, {})
    assert settings
    return Metastore(settings)


def rows(hive: FakeHive) -> list[tuple[int, str]]:
    """The rows of a reader that comes now."""
    import acidctl

    found = acidctl.open_table("hive:db.t", metastore=hive.address).scan().to_table()
    return sorted(zip(found["a"].to_pylist(), found["b"].to_pylist(), strict=True))


def leftovers(tmp_path: Path) -> list[str]:
    return [path.name for path in (tmp_path / "t").iterdir() if path.name.startswith("_tmp")]


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_is_seen_once_it_is_committed(hive: FakeHive, name: str, tmp_path: Path) -> None:
    statement, expected = STATEMENTS[name]
    written = statement(client(hive))
    counts = written.inserted, written.updated, written.deleted
    assert (written.write_id, counts) == (2, (name == "insert", name == "update", name == "delete"))
    assert rows(hive) == expected
    assert not hive.txns
    assert not leftovers(tmp_path)
    known = hive.tables["db", "t"].parameters
    assert known.get("COLUMN_STATS_ACCURATE") == ('{"BASIC_STATS":"true"}' if hive.version > 3 else None)
    assert known["numRows"] == str(len(rows(hive)) if hive.version > 3 else 2)


@pytest.mark.parametrize("given", [(), ((7, 2),), ((2, -1),), ((2, 2), (2, 3))], ids=str)
def test_a_write_id_that_is_none_ends_a_statement(hive: FakeHive, given: tuple[tuple[int, int], ...]) -> None:
    answer = AllocateWriteIdsResponse(tuple(TxnToWriteId(*one) for one in given))
    hive.answers["allocate_table_write_ids"] = lambda _: answer
    with pytest.raises(MetastoreError, match="gave no write id"):
        insert(client(hive))
    assert rows(hive) == OLD
    assert not hive.locks


def calls_of(hive: FakeHive, statement: Statement) -> list[str]:
    before = len(hive.calls)
    statement(client(hive))
    return hive.calls[before:]


CALLS = (
    "get_table_req", "open_txns", "allocate_table_write_ids", "lock", "get_valid_write_ids", "alter_table_req",
    "heartbeat", "commit_txn",
)  # fmt: skip


@pytest.mark.parametrize("kind", ["failed", "lost", "done"])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_broken_call_leaves_old_rows_or_new_ones(
    hive: FakeHive, name: str, call: str, kind: str, tmp_path: Path
) -> None:
    statement, new = STATEMENTS[name]
    metastore = client(hive)
    hive.fault(call, kind)
    try:
        statement(metastore)
        failed = False
    except AcidctlError:
        failed = True
    hive.faults.clear()
    seen = rows(hive)
    assert seen == OLD if failed else seen == new
    assert not leftovers(tmp_path)
    assert all(txn.state == TxnState.ABORTED for txn in hive.txns.values())
    assert not hive.locks
    statement(client(hive)) if failed else None
    assert rows(hive) == new


@pytest.mark.parametrize("name", STATEMENTS)
def test_files_stay_if_nobody_knows_whether_the_commit_was_done(hive: FakeHive, name: str) -> None:
    hive.remembers = False
    hive.fault("commit_txn", "done")
    statement, new = STATEMENTS[name]
    with pytest.raises(UnknownOutcome):
        statement(client(hive))
    assert rows(hive) == new


def test_a_writer_that_was_overtaken_takes_a_higher_write_id(hive: FakeHive, tmp_path: Path) -> None:
    def overtake() -> None:
        other = hive.begin()
        hive.write_ids["db.t"].append(other)
        number = len(hive.write_ids["db.t"])
        directory = tmp_path / "t" / f"delta_{number:07}_{number:07}_0000"
        write_acid(directory / "bucket_00000", *inserts(number, (2, "late")))
        hive.end(other)

    hive.before["lock"] = overtake  # between the write id and the lock
    written = Change(client(hive), get_table(client(hive), "db", "t"), "a = 2").run()
    assert written.write_id == 4
    assert written.deleted == 2
    assert rows(hive) == [(1, "x")]


def test_a_conflict_begins_again_and_gives_up_in_the_end(hive: FakeHive) -> None:
    if hive.version < 4:
        pytest.skip("Hive 3 has no such call")
    hive.conflict = 99
    with pytest.raises(ConflictError):
        Change(client(hive), get_table(client(hive), "db", "t"), "a = 2").run()
    assert hive.calls.count("open_txns") == 5
    assert rows(hive) == OLD


def test_a_row_that_does_not_fit_writes_nothing(hive: FakeHive, tmp_path: Path) -> None:
    table = get_table(client(hive), "db", "t")
    source = pa.table({"a": pa.array([1, 2**40]), "b": ["", ""]}).to_reader()
    with pytest.raises(AcidctlError, match="row 2"):
        Insert(client(hive), table, source).run()
    assert rows(hive) == OLD
    assert not leftovers(tmp_path)


def test_a_partition_with_too_few_values_is_refused(hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path / "p", keys="day string, hour string")
    table, partition = get_table(client(hive), "db", "t"), RawStruct({1: texts_value(["x"])})
    with pytest.raises(MetastoreError, match="1 values for 2 keys"):
        name_of_partition(table, partition)
    partition = RawStruct({1: texts_value(["x", "7"])})
    assert name_of_partition(table, partition) == "day=x/hour=7"


def test_counts_of_partitions_that_get_rows_grow_and_no_others(hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path / "p", keys="day string")
    for name in ("day=x", "day=y"):
        hive.partition("db", "t", name)
        known = hive.partitions["db", "t"][name]
        hive.partitions["db", "t"][name] = replace(known, parameters=ACCURATE)
    source = pa.table({"a": [1, 2, 3], "b": ["", "", ""], "day": ["x", "new", "x"]}).to_reader()
    Insert(client(hive), get_table(client(hive), "db", "t"), source).run()
    after = {name: dict(partition.parameters) for name, partition in hive.partitions["db", "t"].items()}
    if hive.version < 4:  # it keeps none itself
        assert after == {"day=x": NUMBERS, "day=y": ACCURATE, "day=new": {}}
        return
    for name, rows in (("day=x", "4"), ("day=new", "1")):
        assert after[name].pop("COLUMN_STATS_ACCURATE") == '{"BASIC_STATS":"true"}'
        assert after[name].pop("numRows") == rows
    assert after["day=x"].pop("rawDataSize") == "40"
    assert int(after["day=x"].pop("totalSize")) > 700
    assert (after["day=x"], after["day=y"]) == ({"numFiles": "2"}, ACCURATE)


@pytest.mark.parametrize("state", ["open", "aborted"])
def test_counts_of_a_writer_that_has_not_committed_are_given_up(hive: FakeHive, state: str) -> None:
    """Hive's own insert writes its counts before it commits."""
    other = hive.begin()
    hive.write_ids["db.t"].append(other)
    hive.tables["db", "t"] = replace(hive.tables["db", "t"], write_id=2)
    if state == "aborted":
        hive.end(other, commit=False)
    assert insert(client(hive)).write_id == 3
    known = hive.tables["db", "t"].parameters
    assert known.items() >= NUMBERS.items()
    assert "COLUMN_STATS_ACCURATE" not in known


def test_a_table_that_is_made_again_right_after_the_commit_gets_no_counts(
    hive: FakeHive, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = FakeHive._do_commit_txn

    def dropped(self: FakeHive, request: CommitTxnRequest) -> None:
        commit(self, request)
        self.tables["db", "t"] = replace(self.tables["db", "t"], write_id=0, parameters={"transactional": "true"})

    monkeypatch.setattr(FakeHive, "_do_commit_txn", dropped)
    insert(client(hive))
    assert hive.tables["db", "t"].parameters == {"transactional": "true"}


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_commit_asks_hive_4_to_look_for_conflicts_of_changed_rows(
    hive: FakeHive, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits: list[bool | None] = []
    commit = FakeHive._do_commit_txn

    def recorded(self: FakeHive, request: CommitTxnRequest) -> None:
        commits.append(request.exclusive_writes)
        commit(self, request)

    monkeypatch.setattr(FakeHive, "_do_commit_txn", recorded)
    STATEMENTS[name][0](client(hive))
    assert commits[0] is (False if name != "insert" and hive.version > 3 else None)


def test_a_lock_keeps_others_from_altering_the_table_while_its_counts_are_restored(hive: FakeHive) -> None:
    if hive.version < 4:
        pytest.skip("Hive 3 keeps no counts")
    held: list[list[LockType]] = []
    alter = FakeHive._do_alter_table_req

    def recorded(self: FakeHive, request: AlterTableRequest) -> AlterTableResponse:
        held.append([LockType(lock.type) for lock in self.locks if (lock.database, lock.table) == ("db", "t")])
        return alter(self, request)

    with patch.object(FakeHive, "_do_alter_table_req", recorded):
        insert(client(hive))
    assert held == [[LockType.SHARED_READ]] * 2
    assert hive.tables["db", "t"].parameters["numRows"] == "3"
    assert not hive.locks


def test_counts_are_given_up_while_somebody_else_alters_the_table(hive: FakeHive) -> None:
    if hive.version < 4:
        pytest.skip("Hive 3 keeps no counts")
    commit = FakeHive._do_commit_txn

    def then_locked(self: FakeHive, request: CommitTxnRequest) -> None:
        commit(self, request)
        if not self.locks:
            self.locks.append(LockInfo(99, "db", "t", None, LockState.ACQUIRED, LockType.EXCLUSIVE, 0, 0, 0, "u", "h"))

    with patch.object(FakeHive, "_do_commit_txn", then_locked):
        insert(client(hive))
    assert "COLUMN_STATS_ACCURATE" not in hive.tables["db", "t"].parameters
    assert rows(hive) == [(1, "x"), (2, "y"), (3, "z")]


def test_a_property_that_somebody_sets_before_counts_are_restored_stays(hive: FakeHive) -> None:
    if hive.version < 4:
        pytest.skip("Hive 3 keeps no counts")
    commit = FakeHive._do_commit_txn

    def then_set(self: FakeHive, request: CommitTxnRequest) -> None:
        commit(self, request)
        now = hive.tables["db", "t"]
        hive.tables["db", "t"] = replace(now, parameters={**now.parameters, "k": "new"})

    made = hive.tables["db", "t"]
    hive.tables["db", "t"] = replace(made, parameters={**made.parameters, "k": "old"})
    with patch.object(FakeHive, "_do_commit_txn", then_set):
        insert(client(hive))
    parameters = hive.tables["db", "t"].parameters
    assert (parameters["k"], parameters["numRows"]) == ("new", "3")
    assert "BASIC" in parameters["COLUMN_STATS_ACCURATE"]
