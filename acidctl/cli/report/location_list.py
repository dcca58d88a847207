"""Lists of locations, in which the partitions of a table may share a line, and of the entries of a location."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from acidctl.acid.state import State
from acidctl.cli.output.console import console, put_text
from acidctl.cli.output.list_choice import BYTES, ListChoice, Record
from acidctl.cli.output.screen import STATE_STYLES, FittedTable, Row, ScreenColumn, fitted, on_screen
from acidctl.cli.output.verbosity import VERBOSITY
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

    def add(self, status: LocationStatus) -> None:
        """Add a location; the locations of a table must come one after the other."""
        line = _Line.of(status)
        self._whole += line.figures
        if self._partitions and folder_of_table(self._partitions[-1].shown) != folder_of_table(line.shown):
            self._fold(is_large=False)
        (self._lines if VERBOSITY.is_verbose else self._partitions).append(line)
        if len(self._partitions) == _TOGETHER and not self._choice.key:
            self._fold(is_large=True)
            self._print()
        if len(self._lines) >= self._page and not self._choice.key:
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
        by_record = {id(line.record): line for line in self._lines}
        records = self._choice.in_order([line.record for line in self._lines])
        lines, self._lines = [by_record[id(record)] for record in records], []
        table = (
            _table(lines, self._choice.has_headings) if self._choice.columns is None else self._choice.table(records)
        )
        table.print(console())
        self._choice = replace(self._choice, has_headings=False)


def due_text(figures: Figures) -> str:
    """Return how many compactions are due, and how many others would help readers.

    The thresholds count directories and bytes, and not what readers gain: the two numbers are of different locations.
    """
    due = figures.due.total()
    text = f"a compaction is due in {due:,}" if due else "no compaction is due"
    more = f", but one would save reads in {figures.helped:,}{' more' * bool(due)}"
    return text + more if figures.helped else text


def _table(lines: Sequence[_Line], has_headings: bool) -> FittedTable:
    def cell(name: str) -> Callable[[_Line], str]:
        return lambda line: "" if line.record[name] is None else f"{line.record[name]:,}"

    def row(line: _Line, cells: tuple[str, ...]) -> Row:
        verdict = line.record["verdict"]
        return Row(cells, line.record["why"], styles=((1, VERDICT_STYLES.get(verdict, "yellow")),))

    is_folded = any(line.figures.locations > 1 for line in lines)
    partitions = (
        ScreenColumn("partitions", True, 5, is_clear=False),
        lambda line: f"{line.figures.locations:,}" if line.figures.locations > 1 else "",
    )
    return fitted(
        [
            (ScreenColumn("location"), lambda line: line.shown),
            (ScreenColumn("verdict"), lambda line: line.record["verdict"]),
            *([partitions] * is_folded),
            (ScreenColumn("base", worth=0, is_clear=False), lambda line: line.record["base"] or ""),
            (ScreenColumn("deltas", True, is_clear=False), cell("deltas")),
            (ScreenColumn("current", True, 1, beside=True, is_clear=False), cell("current")),
            (ScreenColumn("obsolete", True, 4, is_clear=False), cell("obsolete")),
            (ScreenColumn("aborted", True, 2, is_clear=False), cell("aborted")),
            (ScreenColumn("size", True, 3), lambda line: human_bytes(line.figures.bytes)),
            *(
                [(ScreenColumn("free (UTC)", worth=6), lambda line: line.figures.free.cell)]
                * any(line.figures.free.cell for line in lines)
            ),
        ],
        "why",
        lines,
        row,
        has_headings=has_headings,
    )


def entries_table(entries: Sequence[Record], *, is_sorted: bool, rows: bool, has_headings: bool) -> FittedTable:
    """Return the table of a location's entries; of many, those of one state and reason share a row.

    Args:
        is_sorted: the user chose an order, so that none share a row.
        rows: whether rows were counted, and have a column.
    """
    if len(entries) > _MOST_ENTRIES and not (VERBOSITY.is_verbose or is_sorted):
        return _folded_entries(entries, rows=rows)

    def row(entry: Record, cells: tuple[str, ...]) -> Row:
        is_plain = entry["reasonCode"] in PLAIN_CODES
        return Row(cells, entry["reason"], is_plain, ((5, STATE_STYLES[entry["state"]]),))

    def cell(name: str) -> Callable[[Record], str]:
        return lambda entry: "" if entry[name] is None else str(entry[name])

    return fitted(
        [
            (ScreenColumn("name"), cell("name")),
            (ScreenColumn("kind", worth=5), cell("kind")),
            (ScreenColumn("write ids", True, 6, is_clear=False), _write_ids),
            (ScreenColumn("stmt", True, 2, beside=True, is_clear=False), cell("statementId")),
            (ScreenColumn("vis txn", True, 1, beside=True, is_clear=False), cell("visibilityTxnId")),
            (ScreenColumn("state"), cell("state")),
            (ScreenColumn("files", True, 3, beside=True, is_clear=False), cell("files")),
            (ScreenColumn("size", True, 8), lambda entry: human_bytes(entry["bytes"])),
            *([(ScreenColumn("rows", True, 7, is_clear=False), cell("rows"))] * rows),
            (ScreenColumn("modified (UTC)", worth=4), lambda entry: on_screen(entry["modified"])),
        ],
        "reason",
        entries,
        row,
        has_headings=has_headings,
    )


def _write_ids(entry: Record) -> str:
    low, high = entry["minWriteId"], entry["maxWriteId"]
    return "" if low is None else str(high) if low == high else f"{low} to {high}"


def _folded_entries(entries: Sequence[Record], *, rows: bool) -> FittedTable:
    groups: dict[tuple[str, str], list[Record]] = {}
    for entry in entries:
        groups.setdefault((entry["state"], entry["reason"]), []).append(entry)

    def row(group: list[Record], cells: tuple[str, ...]) -> Row:
        is_plain = group[0]["reasonCode"] in PLAIN_CODES
        return Row(cells, group[0]["reason"], is_plain, ((2, STATE_STYLES[group[0]["state"]]),))

    def total(name: str) -> Callable[[list[Record]], Any]:
        return lambda group: f"{sum(filter(None, (entry[name] for entry in group))):,}"

    return fitted(
        [
            (ScreenColumn("names"), lambda group: names_in_short(entry["name"] for entry in group)),
            (ScreenColumn("entries", True), lambda group: f"{len(group):,}"),
            (ScreenColumn("state"), lambda group: group[0]["state"]),
            (ScreenColumn("files", True, 2, is_clear=False), total("files")),
            (ScreenColumn("size", True, 3), lambda group: human_bytes(sum(entry["bytes"] for entry in group))),
            *([(ScreenColumn("rows", True, 1, is_clear=False), total("rows"))] * rows),
        ],
        "reason",
        groups.values(),
        row,
    )


def states_text(figures: Figures) -> str:
    """Return the number of entries by state: ``1 current, 4 obsolete``."""
    return ", ".join(f"{figures.entries[state]:,} {state}" for state in State if figures.entries[state]) or "empty"
