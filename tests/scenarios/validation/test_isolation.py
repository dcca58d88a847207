"""Readers that die or hang: their file is a finding, and the rest goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from support.files.acid_files import B0, insert, write_by_pyorc
from support.spark.processes import wait_until
from support.trouble import crashers
from support.validating import check, found, healthy, three_stripes

from acidctl.base import worker_pool
from acidctl.base.deadline import Deadline
from acidctl.base.errors import EnvironmentProblem, NotFoundError
from acidctl.base.worker_pool import Crash, Limits, Pool
from acidctl.orc.limits import STRIPE_MEMORY, LimitError
from acidctl.validation import location


def run(*what: str, limits: Limits | None = None, size: int = 2) -> dict[str, object]:
    results: dict[str, object] = {}
    with Pool(size, limits or Limits()) as pool:
        for one in what:
            pool.submit(one, crashers.Toy(one))
        while pool.unfinished:
            results.update(pool.results())
    return results


def test_a_death_is_the_result_of_its_task() -> None:
    results = run("fine", "abort", "exit", "raise", "refuse", "greedy", "well")
    assert results["fine"] == "fine"
    assert results["well"] == "well"
    assert results["abort"] == Crash("the reader's process was ended by SIGABRT")
    assert results["exit"] == Crash("the reader's process ended with status 3")
    assert results["raise"] == Crash("the reader failed with ValueError: of a kind that nobody expected")
    assert isinstance(results["refuse"], NotFoundError)
    greedy = results["greedy"]
    assert isinstance(greedy, Crash)
    assert "MemoryError" in greedy.reason


def test_what_files_beyond_the_limit_took_is_free_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STRIPE_MEMORY.variable, "10M")
    names = [f"grow {number}" for number in range(8)]
    results = run(*names, limits=Limits(memory=3 << 30), size=1)
    assert [type(results[name]) for name in names] == [LimitError] * len(names)


@pytest.mark.slow
def test_task_without_a_sign_of_life_is_a_crash() -> None:
    results = run("hang", "fine", limits=Limits(seconds=5))
    assert results["hang"] == Crash("the reader gave no sign of life for 5 seconds")
    assert results["fine"] == "fine"


@pytest.mark.slow
def test_signs_of_life_count() -> None:
    assert run("slow", limits=Limits(seconds=5), size=1) == {"slow": "slow"}


def test_ctrl_c_is_not_for_processes_that_come_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal sends it to all of them; the parent decides what becomes of its work."""
    start = worker_pool._start

    def interrupted(memory: int, *, is_quiet: bool) -> worker_pool._Worker:
        worker = start(memory, is_quiet=is_quiet)
        os.kill(worker.process.pid, signal.SIGINT)
        return worker

    monkeypatch.setattr(worker_pool, "_start", interrupted)
    assert run("fine", size=1) == {"fine": "fine"}


def test_closing_ends_the_processes() -> None:
    with Pool(1) as pool:
        pool.submit("hang", crashers.Toy("hang"))
        pool.submit("fine", crashers.Toy("fine"))
        pool._hand_out()
        (worker,) = pool._workers
    assert worker.process.returncode == -signal.SIGKILL


def test_a_process_that_dies_between_tasks_is_replaced() -> None:
    with Pool(1) as pool:
        for turn in range(2):
            pool.submit(turn, crashers.Toy("fine"))
            while pool.unfinished:
                for _, result in pool.results():
                    assert result == "fine"
            pool._workers[0].process.kill()
            pool._workers[0].process.wait()


@pytest.mark.slow
def test_processes_outlive_the_thread_that_started_them() -> None:
    with Pool(1) as pool:
        pool.submit(0, crashers.Toy("slow"))
        thread = threading.Thread(target=pool._hand_out)
        thread.start()
        thread.join()
        assert list(pool.results()) == [(0, "slow")]


def test_bytes_are_told_and_time_is_kept() -> None:
    told: list[tuple[object, int]] = []
    with Pool(1, until=Deadline(time.monotonic() + 60), on_done=lambda *what: told.append(what)) as pool:
        pool.submit("task", crashers.Toy("telling"))
        assert list(pool.results()) == [("task", "telling")]
        assert {key for key, _ in told} == {"task"}
        assert 0 < sum(count for _, count in told) <= 12
        pool.submit("late", crashers.Toy("hang"))
        pool.until = Deadline(time.monotonic() + 0.2)
        assert list(pool.results()) == []
        assert pool.until.is_over


def test_an_answer_that_cannot_travel() -> None:
    (result,) = run("unfit").values()
    assert isinstance(result, Crash)
    assert "lambda" in result.reason


def test_idle_processes_end_when_no_more_is_to_come() -> None:
    with Pool(2) as pool:
        pool.submit(0, crashers.Toy("fine"))
        pool.submit(1, crashers.Toy("hang"))
        assert list(pool.results()) == [(0, "fine")]
        pool.end_idle()
        assert [worker.key for worker in pool._workers] == [1]


def test_what_a_worker_starts_has_no_input() -> None:
    assert run("input") == {"input": b""}


def test_processes_that_cannot_start_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the fault of any file: told once, not as a finding of each."""
    for python in ("/bin/false", "/nowhere/python"):
        monkeypatch.setattr(sys, "executable", python)
        with pytest.raises(EnvironmentProblem, match="cannot be started") as caught:
            run("fine", size=1)
        assert caught.value.hint


@pytest.mark.slow
def test_one_that_does_not_come_up_costs_no_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where memory is short: the others do its work."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nmkdir {tmp_path}/once 2>/dev/null && kill -9 $$\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    assert run("fine", "well", "slow") == {"fine": "fine", "well": "well", "slow": "slow"}
    assert (tmp_path / "once").exists()


def test_processes_end_with_one_that_is_killed(tmp_path: Path) -> None:
    """Even those that hang, which do not notice that nobody listens."""
    code = (
        "from acidctl.base.worker_pool import Pool; from support.trouble import crashers; pool = Pool(1); "
        "pool.submit(0, crashers.Toy('hang')); pool._hand_out(); pool._workers[0].connection.recv(); "
        "print(pool._workers[0].process.pid, flush=True); pool._workers[0].connection.recv()"
    )
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environ) as parent:
        assert parent.stdout
        child = int(parent.stdout.readline())
        parent.kill()
    assert wait_until(lambda: not Path(f"/proc/{child}/cwd").exists(), 10)


def test_a_tail_that_ends_its_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    three_stripes(tmp_path / "t")
    monkeypatch.setattr(location, "TailTask", crashers.CrashingTails)
    (report,) = check(tmp_path / "t", processes=2)
    assert found(report) == {"V24", "V29 warning"}
    (finding,) = [one for one in report.findings if one.rule == "V24"]
    assert finding.path.endswith("bucket_00001")
    assert "SIGABRT" in finding.message


@pytest.mark.parametrize("task", [crashers.CrashingRows, crashers.DyingRows])
def test_rows_that_end_their_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: type) -> None:
    three_stripes(tmp_path / "t")
    monkeypatch.setattr(location, "RowTask", task)
    (report,) = check(tmp_path / "t", processes=2)
    assert found(report) == {"V24", "V29 warning", "V30 warning"}
    broken = [one.message for one in report.findings if one.rule == "V24"]
    assert "stripe 1: the reader's process was ended by SIGABRT" in broken
    assert len(broken) == (1 if task is crashers.CrashingRows else 2)
    # All other stripes were read all the same.
    whole = 30_000 + 5 + 1
    assert report.rows == whole if task is crashers.CrashingRows else report.rows < whole


@pytest.mark.slow
def test_hanging_small_file_is_a_finding_and_the_rest_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = healthy(tmp_path / "t")
    monkeypatch.setattr(location, "MarkerTask", crashers.HangingMarkers)
    (report,) = check(table, processes=2, seconds=2.0)
    assert report.files == 3
    assert report.rows == 5
    assert found(report) == {"V24"}
    assert len(report.findings) == 3


def test_reports_come_in_the_order_of_the_locations(tmp_path: Path) -> None:
    tables = [healthy(tmp_path / f"t{place}") for place in range(12)]
    reports = check(*tables, processes=2)
    assert [report.location for report in reports] == [str(table) for table in tables]
    assert all(report.rows == 5 for report in reports)


@pytest.mark.parametrize("operations", [(2, 2), (0, 0), (1, 0)])
def test_keys_at_the_border_of_two_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operations: tuple) -> None:
    """Stripes that different processes read: equal keys there mean what they mean inside of one."""
    monkeypatch.setattr(location, "_LEAST_CHUNK", 1)
    monkeypatch.setattr(location, "_CHUNK", 1)
    is_delete, is_old = operations[0] == 2, operations == (1, 0)
    row = None if is_delete else (1, "x")
    # The writer may cut only after so many events: a pair of equal keys lies across the first cut.
    first = write_by_pyorc(tmp_path / "probe", [insert(1, n) for n in range(30_000)], stripe_size=1, batch_size=1000)
    from pyarrow import orc

    cut = orc.ORCFile(first).read_stripe(0).num_rows
    events = [(operations[1], 1, B0, n, 4, row) for n in range(30_000)]
    events[cut - 1] = (operations[0], 1, B0, cut, 5, row)
    events[cut] = (operations[1], 1, B0, cut, 4, row)
    kind = "delete_delta" if is_delete else "delta"
    more = {"hive.acid.version": None} if is_old else {}
    write_by_pyorc(
        tmp_path / "t" / f"{kind}_0000001_0000009",
        [event if not is_old else (*event[:2], 0, *event[3:]) for event in events],
        stripe_size=1,
        batch_size=1000,
        metadata={"hive.acid.key.index": None} | more,
        marker=None if is_old else b"2",
    )
    (report,) = check(tmp_path / "t")
    told = {finding.rule: finding.evidence.get("count") for finding in report.findings}
    wanted = {(2, 2): {"V34": 1}, (0, 0): {"V27": None}, (1, 0): {}}[operations]
    assert {rule: told[rule] for rule in ("V26", "V27", "V34") if rule in told} == wanted
