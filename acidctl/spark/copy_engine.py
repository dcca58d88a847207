"""Write the data files of a copy to Iceberg on Spark: one task a file, and the driver commits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from acidctl.base.errors import AcidctlError, EnvironmentProblem, NoSpaceError, StorageError
from acidctl.iceberg.file_tasks import Engine, FileTask, WrittenFile, write_file
from acidctl.orc.byte_source import ByteSource
from acidctl.rows.read.events import EventFile
from acidctl.spark.driver.session import Session, start_session
from acidctl.spark.driver.session_plan import SparkOptions
from acidctl.spark.jobs import run_tasks
from acidctl.storage.hdfs.filesystem import delegated
from acidctl.storage.port import FileSystem
from acidctl.storage.registry import open_file_system

_ROUNDS = 2


@contextmanager
def spark_copies(options: SparkOptions, on_notice: Callable[[str], None] | None = None) -> Iterator[Engine]:
    """Start Spark, and give an engine for :func:`acidctl.iceberg.copy.write_copy`.

    A task that fails by its store or its machine gets a second try.

    Args:
        on_notice: receives sentences for the user, such as that the cluster has no room.
    """
    with start_session(options) as session:
        yield lambda tasks: _run(tasks, session, on_notice)


def _run(
    tasks: Sequence[FileTask], session: Session, on_notice: Callable[[str], None] | None
) -> Iterator[tuple[int, WrittenFile]]:
    left = {number: _sent(task) for number, task in enumerate(tasks)}
    failed: dict[int, AcidctlError] = {}
    for _ in range(_ROUNDS):
        numbers, failed = list(left), {}
        weights = [task.weight for task in left.values()]
        for at, result in run_tasks(list(left.values()), write_file, session, weights, on_notice=on_notice):
            if isinstance(result, WrittenFile):
                del left[numbers[at]]
                yield numbers[at], result
            elif isinstance(result, NoSpaceError) or not isinstance(result, StorageError | EnvironmentProblem):
                raise result
            else:
                failed[numbers[at]] = result
        if not failed:
            return
    raise next(iter(failed.values()))


def _sent(task: FileTask) -> FileTask:
    """Return a task with what opens the stores on a machine where nobody logged in."""
    source = task.source
    fs = _delegated(source.fs)
    if fs is not source.fs:
        source = replace(source, fs=fs)
        if isinstance(source, EventFile):
            size = source.tail.source.size
            source = replace(source, tail=replace(source.tail, source=ByteSource(fs, source.path, source.length, size)))
    return replace(task, source=source, fs=_delegated(task.fs))


def _delegated(fs: FileSystem) -> FileSystem:
    spec = delegated(fs.spec)
    return fs if spec == fs.spec else open_file_system(spec)
