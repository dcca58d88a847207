"""A big bucket in pieces that several executors can work on: ranges of stripes whose keys do not interleave.

Only tails are looked at.  What they say may be wrong in a damaged file; then the pieces overlap, and the step that
joins them refuses, since it checks the order again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from acidctl.compaction.proof.keys import Key
from acidctl.orc.tail import stripe_length
from acidctl.rows.read.events import EventFile
from acidctl.rows.read.stripe_key_ranges import stripe_ranges

_Bound = tuple[Key, int]
"""A key and 1 for "after it", 0 for "it"."""

_LEAST: _Bound = ((-(1 << 63), -(1 << 63), -(1 << 63)), 0)
_GREATEST: _Bound = (((1 << 63) - 1, (1 << 63) - 1, (1 << 63) - 1), 1)

StripeSpan = tuple[int, int]
"""The first stripe and the one after the last."""


@dataclass(frozen=True, slots=True)
class _Stripe:
    file: int
    number: int
    low: _Bound
    high: _Bound
    bytes: int


def split(files: Sequence[EventFile], limit: int) -> list[dict[int, StripeSpan]]:
    """Cut the stripes of one bucket's files into segments of ascending keys.

    Args:
        limit: stored bytes at which a segment ends, as soon as the keys allow it.

    Returns:
        For each segment the stripes of each of its files, by the file's place in `files`. One segment when the bucket
        is small, or its keys interleave everywhere.
    """
    stripes = sorted(_stripes(files), key=lambda stripe: (stripe.low, stripe.file, stripe.number))
    segments: list[dict[int, StripeSpan]] = [{}]
    size = 0
    reached = _LEAST
    for stripe in stripes:
        if size >= limit and reached < stripe.low:
            segments.append({})
            size = 0
        first, _ = segments[-1].get(stripe.file, (stripe.number, 0))
        segments[-1][stripe.file] = (first, stripe.number + 1)
        size += stripe.bytes
        reached = max(reached, stripe.high)
    return [segment for segment in segments if segment]


def _stripes(files: Sequence[EventFile]) -> Iterator[_Stripe]:
    for place, file in enumerate(files):
        lengths = [stripe_length(info) for info in file.tail.stripes]
        bounds = _synthetic_bounds(file) if file.synthetic else _native_bounds(file)
        # Out of order, the stripes of the file could not be told apart by their place: leave them together.
        if any(one[0] > other[0] for one, other in pairwise(bounds)):
            bounds = [(_LEAST, _GREATEST)] * len(lengths)
        for number, ((low, high), length) in enumerate(zip(bounds, lengths, strict=True)):
            yield _Stripe(place, number, low, high, length)


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
    """What statistics and key index allow the keys of each stripe to be, whichever says more."""
    index = file.tail.key_index() or []
    # Several events of ACID v1 may have one key, on both sides of a stripe's end.
    after = 0 if file.may_hold_changes and file.tail.acid_version is None else 1
    bounds = []
    for number, known in enumerate(stripe_ranges(file.tail)):
        low, high = _LEAST, _GREATEST
        if known:
            low = (known.original[0], known.bucket[0], known.row_id[0]), 0
            high = (known.original[1], known.bucket[1], known.row_id[1]), 0
        if len(index) == len(file.tail.stripes):
            last, before = index[number], index[number - 1] if number else None
            high = min(high, (last, 0)) if last else high
            low = max(low, (before, after)) if before else low
        bounds.append((low, high))
    return bounds
