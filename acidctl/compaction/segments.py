"""Tasks for big buckets are cut into segments, so that all cores share the work; how far, size and cores decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from acidctl.compaction.split import joined_groups
from acidctl.compaction.tasks import BucketTask, ConcatTask, CountTask

FINEST = 64 << 20
"""Stored bytes; for less, starting a task takes longer than its work."""

_WAVES = 3
"""Segments per core, so that the last segments to end are small."""


def cut(task: BucketTask, limit: int) -> list[BucketTask]:
    """Cut a task into ranges of stripes of about `limit` stored bytes, and one more task for its delete events.

    A task that is small, or cannot be cut, stays whole.
    """
    whole = replace(task, pieces=())
    pieces = joined_groups(task.pieces, limit)
    if len(pieces) < 2:
        return [whole]
    tasks = []
    for number, piece in enumerate(pieces):
        inserts = tuple(replace(task.inserts[at], stripes=piece.spans[at]) for at in sorted(piece.spans))
        tasks.append(replace(whole, inserts=inserts, deletes=(), weight=piece.bytes, rows=piece.rows, segment=number))
    if task.deletes:
        weight = sum(item.file.size for item in task.deletes)
        rows = task.rows - sum(piece.rows for piece in pieces)
        beside = tuple(item.file for item in task.inserts)
        tasks.append(replace(whole, inserts=(), kills=(), row_files=beside, weight=weight, rows=rows))
    return tasks


def shared_out(
    tasks: Sequence[Sequence[BucketTask | ConcatTask | CountTask]], cores: int
) -> list[tuple[BucketTask | ConcatTask | CountTask, ...]]:
    """Cut the big tasks of several locations, so that no core waits for them; return the tasks of each location.

    Args:
        tasks: the tasks of each location.
        cores: how many tasks run at the same time.
    """
    total = sum(task.weight for location in tasks for task in location)
    limit = total if cores == 1 else max(FINEST, total // (_WAVES * cores))
    return [tuple(part for task in location for part in _parts(task, limit)) for location in tasks]


def _parts(task: BucketTask | ConcatTask | CountTask, limit: int) -> Sequence[BucketTask | ConcatTask | CountTask]:
    if not isinstance(task, BucketTask):
        return [task]
    # Each segment reads the delete events again, so segments smaller than these would cost more than they save.
    return cut(task, max(limit, sum(item.file.size for item in task.kills)))
