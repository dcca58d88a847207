"""The history of reports: a file with one line of figures for each report."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from acidctl.acid.listing import LAST_SECONDS
from acidctl.base.errors import BadDataError
from acidctl.location.change.own_files import alone_in, followed, replace_file
from acidctl.storage.os_errors import mapped

FIGURES = (
    "tables", "locations", "bytes", "freeBytes", "soonBytes", "laterBytes", "abortedBytes", "trashBytes", "deltas",
    "files", "due",
)  # fmt: skip
"""The figures that are kept of a report; `files` are those that readers open."""

MOST_MOMENTS = 2000
"""The number of reports to keep: five years of one a night."""

_MOST_LINE, _MOST_BYTES, _VERSION = 64 << 10, 64 << 20, 1
_LARGEST = 1 << 63


@dataclass(frozen=True, slots=True)
class PastReport:
    """The figures of an earlier report.

    Attributes:
        at: seconds since the epoch.
        where: the places, as they were given.
        figures: the known figures of :data:`FIGURES` by name.
    """

    at: float
    where: tuple[str, ...]
    figures: Mapping[str, int] = field(default_factory=dict)

    def line(self) -> str:
        """Return its line in the file: ASCII."""
        return json.dumps({"schema_version": _VERSION, "at": self.at, "where": list(self.where), **self.figures})

    @classmethod
    def of(cls, line: str) -> PastReport | None:
        """Parse a line; return None for other lines."""
        try:
            record = json.loads(line[:_MOST_LINE])  # acidctl never writes longer lines
            if record["schema_version"] != _VERSION or not all(isinstance(place, str) for place in record["where"]):
                return None
            at = float(record["at"])
            if not (math.isfinite(at) and 0 <= at <= LAST_SECONDS):
                return None
            figures = {name: record[name] for name in FIGURES if _is_count(record.get(name))}
            return cls(at, tuple(record["where"]), figures)
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
            return None


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST


def moments_in(text: str) -> list[PastReport]:
    """Return the reports in a file, the oldest first; other lines are ignored."""
    return sorted(filter(None, map(PastReport.of, text.splitlines())), key=lambda report: report.at)


def read_history(path: str | None) -> list[PastReport]:
    """Return the reports in a file, the oldest first; nothing without a file.

    Raises:
        BadDataError: it is larger than any history of reports.
    """
    if not path or not Path(path).is_file():
        return []
    with mapped("read", path), Path(path).open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise BadDataError(f"cannot use {path}", "it is larger than any history of reports", "give another name")
    return moments_in(data.decode("utf-8", "replace"))


def remember(path: str, new: PastReport) -> None:
    """Add a report to a file, while no other process does."""
    with mapped("write", path), alone_in(followed(Path(path)).parent):
        replace_file(Path(path), text_with(read_history(path), new).encode("ascii"))


def earlier(moments: Iterable[PastReport], where: Sequence[str], now: float) -> list[PastReport]:
    """Return the reports of the same places from before now."""
    return [report for report in moments if report.where == tuple(where) and report.at < now]


def text_with(moments: Sequence[PastReport], new: PastReport) -> str:
    """Return the content of a file with a new report added and the oldest ones removed."""
    return "".join(f"{report.line()}\n" for report in [*moments, new][-MOST_MOMENTS:])
