"""Lists of locations, in which the partitions of a table may share a line, and of the entries of a location."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from acidctl.acid.state import State
from acidctl.cli.output.console import put_text
from acidctl.cli.output.screen import (
    BYTES,
    STATE_STYLES,
    Column,
    Layout,
    ListChoice,
    Pages,
    Record,
    column,
    number,
    on_screen,
    print_table,
)
from acidctl.cli.output.terminal import VERBOSITY
from acidctl.cli.report.folding import HANDFUL, folder_of_table
from acidctl.overview.location_status import OK, UNSAFE, Figures, LocationStatus
from acidctl.wording import human_bytes, human_count, names_in_short

_BYTES_COLUMNS = ("bytes", "cost", "rewritten", "saved")
LOCATION_COLUMNS = {
    **dict.fromkeys(("location", "name", "table", "verdict", "why", "base", "compaction"), "string"),
    **{
        name: BYTES if name.endswith("Bytes") or name in _BYTES_COLUMNS else "bigint"
        for name in Figures().record()
        if name != "helped"
    },
    **dict.fromkeys(("gain", "seconds", "secondsAfter"), "double"),
    "helps": "string",
}
"""The columns of a location in CSV and for `--where`, `--sort` and `--columns`, with their kinds."""

ENTRY_COLUMNS = {
    "location": "string", "name": "string", "kind": "string", "minWriteId": "bigint", "maxWriteId": "bigint",
    "statementId": "bigint", "visibilityTxnId": "bigint", "state": "string", "reason": "string", "files": "bigint",
    "bytes": BYTES, "rows": "bigint", "modified": "string",
}  # fmt: skip
"""The columns of an entry in CSV and for `--where`, `--sort` and `--columns`, with their kinds."""

VERDICT_STYLES = {OK: "green", UNSAFE: "bold red", "unreadable": "red", "refused": "red", "left alone": "dim"}
"""Colours of verdicts; the others, in which something is due or unknown, are yellow."""

PLAIN_CODES = ("is-read",)
"""Reason codes that are left out if the reason would take a line of its own."""

_MOST_ENTRIES = 20
"""A location with more entries than this is folded."""

_FIRST_PAGE, _PAGE = 25, 1000
"""Lines of a large tree are printed in pages: the first one soon, and never all lines in memory."""

_SOON = 1.0
"""Seconds after which the first lines are printed, though they fill no page."""

_TOGETHER = 500
"""The most partitions that one line covers, so that a large table shows lines while it is listed."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A location, or several partitions of a table, as a line of the list."""

    shown: str
    figures: Figures
    record: Record = field(repr=False)

    @classmethod
    def of(cls, status: LocationStatus) -> _Line:
        return cls(status.shown, status.figures, status.record())

    @classmethod
    def together(cls, lines: Sequence[_Line]) -> _Line:
        """Return the sum of some partitions of one table."""
        verdicts = Counter(line.record["verdict"] for line in lines)
        verdict, _ = verdicts.most_common(1)[0]
        figures, why = sum((line.figures for line in lines), Figures()), ""
        if len(verdicts) > 1:
            others = [f"{count:,} {name}" for name, count in verdicts.most_common() if name != OK]
            due = figures.due.total()
            verdict, why = f"{due:,} due" if due else "see why", ", ".join(others)
        first, shown = lines[0], folder_of_table(lines[0].shown)
        record = {**dict.fromkeys(first.record), "location": folder_of_table(first.record["location"])}
        record |= {"name": shown if first.record["name"] else None, "table": first.record["table"]}
        return cls(shown, figures, {**record, "verdict": verdict, "why": why, **figures.record()})


class LocationList:
    """Prints lines for people as they come, or all at the end if they are to be sorted."""

    def __init__(self, choice: ListChoice) -> None:
        self._choice = choice
        self._lines: list[_Line] = []
        self._partitions: list[_Line] = []
        self._page = _FIRST_PAGE
        self._sums_up = choice.has_headings
        self._is_large = False
        self._whole = Figures()
        self._began = monotonic()
        self._pages = Pages()

    def add(self, status: LocationStatus) -> None:
        """Add a location; the locations of a table must come one after the other."""
        line = _Line.of(status)
        self._whole += line.figures
        if self._partitions and folder_of_table(self._partitions[-1].shown) != folder_of_table(line.shown):
            self._fold(is_large=False)
        (self._lines if VERBOSITY.is_verbose else self._partitions).append(line)
        if self._choice.key:
            return
        is_late = self._pages.shown is None and monotonic() - self._began > _SOON
        if len(self._partitions) == _TOGETHER or (is_late and len(self._partitions) > 1):
            self._fold(is_large=True)
            self._print()
        elif len(self._lines) >= self._page or is_late:
            self._print()
            self._page = _PAGE

    def close(self) -> None:
        """Print the remaining lines and the totals."""
        self._fold(is_large=False)
        self._print()
        whole = self._whole
        if whole.locations > HANDFUL and self._sums_up:
            parts = [human_count(whole.locations, "location"), human_bytes(whole.bytes), due_text(whole)]
            put_text(", ".join([*parts, *[whole.free.text] * bool(whole.free.text)]))

    def _fold(self, *, is_large: bool) -> None:
        """Turn the gathered partitions into lines; `is_large` means that more of their table may follow."""
        if self._partitions and (self._is_large or len(self._partitions) > HANDFUL):
            self._lines.append(_Line.together(self._partitions))
        else:
            self._lines += self._partitions
        self._partitions, self._is_large = [], is_large

    def _print(self) -> None:
        if not self._lines:
            return
        choice, lines = self._choice, self._choice.in_order(self._lines, lambda line: line.record)
        self._lines = []
        if choice.columns is None:
            print_table(_LOCATIONS, lines, has_headings=choice.has_headings, pages=self._pages)
        else:
            records = [line.record for line in lines]
            print_table(choice.layout(), records, has_headings=choice.has_headings, pages=self._pages)


def due_text(figures: Figures) -> str:
    """Return how many compactions are due, and how many others would help readers.

    The thresholds count directories and bytes, and not what readers gain: the two numbers are of different locations.
    """
    due = figures.due.total()
    text = f"a compaction is due in {due:,}" if due else "no compaction is due"
    more = f", but one would save reads in {figures.helped:,}{' more' * bool(due)}"
    return text + more if figures.helped else text


def _number(name: str, **more: Any) -> Column[_Line]:
    return Column(name, lambda line: number(line.record[name]), right=True, **more)


_LOCATIONS = Layout[_Line](
    (
        Column("location", lambda line: line.shown),
        Column(
            "verdict",
            lambda line: line.record["verdict"],
            style=lambda line: VERDICT_STYLES.get(line.record["verdict"], "yellow"),
        ),
        Column(
            "partitions",
            lambda line: number(line.figures.locations) if line.figures.locations > 1 else "",
            right=True,
            worth=5,
            optional=True,
        ),
        Column("base", lambda line: line.record["base"] or "", worth=0),
        _number("deltas"),
        _number("current", worth=1, beside=True),
        _number("obsolete", worth=4),
        _number("aborted", worth=2),
        Column("size", lambda line: human_bytes(line.figures.bytes), right=True, worth=3),
        Column("free (UTC)", lambda line: line.figures.free.cell, worth=6, optional=True),
    ),
    "why",
    lambda line: line.record["why"],
)


def _write_ids(entry: Record) -> str:
    low, high = entry["minWriteId"], entry["maxWriteId"]
    return "" if low is None else str(high) if low == high else f"{low} to {high}"


def _text(value: object) -> str:
    return "" if value is None else str(value)


_ENTRIES = Layout[Record](
    (
        column("name"),
        column("kind", worth=5),
        Column("write ids", _write_ids, right=True, worth=6),
        column("stmt", "statementId", _text, right=True, worth=2, beside=True),
        column("vis txn", "visibilityTxnId", _text, right=True, worth=1, beside=True),
        column("state", style=lambda entry: STATE_STYLES[entry["state"]]),
        column("files", text=_text, right=True, worth=3, beside=True),
        column("size", "bytes", human_bytes, right=True, worth=8),
        column("rows", text=_text, right=True, worth=7, optional=True),
        column("modified (UTC)", "modified", on_screen, worth=4),
    ),
    "reason",
    lambda entry: entry["reason"],
    lambda entry: entry["reasonCode"] in PLAIN_CODES,
)


def _total(name: str) -> Callable[[list[Record]], str]:
    def total(group: list[Record]) -> str:
        counts = [entry[name] for entry in group if entry[name] is not None]
        return number(sum(counts)) if counts else ""

    return total


_GROUPS = Layout[list[Record]](
    (
        Column("names", lambda group: names_in_short(entry["name"] for entry in group)),
        Column("entries", lambda group: number(len(group)), right=True),
        Column("state", lambda group: group[0]["state"], style=lambda group: STATE_STYLES[group[0]["state"]]),
        Column("files", _total("files"), right=True, worth=2),
        Column("size", lambda group: human_bytes(sum(entry["bytes"] for entry in group)), right=True, worth=3),
        Column("rows", _total("rows"), right=True, worth=1, optional=True),
    ),
    "reason",
    lambda group: group[0]["reason"],
    lambda group: group[0]["reasonCode"] in PLAIN_CODES,
)


def print_entries(entries: Sequence[Record], *, is_sorted: bool, has_headings: bool) -> None:
    """Print the entries of a location; of many, those of one state and reason share a row.

    Args:
        is_sorted: the user chose an order, so that none share a row.
    """
    if len(entries) <= _MOST_ENTRIES or VERBOSITY.is_verbose or is_sorted:
        print_table(_ENTRIES, entries, has_headings=has_headings)
        return
    groups: dict[tuple[str, str], list[Record]] = {}
    for entry in entries:
        groups.setdefault((entry["state"], entry["reason"]), []).append(entry)
    print_table(_GROUPS, groups.values())


def states_text(figures: Figures) -> str:
    """Return the number of entries by state: ``1 current, 4 obsolete``."""
    return ", ".join(f"{figures.entries[state]:,} {state}" for state in State if figures.entries[state]) or "empty"
