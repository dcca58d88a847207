"""Reports one after the other: of each a line of figures, in a file that the next one reads."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from acidctl.acid.listing import LAST_SECONDS

FIGURES = (
    "tables", "locations", "bytes", "freeBytes", "soonBytes", "laterBytes", "abortedBytes", "trashBytes", "deltas",
    "files", "due",
)  # fmt: skip
"""What is kept of a report."""

MOST_MOMENTS = 2000
"""So many of all are kept: of one a night, five years."""

_MOST_LINE, _VERSION = 64 << 10, 1
_LARGEST = 1 << 63


@dataclass(frozen=True, slots=True)
class PastReport:
    """A report, in figures.

    Attributes:
        at: seconds since the epoch.
        where: the places, as they were given.
        figures: by name; of those of :data:`FIGURES` that were known.
    """

    at: float
    where: tuple[str, ...]
    figures: Mapping[str, int] = field(default_factory=dict)

    def line(self) -> str:
        """As the file has it: ASCII."""
        return json.dumps({"schema_version": _VERSION, "at": self.at, "where": list(self.where), **self.figures})

    @classmethod
    def of(cls, line: str) -> PastReport | None:
        """Of a line; None for what is none."""
        try:
            said = json.loads(line[:_MOST_LINE])  # what is longer is none of ours
            if said["schema_version"] != _VERSION or not all(isinstance(place, str) for place in said["where"]):
                return None
            at = float(said["at"])
            if not (math.isfinite(at) and 0 <= at <= LAST_SECONDS):
                return None
            return cls(at, tuple(said["where"]), {name: said[name] for name in FIGURES if _is_count(said.get(name))})
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
            return None


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST


def moments_in(text: str) -> list[PastReport]:
    """What a file holds, the oldest first; other lines are passed over."""
    return sorted(filter(None, map(PastReport.of, text.splitlines())), key=lambda one: one.at)


def earlier(moments: Iterable[PastReport], where: Sequence[str], now: float) -> list[PastReport]:
    """Those of the same places, from before now."""
    return [one for one in moments if one.where == tuple(where) and one.at < now]


def text_with(moments: Sequence[PastReport], new: PastReport) -> str:
    """A file of these and a new one; the oldest go."""
    return "".join(f"{one.line()}\n" for one in [*moments, new][-MOST_MOMENTS:])
