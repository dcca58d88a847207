"""Compactions in Hive's own protocol: seen in its queue, visible with their commit, and nothing stays open."""

from __future__ import annotations

import socket
import subprocess
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Result
from support.files.acid_files import delete, insert, write_acid
from support.metastore.fake_hive import FakeHive
from support.tables import CLEAN_NOW

from acidctl import Location
from acidctl.acid.compaction_kind import CompactionKind
from acidctl.base.errors import ConflictError
from acidctl.compaction.request import CompactionRequest, Planned, plan_location
from acidctl.hive.compacting import compact_locations
from acidctl.hive.queue_entries import ABORTED_COMPACTION, free_single, own_pool, worker_id
from acidctl.hive.queue_lease import QueueEntryLease
from acidctl.location.find import find
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.location.warehouse import Warehouse
from acidctl.metastore.client import Metastore
from acidctl.metastore.interface import CompactionType, LockInfo, LockState, LockType, TxnState, TxnType
from acidctl.metastore.queue import find_compactions, read_properties
from acidctl.metastore.settings import find_settings

Acidctl = Callable[..., Result]
COMPACT = ("compact", "--engine", "local")


class Table:
    """``s.t`` with three deltas and a delete delta, each of a transaction that was committed."""

    def __init__(self, fake: FakeHive, location: Path, acidctl: Acidctl) -> None:
        self.fake, self.location, self._acidctl = fake, location, acidctl
        fake.table("s", "t", f"file:{location}")
        for number in (1, 2, 3):
            rows = [insert(number, row, (10 * number + row,)) for row in range(3)]
            write_acid(location / f"delta_{number:07d}_{number:07d}_0000" / "bucket_00000", *rows)
            self._commit()
        write_acid(location / "delete_delta_0000004_0000004_0000" / "bucket_00000", delete(1, 0, 4), delete(2, 1, 4))
        self._commit()
        self.rows = self.read()
        assert len(self.rows) == 7

    def _commit(self) -> None:
        txn = self.fake.begin()
        self.fake.write_ids.setdefault("s.t", []).append(txn)
        self.fake.end(txn)

    def read(self) -> list[dict[str, Any]]:
        """What a reader sees now."""
        found = self._acidctl("cat", "--row-id", "--metastore", self.fake.address, "hive:s.t")
        assert found.status == 0, found.err
        return sorted(found.lines(), key=str)

    def compact(self, *options: str) -> Result:
        """``acidctl compact``, in this process."""
        return self._acidctl(*COMPACT, *options, "--metastore", self.fake.address, "hive:s.t")

    @property
    def names(self) -> set[str]:
        """The directories that are there, hidden ones too."""
        return {path.name for path in self.location.iterdir()}

    def require_ended(self) -> None:
        """Rows are what they were; no transaction of ours, no lock, and no entry is left at work."""
        assert self.read() == self.rows
        assert not self.fake.locks
        assert [txn.id for txn in self.fake.txns.values() if txn.state == TxnState.OPEN] == []
        assert {one.state for one in self.fake.queue} <= {"ready for cleaning", "failed", "refused", "aborted"}
        assert not [name for name in self.names if name.startswith("_tmp")]


@pytest.fixture(params=[3, 4], ids=["hive-3", "hive-4"])
def fake(request: pytest.FixtureRequest) -> Iterator[FakeHive]:
    with FakeHive(request.param) as one:
        yield one


@pytest.fixture
def table(fake: FakeHive, tmp_path: Path, acidctl: Acidctl) -> Table:
    return Table(fake, tmp_path / "t", acidctl)


@pytest.fixture
def table_4(tmp_path: Path, acidctl: Acidctl) -> Iterator[Table]:
    with FakeHive(4) as one:
        yield Table(one, tmp_path / "t", acidctl)


def seen_types(fake: FakeHive) -> list[int]:
    """Of the transactions that are opened from now on."""
    types: list[int] = []
    begin = fake.begin

    def begun(*given: Any, **more: Any) -> int:
        types.append(more.get("type", TxnType.DEFAULT))
        return begin(*given, **more)

    fake.begin = begun  # type: ignore[method-assign]
    return types


# --- what becomes of a compaction -------------------------------------------------------------------------------------


def test_a_major_compaction_is_an_entry_and_a_transaction(table: Table) -> None:
    types = seen_types(table.fake)
    found = table.compact("--major", "-o", "json")
    assert found.status == 0, found.err
    (new,) = [name for name in table.names if name.startswith("base")]
    table.require_ended()
    if table.fake.version == 3:
        assert (new, types, table.fake.queue) == ("base_0000004", [TxnType.DEFAULT], [])
        return
    (entry,) = table.fake.queue
    assert types == [TxnType.COMPACTION]
    assert new == f"base_0000004_v{entry.txn:07d}"
    assert (entry.state, entry.type, entry.highest_write_id) == ("ready for cleaning", 2, 4)
    assert (entry.pool or "").startswith("acidctl-")
    assert entry.committed
    assert entry.next_txn


def test_both_kinds_of_delta_appear_with_the_commit(table: Table) -> None:
    found = table.compact("--minor")
    if table.fake.version == 3:
        assert found.status == 7
        assert "--offline" in found.err
        table.require_ended()
        return
    assert found.status == 0, found.err
    (entry,) = table.fake.queue
    new = {name for name in table.names if "_v" in name}
    assert new == {f"delta_0000001_0000004_v{entry.txn:07d}", f"delete_delta_0000001_0000004_v{entry.txn:07d}"}
    assert entry.type == 1
    table.require_ended()


def test_cleaning_afterwards_leaves_the_rows(table: Table, acidctl: Acidctl) -> None:
    assert table.compact("--major").status == 0
    cleaned = acidctl(*CLEAN_NOW, "--metastore", table.fake.address, "hive:s.t")
    assert cleaned.status == 0, cleaned.err
    assert len([name for name in table.names if not name.startswith(".")]) == 1
    table.require_ended()


def test_nothing_to_do_leaves_no_trace(table: Table) -> None:
    assert table.compact("--major").status == 0
    before = list(table.fake.queue)
    opened = table.fake.calls.count("open_txns")
    again = table.compact("--major")
    assert again.status == 0
    assert table.fake.queue == before
    assert table.fake.calls.count("open_txns") == opened
    table.require_ended()


def test_a_dry_run_asks_for_nothing(table: Table) -> None:
    assert table.compact("--major", "--dry-run").status == 0
    assert not {"compact2", "open_txns", "lock"} & set(table.fake.calls)


def test_who_gives_lists_stays_out_of_the_queue(table: Table) -> None:
    found = table.compact("--major", "--snapshot", f"s.t:4:{2**63 - 1}::")
    assert found.status == 0, found.err
    assert not {"compact2", "open_txns"} & set(table.fake.calls)
    assert "base_0000004" in table.names


def test_python_takes_the_same_road(table: Table) -> None:
    location = Location("hive:s.t", metastore=table.fake.address)
    outcome = location.compact("major")
    assert outcome.result == "compacted"
    assert table.fake.calls.count("commit_txn") == 1
    table.require_ended()


def test_many_partitions_each_have_their_turn(tmp_path: Path, acidctl: Acidctl) -> None:
    with FakeHive(4) as fake:
        fake.table("s", "p", f"file:{tmp_path / 'p'}", ["day"])
        for day in ("1", "a:b"):
            name = f"day={day.replace(':', '%3A')}"
            fake.partition("s", "p", name)
            for number in (1, 2):
                path = tmp_path / "p" / name / f"delta_{number:07d}_{number:07d}_0000" / "bucket_00000"
                write_acid(path, insert(number, 0, (number,)))
        for _ in range(2):
            txn = fake.begin()
            fake.write_ids.setdefault("s.p", []).append(txn)
            fake.end(txn)
        found = acidctl(*COMPACT, "--major", "--metastore", fake.address, "hive:s.p")
        assert found.status == 0, found.err
        assert [(one.partition, one.state) for one in fake.queue] == [
            ("day=1", "ready for cleaning"),
            ("day=a%3Ab", "ready for cleaning"),
        ]
        assert len({one.pool for one in fake.queue}) == len({one.txn for one in fake.queue}) == 2
        assert not fake.locks
        assert not fake.txns


@pytest.mark.parametrize("count", [2, 12])
def test_whether_tables_are_the_same_is_asked_for_all_locations_at_once(
    fake: FakeHive, acidctl: Acidctl, tmp_path: Path, count: int
) -> None:
    for table, part in ((table, part) for table in ("days", "more") for part in range(count)):
        if not part:
            fake.table("s", table, f"file:{tmp_path}/{table}", ["day"])
            fake.write_ids[f"s.{table}"] = [1, 2]
        fake.partition("s", table, f"day={part}")
        for number in (1, 2):
            where = tmp_path / table / f"day={part}" / f"delta_{number:07}_{number:07}_0000"
            write_acid(where / "bucket_00000", insert(number, 0, (number,)))
    line = (*COMPACT, "--major", "-n", "-o", "jsonl", "--metastore", fake.address, "hive:s.*")
    fake.calls.clear()
    assert {one["result"] for one in acidctl(*line).lines()} == {"planned"}
    assert "get_table_req" not in fake.calls
    assert fake.calls.count("get_table_objects_by_name_req") == 2, "when they are found, and when all are planned"

    def made_anew() -> None:
        parts = fake.partitions["s", "more"]
        fake.table("s", "more", f"file:{tmp_path}/more", ["day"])
        fake.partitions["s", "more"] = parts

    fake.before["show_compact"] = made_anew
    found = acidctl(*line)
    results = {(one["location"].split("/")[-2], one["result"]) for one in found.lines()}
    assert results == {("days", "planned"), ("more", "failed")}
    assert found.status == ConflictError.exit_status
    assert "was dropped and created again meanwhile" in found.err


# --- others in the queue ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["initiated", "working"])
def test_an_entry_in_the_way_is_named(table: Table, state: str) -> None:
    there = table.fake.entry("s", "t", state, worker="host9-12")
    found = table.compact("--major")
    assert found.status == 7
    assert f"compaction {there} of Hive's queue is {state}" in found.err
    can_take_over = state == "initiated" and table.fake.version >= 4  # Hive 3 lets nothing be taken out
    assert ("--take-over" if can_take_over else "--wait") in found.err
    assert len([name for name in table.names if name.startswith("base")]) == 0
    assert "open_txns" not in table.fake.calls


def test_an_entry_is_in_nobodys_way_where_nothing_is_due(table: Table) -> None:
    table.fake.entry("s", "t", "initiated")
    found = table.compact("--auto", "-o", "jsonl")
    assert found.status == 0, found.err
    assert [one["result"] for one in found.lines()] == ["nothing-to-do"]


@pytest.mark.parametrize("state", ["initiated", "working"])
def test_a_plan_to_take_over_is_refused_where_the_run_would_be(table: Table, state: str) -> None:
    there = table.fake.entry("s", "t", state, worker="host9-12")
    found = table.compact("--major", "--take-over", "-n")
    can_take_over = state == "initiated" and table.fake.version >= 4
    assert found.status == (0 if can_take_over else 7)
    assert [(one.id, one.state) for one in table.fake.queue] == [(there, state)], "only planned"
    assert "--take-over" not in found.err, "it was given"


def test_what_waits_in_the_queue_is_taken_over(table_4: Table) -> None:
    there = table_4.fake.entry("s", "t", "initiated")
    found = table_4.compact("--major", "--take-over")
    assert found.status == 0, found.err
    assert [(one.id, one.state) for one in table_4.fake.queue] == [
        (there, "aborted"),
        (there + 1, "ready for cleaning"),
    ]
    table_4.require_ended()


def test_what_is_worked_on_is_not_taken_over(table_4: Table) -> None:
    table_4.fake.entry("s", "t", "working", worker="host9-12")
    found = table_4.compact("--major", "--take-over")
    assert found.status == 7
    assert "by host9-12" in found.err
    assert "open_txns" not in table_4.fake.calls


def test_what_a_killed_compact_left_at_work_is_ended_by_the_next(table_4: Table) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    txn = table_4.fake.begin(type=3)
    left = table_4.fake.entry(
        "s", "t", "working", pool=f"acidctl-{uuid.uuid4()}", txn=txn,
        worker=f"acidctl-{socket.gethostname()}-{ended.pid}.77-1",
    )  # fmt: skip
    found = table_4.compact("--major")
    assert found.status == 0, found.err
    assert [(one.id, one.state) for one in table_4.fake.queue] == [
        (left, "refused"),
        (left + 1, "ready for cleaning"),
    ]
    assert table_4.fake.txns[txn].state == TxnState.ABORTED
    table_4.require_ended()


def test_what_a_killed_compact_asked_for_and_never_took_is_taken_out_by_the_next(table_4: Table) -> None:
    """Nobody else would look into its pool for half a day."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    pool = own_pool(f"acidctl-{socket.gethostname()}-{ended.pid}.77-1")
    left = table_4.fake.entry("s", "t", "initiated", pool=pool)
    found = table_4.compact("--major")
    assert found.status == 0, found.err
    assert [(one.id, one.state) for one in table_4.fake.queue] == [
        (left, "aborted"),
        (left + 1, "ready for cleaning"),
    ]
    table_4.require_ended()


def test_a_pool_is_as_long_as_the_metastore_takes_it() -> None:
    assert own_pool(worker_id()).startswith(worker_id().rpartition("-")[0])
    assert len(own_pool(f"acidctl-{'x' * 110}-1.77-1")) <= 128


@pytest.mark.parametrize("worker", [worker_id(), "acidctl-elsewhere-1.77-1"], ids=["alive", "of another machine"])
def test_what_another_compact_is_about_to_take_stays(table_4: Table, worker: str) -> None:
    table_4.fake.entry("s", "t", "initiated", pool=own_pool(worker))
    assert table_4.compact("--major").status == 7
    assert [one.state for one in table_4.fake.queue] == ["initiated"]


@pytest.mark.parametrize(
    ("pool", "worker"),
    [(f"acidctl-{uuid.uuid4()}", worker_id()), (f"acidctl-{uuid.uuid4()}", "acidctl-elsewhere-1.77-1"), ("mine", "")],
    ids=["alive", "of another machine", "of a worker"],
)
def test_what_is_not_known_to_be_left_behind_stays(table_4: Table, pool: str, worker: str) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    dead = f"acidctl-{socket.gethostname()}-{ended.pid}.77-1"
    table_4.fake.entry("s", "t", "working", pool=pool, worker=worker or dead)
    assert table_4.compact("--major").status == 7
    assert [one.state for one in table_4.fake.queue] == ["working"]


@pytest.mark.parametrize("pool", [own_pool(worker_id()), "mine", None], ids=["single", "of a pool", "of none"])
@pytest.mark.parametrize("is_open", [False, True])
def test_what_was_killed_before_its_commit_is_ended_once_its_transaction_is_aborted(
    is_open: bool, pool: str | None
) -> None:
    with FakeHive(4) as fake:
        txn = fake.begin(type=3)
        fake.entry("s", "t", "ready for cleaning", pool=pool, txn=txn)
        if not is_open:
            fake.end(txn, commit=False)
        settings = find_settings({"uris": fake.address}, {})
        assert settings
        metastore = Metastore(settings)
        assert free_single(metastore, find_compactions(metastore)[0]) is not is_open
        assert [one.state for one in fake.queue] == ["ready for cleaning" if is_open else "failed"]


def test_it_waits_for_hives_own(table: Table) -> None:
    there = table.fake.entry("s", "t", "working", worker="host9-12")
    asked = 0
    method = "show_compact" if table.fake.version == 3 else "compact2"

    def ends() -> None:
        nonlocal asked
        asked += 1
        if asked < 3:
            table.fake.before[method] = ends
        else:
            table.fake.set_entry(there, state="ready for cleaning")

    table.fake.before[method] = ends
    found = table.compact("--major", "--wait", "1m")
    assert found.status == 0, found.err
    table.require_ended()


def test_a_refusal_tells_the_source_of_the_snapshot_if_there_is_no_lease(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise ConflictError("somebody else has it", "", "run it again")

    (planned,) = table.compact("--major", "-n", "-o", "jsonl").lines()
    monkeypatch.setattr(QueueEntryLease, "take", refused)
    (answer,) = table.compact("--major", "-o", "jsonl").lines()
    assert answer["result"] == "failed"
    assert answer["snapshotSource"]["from"] == planned["snapshotSource"]["from"]


def test_an_exclusive_lock_is_in_the_way(table: Table) -> None:
    dropping = table.fake.begin()
    table.fake.lock("s", "t", txn=dropping, type=3)
    found = table.compact("--major")
    assert found.status != 0
    assert "could not lock s.t" in found.err
    assert [txn.id for txn in table.fake.txns.values() if txn.state == TxnState.OPEN] == [dropping]
    assert [one.txn for one in table.fake.locks] == [dropping]
    assert not [name for name in table.names if name.startswith("base")]


# --- bad days ---------------------------------------------------------------------------------------------------------

STEPS = (
    "compact2", "find_next_compact2", "open_txns", "lock", "get_open_txns_req", "get_valid_write_ids",
    "update_compactor_state", "heartbeat", "show_compact", "mark_compacted", "commit_txn",
)  # fmt: skip


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", ["lost", "done", "late", "failed"])
@pytest.mark.parametrize("step", STEPS)
def test_whatever_call_goes_wrong_rows_stay_and_nothing_is_left_open(table_4: Table, step: str, kind: str) -> None:
    fake = table_4.fake
    if step in ("show_compact", "get_open_txns_req", "get_valid_write_ids"):  # which are asked before the turn, too
        fake.before["find_next_compact2"] = lambda: fake.fault(step, kind)
    else:
        fake.fault(step, kind)
    found = table_4.compact("--major")
    assert "Traceback" not in found.err
    assert found.err or not found.status
    assert table_4.read() == table_4.rows
    table_4.require_ended()
    states = [one.state for one in fake.queue]
    if found.status:
        assert set(states) <= {"failed", "aborted"}
    else:
        assert states == ["ready for cleaning"]
        assert fake.queue[0].committed


@pytest.mark.parametrize("step", ["heartbeat", "show_compact", "mark_compacted", "commit_txn"])
def test_a_transaction_that_is_aborted_from_outside_shows_nothing(table_4: Table, step: str) -> None:
    fake = table_4.fake

    def aborted() -> None:
        (ours,) = [txn for txn in fake.txns.values() if txn.type == TxnType.COMPACTION]
        fake.end(ours.id, commit=False)

    fake.before["update_compactor_state"] = lambda: fake.before.__setitem__(step, aborted)
    found = table_4.compact("--major")
    assert found.status != 0
    assert "transaction" in found.err
    assert [one.state for one in fake.queue] == ["failed"]
    assert not [name for name in table_4.names if "_v" in name]
    table_4.require_ended()


def test_what_was_committed_is_never_taken_back_whoever_cannot_be_asked(table_4: Table) -> None:
    """The answer to the commit is lost, and nobody says afterwards what became of it: the result stays."""
    fake = table_4.fake

    def deaf() -> None:
        fake.fault("show_compact", "failed", 9)
        fake.fault("heartbeat_txn_range", "failed", 9)

    fake.before["commit_txn"] = deaf
    fake.fault("commit_txn", "done")
    found = table_4.compact("--major")
    assert found.status != 0
    assert "is not known" in found.err
    fake.faults.clear()
    assert [name for name in table_4.names if name.startswith("base")]
    assert fake.queue[0].state == "ready for cleaning"
    table_4.require_ended()


def test_an_entry_that_hive_gave_to_another_is_left_to_it(table_4: Table) -> None:
    """As when an initiator starts, and takes back what it believes to be dead."""
    fake = table_4.fake

    def given() -> None:
        fake.set_entry(1, worker="host9-12")

    fake.before["mark_compacted"] = lambda: pytest.fail("it is not ours any more")
    fake.before["heartbeat"] = given
    found = table_4.compact("--major")
    assert found.status == ConflictError.exit_status
    assert "host9-12" in found.err
    assert [(one.state, one.worker) for one in fake.queue] == [("working", "host9-12")]
    fake.set_entry(1, state="failed")
    table_4.require_ended()


def test_on_hive_3_a_compaction_that_began_meanwhile_is_not_met(tmp_path: Path, acidctl: Acidctl) -> None:
    with FakeHive(3) as fake:
        table = Table(fake, tmp_path / "t", acidctl)
        fake.before["heartbeat"] = lambda: fake.entry("s", "t", "working", worker="host9-12") and None
        found = table.compact("--major")
        assert found.status == 7
        assert "by host9-12" in found.err
        assert not [name for name in table.names if name.startswith("base")]
        fake.set_entry(1, state="failed")
        table.require_ended()


@pytest.mark.parametrize("step", ["abort_txn", "mark_failed"])
@pytest.mark.parametrize("kind", ["lost", "done"])
def test_the_end_of_what_failed_may_go_wrong_once(table_4: Table, step: str, kind: str) -> None:
    table_4.fake.fault("heartbeat", "failed", 1)
    table_4.fake.fault(step, kind, 1)
    assert table_4.compact("--major").status != 0
    assert [one.state for one in table_4.fake.queue] == ["failed"]
    table_4.require_ended()


def test_interrupted_before_its_turn_it_leaves_no_entry(table_4: Table) -> None:
    location = Location("hive:s.t", metastore=table_4.fake.address)
    call = Metastore.call

    def stopped(metastore: Metastore, method: Any, *arguments: Any) -> Any:
        if method.name == "find_next_compact2":
            raise KeyboardInterrupt
        return call(metastore, method, *arguments)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Metastore, "call", stopped)
        location.compact("major")
    assert [one.state for one in table_4.fake.queue] == ["aborted"]
    table_4.require_ended()


def test_a_server_without_pools_gets_back_what_is_not_ours(table_4: Table) -> None:
    fake = table_4.fake
    other = fake.entry("s", "other", "initiated")
    find = fake._do_find_next_compact2
    fake._do_find_next_compact2 = lambda request: find(replace(request, pool=None))  # type: ignore[method-assign]
    found = table_4.compact("--major")
    assert found.status != 0
    assert "to know no pools" in found.err
    assert [(one.id, one.table, one.state) for one in fake.queue] == [
        (other, "other", "refused"),
        (other + 1, "t", "aborted"),
        (other + 2, "other", "initiated"),
    ]
    fake.set_entry(other + 2, state="aborted")
    table_4.require_ended()


def test_interrupted_it_ends_what_it_began(table: Table) -> None:
    settings = find_settings({"uris": table.fake.address}, {})
    assert settings
    resolver = SnapshotResolver(warehouse=Warehouse(Metastore(settings)))
    request = CompactionRequest("major")
    (found,) = find(["hive:s.t"], {}, resolver)
    planned = plan_location(found, request)
    assert isinstance(planned, Planned)

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(compact_locations([(found, planned)], request, on_task=interrupted))
    assert planned.plan.kind is CompactionKind.MAJOR
    assert {txn.state for txn in table.fake.txns.values()} == {TxnState.ABORTED}
    if table.fake.version == 4:
        (entry,) = table.fake.queue
        assert entry.state == "refused", "nothing went wrong"
        assert "KeyboardInterrupt" in (entry.error or "")
    table.require_ended()


def test_the_code_of_the_abort_is_hives() -> None:
    assert ABORTED_COMPACTION == 50006


def test_deltas_that_an_open_transaction_holds_back_are_counted(table: Table) -> None:
    writer = table.fake.begin()
    table.fake.write_ids["s.t"].append(writer)
    later = table.fake.begin()
    table.fake.write_ids["s.t"].append(later)
    table.fake.end(later)
    write_acid(table.location / "delta_0000006_0000006_0000" / "bucket_00000", insert(6, 0, (60,)))
    said = table.compact("--auto", "-o", "jsonl").lines()
    assert [code for one in said for code in one["reasonCodes"]] == ["few-deltas", "more-above"]
    assert "1 more directory above write id 4, until what is open there ends" in said[0]["reason"]


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("0:", ()),
        ("2:1:a3:x:y2:bc0:", (("a", "x:y"), ("bc", ""))),
        ("1:2:\N{GRINNING FACE}1:b", (("\N{GRINNING FACE}", "b"),)),
        ("", ()),
        ("1:9:a", ()),
        ("1:-1:a1:b", ()),
        ("99999999999:1:a", ()),
        ("1:1:a", ()),
    ],
)
def test_properties_are_read_as_hive_writes_them(text: str, properties: tuple[tuple[str, str], ...]) -> None:
    assert read_properties(text) == properties


# --- rebalances ------------------------------------------------------------------------------------------------------


def hold(fake: FakeHive, type_: LockType) -> None:
    fake.locks.append(LockInfo(77, "s", "t", None, LockState.ACQUIRED, type_, 0, user="ann", host="host9"))


def values(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(str({key: value for key, value in row.items() if key != "ROW__ID"}) for row in rows)


def unchanged(table: Table) -> bool:
    return not [name for name in table.names if name.startswith(("base", "_tmp"))]


def test_a_rebalance_is_an_entry_and_a_transaction_of_its_own_type(table_4: Table) -> None:
    types = seen_types(table_4.fake)
    hold(table_4.fake, LockType.SHARED_READ)  # who reads is in nobody's way
    found = table_4.compact("--rebalance", "--buckets", "3", "-o", "jsonl")
    assert found.status == 0, found.err
    assert types == [TxnType.REBALANCE_COMPACTION]
    (entry,) = table_4.fake.queue
    assert (entry.state, entry.type, entry.highest_write_id) == ("ready for cleaning", CompactionType.REBALANCE, 4)
    assert entry.committed is None
    assert table_4.fake.wishes[-1].buckets == 3
    assert {"kind": "rebalance", "rows": 7}.items() <= found.lines()[0].items()
    assert values(table_4.read()) == values(table_4.rows)
    assert [row["ROW__ID"]["rowid"] for row in table_4.read()] == list(range(7))
    assert [one for one in table_4.fake.locks if one.lock != 77] == []
    again = table_4.compact("--rebalance")
    assert (again.status, "another write id" in again.err) == (7, True)


@pytest.mark.parametrize("type_", [LockType.SHARED_WRITE, LockType.EXCL_WRITE, LockType.EXCLUSIVE])
def test_who_writes_to_the_table_is_in_the_way_of_a_rebalance(table_4: Table, type_: LockType) -> None:
    hold(table_4.fake, type_)
    found = table_4.compact("--rebalance", "--wait", "1s")
    assert found.status == ConflictError.exit_status
    assert f"ann at host9, {type_.name} 77" in found.err
    assert unchanged(table_4)
    table_4.fake.locks = [one for one in table_4.fake.locks if one.lock == 77]
    assert [one.state for one in table_4.fake.queue] == ["failed"]
    assert not [txn for txn in table_4.fake.txns.values() if txn.state == TxnState.OPEN]


def test_a_rebalance_waits_for_who_writes(table_4: Table) -> None:
    hold(table_4.fake, LockType.SHARED_WRITE)

    def ends() -> None:
        table_4.fake.locks = [replace(one, state=LockState.ACQUIRED) for one in table_4.fake.locks if one.lock != 77]

    table_4.fake.before["check_lock"] = ends
    found = table_4.compact("--rebalance", "--wait", "1m")
    assert found.status == 0, found.err
    assert values(table_4.read()) == values(table_4.rows)


def test_before_hive_4_a_rebalance_is_refused(tmp_path: Path, acidctl: Acidctl) -> None:
    with FakeHive(3) as old:
        table = Table(old, tmp_path / "t", acidctl)
        found = table.compact("--rebalance")
        assert (found.status, "came with Hive 4" in found.err) == (7, True)
        assert unchanged(table)
        assert "open_txns" not in old.calls


@pytest.mark.parametrize(
    "options", [["--snapshot", f"s.t:4:{2**63 - 1}::"], ["--visibility-txn", "9"], ["--assume-committed=1h"]]
)
def test_who_gives_lists_cannot_have_the_lock_of_a_rebalance(table_4: Table, options: list[str]) -> None:
    found = table_4.compact("--rebalance", *options)
    assert (found.status, "lock" in found.err) == (7, True)
    assert unchanged(table_4)


def test_a_path_has_no_lock_for_a_rebalance(table_4: Table, acidctl: Acidctl) -> None:
    found = acidctl(*COMPACT, "--rebalance", "--assume-committed=1h", "--offline", "--force", str(table_4.location))
    assert (found.status, "hive:db.table" in found.err) == (7, True)
    assert unchanged(table_4)


def test_a_table_in_buckets_is_not_rebalanced(table_4: Table, tmp_path: Path) -> None:
    fake = table_4.fake
    fake.table("s", "t", f"file:{tmp_path / 't'}", buckets=2, bucket_columns=("a",))
    found = table_4.compact("--rebalance")
    assert (found.status, "clustered by a" in found.err) == (7, True)
    assert unchanged(table_4)


def test_below_an_open_write_id_a_rebalance_is_refused(table_4: Table) -> None:
    fake = table_4.fake
    txn = fake.begin()
    fake.write_ids["s.t"].append(txn)
    found = table_4.compact("--rebalance")
    assert (found.status, "write id 5" in found.err) == (7, True)
    fake.end(txn)
    write_acid(table_4.location / "delete_delta_0000005_0000005_0000" / "bucket_00000", delete(3, 1, 5))
    assert table_4.compact("--rebalance").status == 0
    assert len(table_4.read()) == 6


def test_a_delete_that_is_committed_under_the_lock_of_a_rebalance_stops_it(table_4: Table) -> None:
    """By who does not honour locks: it names rows by the ids that they had."""
    fake = table_4.fake

    def appears() -> None:
        write_acid(table_4.location / "delete_delta_0000005_0000005_0000" / "bucket_00000", delete(3, 1, 5))

    fake.before["heartbeat"] = appears
    found = table_4.compact("--rebalance")
    assert found.status == ConflictError.exit_status
    assert "delete_delta_0000005_0000005_0000" in found.err
    assert unchanged(table_4)
    assert [one.state for one in fake.queue] == ["failed"]


def test_a_rebalance_whose_transaction_is_lost_leaves_nothing(table_4: Table) -> None:
    fake = table_4.fake

    def lost() -> None:
        (ours,) = [txn for txn in fake.txns.values() if txn.state == TxnState.OPEN]
        fake.end(ours.id, commit=False)

    fake.before["commit_txn"] = lost
    found = table_4.compact("--rebalance")
    assert found.status != 0
    assert unchanged(table_4)
    table_4.require_ended()


def test_buckets_are_for_a_rebalance(table_4: Table) -> None:
    assert table_4.compact("--major", "--buckets", "3").status == 2
