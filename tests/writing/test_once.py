"""A load with a key is made once: broken at each call, killed at each call, by two at a time, on Hive 3 and 4."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from support.command_line import Result
from support.metastore.mortal import Mortals, mortals
from support.metastore.writable import client, table_of
from support.writing import WrittenTable, written_table

from acidctl.base.errors import AcidctlError, BadDataError, ConflictError, RefusedError, UsageProblem
from acidctl.metastore.interface import TxnState
from acidctl.metastore.tables import get_table
from acidctl.metastore.txn.transaction import LockedTransaction
from acidctl.writing.insert import Insert
from acidctl.writing.once import NOTHING, AlreadyLoaded, Once, _IntentLedger, loaded_value
from acidctl.writing.places import Places
from acidctl.writing.transaction import WriteTransaction

ROWS = pa.table({"a": [1, 2], "b": ["x", "y"]})
LOADED = [(1, "x"), (2, "y")]
CALLS = (
    "get_table_req", "create_table", "open_txns", "allocate_table_write_ids", "lock", "get_valid_write_ids",
    "alter_table_req", "heartbeat", "commit_txn",
)  # fmt: skip
ONLY_4 = ("create_table", "alter_table_req")

Acidctl = Callable[..., Result]


@pytest.fixture(params=[3, 4], ids=["hive-3", "hive-4"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WrittenTable]:
    with written_table(tmp_path / "t", {"a": "int", "b": "string"}, version=request.param) as made:
        yield made


@pytest.fixture(scope="module")
def children() -> Iterator[Mortals]:
    with mortals() as made:
        yield made


def insert(table: WrittenTable, once: Once, rows: pa.Table = ROWS) -> None:
    Insert(client(table.hive), table_of(table.hive), rows.to_reader()).run(once=once)


def value(table: WrittenTable, name: str) -> int:
    return loaded_value(client(table.hive), table_of(table.hive), name)


def test_a_second_run_with_the_key_changes_nothing(table: WrittenTable, acidctl: Acidctl, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("a,b\n1,x\n2,y\n")
    words = ["insert", "hive:db.t", str(rows), "--once", "day 1", f"--metastore={table.hive.address}", "-o", "json"]
    planned = acidctl(*words, "--dry-run")
    assert (planned.status, planned.json()[0]["inserted"], table.rows()) == (0, 2, [])
    first, second, planned = acidctl(*words, "--yes"), acidctl(*words, "--yes"), acidctl(*words, "--dry-run")
    assert [run.status for run in (first, second, planned)] == [0, 0, 0]
    found = [run.json()[0] for run in (first, second, planned)]
    assert [(one["result"], one["loadedBefore"]) for one in found] == [
        ("written", False), ("nothing-to-do", True), ("nothing-to-do", True),
    ]  # fmt: skip
    assert (table.rows(), table.is_quiet) == (LOADED, True)
    assert table.door.table("db.t").insert(ROWS, once="day 1").result == "nothing-to-do"
    assert table.door.table("db.t").insert(ROWS, once="day 2").result == "written"
    assert len(table.rows()) == 4


def test_a_dry_run_records_nothing(table: WrittenTable) -> None:
    before = len(table.hive.tables)
    table.door.table("db.t").insert(ROWS, once="day 1", dry_run=True)
    assert (value(table, "day 1"), len(table.hive.tables), table.names) == (NOTHING, before, [])


@pytest.mark.parametrize("kind", ["failed", "lost", "done"])
@pytest.mark.parametrize("call", CALLS)
def test_a_broken_call_leaves_no_half_of_a_load(table: WrittenTable, call: str, kind: str) -> None:
    once = Once("job")
    table.hive.fault(call, kind)
    with suppress(AcidctlError):
        insert(table, once)
    table.hive.faults.clear()
    seen = table.rows()
    assert seen in ([], LOADED)
    assert (value(table, "job") == 0) == (seen == LOADED)
    with suppress(AlreadyLoaded):
        insert(table, once)
    assert table.rows() == LOADED
    with pytest.raises(AlreadyLoaded):
        insert(table, once)


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("call", CALLS)
def test_a_killed_load_is_made_by_the_next_run(
    table: WrittenTable, children: Mortals, call: str, is_done: bool, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("a,b\n1,x\n2,y\n")
    line = ["insert", "hive:db.t", rows, "--once", "job", "--yes", f"--metastore={table.hive.address}"]
    victim: list[int] = []
    known = threading.Event()

    def kill(name: str, now_done: bool) -> None:
        if (name, now_done) == (call, is_done) and victim and known.wait(10):
            os.kill(victim.pop(), signal.SIGKILL)

    def on_pid(pid: int) -> None:
        victim.append(pid)
        known.set()

    def at_call(name: str, now_done: bool) -> None:
        known.wait(10)
        kill(name, now_done)

    table.hive.at_call = at_call
    status = children.run(*line, said=tmp_path / "said", on_pid=on_pid)
    table.hive.at_call = lambda *_: None
    assert status == (-signal.SIGKILL if table.hive.version > 3 or call not in ONLY_4 else 0)
    for txn in [txn for txn in table.hive.txns.values() if txn.state == TxnState.OPEN]:
        if call == "commit_txn" and table.hive.version == 3:
            break  # the next run commits it, before the house keeper comes
        table.hive.end(txn.id, commit=False)
    status = children.run(*line, said=tmp_path / "said")
    assert status == 0, (tmp_path / "said").read_text()
    assert table.rows() == LOADED
    assert not table.hive.locks


def test_hive_3_learns_the_outcome_of_a_transaction_that_the_house_keeper_aborted(
    table: WrittenTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    if table.hive.version > 3:
        pytest.skip("Hive 4 keeps the value with the commit")
    die_before_the_commit(table, monkeypatch)
    (txn,) = table.hive.txns.values()
    table.hive.end(txn.id, commit=False)
    insert(table, Once("job"))
    assert len(table.rows()) == 2


def die_before_the_commit(table: WrittenTable, monkeypatch: pytest.MonkeyPatch, once: Once | None = None) -> None:
    """A load whose process is gone between its intent and the commit: nothing is cleaned up."""
    with monkeypatch.context() as patch:

        def die(self: LockedTransaction, *_: object) -> None:
            self._let_go()
            self._has_ended = True
            raise KeyboardInterrupt

        patch.setattr(LockedTransaction, "commit", die)
        patch.setattr(LockedTransaction, "abort", lambda *_: False)
        patch.setattr(Places, "take_back", lambda _: None)
        with pytest.raises(KeyboardInterrupt):
            insert(table, once or Once("job"))


@pytest.mark.parametrize("step", ["_is_committed", "settle"])
def test_hive_3_settles_a_load_beside_another_process(
    table: WrittenTable, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if table.hive.version > 3:
        pytest.skip("Hive 4 keeps the value with the commit")
    die_before_the_commit(table, monkeypatch)
    once_before(monkeypatch, _IntentLedger, step, lambda: value(table, "job") and None)
    assert value(table, "job") == 0
    assert table.rows() == LOADED


@pytest.mark.parametrize("files", ["there", "gone"])
def test_hive_3_asks_if_the_metastore_has_forgotten_the_transaction(
    table: WrittenTable, files: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if table.hive.version > 3:
        pytest.skip("Hive 4 keeps the value with the commit")
    die_before_the_commit(table, monkeypatch)
    (txn,) = table.hive.txns.values()
    table.hive.end(txn.id)
    if files == "there":
        with pytest.raises(AlreadyLoaded):
            insert(table, Once("job"))
        assert table.rows() == LOADED
        return
    (directory,) = table.path.glob("delta_*")
    directory.rename(table.path / "base_0000001")
    with pytest.raises(RefusedError, match="not known") as refused:
        insert(table, Once("job"))
    (intent,) = table.path.rglob("*.intent")
    assert str(intent) in refused.value.hint
    loaded = refused.value.hint.partition(" to ")[2].partition(",")[0]
    intent.rename(loaded)
    with pytest.raises(AlreadyLoaded):
        insert(table, Once("job"))


def test_hive_3_commits_no_transaction_of_others(table: WrittenTable, monkeypatch: pytest.MonkeyPatch) -> None:
    if table.hive.version > 3:
        pytest.skip("Hive 4 has no intents")
    die_before_the_commit(table, monkeypatch)
    (intent,) = table.path.rglob("*.intent")
    theirs = table.hive.begin("ann")
    intent.rename(intent.with_name(f"{0:020}-{theirs}.intent"))
    with pytest.raises(RefusedError, match="will not use"):
        insert(table, Once("job"))
    intent.with_name(f"{0:020}-{theirs}.intent").write_text('{"host":')  # torn
    (first,) = (txn for txn in table.hive.txns.values() if txn.id != theirs)
    table.hive.end(first.id, commit=False)
    insert(table, Once("job"))
    assert table.hive.txns[theirs].state == TxnState.OPEN


def once_before(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, act: Callable[[], None]) -> None:
    """Act before the first call of a method."""
    real = getattr(owner, name)

    def acting(*given: object, **more: object) -> object:
        monkeypatch.setattr(owner, name, real)
        act()
        return real(*given, **more)

    monkeypatch.setattr(owner, name, acting)


def test_of_two_at_once_one_wins(table: WrittenTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second has looked before the first commits, and looks again under its lock."""
    once_before(monkeypatch, WriteTransaction, "_open", lambda: insert(table, Once("job")))
    with pytest.raises(AlreadyLoaded):
        insert(table, Once("job"))
    assert (table.rows(), table.is_quiet) == (LOADED, True)


def test_two_names_do_not_wait_for_each_other(table: WrittenTable, monkeypatch: pytest.MonkeyPatch) -> None:
    once_before(monkeypatch, WriteTransaction, "commit", lambda: insert(table, Once("another")))
    insert(table, Once("job"))
    assert len(table.rows()) == 4
    assert (value(table, "job"), value(table, "another"), value(table, "third")) == (0, 0, NOTHING)


def test_the_lock_of_a_name_is_held_until_the_commit(table: WrittenTable, monkeypatch: pytest.MonkeyPatch) -> None:
    def second() -> None:
        with pytest.raises(ConflictError):
            Insert(client(table.hive), table_of(table.hive), ROWS.to_reader()).run(wait=0, once=Once("job"))

    once_before(monkeypatch, WriteTransaction, "commit", second)
    insert(table, Once("job"))
    assert table.rows() == LOADED


def test_a_stream_goes_on_from_its_last_value(table: WrittenTable) -> None:
    for epoch in (0, 1, 7):
        insert(table, Once("orders", epoch))
        assert value(table, "orders") == epoch
    for epoch in (0, 6, 7):
        with pytest.raises(AlreadyLoaded):
            insert(table, Once("orders", epoch))
    with pytest.raises(ConflictError, match="up to 7"):
        insert(table, Once("orders", 9, after=1))
    insert(table, Once("orders", 9, after=7))
    assert (value(table, "orders"), len(table.rows())) == (9, 8)
    assert len(list(table.path.rglob("*.loaded"))) == (1 if table.hive.version == 3 else 0)
    assert not list(table.path.rglob("*.intent"))


def test_a_name_stays_with_its_owner(table: WrittenTable, monkeypatch: pytest.MonkeyPatch) -> None:
    insert(table, Once("orders", 0, owner="first"))
    for epoch in (0, 1):
        with pytest.raises(ConflictError, match="name of another query"):
            insert(table, Once("orders", epoch, owner="second"))
    insert(table, Once("orders", 1, owner="first"))
    insert(table, Once("orders", 2))  # not known
    insert(table, Once("orders", 3, owner="second"))
    assert (value(table, "orders"), len(table.rows()), table.is_quiet) == (3, 8, True)


def test_hive_3_knows_the_owner_of_a_load_that_it_settles(table: WrittenTable, monkeypatch: pytest.MonkeyPatch) -> None:
    if table.hive.version > 3:
        pytest.skip("Hive 4 keeps the owner with the commit")
    die_before_the_commit(table, monkeypatch, Once("job", owner="first"))
    for _ in range(2):
        with pytest.raises(ConflictError, match="name of another query"):
            insert(table, Once("job", owner="second"))
    with pytest.raises(AlreadyLoaded):
        insert(table, Once("job", owner="first"))
    assert table.rows() == LOADED


def test_a_load_that_was_not_committed_gives_its_name_to_nobody(
    table: WrittenTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_before_the_commit(table, monkeypatch, Once("job", owner="first"))
    (txn,) = table.hive.txns.values()
    table.hive.end(txn.id, commit=False)
    insert(table, Once("job", owner="second"))
    assert table.rows() == LOADED


@pytest.mark.parametrize("is_settled", [False, True], ids=["killed", "done"])
def test_loads_of_hive_3_count_after_an_upgrade(
    table: WrittenTable, is_settled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if table.hive.version > 3:
        pytest.skip("it begins on Hive 3")
    insert(table, Once("orders", 4, owner="first"))
    if is_settled:
        insert(table, Once("job", owner="first"))
    else:
        die_before_the_commit(table, monkeypatch, Once("job", owner="first"))
    table.hive.version = 4
    for once in (Once("job", owner="first"), Once("orders", 4)):
        with pytest.raises(AlreadyLoaded):
            insert(table, once)
    with pytest.raises(ConflictError, match="name of another query"):
        insert(table, Once("orders", 5, owner="second"))
    insert(table, Once("orders", 5, after=4))
    assert (value(table, "orders"), value(table, "job"), len(table.rows())) == (5, 0, 6)


def test_a_load_without_rows_is_remembered(table: WrittenTable) -> None:
    insert(table, Once("job"), ROWS.slice(0, 0))
    with pytest.raises(AlreadyLoaded):
        insert(table, Once("job"))
    assert table.rows() == []


def test_a_table_that_is_made_again_has_no_loads(table: WrittenTable) -> None:
    if table.hive.version < 4:
        pytest.skip("Hive 3 keeps the files in the directory of the table")
    table.hive.tables["db", "t"] = replace(table.hive.tables["db", "t"], id=7)
    insert(table, Once("job"))
    table.hive.tables["db", "t"] = replace(table.hive.tables["db", "t"], id=8)
    assert value(table, "job") == NOTHING


def test_a_table_that_is_renamed_keeps_its_loads(table: WrittenTable) -> None:
    known = table.hive.tables["db", "t"]
    table.hive.tables["db", "t"] = replace(known, id=7 if table.hive.version > 3 else 0)
    insert(table, Once("job"))
    table.hive.tables["db", "u"] = replace(table.hive.tables["db", "t"], name="u")
    metastore = client(table.hive)
    assert loaded_value(metastore, get_table(metastore, "db", "u"), "job") == 0


def test_a_record_that_others_changed_is_refused(table: WrittenTable) -> None:
    if table.hive.version < 4:
        pytest.skip("Hive 3 has files")
    insert(table, Once("job"))
    (key,) = (key for key in table.hive.tables if key[1].startswith("acidctl_once_"))
    assert table.hive.tables[key].parameters == {
        "_meta.acidctl": "0:1", "acidctl.table": "db.t", "acidctl.name": "job",
    }  # fmt: skip
    table.hive.tables[key] = replace(table.hive.tables[key], parameters={})
    with pytest.raises(BadDataError):
        insert(table, Once("job"))


@pytest.mark.parametrize(("name", "number"), [("", 0), ("x" * 201, 0), ("job", -1), ("job", 1 << 63)])
def test_names_and_values_have_limits(name: str, number: int) -> None:
    with pytest.raises(UsageProblem):
        Once(name, number)


@pytest.mark.parametrize("name", ["ünïcode €", "../../x", "a/b", "\n", "\udcff", "'; drop"])
def test_any_text_is_a_name(table: WrittenTable, name: str) -> None:
    insert(table, Once(name))
    assert (value(table, name), value(table, f"{name}x")) == (0, NOTHING)
    assert all(json.dumps(key) and len(key[1]) < 128 for key in table.hive.tables)


def test_records_of_loads_are_no_rows_for_an_erasure(table: WrittenTable, acidctl: Acidctl) -> None:
    insert(table, Once("ann@example.org"))
    words = ["erasure", "--prove", "hive:db.t", "--where", "b = 'ann@example.org'"]
    assert acidctl(*words, f"--metastore={table.hive.address}").status == 0
    assert acidctl("validate", "--deep", "hive:db.t", f"--metastore={table.hive.address}").status == 0


def test_a_table_that_is_not_written_is_refused_first(table: WrittenTable) -> None:
    known = table.hive.tables["db", "t"]
    assert known.storage
    view = replace(known, table_type="VIRTUAL_VIEW", storage=replace(known.storage, location=None), parameters={})
    table.hive.tables["db", "t"] = view
    with pytest.raises(RefusedError, match="will not write"):
        table.door.table("db.t").insert(ROWS, once="job")
