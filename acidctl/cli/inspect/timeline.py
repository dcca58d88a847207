"""The timeline of a location over its write ids: three lanes, with a line for each state in a lane."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rich.cells import cell_len
from rich.text import Text

from acidctl.acid.names import MAXL, MINL
from acidctl.acid.reasons import Code
from acidctl.acid.state import EntryKind, State
from acidctl.cli.output.screen import STATE_STYLES
from acidctl.location.snapshot import Child, Snapshot, children_of
from acidctl.wording import human_bytes

STEPS = 8
"""The number of heights of a column above 0."""

STEP = 4
"""The ratio between the sizes of two neighbouring steps. On a linear scale, most directories would have no height."""

BLOCKS, _ASCII_BLOCKS = " ▁▂▃▄▅▆▇█", " .:-=+*%#"
"""Characters for columns of rising height."""

_POINTER, _ASCII_POINTER = "▲", "^"
_STYLES = {**STATE_STYLES, "open": "cyan"}
_WIDEST_ID = 4
"""The most columns for one write id, so that a timeline of few ids stays narrow."""

_GAP = 2
_NARROWEST = 20
"""If fewer columns are left beside the labels, the picture goes below them."""


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


@dataclass(frozen=True, slots=True)
class LaneRow:
    """The children of a lane that are in the same state, in the order of their write ids."""

    lane: Lane
    state: LaneState
    children: tuple[Child, ...]


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
            for column in range(*self.span(*ids_of(child, self.low), columns)):
                sizes[column] = (sizes[column] or 0) + child.amount.bytes
        return sizes


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
    ids = [id_ for child in drawn if (d := child.verdict.directory) for id_ in d.range if id_ != MINL]
    low, high = (min(ids), max(ids)) if ids else (0, 0)
    if ids and any(_LANES[child.verdict.kind] is Lane.BASE for child in drawn):
        low = max(0, low - 1)
    by_row: dict[tuple[Lane, LaneState], list[Child]] = {}
    for child in drawn:
        by_row.setdefault((_LANES[child.verdict.kind], _state_of(child)), []).append(child)
    for row in by_row.values():
        row.sort(key=lambda child: (*ids_of(child, low), child.verdict.name))
    keys = ((lane, state) for lane in Lane for state in LaneState)
    rows = tuple(LaneRow(*key, tuple(by_row[key])) for key in keys if key in by_row)
    return Lanes(low, high, rows, min_open if low <= min_open <= high else None)


def _state_of(child: Child) -> LaneState:
    verdict = child.verdict
    is_open = verdict.state is State.IGNORED and verdict.reason.code in (Code.WRITE_ID_OPEN, Code.VISIBILITY_OPEN)
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


def timeline(lanes: Lanes, width: int, encoding: str = "utf-8") -> Iterator[Text]:
    """Yield the lines of the picture; only the line with the lowest and highest write id may be wider than `width`.

    A location without write ids has no lines.

    Args:
        encoding: the encoding of the output; without block elements, other characters are used.
    """
    if not lanes.rows:
        return
    blocks, pointer = (BLOCKS, _POINTER) if _can_show(BLOCKS + _POINTER, encoding) else (_ASCII_BLOCKS, _ASCII_POINTER)
    words = _labels(lanes.rows)
    indent = max(len(words[0]), len("write ids")) + _GAP
    is_beside = width - indent >= _NARROWEST
    left = indent if is_beside else _GAP
    columns = lanes.columns(max(1, width - left))
    drawn, highest = heights([lanes.amounts(row, columns) for row in lanes.rows])
    low, high = str(lanes.low), str(lanes.high)
    ends = low if low == high else low + high.rjust(max(columns - len(low), len(high) + 1))
    yield Text(("write ids" if is_beside else "").ljust(left) + ends, "dim")
    for row, line, heads in zip(lanes.rows, drawn, words, strict=True):
        if not is_beside:
            yield Text(heads.rstrip())
        text = Text((heads if is_beside else "").ljust(left))
        yield text.append("".join(blocks[step] for step in line).rstrip(), _STYLES[row.state.value])
    if lanes.blocking is not None:
        label = f"{lanes.blocking} is open: blocks compaction"
        at = left + lanes.span(lanes.blocking, lanes.blocking, columns)[0]
        fits_behind = at + len(pointer) + 1 + len(label) <= width
        is_before = at - left > len(label) or (not fits_behind and at > len(label))
        yield Text(f"{label} ".rjust(at) + pointer if is_before else " " * at + f"{pointer} {label}", "yellow")
    legend = f"{blocks[-1]} {human_bytes(highest)}; a step lower is {STEP} times less"
    yield Text((" " * left if left + len(legend) <= width else "") + legend, "dim")


def _can_show(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _labels(rows: Sequence[LaneRow]) -> list[str]:
    sizes = [human_bytes(sum(child.amount.bytes for child in row.children)) for row in rows]
    cells = [(r.lane.value, f"{len(r.children):,}", r.state.value, size) for r, size in zip(rows, sizes, strict=True)]
    widths = [max(cell_len(cell[i]) for cell in cells) for i in range(4)]
    return [
        f"{lane:<{widths[0]}}  {count:>{widths[1]}} {state:<{widths[2]}}  {size:>{widths[3]}}"
        for lane, count, state, size in cells
    ]
