"""A big bucket in pieces that several executors can work on: ranges of stripes whose keys do not interleave.

Only tails are looked at.  What they say may be wrong in a damaged file; then the pieces overlap, and the step that
joins them refuses, since it checks the order again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from acidctl.compaction.proof.keys import Key
from acidctl.orc.tail import stripe_length
from acidctl.rows.read.delete_set import stripe_ranges
from acidctl.rows.read.events import EventFile

_Bound = tuple[Key, int]
"""A key and 1 for "after it", 0 for "it"."""

_LEAST: _Bound = ((-(1 << 63), -(1 << 63), -(1 << 63)), 0)
_GREATEST: _Bound = (((1 << 63) - 1, (1 << 63) - 1, (1 << 63) - 1), 1)

StripeSpan = tuple[int, int]
"""The first stripe and the one after the last."""


@dataclass(frozen=True, slots=True)
class StripeGroup:
    """Stripes of one bucket's files, all of whose keys are above those of the piece before it.

    Attributes:
        spans: the stripes of each of its files, by the file's place among the bucket's.
        bytes: stored bytes of these stripes.
        rows: events in them.
    """

    spans: Mapping[int, StripeSpan]
    bytes: int
    rows: int

    def __add__(self, after: StripeGroup) -> StripeGroup:
        """Both, as one."""
        spans = dict(self.spans)
        for file, (first, end) in after.spans.items():
            spans[file] = (spans.get(file, (first, end))[0], end)
        return StripeGroup(spans, self.bytes + after.bytes, self.rows + after.rows)


@dataclass(frozen=True, slots=True)
class _Stripe:
    file: int
    number: int
    low: _Bound
    high: _Bound
    bytes: int
    rows: int


def split(files: Sequence[EventFile], limit: int) -> list[StripeGroup]:
    """Cut the stripes of one bucket's files into pieces of ascending keys.

    Args:
        limit: stored bytes at which a piece ends, as soon as the keys allow it.

    Returns:
        The pieces; one when the bucket is small, or its keys interleave everywhere.
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
    """Fewer and larger pieces: each of as many as reach `limit` stored bytes."""
    larger: list[StripeGroup] = []
    for piece in pieces:
        if larger and larger[-1].bytes < limit:
            larger[-1] += piece
        else:
            larger.append(piece)
    return larger


def _stripes(files: Sequence[EventFile]) -> Iterator[_Stripe]:
    for place, file in enumerate(files):
        bounds = _synthetic_bounds(file) if file.synthetic else _native_bounds(file)
        # Out of order, the stripes of the file could not be told apart by their place: leave them together.
        if any(one[0] > other[0] for one, other in pairwise(bounds)):
            bounds = [(_LEAST, _GREATEST)] * len(bounds)
        for number, ((low, high), info) in enumerate(zip(bounds, file.tail.stripes, strict=True)):
            yield _Stripe(place, number, low, high, stripe_length(info), info.numberOfRows)


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
