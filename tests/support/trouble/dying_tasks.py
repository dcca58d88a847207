"""Compaction tasks that die, fail or hang: importable by the processes that run them."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from pathlib import Path

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.base.errors import BadDataError
from acidctl.compaction.kernel import run_task
from acidctl.compaction.plan import CompactionPlan
from acidctl.compaction.publish import stage_directories
from acidctl.compaction.tasks import BucketResult, Task
from support.compacting import plan_compaction
from support.files.acid_files import B0, write_acid
from support.tables import snapshot_of


def plans(folder: Path, count: int = 2) -> list[CompactionPlan]:
    result = []
    for number in range(count):
        table = folder / f"t{number}"
        for write_id in (1, 2):
            for bucket in (0, 1):
                value = B0 | bucket << 16
                path = table / f"delta_{write_id}_{write_id}_0" / f"bucket_{bucket:05d}"
                write_acid(path, *((0, write_id, value, i, write_id, (i, number)) for i in range(3)))
        result.append(plan_compaction(snapshot_of(table), CompactionKind.MAJOR, "_tmp_1"))
    return result


def staged(folder: Path) -> list[Task]:
    """The tasks of these plans, which can be run."""
    made = plans(folder)
    for plan in made:
        stage_directories(plan)
    return [task for plan in made for task in plan.tasks]


def die_on_one(task: Task) -> BucketResult:
    """A task whose process ends without a word, as the kernel's memory killer ends it."""
    if task.weight and "t1" in getattr(task, "attempts", "") and getattr(task, "bucket", 0) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.2)
    return run_task(task)


def refuse(task: Task) -> BucketResult:
    raise BadDataError("a file is broken", "it is", "mend it")


def stumble(task: Task) -> BucketResult:
    raise ZeroDivisionError("a bug")


def stumble_on_b(task: Task) -> BucketResult:
    """Have a bug in the tables of a folder wh whose names begin with b."""
    if "/wh/b" in getattr(task, "attempts", ""):
        raise ValueError("nobody expected this")
    return run_task(task)


def sleep_long(task: Task) -> BucketResult:
    time.sleep(600)
    return run_task(task)


def say_where(task: Task) -> BucketResult:
    """Do it, and fail with the process that did it, and what it imported for it."""
    before = set(sys.modules)
    run_task(task)
    raise BadDataError(str(os.getpid()), " ".join(sorted(set(sys.modules) - before)))


def collect_and_run(task: Task) -> BucketResult:
    gc.collect()
    return run_task(task)


HANGING = False
"""Set in a test, and so in its forks, but in no Python of its own."""


def hang_in_a_fork(task: Task) -> BucketResult:
    """Wait as a fork does for a lock that nobody lets go there; a Python of its own does the task."""
    if HANGING:
        time.sleep(600)
    return run_task(task)
