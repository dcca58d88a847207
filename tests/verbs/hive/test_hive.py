"""A metastore as one object for Python: what the command line shows and ends there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.command_line import Result
from support.files.acid_files import insert, write_acid
from support.metastore.fake_hive import FakeHive
from support.paths import PYTHONPATH

from acidctl import Hive
from acidctl.base.errors import ConflictError, NotFoundError, RefusedError, UsageProblem
from acidctl.metastore.interface import TxnState
from acidctl.metastore.txn.locks import LeaderLock

Acidctl = Callable[..., Result]


@pytest.fixture(params=[3, 4], ids=["hive-3", "hive-4"])
def fake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FakeHive]:
    with FakeHive(request.param) as one:
        one.table("s", "t", f"file:{tmp_path}/t")
        one.table("s", "days", f"file:{tmp_path}/days", keys=["day"])
        for day in ("day=1", "day=2"):
            one.partition("s", "days", day)
        yield one


@pytest.fixture
def hive(fake: FakeHive) -> Iterator[Hive]:
    with Hive(fake.address) as one:
        yield one


def test_tables_are_those_of_the_names(hive: Hive) -> None:
    assert [table.full_name for table in hive.tables()] == ["s.days", "s.t"]
    assert [table.full_name for table in hive.tables("s.t")] == ["s.t"]
    assert [table.full_name for table in hive.tables(exclude=["s.d*"])] == ["s.t"]
    with pytest.raises(NotFoundError):
        hive.tables("s.none")


def test_transactions_locks_and_queue_are_what_the_command_line_shows(
    fake: FakeHive, hive: Hive, acidctl: Acidctl
) -> None:
    begun = fake.begin(ago=100)
    fake.lock("s", "t", txn=begun)
    fake.lock("s", "days", "day=1")
    fake.entry("s", "t", "working", worker="w", started=90)
    fake.entry("s", "days", "initiated", "day=1", enqueued=90)
    assert [txn.id for txn in hive.transactions().open] == [begun]
    shown = {
        command: acidctl("hive", command, "--metastore", fake.address, "-o", "jsonl").lines()
        for command in ("locks", "compactions")
    }
    assert [lock.id for lock in hive.locks()] == [one["lock"] for one in shown["locks"]]
    assert [lock.name for lock in hive.locks("s.t")] == ["s.t"]
    assert [one.id for one in hive.compactions()] == [one["id"] for one in shown["compactions"]]
    assert [one.name for one in hive.compactions(state="initiated")] == ["s.days/day=1"]
    assert [one.name for one in hive.compactions(table="s.t")] == ["s.t"]
    assert hive.compactions(table=None) == hive.compactions()


def test_what_is_stuck_is_told_with_its_cause(fake: FakeHive, hive: Hive) -> None:
    fake.entry("s", "t", "working", worker="w", started=100_000, txn=77)
    (one,) = hive.stuck().stuck
    assert one.entry.name == "s.t"


def test_blockers_hold_back_what_waits(fake: FakeHive, hive: Hive, tmp_path: Path) -> None:
    write_acid(tmp_path / "t/delta_0000001_0000001_0000/bucket_00000", insert(1, 0, (1,)))
    begun = fake.begin()
    fake.lock("s", "t", txn=begun)
    fake.entry("s", "t", "ready for cleaning", next_txn=begun + 1, committed=10)
    found = hive.held_back(sizes=False)
    assert [one.txn and one.txn.id for one in found.blockers] == [begun]
    assert [one.name for one in found.waiting] == ["s.t"]
    with pytest.raises(UsageProblem):
        hive.held_back("no_name")


def test_every_partition_is_asked_for_once(fake: FakeHive, hive: Hive) -> None:
    asked = hive.request("s.*", "hive:s.days/day=1", kind="minor")
    assert [(wish.name, answer.accepted) for wish, answer in asked] == [
        ("s.days/day=1", True), ("s.days/day=2", True), ("s.t", True)
    ]  # fmt: skip
    assert {one.kind for one in hive.compactions()} == {"minor"}
    if fake.version < 4:
        with pytest.raises(UsageProblem, match="pool"):
            hive.request("s.t", pool="p")
    else:
        (taken,) = [one.id for one in hive.compactions(table="s.t")]
        assert [is_done for is_done, _ in hive.abort_compactions(taken).values()] == [True]


def test_a_table_is_asked_for_compacted_and_cleaned(fake: FakeHive, hive: Hive, tmp_path: Path) -> None:
    for number in range(1, 13):
        write_acid(tmp_path / f"t/delta_{number:07}_{number:07}_0000/bucket_00000", insert(number, 0, (number,)))
        fake.end(done := fake.begin())
        fake.write_ids.setdefault("s.t", []).append(done)
    (planned,) = [one for one in hive.initiate(dry_run=True) if one.kind]
    assert (planned.location, planned.entry, fake.queue) == (f"{tmp_path}/t", 0, [])
    (asked,) = [one for one in hive.initiate("s.t") if one.kind]
    assert [one.id for one in hive.compactions()] == [asked.entry]
    if fake.version < 4:
        with pytest.raises(UsageProblem, match="came with Hive 4"):
            hive.work()
        return
    (done,) = hive.work(jobs=1)
    assert (done.entry, done.result) == (asked.entry, "compacted")
    fake.set_entry(asked.entry, committed=int((fake.now - 60) * 1000))
    with pytest.raises(RefusedError, match="below 1h"):
        hive.clean(older_than=0)
    (looked,) = hive.clean(older_than="0s", dry_run=True)
    assert len(looked.names) == 12 and (tmp_path / "t/delta_0000001_0000001_0000").exists()
    (cleaned,) = hive.clean(older_than=0, unsafe_retention=True)
    assert (cleaned.entry, cleaned.marked, cleaned.names) == (asked.entry, True, looked.names)
    assert not list((tmp_path / "t").glob("delta_*"))


def test_another_initiator_is_a_conflict_and_no_cleaner_is(fake: FakeHive, hive: Hive) -> None:
    with LeaderLock(hive.metastore, "initiator") as other:
        other.take()
        with pytest.raises(ConflictError, match="another initiator"):
            hive.initiate("s.t")
        assert hive.initiate("s.t", dry_run=True) == []
        if fake.version > 3:
            assert hive.clean() == []


def test_the_servers_words_are_a_text_if_it_says_nothing(hive: Hive) -> None:
    assert [answer.message for _, answer in hive.request("s.t")] == [""]


def test_options_of_services_that_go_on_are_refused(hive: Hive) -> None:
    for name, value in (("every", 60), ("once", True), ("standby", True)):
        with pytest.raises(UsageProblem, match=name):
            hive.initiate(**{name: value})
    for name, value in (("every", 60), ("once", True)):
        with pytest.raises(UsageProblem, match=name):
            hive.clean(**{name: value})


def test_only_open_transactions_are_aborted(fake: FakeHive, hive: Hive) -> None:
    first, second = fake.begin(), fake.begin()
    fake.end(first)
    assert hive.abort_transactions(first, second) == [second]
    assert fake.txns[second].state == TxnState.ABORTED


def test_what_is_dead_is_ended_where_nobody_else_does(fake: FakeHive, hive: Hive) -> None:
    dead, alive = fake.begin(ago=90_000), fake.begin(ago=90_000, silent=1)
    found = hive.find_dead()
    assert [txn.id for txn in found.txns] == [dead]
    assert [txn.id for txn in hive.end_dead(found).txns] == [dead]
    assert fake.txns[alive].state == TxnState.OPEN


def test_what_a_server_ends_itself_is_left_to_it(fake: FakeHive, hive: Hive) -> None:
    fake.config["metastore.housekeeping.threads.on" if fake.version >= 4 else "hive.compactor.initiator.on"] = "true"
    fake.begin(ago=90_000)
    found = hive.find_dead()
    with pytest.raises(RefusedError, match="runs Hive's housekeeping itself"):
        hive.end_dead(found)
    assert len(hive.end_dead(found, force=True).txns) == 1


def test_without_a_metastore_or_its_package_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HIVE_CONF_DIR", "HIVE_HOME", "HADOOP_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageProblem, match="no metastore is known"):
        Hive()
    code = """if True:
        import sys, acidctl, acidctl.base.errors
        sys.modules["thrift"] = None
        try:
            acidctl.Hive
        except acidctl.base.errors.EnvironmentProblem as error:
            print(error.hint)
    """
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], env={"PYTHONPATH": PYTHONPATH}, capture_output=True, text=True, check=False
    )
    assert "pip install 'acidctl[metastore]'" in done.stdout, done.stderr
