"""Run tasks inside Spark's Python workers; importing this module needs nothing but the standard library.

Cluster executors get this package as a zip file, and must say in plain words which packages they lack.
"""

from __future__ import annotations

import pickle
import socket
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from acidctl.base.errors import AcidctlError, EnvironmentProblem, MemoryProblem


class ResultMail:
    """Carries results, as PySpark's accumulator: lists on the executors, put into a queue in the driver.

    It is not a subclass of PySpark's ``AccumulatorParam``, which would load PySpark.
    """

    def zero(self, _: Any) -> list[Any]:
        """Return the value that an executor starts with."""
        return []

    def addInPlace(self, into: Any, items: list[Any]) -> Any:  # noqa: N802 - PySpark's name
        """Add (index, pickled result) pairs."""
        if isinstance(into, list):
            into.extend(items)
        else:
            for item in items:
                into.put(item)
        return into


@dataclass(frozen=True, slots=True)
class Failure:
    """A task that raised: the error as a user sees it, and the traceback for debugging."""

    error: AcidctlError
    traceback: str


class BatchRunner:
    """Runs the batches of one partition and hands the results to `accumulator` (a list of (index, pickle))."""

    def __init__(self, accumulator: Any, function: bytes) -> None:
        self._accumulator = accumulator
        self._function = function

    def __call__(self, batches: Iterable[bytes]) -> None:
        """Run every task; an exception becomes the task's result."""
        for batch in batches:
            for index, task in pickle.loads(batch):
                self._accumulator.add([(index, run_one(self._function, task))])


def run_one(function: bytes, task: bytes) -> bytes:
    """Run one pickled task by one pickled function; the pickled result or :class:`Failure`.

    A task that cannot even be unpickled fails alone, like one that raises.
    """
    try:
        call: Callable[[Any], Any] = pickle.loads(function)
        result = call(pickle.loads(task))
        # What cannot be pickled must fail here, where it can be said.
        return pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - one task must not end the others
        return pickle.dumps(Failure(as_acidctl_error(error), traceback.format_exc()), pickle.HIGHEST_PROTOCOL)


def as_acidctl_error(error: BaseException) -> AcidctlError:
    """Return the error itself if it is an AcidctlError that survives pickling, else an AcidctlError with its text."""
    if isinstance(error, AcidctlError):
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # noqa: BLE001 - a subclass of somebody else's
            return AcidctlError(error.what, error.why, error.hint)
        return error
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.split(".", maxsplit=1)[0]
        return missing_packages([package], socket.gethostname(), sys.executable, str(error))
    if isinstance(error, MemoryError):
        hint = "Run fewer tasks at once (--master local[1], or fewer executor cores), or give executors more memory"
        return MemoryProblem(f"A task ran out of memory on {socket.gethostname()}", str(error), hint)
    hint = "Run again with --debug, and report it"
    return AcidctlError(f"A task failed with {type(error).__name__}", str(error), hint)


def missing_packages(distributions: Sequence[str], host: str, executable: str, why: str) -> EnvironmentProblem:
    """Return the error for packages that the executors' Python misses."""
    what = f"The Python of the executor on {host} ({executable}) cannot import {', '.join(distributions)}"
    install = f"{executable} -m pip install {' '.join(distributions)}"
    return EnvironmentProblem(what, why, f"Run there: {install}; or name another Python with PYSPARK_PYTHON")


def split_pickled(tasks: Sequence[Any], indexes: Sequence[int]) -> bytes:
    """Return one batch for :class:`BatchRunner`: every task is pickled by itself, so that a bad one spoils no other.

    Raises TypeError if a task cannot be pickled.
    """
    pairs = []
    for index in indexes:
        try:
            pairs.append((index, pickle.dumps(tasks[index], pickle.HIGHEST_PROTOCOL)))
        except Exception as error:
            raise TypeError(f"task {index} cannot be pickled: {error}") from error
    return pickle.dumps(pairs, pickle.HIGHEST_PROTOCOL)
