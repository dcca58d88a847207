"""The driver of test_cluster.py: several sessions on one cluster, in a process of its own."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from acidctl.base.errors import AcidctlError
from acidctl.spark.driver.session import Session, start_session
from acidctl.spark.driver.session_plan import SparkOptions
from acidctl.spark.jobs import run_tasks
from support.spark.cluster import children
from support.spark.executors import WHERE


def main() -> None:
    """Arguments: the master, a file for the outcomes, a Python without packages, the workers' process ids."""
    master, target, bare_python, *workers = sys.argv[1:]
    conf = (("spark.executor.memory", "512m"), ("spark.executor.cores", "1"))
    options = SparkOptions(master=master, conf=conf, app_name="cluster test", start_timeout=120)
    outcomes: dict[str, Any] = {}
    outcomes["no room"] = failing(replace(options, conf=(("spark.executor.memory", "900g"),), start_timeout=20))
    outcomes["bare python"] = failing(replace(options, conf=(*conf, ("spark.pyspark.python", bare_python))))
    outcomes["plain"] = plain_and_lost(options, [int(pid) for pid in workers])
    Path(target).write_bytes(pickle.dumps(outcomes))


def gone() -> None:
    """Arguments: a master that is not there, a file for the outcome."""
    master, target = sys.argv[1:]
    Path(target).write_bytes(pickle.dumps(failing(SparkOptions(master=master))))


def plain_and_lost(options: SparkOptions, workers: list[int]) -> dict[str, Any]:
    """Tasks on both executors; then one executor is killed while tasks run."""
    notices: list[str] = []
    began = time.monotonic()
    with start_session(options) as session:
        facts = dict(run_tasks([WHERE] * 8, eval, session, [1 << 30] * 8))
        first = time.monotonic() - began
        iterator = run_tasks(
            [f"__import__('time').sleep(0.7) or {WHERE}"] * 6, eval, session, [1 << 30] * 6, on_notice=notices.append
        )
        after = dict([next(iterator)])
        for executor in children(workers[0]):
            os.kill(executor, signal.SIGKILL)
        after |= dict(iterator)
        session.options = replace(options, start_timeout=6)
        for worker in workers:
            for pid in (worker, *children(worker)):
                os.kill(pid, signal.SIGKILL)
        deserted = failing(session)
    return {
        "deserted": deserted,
        "facts": facts,
        "seconds": first,
        "after": after,
        "notices": notices,
        "path": sys.path,
    }


def failing(where: SparkOptions | Session) -> Any:
    """The error's class and three lines, and the seconds until then."""
    began = time.monotonic()
    try:
        with start_session(where) if isinstance(where, SparkOptions) else nullcontext(where) as session:
            for _, result in run_tasks(["__import__('pyarrow').__version__"], eval, session):
                if isinstance(result, AcidctlError):
                    raise result
    except AcidctlError as error:
        return type(error).__name__, error.what, error.why, error.hint, time.monotonic() - began
    return None
