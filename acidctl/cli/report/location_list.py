"""Lists of the entries of one location, and of the locations of a tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

from acidctl.acid.triggers import NO_COST, Advice
from acidctl.cli.output.console import console, put_text
from acidctl.cli.output.list_choice import BYTES, CheckedChoice, Record
from acidctl.cli.output.screen import STATE_STYLES, FittedTable, Row, ScreenColumn, fitted
from acidctl.cli.output.verbosity import VERBOSITY
from acidctl.cli.report.folding import HANDFUL, folder_of_table
from acidctl.cli.report.verdicts import OK, VERDICT_STYLES, Freeable, freeable_together, verdict_of, why_of
from acidctl.wording import human_bytes, human_count, names_in_short

LOCATION_COLUMNS = {
    "location": "string", "partitions": "bigint", "verdict": "string", "why": "string", "base": "string",
    "deltas": "bigint", "current": "bigint", "obsolete": "bigint", "aborted": "bigint", "ignored": "bigint",
    "files": "bigint", "bytes": BYTES, "free": BYTES, "freeLater": BYTES, "score": "bigint", "cost": BYTES,
    "smallFiles": "bigint", "deleteBytes": BYTES, "helps": "string", "rewritten": BYTES, "saved": BYTES,
    "gain": "double", "seconds": "double", "secondsAfter": "double",
}  # fmt: skip
"""The columns of a location for `--where`, `--sort` and `--columns`, with their kinds."""

_STATES = ("current", "obsolete", "aborted", "ignored")
_SUMMED = ("deltas", *_STATES, "files", "bytes", "free", "freeLater")
_FREE, _READING = "freeable", "reading"
_READING_COLUMNS = (
    "score", "cost", "smallFiles", "deleteBytes", "helps", "rewritten", "saved", "gain", "seconds", "secondsAfter",
)  # fmt: skip
_FIRST_PAGE, _PAGE = 25, 1000
"""Lines of a large tree are printed in pages: the first one soon, and never all lines in memory."""
_TOGETHER = 500
"""The most partitions that one line covers, so that a large table shows lines while it is listed."""


def reading_record(reading: Advice) -> dict[str, Any]:
    """Return what a full read costs now, and after the compaction that saves most of it for each byte it rewrites."""
    return {
        "cost": reading.cost,
        "directories": reading.directories,
        "files": reading.files,
        "score": reading.score,
        "smallFiles": reading.small_files,
        "deleteBytes": reading.delete_bytes,
        "helps": reading.kind.value if reading.kind else None,
        "rewritten": reading.rewritten,
        "saved": reading.saved,
        "gain": round(reading.gain, 4),
        "filesAfter": reading.files_after,
        "seconds": round(reading.seconds, 3),
        "secondsAfter": round(reading.seconds_after, 3),
    }


def line_of(report: Mapping[str, Any], free: Freeable, reading: Advice | None) -> Record:
    """Return the line of a location from its report.

    Args:
        reading: the cost of a full read; None if the location cannot be read.
    """
    summary, verdict = report["summary"], verdict_of(report)
    return {
        "location": report["location"],
        "partitions": None,
        "verdict": verdict,
        "why": why_of(report, verdict),
        "base": report["base"],
        "deltas": summary["deltas"],
        **{state: summary[state]["entries"] for state in _STATES},
        "files": summary["files"],
        "bytes": summary["bytes"],
        "free": free.now,
        "freeLater": free.later,
        **_reading_columns(reading),
        _FREE: free,
        _READING: reading,
    }


def _reading_columns(reading: Advice | None) -> Record:
    record = reading_record(reading or NO_COST)
    return {name: record[name] if reading else None for name in record if name in _READING_COLUMNS}


class LocationList:
    """Prints lines for people as they come, or all at the end if they are to be sorted."""

    def __init__(self, choice: CheckedChoice) -> None:
        self._choice = choice
        self._rows: list[Record] = []
        self._partitions: list[Record] = []
        self._is_sorted = bool(choice.key)
        self._page = _FIRST_PAGE
        self._headings = choice.has_headings
        self._sums_up = choice.has_headings
        self._is_large = False
        self._seen = self._due = self._helped = 0
        self._bytes = 0
        self._free: Freeable = Freeable()

    def add(self, line: Record) -> None:
        """Add a location; the locations of a table must come one after the other."""
        self._seen += 1
        self._due += line["verdict"].endswith(" due")
        self._helped += line["helps"] is not None and line["verdict"] == OK
        self._bytes += line["bytes"]
        self._free = freeable_together((self._free, line[_FREE]))
        folder = folder_of_table(line["location"])
        if self._partitions and folder_of_table(self._partitions[-1]["location"]) != folder:
            self._end_table()
        (self._rows if VERBOSITY.is_verbose else self._partitions).append(line)
        if len(self._partitions) == _TOGETHER and not self._is_sorted:
            self._fold(is_large=True)
            self._print()
        if len(self._rows) >= self._page and not self._is_sorted:
            self._print()
            self._page = _PAGE

    def close(self) -> None:
        """Print the remaining lines and the totals."""
        self._end_table()
        self._print()
        if self._seen > HANDFUL and self._sums_up:
            parts = [human_count(self._seen, "location"), human_bytes(self._bytes)]
            due = f"a compaction is due in {self._due:,}" if self._due else "no compaction is due"
            # The thresholds count directories and bytes, and not what readers would gain.
            more = f", but one would save reads in {self._helped:,}{' more' * bool(self._due)}"
            parts += [due + more if self._helped else due]
            parts += [self._free.text] * bool(self._free.text)
            put_text(", ".join(parts))

    def _end_table(self) -> None:
        self._fold(is_large=False)

    def _fold(self, *, is_large: bool) -> None:
        """Turn the gathered partitions into lines; `is_large` means that more of their table may follow."""
        if not self._partitions:
            return
        if self._is_large or len(self._partitions) > HANDFUL:
            self._rows.append(_together(self._partitions))
        else:
            self._rows += self._partitions
        self._partitions, self._is_large = [], is_large

    def _print(self) -> None:
        if not self._rows:
            return
        rows, self._rows = self._choice.in_order(self._rows), []
        table = _table(rows, self._headings) if self._choice.columns is None else self._choice.table(rows)
        table.print(console())
        self._choice, self._headings = replace(self._choice, has_headings=False), False


def _together(lines: Sequence[Record]) -> Record:
    verdicts = Counter(line["verdict"] for line in lines)
    verdict, _ = verdicts.most_common(1)[0]
    why = ""
    if len(verdicts) > 1:
        due = sum(count for name, count in verdicts.items() if name.endswith(" due"))
        others = [f"{count:,} {name}" for name, count in verdicts.most_common() if name != OK]
        verdict, why = f"{due:,} due" if due else "see why", ", ".join(others)
    free = freeable_together(line[_FREE] for line in lines)
    reading = reduce(add, (line[_READING] for line in lines if line[_READING]), NO_COST)
    return {
        "location": folder_of_table(lines[0]["location"]),
        "partitions": len(lines),
        "verdict": verdict,
        "why": why,
        "base": None,
        **{name: sum(line[name] for line in lines) for name in _SUMMED},
        **_reading_columns(reading),
        _FREE: free,
        _READING: reading,
    }


def _table(rows: Sequence[Record], has_headings: bool) -> FittedTable:
    def count(name: str) -> Callable[[Record], str]:
        return lambda line: f"{line[name]:,}"

    def row(line: Record, cells: tuple[str, ...]) -> Row:
        return Row(cells, line["why"], styles=((1, verdict_style(line["verdict"])),))

    is_partitioned = any(line["partitions"] for line in rows)
    partitions = (ScreenColumn("partitions", True, 5, is_clear=False), lambda line: _number(line["partitions"]))
    free = (ScreenColumn("free (UTC)", worth=6), lambda line: line[_FREE].cell)
    return fitted(
        [
            (ScreenColumn("location"), lambda line: line["location"]),
            (ScreenColumn("verdict"), lambda line: line["verdict"]),
            *([partitions] * is_partitioned),
            (ScreenColumn("base", worth=0, is_clear=False), lambda line: line["base"] or ""),
            (ScreenColumn("deltas", True, is_clear=False), count("deltas")),
            (ScreenColumn("current", True, 1, beside=True, is_clear=False), count("current")),
            (ScreenColumn("obsolete", True, 4, is_clear=False), count("obsolete")),
            (ScreenColumn("aborted", True, 2, is_clear=False), count("aborted")),
            (ScreenColumn("size", True, 3), lambda line: human_bytes(line["bytes"])),
            *([free] * any(line[_FREE].cell for line in rows)),
        ],
        "why",
        rows,
        row,
        has_headings=has_headings,
    )


def verdict_style(verdict: str) -> str:
    """Return the colour of a verdict."""
    return VERDICT_STYLES.get(verdict, "yellow")


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


ENTRY_COLUMNS = {
    "location": "string", "name": "string", "kind": "string", "minWriteId": "bigint", "maxWriteId": "bigint",
    "statementId": "bigint", "visibilityTxnId": "bigint", "state": "string", "reason": "string", "files": "bigint",
    "bytes": BYTES, "rows": "bigint", "modified": "string",
}  # fmt: skip
"""The columns of an entry in CSV and for `--where`, `--sort` and `--columns`, with their kinds."""

PLAIN_CODES = ("is-read",)
"""Reason codes that are left out if the reason would take a line of its own."""

MOST_ENTRIES = 20
"""A location with more entries than this is folded."""


def folded_entries(entries: Sequence[Record], *, rows: bool) -> FittedTable:
    """Return a table in which the entries of one state and reason share a row.

    Args:
        rows: whether rows were counted, and have a column.
    """
    groups: dict[tuple[str, str], list[Record]] = {}
    for entry in entries:
        groups.setdefault((entry["state"], entry["reason"]), []).append(entry)

    def row(group: list[Record], cells: tuple[str, ...]) -> Row:
        is_plain = group[0]["reasonCode"] in PLAIN_CODES
        return Row(cells, group[0]["reason"], is_plain, ((2, STATE_STYLES[group[0]["state"]]),))

    return fitted(
        [
            (ScreenColumn("names"), lambda group: names_in_short(entry["name"] for entry in group)),
            (ScreenColumn("entries", True), lambda group: f"{len(group):,}"),
            (ScreenColumn("state"), lambda group: group[0]["state"]),
            (ScreenColumn("files", True, 2, is_clear=False), lambda group: f"{_sum(group, 'files'):,}"),
            (ScreenColumn("size", True, 3), lambda group: human_bytes(_sum(group, "bytes"))),
            *([(ScreenColumn("rows", True, 1, is_clear=False), _rows)] * rows),
        ],
        "reason",
        groups.values(),
        row,
    )


def _rows(group: Sequence[Record]) -> str:
    return f"{_sum(group, 'rows'):,}" if any(entry["rows"] is not None for entry in group) else ""


def _sum(group: Sequence[Record], key: str) -> int:
    return sum(entry[key] or 0 for entry in group)
