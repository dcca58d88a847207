"""The kernel runs one task of a compaction and returns its result, in this process or in a Spark executor."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.compaction.merge.agreement import (
    DeleteCheck,
    LiveRows,
    refuse_changes,
    refuse_moved,
    require_agreement,
    without_effect,
)
from acidctl.compaction.merge.event_stream import EventStream, all_live, reopen
from acidctl.compaction.merge.written import join_segments
from acidctl.compaction.tasks import BucketResult, BucketTask, ConcatTask, CountTask, JoinTask, Task
from acidctl.orc.read.integer_runs import RowIdRun
from acidctl.rows.read.delete_set import DELETE, Bools
from acidctl.rows.read.events import EventFile, Ids
from acidctl.rows.read.visibility import load_deletes, visible_events
from acidctl.storage import registry


def run_task(task: Task) -> BucketResult:
    """Read, merge, filter, write and read back one bucket or a segment of one; or join segments.

    Raises:
        BadDataError: an input cannot be read.
        VerifyError: the written file differs from what it should hold.
    """
    start = time.monotonic()
    if isinstance(task, JoinTask):
        result = join_segments(task)
    elif isinstance(task, ConcatTask):
        from acidctl.compaction.concat.insert_only import run_concat  # noqa: PLC0415 - with Arrow's Parquet

        result = run_concat(task)
    elif isinstance(task, CountTask) or task.is_spread:
        from acidctl.compaction.merge.spread_rows import run_count, run_spread  # noqa: PLC0415 - few tasks are such

        result = run_count(task) if isinstance(task, CountTask) else run_spread(task)
    else:
        result = _compact(task)
    return replace(result, seconds=time.monotonic() - start)


def _compact(task: BucketTask) -> BucketResult:
    fs = registry.open_file_system(task.storage)
    major = task.kind is CompactionKind.MAJOR
    rows = [reopen(fs, item) for item in task.inserts]
    kills = [reopen(fs, item) for item in task.kills]
    live = LiveRows(task, rows, kills) if major else None
    load = partial(load_deletes, write_ids=task.write_ids, rows=rows, buckets=task.kills_of)
    # Hive 4 looks for the deletes of a file's rows only in delete files with its number, so only those collapse.
    own = [source for source in kills if source.file.bucket == task.bucket]
    dead = live.dead if live else load(own, same_write_id=True)
    row_files = task.row_files or [item.file for item in task.inserts]
    has_moved = not major and task.acid_version and any(source.may_hold_moved for source in rows)
    named = load(source for source in kills if source.is_delete) if has_moved else None

    def keep_insert(source: EventFile, ids: Ids) -> Bools | None:
        if live:
            return live.of(source, ids)
        require_agreement(source, ids, task.write_ids, dead)
        refuse_changes(source, ids, task.reader)
        if named:
            refuse_moved(source, ids, named)
        visible = visible_events(ids, task.write_ids)
        killed = dead.dead(ids.keys)
        if killed is None:
            return visible
        # The delete event has the write id that inserted the row, so only an event of that write id collapses.
        kept: Bools = ~killed | (ids.current != ids.keys.original)
        return kept if visible is None else visible & kept

    def keep_delete(source: EventFile, ids: Ids) -> Bools | None:
        kept = visible_events(ids, task.write_ids)
        idle = without_effect(source, ids, row_files)
        if idle is None:
            return kept
        return ~idle if kept is None else kept & ~idle

    def keeps_deletes(run: RowIdRun) -> bool:
        return run.operation == DELETE and run.current >= run.first[0] and task.write_ids.is_valid(run.current)

    insert_side = EventStream(
        fs, task, task.inserts, keep_insert, partial(all_live, write_ids=task.write_ids, dead=dead)
    )
    delete_side = EventStream(fs, task, task.deletes, keep_delete, keeps_deletes, look=DeleteCheck().see)
    segment = written = None
    if task.segment is None:
        written = insert_side.write()
    else:
        segment = insert_side.write_segment(task.segment)
    deleted = delete_side.write()
    read = insert_side.rows_read + delete_side.rows_read
    kept = sum(item.expected.rows for item in (written, segment, deleted) if item)
    return BucketResult(task.bucket, written, deleted, read, read - kept, segment)
