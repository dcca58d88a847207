"""One Spark session that plays every scenario of test_jobs.py, in a process of its own.

Apart from pytest's process, since that one may hold another Spark session already, and so that the whole stderr and
what is left of the processes can be looked at.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
import time
from pathlib import Path
from typing import Any

from acidctl.base.errors import AcidctlError
from acidctl.spark.driver.session import Session, start_session
from acidctl.spark.driver.session_plan import SparkOptions
from acidctl.spark.jobs import run_tasks
from support.spark import spark_toys, validation_scenarios
from support.spark.spark_toys import Stubborn, Toy, describe, play

OPTIONS = SparkOptions(master="local[2]")


def collect(session: Session, tasks: list[Any], function: Any = play, **more: Any) -> list[tuple[int, Any]]:
    """Every result in the order of arrival; errors with their attributes as plain values."""
    results = run_tasks(tasks, function, session, **more)
    return [(index, plain(value)) for index, value in results]


def plain(value: Any) -> Any:
    """An error as a tuple: class, three lines, traceback."""
    if isinstance(value, Exception):
        lines = [getattr(value, name, None) for name in ("what", "why", "hint")]
        return (type(value).__name__, *lines, value.__dict__.get("remote_traceback", ""))
    return value


def results(session: Session) -> Any:
    """Values and errors come back by index; one bad task does not hurt the others."""
    kinds = ["ours", "foreign", "unpicklable result", "unpicklable error", "exit", "noise"]
    tasks: list[Any] = [Toy("square", 3), *(Toy(kind) for kind in kinds), Stubborn(), Toy("square", 4)]
    return dict(collect(session, tasks))


def streaming(session: Session) -> Any:
    """Short tasks arrive while a long one still runs, which waits for what their results make us do."""
    folder = Path(os.environ["SCENARIO_FOLDER"], "streaming")
    folder.mkdir()
    tasks = [Toy("wait", 60, str(folder)), *(Toy("square", n) for n in range(4))]
    arrived = []
    for index, result in run_tasks(tasks, play, session, [1 << 30, 1, 1, 1, 1]):
        arrived.append((index, result))
        if len(arrived) == 4:
            (folder / "answer").touch()
    return arrived


def crashes(session: Session) -> Any:
    """Two tasks kill their workers; every other one is done."""
    tasks = [Toy("die") if n in {3, 17} else Toy("square", n) for n in range(24)]
    return dict(collect(session, tasks))


def batched(session: Session) -> Any:
    """Many small tasks, weights known."""
    got = collect(session, [Toy("square", n) for n in range(500)], weights=[1000] * 500)
    return dict(got)


def abandoned(session: Session) -> Any:
    """The iterator is closed early: what runs is cancelled, and the session works on."""
    folder = os.environ["SCENARIO_FOLDER"]
    tasks = [Toy("square", 1), Toy("sleep", 120, folder), Toy("sleep", 120, folder)]
    iterator = run_tasks(tasks, play, session)
    first = next(iterator)
    while not list(Path(folder).glob("started-*")):
        time.sleep(0.05)
    began = time.monotonic()
    iterator.close()  # type: ignore[attr-defined]
    closed = time.monotonic() - began
    return {"first": first, "closed": closed, "after": collect(session, [Toy("square", 5)])}


def interrupted(session: Session) -> Any:
    """A handler for interrupts that was there before is there again."""
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler


def nested(session: Session) -> Any:
    """A session within a session is the same one, and its end does not end the first; another master is refused."""
    with start_session(SparkOptions()) as inner:
        same = inner.context is session.context
    with start_session(OPTIONS) as inner:
        same = same and inner.context is session.context
    refused = []
    for options in (SparkOptions(master="local[7]"), SparkOptions(conf=(("spark.master", "local[7]"),))):
        try:
            with start_session(options):
                pass
        except AcidctlError as error:
            refused.append(plain(error)[:3])
    return {"same": same, "refused": refused, "after": collect(session, [Toy("square", 6)])}


def modules(session: Session) -> Any:
    """Workers use the installed PySpark, import this folder's modules, and nothing from the current folder."""
    paths = collect(session, [None], where_is)
    return paths[0][1]


def where_is(_: Any) -> Any:
    """Where a worker found PySpark, and its path."""
    import pyspark

    return {"pyspark": pyspark.__file__, "toys": spark_toys.__file__, "path": sys.path}


def other_types(session: Session) -> Any:
    """Any picklable value is a task."""
    return dict(collect(session, [1, None, b"x", [1], {}], describe))


def validated(session: Session) -> Any:
    """Planted faults and crashing readers, checked here and on Spark."""
    return validation_scenarios.play(session, Path(os.environ["SCENARIO_FOLDER"], "tables"))


def killed(session: Session) -> Any:
    """Java is killed in the midst of a job: told, and soon.  The last scenario."""
    folder = Path(os.environ["SCENARIO_FOLDER"], "killed")
    folder.mkdir()
    assert session.driver is not None
    iterator = run_tasks([Toy("square", 1), Toy("sleep", 120, str(folder))], play, session)
    next(iterator)
    while not list(folder.glob("started-*")):
        time.sleep(0.05)
    os.kill(session.driver.process.pid, signal.SIGKILL)
    began = time.monotonic()
    try:
        next(iterator)
    except Exception as error:  # noqa: BLE001 - the scenario reports it
        return {"error": plain(error), "seconds": time.monotonic() - began}
    return None


SCENARIOS = (
    results, streaming, crashes, batched, abandoned, interrupted, nested, modules, other_types, validated, killed,
)  # fmt: skip


def main() -> None:
    """Play everything, write the outcomes to the file named on the command line."""
    outcomes: dict[str, Any] = {}
    with contextlib.suppress(KeyboardInterrupt), start_session(OPTIONS) as session:
        for scenario in SCENARIOS:
            began = time.monotonic()
            outcomes[scenario.__name__] = scenario(session)
            outcomes[f"{scenario.__name__} seconds"] = time.monotonic() - began
    Path(sys.argv[1]).write_bytes(pickle.dumps(outcomes))
