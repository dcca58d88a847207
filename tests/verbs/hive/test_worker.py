"""A worker for Hive's queue: what it takes, what becomes of it, and what is left when it ends."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.command_line import Result
from support.files.acid_files import insert, write_acid
from support.metastore.fake_hive import FakeHive
from support.paths import PYTHONPATH

from acidctl.base.deadline import Deadline
from acidctl.base.errors import (
    AccessError,
    AcidctlError,
    BadDataError,
    EnvironmentProblem,
    MemoryProblem,
    VerifyError,
    no_time_zones,
    unexpected,
)
from acidctl.compaction.local_engine import LocalEngine
from acidctl.hive.queue_entries import Claims, free_dead, is_dead, worker_id
from acidctl.location.change.own_files import Owner
from acidctl.metastore.client import Metastore
from acidctl.metastore.interface import CompactionType, LockType, TxnState
from acidctl.metastore.queue import AFTER_DEATH
from acidctl.metastore.settings import find_settings
from acidctl.storage.os_errors import from_os_error
from acidctl.verbs.hive.options import WorkerOptions
from acidctl.verbs.hive.worker import Worked, Worker

Acidctl = Callable[..., Result]


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeHive]:
    with FakeHive(4) as one:
        for name in ("t", "u"):
            table(one, tmp_path / name, name)
        yield one


def table(fake: FakeHive, location: Path, name: str, **storage: Any) -> None:
    """``s.<name>`` with two deltas that are committed."""
    fake.table("s", name, f"file:{location}", **storage)
    for number in (1, 2):
        path = location / f"delta_{number:07d}_{number:07d}_0000" / "bucket_00000"
        write_acid(path, insert(number, 0, (number,)))
        txn = fake.begin()
        fake.write_ids.setdefault(f"s.{name}", []).append(txn)
        fake.end(txn)


def client(fake: FakeHive) -> Metastore:
    settings = find_settings({"uris": fake.address}, {})
    assert settings
    return Metastore(settings)


def work(fake: FakeHive, **more: Any) -> tuple[list[Worked], list[AcidctlError]]:
    """What a worker that ends with the queue does."""
    done: list[Worked] = []
    errors: list[AcidctlError] = []
    job = more.pop("job", "")
    engines = more.pop("engines", lambda until, on_progress: LocalEngine(1, until, on_progress))
    worker = Worker(client(fake), WorkerOptions(once=True, **more), engines, done.append, errors.append, job=job)
    worker.free_dead()
    worker.run()
    return done, errors


def states(fake: FakeHive) -> list[tuple[int | None, str]]:
    return [(one.id, one.state) for one in fake.queue]


def require_ended(fake: FakeHive) -> None:
    assert not fake.locks
    assert not [txn for txn in fake.txns.values() if txn.state == TxnState.OPEN]
    assert not [one for one in fake.queue if one.state == "working"]


def rows(fake: FakeHive, acidctl: Acidctl, name: str) -> list[dict[str, Any]]:
    found = acidctl("cat", "--metastore", fake.address, f"hive:s.{name}")
    assert found.status == 0, found.err
    return sorted(found.lines(), key=str)


# --- what is taken, and what becomes of it ----------------------------------------------------------------------------


def test_it_does_what_waits_and_ends(fake: FakeHive, tmp_path: Path, acidctl: Acidctl) -> None:
    before = rows(fake, acidctl, "t")
    fake.entry("s", "t", "initiated", type=int(CompactionType.MAJOR))
    fake.entry("s", "u", "initiated", type=int(CompactionType.MINOR))
    fake.entry("s", "u", "initiated", pool="others")
    done, errors = work(fake)
    assert (errors, [(one.entry, one.kind, one.result) for one in done]) == (
        [],
        [(1, "major", "compacted"), (2, "minor", "compacted")],
    )
    assert states(fake) == [(1, "ready for cleaning"), (2, "ready for cleaning"), (3, "initiated")]
    assert (tmp_path / f"t/base_0000002_v{fake.queue[0].txn:07d}").exists()
    assert rows(fake, acidctl, "t") == before
    require_ended(fake)


def test_it_takes_entries_of_its_pool(fake: FakeHive) -> None:
    fake.entry("s", "t", "initiated")
    fake.entry("s", "u", "initiated", pool="mine")
    work(fake, pool="mine", job="app-7")
    assert states(fake) == [(1, "initiated"), (2, "ready for cleaning")]
    assert fake.queue[1].job == "app-7"


def test_one_that_is_not_due_is_refused_in_hives_words(fake: FakeHive) -> None:
    fake.entry("s", "t", "initiated")
    work(fake)
    fake.set_entry(1, state="succeeded")
    for name in ("delta_0000001_0000001_0000", "delta_0000002_0000002_0000"):
        for path in sorted(Path(fake.tables["s", "t"].storage.location.removeprefix("file:"), name).iterdir()):
            path.unlink()
        path.parent.rmdir()
    fake.entry("s", "t", "initiated")
    ((one,), _) = work(fake)
    assert one.result == "nothing-to-do"
    assert fake.queue[1].state == "refused"
    assert "thresholds" in (fake.queue[1].error or "")
    require_ended(fake)


def test_one_that_is_not_due_leaves_no_transaction_where_its_commit_fails(fake: FakeHive) -> None:
    fake.entry("s", "t", "initiated")
    work(fake)
    for name in ("delta_0000001_0000001_0000", "delta_0000002_0000002_0000"):
        shutil.rmtree(Path(fake.tables["s", "t"].storage.location.removeprefix("file:"), name))
    fake.entry("s", "t", "initiated")
    fake.fault("commit_txn", "failed", 1)
    ((one,), _) = work(fake)
    assert (one.result, fake.queue[1].state) == ("failed", "refused")
    require_ended(fake)


def test_where_only_old_files_are_left_they_are_handed_to_the_cleaner(fake: FakeHive) -> None:
    fake.entry("s", "t", "initiated")
    work(fake)
    fake.set_entry(1, state="failed")
    fake.entry("s", "t", "initiated")
    ((one,), _) = work(fake)
    assert one.result == "nothing-to-do"
    assert fake.queue[1].state == "ready for cleaning"
    assert fake.queue[1].highest_write_id == 2
    assert fake.queue[1].committed
    require_ended(fake)


@pytest.mark.parametrize(
    ("name", "partition", "kind", "words"),
    [
        ("gone", None, CompactionType.MAJOR, "gone"),
        ("t", "day=1", CompactionType.MAJOR, "t"),
        ("*", None, CompactionType.MAJOR, "not the name of a table"),
        ("sorted", None, CompactionType.MAJOR, "sorted"),
    ],
)
def test_what_cannot_be_compacted_is_refused_and_the_rest_goes_on(
    fake: FakeHive, tmp_path: Path, name: str, partition: str | None, kind: CompactionType, words: str
) -> None:
    from acidctl.metastore.interface import Order

    table(fake, tmp_path / "sorted", "sorted", sort_columns=(Order("id", 1),))
    fake.entry("s", name, "initiated", partition, type=int(kind))
    fake.entry("s", "u", "initiated")
    done, _ = work(fake)
    assert [one.result for one in done] in (["refused", "compacted"], ["failed", "compacted"])
    assert fake.queue[0].state in ("refused", "failed")
    assert words in (fake.queue[0].error or "")
    assert fake.queue[1].state == "ready for cleaning"
    require_ended(fake)


def test_a_rebalance_is_done_under_the_lock_that_hive_takes(fake: FakeHive, tmp_path: Path, acidctl: Acidctl) -> None:
    before = rows(fake, acidctl, "t")
    locks: list[Any] = []
    fake.before["commit_txn"] = lambda: locks.extend(fake.locks)
    fake.more_of_entry[fake.entry("s", "t", "initiated", type=int(CompactionType.REBALANCE))] = {"buckets": 2}
    ((one,), errors) = work(fake)
    assert (errors, one.kind, one.result) == ([], "rebalance", "compacted")
    assert {lock.type for lock in locks} == {LockType.EXCL_WRITE}
    (base,) = (tmp_path / "t").glob("base_*")
    assert base.name == f"base_0000002_v{fake.queue[0].txn:07d}"
    assert {file.name for file in base.glob("bucket*")} == {"bucket_00000", "bucket_00001"}
    assert rows(fake, acidctl, "t") == before
    require_ended(fake)


def test_a_rebalance_that_sorts_is_left_to_hives_workers(fake: FakeHive, tmp_path: Path) -> None:
    fake.more_of_entry[fake.entry("s", "t", "initiated", type=int(CompactionType.REBALANCE))] = {
        "order_by": "order by a"
    }
    ((one,), _) = work(fake)
    assert (one.result, fake.queue[0].state) == ("refused", "refused")
    assert "order by a" in (fake.queue[0].error or "")
    assert not list((tmp_path / "t").glob("base_*"))
    require_ended(fake)


@pytest.mark.parametrize("entry", [None, "day=1"])
def test_an_entry_is_of_what_it_names(fake: FakeHive, tmp_path: Path, entry: str | None) -> None:
    """One of a table with partitions, or of a part of a partition's name, is not of the only partition there is."""
    keys, name = (["day"], "day=1") if entry is None else (["day", "hour"], "day=1/hour=2")
    table(fake, tmp_path / f"p/{name}", "p")
    storage = f"file:{tmp_path}/p"
    fake.table("s", "p", storage, keys)
    fake.partition("s", "p", name)
    fake.entry("s", "p", "initiated", entry)
    ((one,), _) = work(fake)
    assert (one.result, fake.queue[0].state) == ("refused", "refused")
    assert not [path for path in (tmp_path / f"p/{name}").iterdir() if path.name.startswith("base")]
    require_ended(fake)


@pytest.mark.parametrize("kind", ["EXTERNAL_TABLE", "VIRTUAL_VIEW", "MANAGED_TABLE"])
def test_a_table_that_is_not_transactional_any_more_has_not_failed(fake: FakeHive, tmp_path: Path, kind: str) -> None:
    """Two failures, and Hive leaves a table alone for good."""
    fake.table("s", "x", f"file:{tmp_path}/x", parameters={"transactional": "false"})
    fake.tables["s", "x"] = replace(fake.tables["s", "x"], table_type=kind)
    fake.entry("s", "x", "initiated")
    fake.entry("s", "u", "initiated")
    done, _ = work(fake)
    assert [one.result for one in done] == ["refused", "compacted"]
    assert fake.queue[0].state == "refused"
    require_ended(fake)


def _drop_partition(fake: FakeHive, place: Path) -> None:
    del fake.partitions["s", "p"]["day=1"]
    shutil.rmtree(place / "day=1")


def _drop_table(fake: FakeHive, place: Path) -> None:
    del fake.tables["s", "p"]
    shutil.rmtree(place)


def _move_partition(fake: FakeHive, place: Path) -> None:
    part = fake.partitions["s", "p"]["day=1"]
    (place / "day=1").rename(place / "elsewhere")
    fake.partitions["s", "p"]["day=1"] = replace(
        part, storage=replace(part.storage, location=f"file:{place}/elsewhere")
    )


def _rename_table(fake: FakeHive, place: Path) -> None:
    fake.tables["s", "q"] = fake.tables.pop(("s", "p"))
    place.rename(place.with_name("q"))


GOING = [_drop_partition, _drop_table, _move_partition, _rename_table]


@pytest.mark.parametrize("go", GOING)
@pytest.mark.parametrize("moment", ["lock", "update_compactor_state", "work"])
def test_what_is_dropped_or_moved_meanwhile_has_not_failed(
    fake: FakeHive, tmp_path: Path, go: Callable[[FakeHive, Path], None], moment: str
) -> None:
    """Two failures, and Hive leaves a table alone: its own workers mark such an entry as refused."""
    place = tmp_path / "p"
    table(fake, place / "day=1", "p")
    fake.table("s", "p", f"file:{place}", ["day"])
    fake.partition("s", "p", "day=1")
    fake.entry("s", "p", "initiated", "day=1")
    fake.entry("s", "u", "initiated")
    gone: list[None] = []

    def leave() -> None:
        if not gone:
            gone.append(go(fake, place))

    def engines(until: Any, on_progress: Any) -> LocalEngine:
        leave()
        return LocalEngine(1, until, on_progress)

    if moment != "work":
        fake.before[moment] = leave
    done, _ = work(fake, engines=engines)
    assert [one.result for one in done] == ["refused", "compacted"]
    assert fake.queue[0].state == "refused"
    require_ended(fake)


def test_a_lock_that_fails_since_the_table_was_dropped_refuses_the_entry(fake: FakeHive, tmp_path: Path) -> None:
    fake.entry("s", "t", "initiated")
    fake.before["open_txns"] = lambda: fake.tables.pop(("s", "t")) and None
    fake.fault("lock", "refused")
    ((one,), _) = work(fake)
    assert (one.result, fake.queue[0].state) == ("refused", "refused")
    assert "dropped or moved" in (fake.queue[0].error or "")
    require_ended(fake)


def test_what_is_missing_though_the_metastore_has_it_has_failed(fake: FakeHive, tmp_path: Path) -> None:
    fake.entry("s", "t", "initiated")
    fake.before["lock"] = lambda: shutil.rmtree(tmp_path / "t")
    ((one,), _) = work(fake)
    assert (one.result, fake.queue[0].state) == ("failed", "failed")
    require_ended(fake)


def test_a_bug_in_one_entry_does_not_end_the_others(fake: FakeHive) -> None:
    fake.entry("s", "t", "initiated")
    fake.entry("s", "u", "initiated")
    made = 0

    def engines(until: Any, on_progress: Any) -> LocalEngine:
        nonlocal made
        made += 1
        if made == 1:
            raise ZeroDivisionError("a bug")
        return LocalEngine(1, until, on_progress)

    done, _ = work(fake, engines=engines)
    assert [one.result for one in done] == ["failed", "compacted"]
    assert fake.queue[0].state == "failed"
    require_ended(fake)


def test_slots_work_side_by_side(fake: FakeHive, tmp_path: Path) -> None:
    for number in range(6):
        table(fake, tmp_path / f"many{number}", f"many{number}")
        fake.entry("s", f"many{number}", "initiated")
    done, errors = work(fake, max_parallel=3)
    assert sorted(one.entry for one in done) == list(range(1, 7))
    assert {one.result for one in done} == {"compacted"}
    assert not errors
    assert len({one.worker for one in fake.queue} | {one.txn for one in fake.queue}) >= 6
    require_ended(fake)


def test_a_transaction_that_is_lost_ends_its_entry(fake: FakeHive) -> None:
    fake.entry("s", "t", "initiated")

    def lost() -> None:
        (ours,) = [txn for txn in fake.txns.values() if txn.state == TxnState.OPEN]
        fake.end(ours.id, commit=False)

    fake.before["heartbeat"] = lost
    ((one,), _) = work(fake)
    assert one.result == "failed"
    assert fake.queue[0].state == "failed"
    require_ended(fake)


def test_hive_3_has_no_queue_for_others(tmp_path: Path, acidctl: Acidctl) -> None:
    with FakeHive(3) as old:
        found = acidctl("hive", "worker", "--once", "--engine", "local", "--metastore", old.address)
    assert found.status == 2
    assert "Hive 4" in found.err
    assert "--auto" in found.err


def test_a_metastore_that_fails_is_told_once(fake: FakeHive) -> None:
    fake.entry("s", "t", "initiated")
    fake.fault("find_next_compact2", "failed", 1)
    done, errors = work(fake)
    assert (done, len(errors)) == ([], 1)


def test_an_entry_whose_claim_was_not_answered_is_given_back(fake: FakeHive) -> None:
    fake.entry("s", "t", "initiated", pool="mine")
    fake.fault("find_next_compact2", "done", 1)
    done, errors = work(fake, pool="mine")
    assert (done, len(errors)) == ([], 1)
    assert [(one.state, one.pool) for one in fake.queue] == [("refused", "mine"), ("initiated", "mine")]


@pytest.mark.parametrize("once", [True, False])
def test_an_entry_that_is_taken_after_the_line_broke_is_given_back(fake: FakeHive, once: bool) -> None:
    fake.entry("s", "t", "initiated", pool="mine")
    fake.fault("find_next_compact2", "late")
    done: list[Worked] = []
    asked = WorkerOptions(once=once, pool="mine")
    worker = Worker(
        client(fake), asked, lambda *_: LocalEngine(1), lambda one: (done.append(one), worker.stop()), print
    )
    worker.run()
    assert [one.result for one in done] == ([] if once else ["compacted"])
    assert [one.state for one in fake.queue] == ["refused", "initiated" if once else "ready for cleaning"]
    require_ended(fake)


def test_an_entry_whose_end_was_not_heard_fails_later(fake: FakeHive) -> None:
    """The metastore was away for as long as an entry was given up."""
    fake.entry("s", "t", "initiated")
    fake.fault("update_compactor_state", "failed", 1)
    fake.fault("mark_failed", "lost", 2)
    ((one,), errors) = work(fake)
    assert (one.result, errors) == ("failed", [])
    assert states(fake) == [(1, "failed")]
    require_ended(fake)


def test_one_entry_taken_twice_ends_no_other(fake: FakeHive) -> None:
    """An initiator takes an entry back while it is worked on, and another slot takes it."""
    fake.entry("s", "t", "initiated")
    both = threading.Barrier(2)
    done: list[Worked] = []

    def engines(*_: Any) -> LocalEngine:
        if not done and not both.n_waiting:
            fake.set_entry(1, state="initiated", worker=None)
        both.wait(30)
        return LocalEngine(1)

    def ended(one: Worked) -> None:
        done.append(one)
        if len(done) == 2:
            worker.stop()

    worker = Worker(client(fake), WorkerOptions(max_parallel=2), engines, ended, lambda _: None)
    worker.run()
    results = sorted(one.result.value for one in done)
    assert results in (["compacted", "failed"], ["failed", "failed"])  # a location is changed by one at a time
    assert states(fake) == [(1, "ready for cleaning" if "compacted" in results else "failed")]
    require_ended(fake)


def test_what_is_taken_when_it_was_told_to_stop_is_given_back(fake: FakeHive) -> None:
    fake.entry("s", "t", "initiated")
    done: list[Worked] = []
    worker = Worker(client(fake), WorkerOptions(), lambda *_: LocalEngine(1), done.append, lambda _: None)
    fake.before["find_next_compact2"] = lambda: worker.stop(now=True)
    worker.run()
    assert done == []
    assert states(fake) == [(1, "refused"), (2, "initiated")]


def test_what_is_given_back_keeps_how_it_is_to_be_done(fake: FakeHive) -> None:
    fake.entry("s", "t", "initiated")
    fake.more_of_entry[1] = {"properties": "1:3:a:b3:x,y", "order_by": "order by a", "buckets": 4}
    worker = Worker(client(fake), WorkerOptions(), lambda *_: LocalEngine(1), lambda _: None, lambda _: None)
    fake.before["find_next_compact2"] = lambda: worker.stop(now=True)
    worker.run()
    (wish,) = fake.wishes
    assert (wish.properties, wish.order_by, wish.buckets) == ({"a:b": "x,y"}, "order by a", 4)


def test_a_view_in_the_queue_is_refused(fake: FakeHive) -> None:
    fake.table("s", "v", "")
    fake.tables["s", "v"] = replace(fake.tables["s", "v"], table_type="VIRTUAL_VIEW")
    fake.entry("s", "v", "initiated")
    ((one,), _) = work(fake)
    assert (one.result, fake.queue[0].state) == ("refused", "refused")
    require_ended(fake)


def test_why_it_failed_is_said_whatever_names_are_there(fake: FakeHive) -> None:
    fake.entry("s", "t", "initiated")

    def engines(*_: Any) -> LocalEngine:
        raise AcidctlError("cannot read a\udcff\x00\x1bb", "", "")

    ((one,), _) = work(fake, engines=engines)
    assert (one.result, fake.queue[0].state) == ("failed", "failed")
    assert fake.queue[0].error == "cannot read a\\xff\\x00\\x1bb"
    require_ended(fake)


@pytest.mark.usefixtures("tasks_run_here")
def test_a_task_in_this_process_ends_when_it_is_told_to(fake: FakeHive) -> None:
    fake.entry("s", "t", "initiated")
    done: list[Worked] = []

    def engines(ends: Deadline, on_progress: Callable[[Any, int], None]) -> LocalEngine:
        def told(task: Any, count: int) -> None:
            worker.stop(now=True)
            on_progress(task, count)

        return LocalEngine(1, ends, told)

    worker = Worker(client(fake), WorkerOptions(), engines, done.append, lambda _: None)
    worker.run()
    assert [one.result for one in done] == ["postponed"]
    assert states(fake) == [(1, "refused"), (2, "initiated")]
    require_ended(fake)


def test_what_is_refused_later_has_not_failed(fake: FakeHive, tmp_path: Path) -> None:
    from acidctl.metastore.interface import Order

    table(fake, tmp_path / "sorted", "sorted", sort_columns=(Order("id", 1),))
    fake.entry("s", "sorted", "initiated")
    ((one,), _) = work(fake)
    assert (one.result, fake.queue[0].state) == ("refused", "refused")


# --- the dead ---------------------------------------------------------------------------------------------------------


def test_names_tell_whether_their_process_is_dead() -> None:
    mine = worker_id()
    assert mine.startswith(f"acidctl-{socket.gethostname()}-{os.getpid()}.")
    assert not is_dead(mine)
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert is_dead(f"acidctl-{socket.gethostname()}-{ended.pid}.77-1")
    assert is_dead(f"acidctl-{socket.gethostname()}-{os.getpid()}.{Owner.this().started + 1}-1")
    assert not is_dead(f"acidctl-elsewhere-{ended.pid}.77-1")
    assert not is_dead(f"{socket.gethostname()}-12")
    for pid in ("0", str(1 << 31), "9" * 30, "9" * 5000):
        assert not is_dead(f"acidctl-{socket.gethostname()}-{pid}.77-1")


def test_entries_of_the_dead_are_given_back_and_done(fake: FakeHive) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    txn = fake.begin(type=3)
    dead = fake.entry(
        "s", "t", "working", type=int(CompactionType.MINOR), txn=txn, started=time.time(),
        worker=f"acidctl-{socket.gethostname()}-{ended.pid}.77-1",
    )  # fmt: skip
    others = fake.entry("s", "u", "working", worker="acidctl-elsewhere-12.77-1")
    ((one,), _) = work(fake)
    assert (one.entry, one.kind, one.result) == (others + 1, "minor", "compacted")
    assert states(fake) == [(dead, "refused"), (others, "working"), (others + 1, "ready for cleaning")]
    assert fake.txns[txn].state == TxnState.ABORTED


def dead_worker() -> str:
    ended = subprocess.Popen(["true"])
    ended.wait()
    return f"acidctl-{socket.gethostname()}-{ended.pid}.77-1"


def test_what_a_dead_compact_left_is_not_asked_for_again(fake: FakeHive) -> None:
    """Nobody looks into its pool; it would be in everybody's way there."""
    fake.entry("s", "t", "working", pool=f"acidctl-{uuid.uuid4()}", worker=dead_worker())
    assert work(fake) == ([], [])
    assert states(fake) == [(1, "refused")]


def test_what_another_worker_has_by_now_is_not_taken_from_it(fake: FakeHive) -> None:
    first = fake.entry("s", "t", "working", worker=dead_worker())
    second = fake.entry("s", "u", "working", worker=dead_worker())
    fake.before["mark_refused"] = lambda: fake.set_entry(second, worker="host9-12")
    work(fake)
    assert states(fake)[:2] == [(first, "refused"), (second, "working")]


def test_what_was_handed_on_by_a_transaction_that_was_aborted_is_done_again(fake: FakeHive, acidctl: Acidctl) -> None:
    """Killed between its last two words: it is not worked on any more, and nothing was committed."""
    before = rows(fake, acidctl, "t")
    aborted, running = fake.begin(type=3), fake.begin(type=3)
    fake.end(aborted, commit=False)
    left = fake.entry("s", "t", "ready for cleaning", pool="mine", txn=aborted)
    others = fake.entry("s", "u", "ready for cleaning", pool="mine", txn=running)
    ((one,), _) = work(fake, pool="mine")
    assert one.result == "compacted"
    assert states(fake) == [(left, "refused"), (others, "ready for cleaning"), (others + 1, "ready for cleaning")]
    assert f"transaction {aborted} was aborted" in (fake.queue[0].error or "")
    assert rows(fake, acidctl, "t") == before


def free_the_dead(fake: FakeHive) -> None:
    Worker(client(fake), WorkerOptions(), lambda *_: None, print, print).free_dead()  # type: ignore[arg-type]


def test_an_entry_that_was_being_read_when_its_worker_died_has_failed(fake: FakeHive) -> None:
    """The entry would kill the next worker as well."""
    first = fake.entry("s", "t", "working", worker=dead_worker(), txn=fake.begin(type=3), started=0)
    assert work(fake) == ([], [])
    assert states(fake) == [(first, "failed")]
    assert "COMPACT 'major'" in (fake.queue[0].error or "")


@pytest.mark.parametrize("innocent", ["had no transaction", "machine was restarted"])
def test_an_entry_of_which_no_worker_can_have_died_is_asked_for_once_more(fake: FakeHive, innocent: str) -> None:
    def taken() -> dict[str, Any]:
        txn, began = (0, time.time()) if innocent == "had no transaction" else (fake.begin(type=3), 1.0)
        return {"worker": dead_worker(), "txn": txn, "started": int(began * 1000)}

    first = fake.entry("s", "t", "working")
    fake.set_entry(first, **taken())
    free_the_dead(fake)
    assert states(fake) == [(first, "refused"), (first + 1, "initiated")]
    fake.set_entry(first + 1, state="working", **taken())
    assert work(fake) == ([], [])
    assert states(fake) == [(first, "refused"), (first + 1, "failed")]


@pytest.mark.parametrize("again", [False, True])
def test_a_dead_one_of_a_kind_that_nobody_knows_is_put_back(fake: FakeHive, again: bool) -> None:
    initiator = f"here-{AFTER_DEATH}" if again else "hive"
    fake.entry("s", "t", "working", type=99, worker=dead_worker(), initiator=initiator)
    assert work(fake) == ([], [])
    assert [(one.state, one.type) for one in fake.queue] == [("refused", 99), ("initiated", 99)]
    assert "COMPACT" not in (fake.queue[0].error or "")


# --- entries of somebody else -----------------------------------------------------------------------------------------


def iceberg(fake: FakeHive, location: Path, name: str = "ice") -> None:
    fake.table("s", name, f"file:{location}")
    fake.tables["s", name] = replace(fake.tables["s", name], parameters={"table_type": "ICEBERG", "EXTERNAL": "TRUE"})


@pytest.mark.parametrize("kind", [1, 2, 4, 5, 6, 77])
def test_entries_of_others_are_left_alone(fake: FakeHive, tmp_path: Path, kind: int) -> None:
    iceberg(fake, tmp_path / "ice")
    ours = fake.entry("s", "t", "initiated")
    theirs = fake.entry("s", "ice" if kind < 3 else "u", "initiated", type=kind)
    ((one,), errors) = work(fake)
    assert (errors, one.entry, one.result) == ([], ours, "compacted")
    assert states(fake) == [(ours, "ready for cleaning"), (theirs, "initiated")]
    assert work(fake) == ([], [])
    require_ended(fake)


def test_one_that_is_in_the_way_is_put_back_whole(fake: FakeHive, tmp_path: Path) -> None:
    iceberg(fake, tmp_path / "ice")
    theirs = fake.entry("s", "ice", "initiated", "p=1", type=5, pool="mine", run_as="ada")
    fake.more_of_entry[theirs] = {"properties": "1:1:k1:v", "order_by": "order by a", "buckets": 3}
    ours = fake.entry("s", "t", "initiated", pool="mine")
    done, _ = work(fake, pool="mine")
    assert [(one.entry, one.result, one.kind) for one in done] == [
        (theirs, "refused", "smart-optimize"),
        (ours, "compacted", "major"),
    ]
    assert states(fake) == [(theirs, "refused"), (ours, "ready for cleaning"), (ours + 1, "initiated")]
    again = fake.wishes[-1]
    assert (again.table, again.partition, again.type, again.pool, again.run_as) == ("ice", "p=1", 5, "mine", "ada")
    assert (again.properties, again.buckets, again.order_by) == ({"k": "v"}, 3, "order by a")


def test_one_that_is_claimed_by_a_race_is_put_back(fake: FakeHive, tmp_path: Path) -> None:
    iceberg(fake, tmp_path / "ice")
    ours = fake.entry("s", "t", "initiated")
    theirs = fake.entry("s", "ice", "initiated")
    fake.before["find_next_compact2"] = lambda: fake.set_entry(ours, state="working", worker="host9-12")
    ((one,), errors) = work(fake)
    assert (errors, one.entry, one.result) == ([], theirs, "refused")
    assert states(fake) == [(ours, "working"), (theirs, "refused"), (theirs + 1, "initiated")]


@pytest.mark.parametrize("again", [False, True], ids=["hive", "after-death"])
def test_one_of_iceberg_whose_worker_died_has_not_failed(fake: FakeHive, tmp_path: Path, again: bool) -> None:
    """Also if its worker died twice: two failures, and Hive leaves the table alone."""
    iceberg(fake, tmp_path / "ice")
    initiator = f"here-{AFTER_DEATH}" if again else "hive"
    fake.entry("s", "ice", "working", worker=dead_worker(), initiator=initiator, run_as="ada", pool="mine")
    free_the_dead(fake)
    assert states(fake) == [(1, "refused"), (2, "initiated")]
    assert (fake.wishes[-1].run_as, fake.wishes[-1].pool) == ("ada", "mine")


@pytest.mark.parametrize("name", ["ice", "t"])
def test_one_whose_worker_died_between_its_end_and_the_new_request_is_requested(
    fake: FakeHive, tmp_path: Path, name: str
) -> None:
    iceberg(fake, tmp_path / "ice")
    fake.entry("s", name, "working", worker=dead_worker(), pool="mine")
    fake.fault("compact2", "lost", 4)
    free_the_dead(fake)
    assert states(fake) == [(1, "refused")]
    for _ in range(2):  # the second time, it is there already
        free_the_dead(fake)
        assert states(fake) == [(1, "refused"), (2, "initiated")]
    fake.set_entry(2, state="succeeded")
    free_the_dead(fake)
    assert len(fake.queue) == 2


@pytest.mark.parametrize("method", ["mark_refused", "compact2"])
def test_one_whose_put_back_failed_is_put_back_later(fake: FakeHive, tmp_path: Path, method: str) -> None:
    iceberg(fake, tmp_path / "ice")
    fake.entry("s", "ice", "initiated")
    fake.entry("s", "t", "initiated")
    fake.fault(method, "lost", 2)
    done, errors = work(fake)
    assert ([one.result for one in done], len(errors)) == (["compacted"], 1)
    assert [(one.table, one.state) for one in fake.queue] == [
        ("ice", "refused"),
        ("t", "ready for cleaning"),
        ("ice", "initiated"),
    ]
    require_ended(fake)


def test_entries_of_a_worker_that_dies_beside_another_are_freed(
    fake: FakeHive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not only by the next one that starts."""
    monkeypatch.setattr("acidctl.verbs.hive.worker._LOOK_FOR_DEAD", 0.1)
    iceberg(fake, tmp_path / "ice")
    worker = Worker(client(fake), WorkerOptions(), lambda *_: LocalEngine(1), lambda _: None, lambda _: None)

    def free_then_stop() -> list[int]:
        freed = free_dead(worker._metastore)
        if freed:
            worker.stop()
        return freed

    worker.free_dead = free_then_stop  # type: ignore[method-assign]
    fake.before["find_next_compact2"] = lambda: fake.entry("s", "ice", "working", worker=dead_worker()) and None
    worker.run()
    assert states(fake) == [(1, "refused"), (2, "initiated")]


def test_one_at_the_head_has_a_minute_for_its_own_worker(fake: FakeHive, tmp_path: Path) -> None:
    iceberg(fake, tmp_path / "ice")
    fake.entry("s", "ice", "initiated")
    ours = fake.entry("s", "t", "initiated")
    metastore, strangers = client(fake), Claims("", 0.2)
    assert strangers.claim(metastore, "w") is None
    time.sleep(0.3)
    first = strangers.claim(metastore, "w")
    assert first
    assert "ICEBERG" in strangers.put_back(metastore, first)
    second = strangers.claim(metastore, "w")
    assert second
    assert (second.id, strangers.put_back(metastore, second)) == (ours, "")
    time.sleep(0.3)
    assert strangers.claim(metastore, "w") is None  # nothing of ours waits behind it


def test_a_transaction_says_what_it_may_read(fake: FakeHive) -> None:
    fake.entry("s", "t", "initiated")
    work(fake)
    assert list(fake.min_history.values()) == [{"s.t": 1}]


# --- as a process -----------------------------------------------------------------------------------------------------


class Process:
    """``acidctl hive worker`` of its own."""

    def __init__(self, fake: FakeHive, *options: str) -> None:
        line = [sys.executable, "-m", "acidctl", "hive", "worker", "--engine", "local", "-o", "jsonl", *options]
        self.running = subprocess.Popen(
            [*line, "--metastore", fake.address],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": PYTHONPATH},
        )

    def end(self, how: int = signal.SIGTERM) -> tuple[list[dict[str, Any]], str]:
        self.running.send_signal(how)
        out, err = self.running.communicate(timeout=60)
        return [json.loads(line) for line in out.splitlines()], err


def until(condition: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_it_waits_serves_its_figures_and_ends_when_told(fake: FakeHive) -> None:
    worker = Process(fake, "--listen", "0")
    try:
        assert worker.running.stderr
        said = worker.running.stderr.readline()
        address = said.rpartition("http://")[2].strip().removesuffix("/metrics")
        until(lambda: "find_next_compact2" in fake.calls)
        fake.entry("s", "t", "initiated")
        until(lambda: fake.queue[0].state == "ready for cleaning")

        def counted() -> bool:  # a moment after the metastore knows
            text = urllib.request.urlopen(f"http://{address}/metrics", timeout=10).read().decode()
            return 'acidctl_worker_entries_total{result="compacted"} 1.0' in text

        until(counted)
        assert urllib.request.urlopen(f"http://{address}/healthz", timeout=10).read() == b"ok\n"
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"http://{address}/", timeout=10)
        records, err = worker.end()
        assert [(one["entry"], one["result"]) for one in records] == [(1, "compacted")]
        assert "Traceback" not in err
        assert worker.running.returncode == 0
    finally:
        worker.running.kill()
    require_ended(fake)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_what_it_works_on_is_given_back_when_it_is_ended(fake: FakeHive, how: int) -> None:
    """The metastore holds the last question back: the compaction cannot end before the worker is told to."""
    fake.entry("s", "t", "initiated", pool="mine")
    worker = Process(fake, "--pool", "mine", "--grace", "0")
    try:

        def told() -> None:
            worker.running.send_signal(how)
            time.sleep(1.0)

        fake.before["update_compactor_state"] = told
        worker.running.wait(60)
    finally:
        worker.running.kill()
    _, err = worker.running.communicate()
    assert "Traceback" not in err, err
    assert worker.running.returncode == 0, err
    assert [(one.state, one.pool) for one in fake.queue] in (
        [("refused", "mine"), ("initiated", "mine")],
        [("ready for cleaning", "mine")],
    )
    require_ended(fake)


def test_told_again_and_again_it_still_gives_back(fake: FakeHive) -> None:
    """While it waits for its slots a second signal comes, and a third."""
    fake.entry("s", "t", "initiated")
    go_on = threading.Event()

    def engines(*_: Any) -> LocalEngine:
        assert go_on.wait(30)
        return LocalEngine(1, Deadline(0.0))

    done: list[Worked] = []
    worker = Worker(client(fake), WorkerOptions(grace=0), engines, done.append, lambda _: None)
    interruptions = 0
    wait = worker._wait

    def interrupted(seconds: float = math.inf) -> None:
        nonlocal interruptions
        interruptions += 1
        if interruptions == 1:
            until(lambda: "update_compactor_state" in fake.calls)
        if interruptions < 5:
            raise KeyboardInterrupt
        go_on.set()
        wait(seconds)

    worker._wait = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        worker.run()
    assert worker.has_ended
    assert [one.result for one in done] == ["postponed"]
    assert states(fake) == [(1, "refused"), (2, "initiated")]
    require_ended(fake)


def test_killed_it_leaves_an_entry_that_the_next_one_does(fake: FakeHive, acidctl: Acidctl) -> None:
    before = rows(fake, acidctl, "t")
    fake.entry("s", "t", "initiated")
    worker = Process(fake)

    def killed() -> None:
        worker.running.kill()
        worker.running.wait()

    fake.before["mark_compacted"] = killed
    worker.running.wait(60)
    worker.running.communicate()
    (txn,) = [txn.id for txn in fake.txns.values() if txn.state == TxnState.OPEN]
    assert rows(fake, acidctl, "t") == before
    if fake.queue[0].state == "ready for cleaning":  # the dead one's last word was heard
        fake.end(txn, commit=False)
        assert rows(fake, acidctl, "t") == before
        return
    ((one,), _) = work(fake)
    assert one.result == "compacted"
    assert rows(fake, acidctl, "t") == before
    require_ended(fake)


@pytest.mark.slow
@pytest.mark.spark
def test_one_session_of_spark_serves_all_slots(fake: FakeHive, acidctl: Acidctl) -> None:
    before = rows(fake, acidctl, "t")
    for name, kind in (("t", CompactionType.MAJOR), ("u", CompactionType.REBALANCE)):
        fake.entry("s", name, "initiated", type=int(kind))
    line = ["hive", "worker", "--once", "--max-parallel", "2", "--master", "local[2]", "--metastore", fake.address]
    done = subprocess.run(
        [sys.executable, "-m", "acidctl", *line],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": PYTHONPATH},
    )
    assert done.returncode == 0, done.stderr
    assert {one.state for one in fake.queue} == {"ready for cleaning"}
    (application,) = {one.job for one in fake.queue}
    assert (application or "").startswith("local-")
    assert rows(fake, acidctl, "t") == rows(fake, acidctl, "u") == before
    require_ended(fake)


def test_a_table_that_could_not_be_looked_at_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """One failing call must not make its entry a stranger's for as long as the worker runs."""
    answers = iter(["cannot look at db.t: the server is busy", ""])
    monkeypatch.setattr("acidctl.hive.queue_entries.why_foreign", lambda *_: next(answers))
    strangers: Any = Claims("", 0.2)
    entry = SimpleNamespace(id=7, kind="major", database="db", table="t")
    assert [strangers.why_foreign(None, entry) for _ in range(3)] == ["cannot look at db.t: the server is busy", "", ""]


def test_another_slot_may_clear_the_reasons_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    class Cleared(dict[int, str]):
        def __setitem__(self, key: int, why: str) -> None:
            super().__setitem__(key, why)
            self.clear()

    monkeypatch.setattr("acidctl.hive.queue_entries.why_foreign", lambda *_: "db.t is a table of ICEBERG")
    strangers: Any = Claims("", 0.2, _reasons=Cleared())
    entry = SimpleNamespace(id=7, kind="major", database="db", table="t")
    assert strangers.why_foreign(None, entry) == "db.t is a table of ICEBERG"


# --- what counts against a table --------------------------------------------------------------------------------------

OF_MACHINE = [
    EnvironmentProblem("this machine has no time zone database"),
    MemoryProblem("there is not enough memory"),
    AccessError("permission denied"),
    from_os_error(OSError(errno.ENOSPC, "full"), "write", "/tmp/x"),
    unexpected(OSError(errno.ENOSPC, "full")),
    unexpected(MemoryError()),
]
OF_TABLE = [BadDataError("a file is damaged"), VerifyError("rows differ"), unexpected(ValueError("a bug"))]


@pytest.mark.parametrize("error", OF_MACHINE + OF_TABLE, ids=lambda error: f"{type(error).__name__}: {error.what}")
def test_a_fault_of_this_machine_does_not_count_against_the_table(fake: FakeHive, error: AcidctlError) -> None:
    """Hive leaves a table alone after two failures, and a refusal ends such a series."""

    def engine(tasks: Sequence[Any], _: object) -> Iterator[tuple[int, Any]]:
        yield from ((number, error) for number, _ in enumerate(tasks))

    engine.cores = 1  # type: ignore[attr-defined]
    fake.entry("s", "t", "initiated", enqueued=2)
    done, errors = work(fake, engines=lambda until, on_progress: engine)
    assert ([one.result for one in done], errors) == (["failed"], [])
    assert states(fake) == [(1, "failed" if error in OF_TABLE else "refused")]
    assert error.what in (fake.queue[0].error or "")
    require_ended(fake)


def test_an_error_of_the_installation_before_the_work_refuses_the_entry(
    fake: FakeHive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acidctl.verbs.hive.worker.location_of", _no_zones)
    fake.entry("s", "t", "initiated", enqueued=2)
    work(fake)
    assert states(fake) == [(1, "refused")]


def _no_zones(*_: object) -> None:
    raise no_time_zones("nothing can be read")
