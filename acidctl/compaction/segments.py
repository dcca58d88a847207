"""Tasks for big buckets are cut into segments, so that all cores share the work; how far, size and cores decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from acidctl.compaction.split import joined_groups
from acidctl.compaction.tasks import BucketTask, ConcatTask, CountTask

FINEST = 64 << 20
"""Stored bytes: of less it takes longer to begin a task than to do its work."""

_WAVES = 3
"""Segments for each core, so that the last ones to end are small."""


def cut(task: BucketTask, limit: int) -> list[BucketTask]:
    """Tasks for ranges of its stripes of about `limit` stored bytes, and one more for its delete events.

    Returns:
        The task itself, where it is small, or cannot be cut.
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
        weight = sum(one.file.size for one in task.deletes)
        rows = task.rows - sum(piece.rows for piece in pieces)
        beside = tuple(item.file for item in task.inserts)
        tasks.append(replace(whole, inserts=(), kills=(), row_files=beside, weight=weight, rows=rows))
    return tasks


def shared_out(
    tasks: Sequence[Sequence[BucketTask | ConcatTask | CountTask]], cores: int
) -> list[tuple[BucketTask | ConcatTask | CountTask, ...]]:
    """The tasks of several locations for so many cores: those that the others would wait for are cut.

    Args:
        tasks: of each location.
        cores: how many tasks run at once.

    Returns:
        For each location its tasks.
    """
    total = sum(task.weight for own in tasks for task in own)
    limit = total if cores == 1 else max(FINEST, total // (_WAVES * cores))
    return [tuple(part for task in own for part in _parts(task, limit)) for own in tasks]


def _parts(task: BucketTask | ConcatTask | CountTask, limit: int) -> Sequence[BucketTask | ConcatTask | CountTask]:
    if not isinstance(task, BucketTask):
        return [task]
    # Each segment reads the delete events again that may hit it.
    return cut(task, max(limit, sum(one.file.size for one in task.kills)))
