"""The tasks of a plan: one for each bucket of the result, with the types and settings that all of them share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate, groupby
from typing import Any

import pyarrow as pa

from acidctl.acid.bucket import MAX_BUCKET
from acidctl.acid.compaction_kind import CompactionKind, Hive
from acidctl.acid.names import BucketFile, is_visible_path, parse_file
from acidctl.base.errors import RefusedError
from acidctl.compaction.concat.parquet_types import difference
from acidctl.compaction.output_settings import Writing, output_row_type
from acidctl.compaction.rebalance import Runs, shares_of
from acidctl.compaction.refusals import one_format, refuse_differing, require_known_widths, require_plain_lines
from acidctl.compaction.split import FINEST, cut, split
from acidctl.compaction.tasks import (
    JULIAN_GREGORIAN,
    PROLEPTIC_GREGORIAN,
    BucketTask,
    ConcatTask,
    CountTask,
    FileTask,
    Input,
)
from acidctl.location.metastore_schema import Declared
from acidctl.location.snapshot import Snapshot
from acidctl.orc.tail import FIRST_READ
from acidctl.orc.types import OrcType
from acidctl.orc.write.writer_settings import bloom_ids
from acidctl.rows.convert.conform import require_convertible
from acidctl.rows.convert.matching import merge_row_types
from acidctl.rows.foreign.format import Format
from acidctl.rows.read.bucket_numbers import BucketNumbers, Kills, is_misplaced
from acidctl.rows.read.events import EventFile

_COUNTED = 256 << 20
"""Stored bytes of files whose rows one task of a rebalance counts; it reads only their ids."""
_AT_ONCE = 64 << 20
_FEWEST = 100_000
"""A task of a rebalance has rows of this many stored bytes in memory, or this many rows if those are more."""


def plan_tasks(
    snapshot: Snapshot,
    kind: CompactionKind,
    sources: Sequence[EventFile],
    attempts: str,
    writing: Writing,
    *,
    insert_only: bool,
    acid_version: int,
    rebalance: int | None,
) -> tuple[Spread | None, Sequence[BucketTask | ConcatTask | CountTask]]:
    """Return the tasks of a location, one for each bucket, or several if the task size is set.

    Args:
        sources: in read order; none of an insert-only table has ACID columns.
        attempts: absolute path of the directory for outputs.
        writing: if it overrides settings of ORC, no stripe is copied.
        rebalance: see :func:`acidctl.compaction.plan.plan_compaction`; the tasks only count the rows then.

    Returns:
        How a rebalance writes its rows, else None; and the tasks.

    Raises:
        RefusedError: Hive reads a file differently from acidctl, or the output cannot hold all values; the files have
            several formats, or are text that cannot be concatenated; settings of ORC are given for files of another
            format; or there are too many buckets.
    """
    if insert_only and not sources:
        return None, []
    inserts = [source for source in sources if not source.is_delete]
    deletes = [source for source in sources if source.is_delete]
    format_ = one_format(snapshot, sources) if insert_only else Format.ORC
    if format_ is Format.TEXT:
        require_plain_lines(snapshot, sources)
    of_rows = inserts if rebalance is not None else inserts or deletes
    by_age = sorted(of_rows, key=lambda source: source.file.max_write_id)
    row = _row_type(snapshot, by_age, format_, insert_only=insert_only)
    if writing.overrides and format_ is not Format.ORC:
        raise RefusedError(
            f"cannot compact {snapshot.shown} with these settings",
            f"its files are {format_}, and settings such as compression and stripe size are ORC's",
            "leave them out: the newest file's are taken",
        )
    refuse_differing(snapshot, inserts, row, writing.reader)
    _refuse_unconverted(inserts, row)
    settings = writing.settings_for(by_age[-1] if inserts else None, kind)
    bloom_ids(settings.bloom_columns, row)  # refuses columns that cannot have them
    shared = {
        "storage": snapshot.fs.spec,
        "attempts": attempts,
        "row": row,
        "settings": settings,
        "may_copy": not writing.overrides and rebalance is None,
        "verify": writing.verify,
        "reader": writing.reader,
        "applies_all": writing.apply_all_deletes,
    }
    if insert_only:
        return None, _concat_tasks(shared, sources, format_, snapshot.declared)
    killing = [source for source in sources if source.is_delete or source.may_hold_changes]
    of_bucket = shared | {"kind": kind, "write_ids": snapshot.write_ids, "acid_version": acid_version}
    if rebalance is None:
        written = deletes if kind is CompactionKind.MINOR else []
        return None, _bucket_tasks(of_bucket, inserts, written, killing, sources, task_bytes=writing.task_bytes)
    buckets = rebalance or _buckets_of(snapshot)
    if min(buckets, sum(source.rows for source in inserts)) > MAX_BUCKET + 1:
        what = f"cannot rebalance {snapshot.shown} over {buckets} buckets"
        raise RefusedError(what, f"a ROW__ID has room for {MAX_BUCKET + 1}", "give fewer --buckets")
    return _rebalance_tasks(of_bucket, inserts, killing, sources, buckets)


def _bucket_tasks(
    shared: dict[str, Any],
    inserts: Sequence[EventFile],
    deletes: Sequence[EventFile],
    killing: Sequence[EventFile],
    sources: Sequence[EventFile],
    *,
    task_bytes: int | None,
) -> list[BucketTask]:
    least = task_bytes or FINEST
    inserts_of, deletes_of = _by_bucket(inserts), _by_bucket(deletes)
    buckets = sorted({source.file.bucket for source in sources})
    kills_of = [Kills(tuple(killing) if bucket in inserts_of else ()) for bucket in buckets]
    if killing and len(buckets) > 1:
        kills_of = BucketNumbers(sources).kills_of([inserts_of[bucket] for bucket in buckets], killing)
    tasks = []
    for bucket, kills in zip(buckets, kills_of, strict=True):
        rows, events = inserts_of[bucket], deletes_of[bucket]
        if not rows and not events:
            continue
        pieces = split(rows, least) if sum(file.file.size for file in rows) > least else []
        whole = BucketTask(
            **shared,
            **_amount([*rows, *events]),
            bucket=bucket,
            calendar=_calendar_of(rows),
            inserts=_inputs_of(rows),
            deletes=_inputs_of(events),
            kills=_inputs_of(kills.files),
            kills_of=kills.buckets,
            pieces=tuple(pieces) if len(pieces) > 1 else (),
        )
        tasks += cut(whole, task_bytes) if task_bytes else [whole]
    return tasks


def _concat_tasks(
    shared: dict[str, Any], sources: Sequence[EventFile], format_: Format, declared: Declared | None
) -> list[ConcatTask]:
    """Return a task for each bucket number; a file without a number in its name goes to bucket 0."""
    return [
        ConcatTask(
            **shared,
            **_amount(files),
            bucket=bucket,
            sources=_inputs_of(files),
            format=format_,
            calendar=_calendar_of([source for source in files if source.rows]),
            declared=declared if format_ is Format.TEXT else None,
        )
        for bucket, files in sorted(_by_bucket(sources).items())
    ]


@dataclass(frozen=True, slots=True)
class Spread:
    """The plan by which a rebalance writes its buckets once all rows are counted.

    Attributes:
        buckets: the requested number of buckets.
        like: a task with all inputs, without a share.
        kills: for each input, the files with events that may delete its rows.
        most: the most rows that a task has in memory.
    """

    buckets: int
    like: BucketTask
    kills: tuple[Kills, ...]
    most: int

    def tasks_for(self, runs: Runs) -> list[BucketTask]:
        """Return a task for each bucket that gets rows."""
        tasks, total = [], int(runs.count.sum())
        for bucket, shares in enumerate(shares_of(runs, self.buckets, self.most)):
            rows = sum(share.count for share in shares)
            files = sorted({file for share in shares for file in share.spans})
            numbers = {file: number for number, file in enumerate(files)}
            renumbered = tuple(
                replace(share, spans={numbers[file]: span for file, span in share.spans.items()}) for share in shares
            )
            inserts = tuple(self.like.inserts[file] for file in files)
            weight = self.like.weight * rows // total
            whole = replace(self.like, bucket=bucket, shares=renumbered, inserts=inserts, weight=weight, rows=rows)
            tasks.append(replace(whole, **_killing([self.kills[file] for file in files])))
        return tasks


def _rebalance_tasks(
    shared: dict[str, Any],
    inserts: Sequence[EventFile],
    killing: Sequence[EventFile],
    sources: Sequence[EventFile],
    buckets: int,
) -> tuple[Spread, list[CountTask]]:
    """Return the plan of a rebalance, and the tasks that count its rows first."""
    kills = [Kills(())] * len(inserts)
    if killing:
        kills = BucketNumbers(sources).kills_of([(source,) for source in inserts], killing)
    like = BucketTask(
        **shared,
        **_amount(inserts),
        bucket=0,
        calendar=_calendar_of(inserts),
        inserts=_inputs_of(inserts),
        deletes=(),
        kills=_inputs_of(killing),
    )
    of_file = {field.name: getattr(like, field.name) for field in fields(FileTask)}
    tasks = []
    ends = list(accumulate(source.file.size for source in inserts))
    portions = groupby(range(len(inserts)), key=lambda at: (ends[at] - inserts[at].file.size) // _COUNTED)
    for first, *others in (list(portion) for _, portion in portions):
        part = slice(first, first + 1 + len(others))
        counted = {"inserts": like.inserts[part], "first": first, "write_ids": like.write_ids}
        tasks.append(CountTask(**of_file | _amount(inserts[part]) | counted | _killing(kills[part])))
    most = max(_FEWEST, like.rows * _AT_ONCE // max(like.weight, 1))
    return Spread(buckets, like, tuple(kills), most), tasks


def _buckets_of(snapshot: Snapshot) -> int:
    """Return the number of buckets as Hive counts it for a rebalance: by all files with a bucket in their name."""
    names = (entry.path.rpartition("/")[2] for entry in snapshot.listing.entries if is_visible_path(entry.path))
    buckets = {parsed.bucket for name in names if isinstance(parsed := parse_file(name), BucketFile)}
    return len(buckets) or max(1, len({file.bucket for file in snapshot.files()}))


# --- the fields of several kinds of task -----------------------------------------------------------------------------


def _row_type(snapshot: Snapshot, by_age: Sequence[EventFile], format_: Format, *, insert_only: bool) -> OrcType:
    """Return the columns of the output; `by_age` are the files of rows, the newest last."""
    # Hive also writes empty files without columns to insert-only tables.
    wide = [source for source in by_age if source.rows or not insert_only] or by_age[-1:]
    types = [source.row_type for source in wide]
    if not types:
        return OrcType("struct")
    if format_ is Format.ORC:
        return output_row_type(snapshot, types)
    row = merge_row_types(types)  # Parquet and text have their own conversions, which refuse what they cannot convert
    if format_ is Format.PARQUET:
        require_known_widths(snapshot, types, row)
    return row


def _refuse_unconverted(sources: Sequence[EventFile], row: OrcType) -> None:
    """Refuse columns whose types alone show that they do not become those of the result.

    Raises:
        BadDataError, RefusedError: see :func:`require_convertible`, or :func:`difference` for Parquet.
    """
    for source in sources:
        if not source.rows:
            continue
        if source.format is Format.ORC:
            require_convertible(source.row_type, row, source.shown)
        elif source.format is Format.PARQUET and (why := difference(source.row_type, pa.schema([]), row)):
            raise RefusedError(f"cannot compact {source.shown} with the other files", why, "let Hive compact it")


def open_questions(kind: CompactionKind, sources: Sequence[EventFile], writing: Writing) -> Iterator[str]:
    """Yield what decides if a compaction is refused, and is known only when rows are read."""
    for source in sources:
        statistics = source.tail.column_statistics(1) if source.synthetic is None else None
        if source.is_delete:
            if (
                kind is CompactionKind.MAJOR
                and not writing.apply_all_deletes
                and is_misplaced(source.file, source.tail)
            ):
                yield f"whether deletes in {source.shown} meet rows of other buckets, which is refused (V21)"
        elif statistics and statistics.intStatistics.maximum > 0 and writing.reader is not Hive.HIVE2:
            yield f"whether {source.shown} holds updates or deletes, which is refused (V12)"


def _amount(files: Iterable[EventFile]) -> dict[str, Any]:
    listed = list(files)
    return {"weight": sum(source.file.size for source in listed), "rows": sum(source.rows for source in listed)}


def _killing(kills: Sequence[Kills]) -> dict[str, Any]:
    files = {source.path: source for kill in kills for source in kill.files}
    return {
        "kills": _inputs_of(list(files.values())),
        "kills_of": frozenset[int]().union(*(kill.buckets or () for kill in kills)),
    }


def _by_bucket(sources: Iterable[EventFile]) -> defaultdict[int, list[EventFile]]:
    by_bucket = defaultdict[int, list[EventFile]](list)
    for source in sources:
        by_bucket[max(source.file.bucket, 0)].append(source)
    return by_bucket


def _calendar_of(sources: Sequence[EventFile]) -> int:
    """Return the calendar of the inputs if all have the same; else all dates move to the proleptic calendar."""
    return JULIAN_GREGORIAN if sources and all(source.is_hybrid for source in sources) else PROLEPTIC_GREGORIAN


def _inputs_of(sources: Sequence[EventFile]) -> tuple[Input, ...]:
    """Return the files in the form that a task carries."""
    return tuple(
        Input(s.file, s.path, s.length, s.synthetic, tail=s.tail if s.tail.length <= FIRST_READ else None)
        for s in sources
    )
