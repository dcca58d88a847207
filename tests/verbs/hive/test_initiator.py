"""Which compactions are asked for, in which order, and what is left alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.command_line import Result
from support.files.acid_files import insert, write_acid
from support.metastore.fake_hive import FakeHive

from acidctl.base.errors import AcidctlError, ConflictError
from acidctl.compaction.request import CompactionRequest, request_for_table
from acidctl.metastore.client import Metastore
from acidctl.metastore.interface import LockType
from acidctl.metastore.settings import find_settings
from acidctl.metastore.txn.locks import LeaderLock
from acidctl.verbs.hive import initiator as initiator_module
from acidctl.verbs.hive.initiator import Initiated, Initiator
from acidctl.verbs.hive.options import InitiatorOptions
from acidctl.verbs.hive.service import Tables

Acidctl = Callable[..., Result]


def metastore_at(fake: FakeHive) -> Metastore:
    settings = find_settings({"uris": fake.address}, {})
    assert settings
    return Metastore(settings)


def wait_for(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


class House:
    """Tables of a metastore, each with as many deltas as it is told."""

    def __init__(self, fake: FakeHive, root: Path) -> None:
        self.fake, self.root = fake, root
        self.metastore = metastore_at(fake)
        self.outcomes: list[Initiated] = []
        self.errors: list[tuple[str, AcidctlError]] = []

    def table(self, name: str, deltas: int, *, rows: int = 1, **parameters: str) -> None:
        place = self.root / name
        place.mkdir(parents=True)
        self.fake.table("s", name, f"file:{place}", parameters=parameters)
        self.deltas(place, f"s.{name}", deltas, rows)

    def deltas(self, place: Path, table: str, count: int, rows: int = 1) -> None:
        ids = self.fake.write_ids.setdefault(table, [])
        for _ in range(count):
            txn = self.fake.begin()
            ids.append(txn)
            self.fake.end(txn)
            name = f"delta_{len(ids):07d}_{len(ids):07d}_0000"
            write_acid(place / name / "bucket_00000", *(insert(len(ids), row, (row,)) for row in range(rows)))

    def look(self, **asked: Any) -> dict[str, str]:
        """What became of each table in one look."""
        self.outcomes, self.errors = [], []
        tables = Tables(asked.pop("names", ()), asked.pop("exclude", ()))
        one = Initiator(
            self.metastore,
            InitiatorOptions(**asked),
            tables,
            self.outcomes.append,
            lambda name, error: self.errors.append((name, error)),
        )
        one.once()
        return {outcome.location.removeprefix(f"{self.root}/"): outcome.result.value for outcome in self.outcomes}

    def why(self) -> dict[str, list[str]]:
        return {
            one.location.removeprefix(f"{self.root}/"): [reason.code.value for reason in one.reasons]
            for one in self.outcomes
        }


@pytest.fixture(params=[3, 4], ids=["hive-3", "hive-4"])
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    with FakeHive(request.param) as fake:
        yield House(fake, tmp_path)


def test_what_is_due_is_asked_for_once(house: House) -> None:
    house.table("due", 11)
    house.table("few", 10)
    house.table("empty", 0)
    assert house.look() == {"due": "requested", "few": "nothing-to-do", "empty": "nothing-to-do"}
    (entry,) = house.fake.queue
    assert (entry.database, entry.table, entry.state, entry.type) == ("s", "due", "initiated", 2)
    assert house.look() == {"due": "skipped", "few": "nothing-to-do", "empty": "nothing-to-do"}
    assert house.why()["due"] == ["in-queue"]
    assert len(house.fake.queue) == 1
    assert house.fake.locks == []


def test_partitions_are_looked_at_one_by_one(house: House, tmp_path: Path) -> None:
    house.fake.table("s", "days", f"file:{tmp_path}/days", keys=["day"])
    for day, deltas in (("day=1", 11), ("day=2", 1)):
        (tmp_path / "days" / day).mkdir(parents=True)
        house.fake.partition("s", "days", day)
        house.deltas(tmp_path / "days" / day, "s.days", deltas)
    house.look()
    assert [(one.table, one.partition) for one in house.fake.queue] == [("days", "day=1")]


def test_owners_are_heard(house: House) -> None:
    house.table("off", 20, no_auto_compaction="true")
    house.table("many", 20, **{"compactorthreshold.hive.compactor.delta.num.threshold": "30"})
    house.table("early", 3, **{"compactorthreshold.hive.compactor.delta.num.threshold": "1"})
    house.table("pooled", 20, **{"hive.compactor.worker.pool": "night"})
    house.table("replica", 20)
    house.look()
    assert house.why()["off"] == ["auto-is-off"]
    assert house.why()["many"] == ["few-deltas"]
    pools = {one.table: one.pool for one in house.fake.queue}
    assert set(pools) == {"early", "pooled", "replica"}
    assert pools["pooled"] == ("night" if house.fake.version > 3 else None)
    house.fake.queue.clear()
    house.fake.databases["s"].parameters["repl.target.for"] = "other"
    assert set(house.look().values()) == {"skipped"}
    assert house.why()["replica"] == ["is-replica"]


def test_what_failed_again_and_again_is_left_alone_for_a_week(house: House) -> None:
    for name in ("failed", "once", "long_ago"):
        house.table(name, 20)
    for name, ages in (("failed", (60, 50)), ("once", (60,)), ("long_ago", (9 * 86400, 8 * 86400))):
        for ago in ages:
            house.fake.entry("s", name, "failed", ended=ago)
    assert house.look() == {"failed": "skipped", "once": "requested", "long_ago": "requested"}
    assert house.why()["failed"] == ["given-up"]


def test_those_come_first_whose_readers_gain_most(house: House) -> None:
    house.table("large", 20, rows=2000)
    house.table("small", 20, rows=1)
    house.table("middle", 20, rows=300)
    assert house.look(dry_run=True) == {"large": "planned", "small": "planned", "middle": "planned"}
    gains = [one.gain for one in house.outcomes]
    assert gains == sorted(gains, reverse=True)
    assert house.fake.queue == []
    assert house.look(most=1) == {"small": "requested", "middle": "postponed", "large": "postponed"}
    assert house.why()["large"] == ["many-deltas", "others-gain-more"]
    assert house.look(most=1) == {"small": "skipped", "middle": "requested", "large": "postponed"}


def test_a_bad_table_does_not_hold_up_the_others(house: House, tmp_path: Path) -> None:
    house.table("a_gone", 20)
    house.table("b_locked", 20)
    house.table("c_due", 20)
    house.fake.table("s", "d_elsewhere", "nowhere://x/y")
    for path in sorted((tmp_path / "a_gone").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (tmp_path / "a_gone").rmdir()
    (tmp_path / "b_locked" / "base_0000003").mkdir()  # which overtakes nothing: its file is no ORC
    found = house.look()
    assert found["c_due"] == "requested"
    assert house.errors


def test_a_bug_in_one_table_does_not_hold_up_the_others(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.table("a_odd", 20)
    house.table("b_due", 20)

    def wish(*asked: Any) -> CompactionRequest:
        if asked[2].table.name == "a_odd":
            raise ValueError("odd")
        return request_for_table(*asked)

    monkeypatch.setattr(initiator_module, "request_for_table", wish)
    assert house.look() == {"b_due": "requested"}
    ((location, error),) = house.errors
    assert location.endswith("a_odd")
    assert "unexpected ValueError: odd" in str(error)
    assert house.fake.locks == []


def test_only_one_is_at_work_in_a_warehouse(house: House) -> None:
    house.table("due", 20)
    with LeaderLock(metastore_at(house.fake), "initiator") as other:
        other.take()
        (lock,) = house.fake.locks
        assert (lock.database, lock.table, lock.type, lock.txn) == ("acidctl", "initiator", LockType.EXCLUSIVE, 0)
        with pytest.raises(ConflictError, match="another initiator"):
            house.look()
        assert house.look(dry_run=True) == {"due": "planned"}
        assert [one.lock for one in house.fake.locks] == [lock.lock]
    assert house.fake.locks == []
    assert house.look() == {"due": "requested"}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("kind", ["lost", "done", "failed"])
@pytest.mark.parametrize("method", ["lock", "compact2", "show_compact", "get_valid_write_ids", "unlock"])
def test_a_call_that_goes_wrong_leaves_no_lock_and_asks_for_nothing_twice(house: House, method: str, kind: str) -> None:
    house.table("due", 20)
    house.fake.fault(method, kind, 1)
    with suppress(AcidctlError):
        house.look()
    house.look()
    assert [one.table for one in house.fake.queue] == ["due"]
    assert house.fake.locks == []


def test_a_lock_that_is_lost_ends_the_round(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        house.table(f"t{number}", 20)
    check = LeaderLock.check

    def lose(lock: LeaderLock) -> None:
        if len(house.fake.queue) == 1:
            house.fake.locks.clear()
            lock.lost = ConflictError("it timed out", "", "")
        check(lock)

    monkeypatch.setattr(LeaderLock, "check", lose)
    with pytest.raises(ConflictError, match="lock of the initiator was lost"):
        house.look()
    assert len(house.fake.queue) == 1


def test_a_service_goes_on_after_a_round_that_failed(house: House) -> None:
    house.table("due", 20)
    house.fake.fault("show_compact", "failed", 1)
    errors: list[AcidctlError] = []
    asked = threading.Event()
    one = Initiator(
        house.metastore,
        InitiatorOptions(every=0.01),
        Tables(),
        lambda outcome: asked.set() if outcome.entry else None,
        lambda _, error: errors.append(error),
    )
    thread = threading.Thread(target=one.run)
    thread.start()
    assert asked.wait(20)
    one.stop()
    thread.join(10)
    assert len(errors) == 1
    assert not thread.is_alive()
    assert house.fake.locks == []
    assert one.counts.rounds >= 1
    assert not one.counts.failing


def test_one_in_standby_takes_over_when_the_other_ends_and_gives_way_when_it_lost_its_lock(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(initiator_module, "_STANDBY", 0.02)
    held: list[LeaderLock] = []
    take = LeaderLock.take

    def took(lock: LeaderLock) -> None:
        take(lock)
        held.append(lock)

    monkeypatch.setattr(LeaderLock, "take", took)
    house.table("due", 20)
    theirs = house.fake.lock("acidctl", "initiator", type=LockType.EXCLUSIVE, user="hive", host="other")
    waits: list[ConflictError] = []
    errors: list[AcidctlError] = []
    told = threading.Event()

    def on_standby(error: ConflictError) -> None:
        waits.append(error)
        told.set()

    options = InitiatorOptions(every=0.01, standby=True)
    one = Initiator(house.metastore, options, Tables(), lambda _: None, lambda _, error: errors.append(error))
    thread = threading.Thread(target=one.run, args=(on_standby,))
    thread.start()
    try:
        assert told.wait(20)
        assert (house.fake.queue, one.counts.leading, one.counts.failing) == ([], False, False)
        house.fake.fault("lock", "failed", 1)  # while it waits: it goes on
        wait_for(lambda: bool(errors))
        assert house.fake.queue == []
        house.fake.locks = [lock for lock in house.fake.locks if lock.lock != theirs]
        wait_for(lambda: one.counts.rounds > 0)
        assert one.counts.leading
        assert [entry.table for entry in house.fake.queue] == ["due"]
        told.clear()
        with house.fake._mutex:
            house.fake.locks.clear()
            house.fake.lock("acidctl", "initiator", type=LockType.EXCLUSIVE, user="hive", host="other")
        held[0].lost = ConflictError("it timed out", "", "")
        assert told.wait(20)
        assert not one.counts.leading
    finally:
        one.stop()
        thread.join(20)
    assert not thread.is_alive()
    assert [str(error.what) for error in waits] == [waits[0].what] * 2
    assert "hive@other holds the lock" in waits[0].why
    assert len(errors) == 1
    assert {lock.host for lock in house.fake.locks} == {"other"}


def test_one_look_is_not_in_standby(house: House, acidctl: Acidctl) -> None:
    for option in ("--once", "--dry-run"):
        done = acidctl("hive", "initiator", "--metastore", house.fake.address, "--standby", option)
        assert (done.status, "--standby" in done.err, option in done.err) == (2, True, True)


def test_the_command_says_what_it_asks_for(house: House, acidctl: Acidctl) -> None:
    house.table("due", 20)
    house.table("few", 1)
    line = ("hive", "initiator", "--metastore", house.fake.address)
    shown = acidctl(*line, "--dry-run")
    assert "major planned: 20 deltas, limit 10, and no base" in shown.out
    assert "2 locations checked: 1 nothing to do, 1 planned" in shown.err
    done = acidctl(*line, "--once", "-o", "jsonl", "s.*").lines()
    assert [(one["result"], one.get("kind")) for one in done] == [("nothing-to-do", None), ("requested", "major")]
    assert done[1]["entry"] == house.fake.queue[0].id
    assert acidctl(*line, "--once", "no name").status == 2
    house.fake.table("s", "gone", f"file:{house.root}/gone")
    failed = acidctl(*line, "--dry-run", "-o", "jsonl")
    assert failed.status == 3
    (said,) = (one for one in failed.lines() if one["result"] == "failed")
    assert (said["error"], "gone" in said["reason"]) == ("not-found", True)


@given(st.lists(st.integers(0, 25), max_size=6), st.integers(1, 4))
def test_nothing_starves(gains: list[int], most: int) -> None:
    """Of those that are due as many are asked for as may be, and none that gains less before one that gains more."""
    due = [(Initiated(location=str(i), result="planned", gain=float(gain)), None) for i, gain in enumerate(gains)]  # type: ignore[arg-type]
    due.sort(key=lambda pair: -pair[0].gain)
    initiator = Initiator(None, InitiatorOptions(most=most), Tables(), lambda _: None, lambda *_: None)  # type: ignore[arg-type]
    found = list(initiator._ask(due, None))  # type: ignore[arg-type]
    chosen = [one.gain for one in found if one.result == "planned"]
    assert chosen == sorted(map(float, gains), reverse=True)[:most]
    assert len(found) == len(gains)
