"""The write-id axis of a location: one bar per directory, so that overlaps and gaps are seen at a glance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from acidctl.acid.names import MINL
from acidctl.acid.state import State, Verdict

MARKS = {State.CURRENT: "█", State.OBSOLETE: "░", State.ABORTED: "x", State.IGNORED: "·"}
"""How the bar of each state is drawn; the marks differ, so that colour is not needed to tell them apart."""

_ASCII_MARKS = {State.CURRENT: "#", State.OBSOLETE: "-", State.ABORTED: "x", State.IGNORED: "."}


def marks_for(encoding: str) -> Mapping[State, str]:
    """The marks that an encoding of the output can show."""
    try:
        "".join(MARKS.values()).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return _ASCII_MARKS
    return MARKS


@dataclass(frozen=True, slots=True)
class WriteIdBar:
    """One row.

    Attributes:
        start, end: columns of the axis, end exclusive.
    """

    verdict: Verdict
    start: int
    end: int

    def draw(self, width: int, marks: Mapping[State, str] = MARKS) -> str:
        """The bar in `width` columns."""
        return " " * self.start + marks[self.verdict.state] * (self.end - self.start) + " " * (width - self.end)


def bars(verdicts: Sequence[Verdict], width: int) -> tuple[list[WriteIdBar], tuple[int, int]]:
    """Bars for all ACID directories, and the lowest and highest write id of the axis.

    A base reaches from the start of the axis to its write id: it holds all before. Where there are more write ids
    than columns several share one; a bar is at least one column wide.
    """
    directories = [verdict for verdict in verdicts if verdict.directory]
    ids = [i for v in directories if v.directory for i in (v.directory.min_write_id, v.directory.max_write_id)]
    ids = [i for i in ids if i != MINL]
    low, high = (min(ids), max(ids)) if ids else (0, 0)
    if any(v.kind.value == "base" for v in directories):
        low = min(low, max(0, low - 1))
    scale = min(1.0, width / (high - low + 1))

    def column(write_id: int) -> int:
        return min(width, max(0, int((write_id - low) * scale)))

    drawn = []
    for verdict in directories:
        directory = verdict.directory
        assert directory is not None
        start = 0 if verdict.kind.value == "base" else column(directory.min_write_id)
        end = max(start + 1, column(directory.max_write_id + 1))
        drawn.append(WriteIdBar(verdict, min(start, width - 1), min(end, width)))
    return drawn, (low, high)
