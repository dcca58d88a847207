"""A timeline of a location over its write ids: three lanes, each with a row for every state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from acidctl.acid.names import MAXL, MINL
from acidctl.acid.reasons import Code
from acidctl.acid.state import EntryKind, State
from acidctl.location.snapshot import Child, Snapshot, children_of

STEPS = 8
"""The number of heights of a column above 0."""

STEP = 4
"""One step lower means 4 times fewer bytes: sizes differ so much that equal steps would show nothing."""

_WIDEST_ID = 4
"""The most columns for one write id, so that a timeline of few ids stays narrow."""


class Lane(StrEnum):
    """The kinds of directories; original files belong to BASE, because they take its place."""

    BASE = "base"
    DELTAS = "deltas"
    DELETES = "deletes"


class LaneState(StrEnum):
    """The state of a directory, or that its transaction has not ended."""

    CURRENT = "current"
    OBSOLETE = "obsolete"
    ABORTED = "aborted"
    OPEN = "open"
    IGNORED = "ignored"


_LANES = {
    EntryKind.BASE: Lane.BASE, EntryKind.ORIGINAL: Lane.BASE, EntryKind.DELTA: Lane.DELTAS,
    EntryKind.DELETE_DELTA: Lane.DELETES,
}  # fmt: skip
_OPEN = (Code.WRITE_ID_OPEN, Code.VISIBILITY_OPEN)


@dataclass(frozen=True, slots=True)
class LaneRow:
    """The children of a lane that are in the same state, in the order of their write ids."""

    lane: Lane
    state: LaneState
    children: tuple[Child, ...]

    @property
    def count(self) -> int:
        """Return the number of directories, or original files."""
        return len(self.children)

    @property
    def bytes(self) -> int:
        """Return their total size."""
        return sum(child.amount.bytes for child in self.children)


@dataclass(frozen=True, slots=True)
class Lanes:
    """A location over its write ids.

    Attributes:
        low, high: the ends of the axis, both inclusive.
        blocking: the lowest open write id, above which nothing is compacted; None if none is open on the axis.
    """

    low: int
    high: int
    rows: tuple[LaneRow, ...]
    blocking: int | None = None

    def columns(self, most: int) -> int:
        """Return how many columns, at most `most`, the axis takes."""
        return max(1, min(most, (self.high - self.low + 1) * _WIDEST_ID))

    def span(self, low: int, high: int, columns: int) -> tuple[int, int]:
        """Return the columns of write ids, end exclusive: at least one."""
        count = self.high - self.low + 1
        start = min(columns - 1, max(0, (low - self.low) * columns // count))
        return start, min(columns, max(start + 1, (high + 1 - self.low) * columns // count))

    def amounts(self, row: LaneRow, columns: int) -> list[int | None]:
        """Return the bytes by column, None if it is empty; what spans several columns counts in each."""
        sizes: list[int | None] = [None] * columns
        for child in row.children:
            start, end = self.span(*ids_of(child, self.low), columns)
            for column in range(start, end):
                sizes[column] = (sizes[column] or 0) + child.amount.bytes
        return sizes


def heights(rows: Iterable[Sequence[int | None]]) -> tuple[list[list[int]], int]:
    """Return the heights of columns, from 0 for nothing to :data:`STEPS`, and the bytes of the highest."""
    rows = list(rows)
    largest = max((size for row in rows for size in row if size is not None), default=0)

    def height(size: int | None) -> int:
        step, bound = STEPS, largest
        while size is not None and step > 1 and size * STEP <= bound:
            step, bound = step - 1, bound // STEP
        return 0 if size is None else step

    return [[height(size) for size in row] for row in rows], largest


def lanes_of(snapshot: Snapshot) -> Lanes:
    """Return the lanes of a listed location."""
    return lanes(children_of(snapshot), min((snapshot.write_ids.min_open, *snapshot.write_ids.open[:1])))


def lanes(children: Sequence[Child], min_open: int = MAXL) -> Lanes:
    """Return the lanes of a location's children: each that has write ids, or is an original file, is in one row.

    Args:
        min_open: the lowest open write id.
    """
    in_lanes = (child for child in children if child.verdict.kind in _LANES)
    drawn = [child for child in in_lanes if child.verdict.directory or child.verdict.kind is EntryKind.ORIGINAL]
    low, high = _axis(drawn)
    by_row: dict[tuple[Lane, LaneState], list[Child]] = {}
    for child in drawn:
        by_row.setdefault((_LANES[child.verdict.kind], lane_state_of(child)), []).append(child)
    keys = ((lane, state) for lane in Lane for state in LaneState)
    rows = (LaneRow(*key, _in_order(by_row[key], low)) for key in keys if key in by_row)
    return Lanes(low, high, tuple(rows), min_open if low <= min_open <= high else None)


def lane_state_of(child: Child) -> LaneState:
    """Return the lane state of a child."""
    verdict = child.verdict
    is_open = verdict.state is State.IGNORED and verdict.reason.code in _OPEN
    return LaneState.OPEN if is_open else LaneState(verdict.state.value)


def ids_of(child: Child, low: int) -> tuple[int, int]:
    """Return the write ids of a child on an axis that begins with `low`."""
    directory = child.verdict.directory
    if directory is None or directory.max_write_id == MINL:
        return low, low
    if child.verdict.kind is EntryKind.BASE:
        return low, max(low, directory.max_write_id)
    first, last = sorted(directory.range)  # delta_7_3 is a valid name, but not a range
    return first, last


def _axis(children: Sequence[Child]) -> tuple[int, int]:
    ids = [id_ for child in children if (d := child.verdict.directory) for id_ in d.range if id_ != MINL]
    if not ids:
        return 0, 0
    has_base = any(_LANES[child.verdict.kind] is Lane.BASE for child in children)
    return max(0, min(ids) - 1) if has_base else min(ids), max(ids)


def _in_order(children: Sequence[Child], low: int) -> tuple[Child, ...]:
    return tuple(sorted(children, key=lambda child: (*ids_of(child, low), child.verdict.name)))
