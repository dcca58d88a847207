"""The local engine: several processes, workers that die, a deadline, an end before the end."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from support.paths import PYTHONPATH
from support.tables import pairs_of
from support.trouble.dying_tasks import (
    collect_and_run,
    die_on_one,
    hang_in_a_fork,
    plans,
    refuse,
    say_where,
    sleep_long,
    staged,
    stumble,
)

from acidctl.base import worker_pool
from acidctl.base.deadline import Deadline
from acidctl.base.errors import AcidctlError, BadDataError, EnvironmentProblem, UnexpectedError
from acidctl.compaction import local_engine
from acidctl.compaction.kernel import run_task
from acidctl.compaction.local_engine import LocalEngine
from acidctl.compaction.run import compact
from acidctl.orc.read.reader import OrcFile


@pytest.fixture(autouse=True)
def small_work_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_engine, "WORTH_A_PROCESS", 1)


def test_two_processes_compact_two_tables(tmp_path: Path) -> None:
    made = plans(tmp_path)
    before = [pairs_of(tmp_path / name) for name in ("t0", "t1")]
    outcomes = list(compact(made, LocalEngine(2)))
    assert [outcome.error for outcome in outcomes] == [None, None]
    assert [outcome.published for outcome in outcomes] == [("base_0000002",)] * 2
    assert [pairs_of(tmp_path / name) for name in ("t0", "t1")] == before


def test_errors_come_back_as_they_are(tmp_path: Path) -> None:
    tasks = [task for plan in plans(tmp_path) for task in plan.tasks]
    results = [result for _, result in LocalEngine(2)(tasks, refuse)]
    assert [(type(result), str(result)) for result in results] == [(BadDataError, "a file is broken: it is")] * 4


@pytest.mark.parametrize("is_here", [False, True])
def test_a_bug_fails_its_task_and_brings_its_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_here: bool
) -> None:
    tasks = [task for plan in plans(tmp_path) for task in plan.tasks]
    monkeypatch.setattr(local_engine.registry, "is_shared", lambda _: not is_here)
    results = [result for _, result in LocalEngine(2)(tasks, stumble)]
    for result in results:
        assert isinstance(result, UnexpectedError)
        assert "in stumble" in result.trace
    assert {(str(r.exit_status), r.what) for r in results} == {("1", "unexpected ZeroDivisionError: a bug")}


def test_a_worker_that_dies_fails_tasks_and_not_the_run(tmp_path: Path) -> None:
    tasks = [task for plan in plans(tmp_path) for task in plan.tasks]
    results = dict(LocalEngine(2)(tasks, die_on_one))
    assert sorted(results) == [0, 1, 2, 3]
    assert isinstance(results[3], EnvironmentProblem)
    assert "--jobs 1" in results[3].hint


def test_what_a_fork_does_not_do_another_python_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "FORK_SECONDS", 1)
    monkeypatch.setattr("support.trouble.dying_tasks.HANGING", True)
    monkeypatch.setattr("acidctl.compaction.run.run_task", hang_in_a_fork)
    made = plans(tmp_path, 1)
    before = pairs_of(tmp_path / "t0")
    (outcome,) = compact(made, LocalEngine(1))
    assert (outcome.error, outcome.published) == (None, ("base_0000002",))
    names = {path.name for path in (tmp_path / "t0" / "base_0000002").iterdir()}
    assert names == {"_metadata_acid", "_orc_acid_version", "bucket_00000", "bucket_00001"}
    assert pairs_of(tmp_path / "t0") == before


def test_the_deadline_ends_what_runs_and_changes_nothing(tmp_path: Path) -> None:
    made = plans(tmp_path)
    before = sorted(path for path in tmp_path.rglob("*"))

    class Sleepy(LocalEngine):
        def __call__(self, tasks, _):  # type: ignore[no-untyped-def]
            return LocalEngine(2, Deadline(time.monotonic() + 0.5))(tasks, sleep_long)

    outcomes = list(compact(made, Sleepy(2)))
    assert [outcome.result for outcome in outcomes] == ["postponed", "postponed"]
    assert sorted(path for path in tmp_path.rglob("*")) == before


def test_no_further_task_is_begun_here_when_the_time_is_up(tmp_path: Path) -> None:
    tasks = [task for plan in plans(tmp_path) for task in plan.tasks]
    assert list(LocalEngine(1, Deadline(time.monotonic()))(tasks, run_task)) == []


class _Finalized:
    """An object whose finalizer needs what only the parent can give, as py4j's do."""

    def __init__(self, parent: int) -> None:
        self.itself, self.parent = self, parent  # a cycle: only the collector ends it

    def __del__(self) -> None:
        if os.getpid() != self.parent:
            os._exit(3)


def test_a_fork_finalizes_nothing_of_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acidctl.compaction.run.run_task", collect_and_run)
    made = plans(tmp_path, 1)
    gc.disable()
    try:
        _Finalized(os.getpid())
        (outcome,) = compact(made, LocalEngine(1))
    finally:
        gc.enable()
    assert (outcome.error, outcome.published) == (None, ("base_0000002",))


ORPHAN = """
import sys
from pathlib import Path
from support.trouble.dying_tasks import plans, sleep_long
from acidctl.compaction import local_engine
if __name__ == "__main__":
    local_engine.WORTH_A_PROCESS = 1
    tasks = [task for plan in plans(Path(sys.argv[1])) for task in plan.tasks]
    print("go", flush=True)
    list(local_engine.LocalEngine(2)(tasks, sleep_long))
"""


def test_workers_do_not_outlive_a_parent_that_was_killed(tmp_path: Path) -> None:
    script = tmp_path / "orphan.py"
    script.write_text(ORPHAN)
    command = [sys.executable, str(script), str(tmp_path)]
    environ = os.environ | {"PYTHONPATH": PYTHONPATH}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "go\n"
        while len(group_of(process.pid)) < 3:  # two workers, beside the process itself and the resource tracker
            time.sleep(0.05)
        process.kill()
    for _ in range(400):
        if not group_of(process.pid):
            break
        time.sleep(0.05)
    assert group_of(process.pid) == []


def group_of(session: int) -> list[int]:
    """The living processes of a session."""
    listed = subprocess.run(["ps", "-eo", "sid=,pid=,stat="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    return [int(pid) for sid, pid, state in rows if int(sid) == session and not state.startswith("Z")]


@pytest.mark.parametrize(
    ("number", "kind"),
    [(signal.SIGSEGV, BadDataError), (signal.SIGABRT, BadDataError), (signal.SIGKILL, EnvironmentProblem)],
)
def test_a_file_that_ends_its_reader_fails_its_location_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[AcidctlError]
) -> None:
    """Small tasks run in a fork: if it dies, this process goes on."""
    monkeypatch.setattr(local_engine, "WORTH_A_PROCESS", 1 << 40)
    made = plans(tmp_path, 3)
    copy = OrcFile.read_stripe

    def read(file: OrcFile, *rest: object) -> object:
        if "/t1/" in file.tail.path:
            os.kill(os.getpid(), number)
        return copy(file, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(OrcFile, "read_stripe", read)
    outcomes = {Path(one.location).name: one for one in compact(made)}
    assert {name: one.result for name, one in outcomes.items()} == {
        "t0": "compacted",
        "t1": "failed",
        "t2": "compacted",
    }
    error = outcomes["t1"].error
    assert type(error) is kind
    assert signal.Signals(number).name in str(error)
    assert sorted(path.name for path in (tmp_path / "t1").iterdir()) == ["delta_1_1_0", "delta_2_2_0"], (
        "nothing is staged"
    )


IMPORTED = """
import sys
import acidctl
from acidctl.compaction.kernel import run_task
from acidctl.compaction.local_engine import LocalEngine
from acidctl.base.errors import BadDataError

def say(task):
    before = set(sys.modules)
    run_task(task)
    raise BadDataError("imported", " ".join(sorted(set(sys.modules) - before)))

class Engine(LocalEngine):
    def __call__(self, tasks, function):
        return super().__call__(tasks, say)

try:
    acidctl.Location(sys.argv[1], assume_committed=0).compact("major", Engine(1))
except BadDataError as error:
    print([error.what, error.why])
"""


def test_a_fork_imports_nothing(tmp_path: Path) -> None:
    """What each fork would import its parent imports once; pandas, which pyarrow would import, neither does."""
    plans(tmp_path, 1)
    command = [sys.executable, "-c", IMPORTED, str(tmp_path / "t0")]
    environ = os.environ | {"PYTHONPATH": PYTHONPATH}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environ)
    assert done.stdout == "['imported', '']\n"


def test_another_thread_forks_nothing_and_its_process_is_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_engine, "WORTH_A_PROCESS", 1 << 40)
    monkeypatch.setattr(worker_pool, "_fork", None)
    monkeypatch.setattr(worker_pool, "_SPARE", spare := [])
    tasks = staged(tmp_path)
    seen: list[str] = []

    def work() -> None:
        seen.append({error.what for _, error in LocalEngine(1)(tasks, say_where)}.pop())  # type: ignore[union-attr]

    for _ in range(2):
        (thread := threading.Thread(target=work)).start()
        thread.join()
    assert seen[0] == seen[1] != str(os.getpid())
    assert [str(one.process.pid) for one in spare] == seen[:1]
    os.kill(int(seen[0]), signal.SIGKILL)
    spare[0].process.wait()
    (thread := threading.Thread(target=work)).start()
    thread.join()
    assert seen[2] not in seen[:2]
    spare[0].end()


def test_a_fork_ends_with_its_parent_and_runs_none_of_its_handlers(tmp_path: Path) -> None:
    script = tmp_path / "orphan.py"
    script.write_text(
        ORPHAN.replace("WORTH_A_PROCESS = 1", "WORTH_A_PROCESS = 1 << 40").replace(
            'print("go"', "import atexit, signal; atexit.register(print, 'at exit'); print('go'"
        )
    )
    environ = os.environ | {"PYTHONPATH": PYTHONPATH}
    command = [sys.executable, str(script), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "go\n"
        while len(group_of(process.pid)) < 2:
            time.sleep(0.05)
        process.kill()
        assert process.stdout.read() == ""
    for _ in range(400):
        if not group_of(process.pid):
            break
        time.sleep(0.05)
    assert group_of(process.pid) == []
