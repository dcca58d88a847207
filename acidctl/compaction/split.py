"""Segments of a big bucket, by which several cores share the work: ranges of stripes whose keys do not interleave.

Only footers are read. If the footer of a damaged file is wrong, the segments overlap, and the step that joins them
refuses, because it checks the order of keys again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from acidctl.compaction.proof.checksum import Key
from acidctl.compaction.tasks import BucketTask, ConcatTask, CountTask, StripeGroup
from acidctl.orc.tail import stripe_length
from acidctl.rows.read.delete_set import stripe_ranges
from acidctl.rows.read.events import EventFile

_Bound = tuple[Key, int]
"""A key with 0, or with 1 for the position just after it."""

_LEAST: _Bound = ((-(1 << 63), -(1 << 63), -(1 << 63)), 0)
_GREATEST: _Bound = (((1 << 63) - 1, (1 << 63) - 1, (1 << 63) - 1), 1)


@dataclass(frozen=True, slots=True)
class _Stripe:
    file: int
    number: int
    low: _Bound
    high: _Bound
    bytes: int
    rows: int


def split(files: Sequence[EventFile], limit: int) -> list[StripeGroup]:
    """Cut the stripes of one bucket's files into groups of ascending keys, or into one if keys interleave everywhere.

    Args:
        limit: stored bytes at which a group ends, as soon as the keys allow it.
    """
    pieces: list[StripeGroup] = []
    reached = _LEAST
    for stripe in sorted(_stripes(files), key=lambda stripe: (stripe.low, stripe.file, stripe.number)):
        piece = StripeGroup({stripe.file: (stripe.number, stripe.number + 1)}, stripe.bytes, stripe.rows)
        if not pieces or (pieces[-1].bytes >= limit and reached < stripe.low):
            pieces.append(piece)
        else:
            pieces[-1] += piece
        reached = max(reached, stripe.high)
    return pieces


def joined_groups(pieces: Iterable[StripeGroup], limit: int) -> list[StripeGroup]:
    """Join neighbouring groups until each reaches `limit` stored bytes."""
    larger: list[StripeGroup] = []
    for piece in pieces:
        if larger and larger[-1].bytes < limit:
            larger[-1] += piece
        else:
            larger.append(piece)
    return larger


def _stripes(files: Sequence[EventFile]) -> Iterator[_Stripe]:
    for index, file in enumerate(files):
        bounds = _synthetic_bounds(file) if file.synthetic else _native_bounds(file)
        # A span must cover stripes in the order of their keys; otherwise the stripes of the file stay together.
        if any(one[0] > other[0] for one, other in pairwise(bounds)):
            bounds = [(_LEAST, _GREATEST)] * len(bounds)
        for number, ((low, high), info) in enumerate(zip(bounds, file.tail.stripes, strict=True)):
            yield _Stripe(index, number, low, high, stripe_length(info), info.numberOfRows)


def _synthetic_bounds(file: EventFile) -> list[tuple[_Bound, _Bound]]:
    assert file.synthetic
    write_id, bucket, start = file.synthetic.write_id, file.synthetic.bucket, file.synthetic.first_row_id
    bounds: list[tuple[_Bound, _Bound]] = []
    for info in file.tail.stripes:
        end = start + info.numberOfRows
        bounds.append((((write_id, bucket, start), 0), ((write_id, bucket, end - 1), 0)))
        start = end
    return bounds


def _native_bounds(file: EventFile) -> list[tuple[_Bound, _Bound]]:
    """Return the narrowest bounds of each stripe's keys that the statistics and the key index give."""
    index = file.tail.key_index() or []
    # Several events of ACID v1 may have one key, on both sides of a stripe's end.
    after = 0 if file.may_hold_changes and file.tail.acid_version is None else 1
    bounds = []
    for number, keys in enumerate(stripe_ranges(file.tail)):
        low, high = _LEAST, _GREATEST
        if keys:
            low = (keys.original[0], keys.bucket[0], keys.row_id[0]), 0
            high = (keys.original[1], keys.bucket[1], keys.row_id[1]), 0
        if len(index) == len(file.tail.stripes):
            last, before = index[number], index[number - 1] if number else None
            high = min(high, (last, 0)) if last else high
            low = max(low, (before, after)) if before else low
        bounds.append((low, high))
    return bounds


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
