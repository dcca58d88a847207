"""What `acidctl ls` does: every directory of each location with its state, in the form that was asked for."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from acidctl.cli.inspect.work.report import compaction_line, location_report, summary_line
from acidctl.cli.inspect.work.timeline import bars, marks_for
from acidctl.cli.options.shared import refuse_unused
from acidctl.cli.output.console import Records, console, human_bytes, note, put_line
from acidctl.cli.output.screen import STATE_STYLES, FittedTable, Row, ScreenColumn, fitted, on_screen
from acidctl.cli.report.outcomes import Visits
from acidctl.errors import AcidctlError
from acidctl.location.find import find
from acidctl.location.lists import SnapshotLists
from acidctl.location.snapshot import Snapshot
from acidctl.printable import printable
from acidctl.wording import human_count

_NARROWEST_BAR = 20
"""Where fewer columns are left beside the names, the bars of the timeline go below them."""

_FIRST_PAGE, _PAGE = 25, 1000
"""Locations of a large tree are printed by so many: the first soon, and never all of them in memory."""

SORT_KEYS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "name": lambda entry: entry["name"],
    "write-id": lambda entry: (entry["maxWriteId"] is None, entry["maxWriteId"] or 0, entry["name"]),
    "size": lambda entry: -entry["bytes"],
    "time": lambda entry: entry["modified"] or "",
    "state": lambda entry: list(STATE_STYLES).index(entry["state"]),
}

_COLUMNS = (
    "location", "name", "kind", "minWriteId", "maxWriteId", "statementId", "visibilityTxnId", "state", "reason",
    "files", "bytes", "rows", "modified",
)  # fmt: skip


def work(
    *,
    paths: tuple[str, ...],
    states: tuple[str, ...],
    sort_key: str | None,
    recursive: bool,
    rows: bool,
    timeline: bool,
    show_all: bool,
    lists: SnapshotLists,
    storage: dict[str, str],
    output: str,
) -> int:
    """List as asked; the exit status."""
    if output != "table":
        refuse_unused(f"-o {output}", "timeline")
    visits = Visits()
    tables = _Tables(show_all=show_all, timeline=timeline, rows=rows)
    records = Records(output, _COLUMNS, "entries")
    for found in find(paths or (".",), storage, lists, visits.observer):
        try:
            seen = visits.readable(found)
            snapshot = seen.snapshot(lists)
            wishes = lists.wishes_of(found.hive)
            report = location_report(snapshot, seen.evidence(), rows=rows, wishes=wishes, on_error=visits.gap)
        except AcidctlError as error:
            visits.failed(found.shown, error)
            continue
        if states:
            report["entries"] = [entry for entry in report["entries"] if entry["state"] in states]
        if sort_key:
            report["entries"].sort(key=SORT_KEYS[sort_key])
        if output in ("table", "csv"):
            visits.remember(report["summary"]["notes"] if output == "table" else (), report["summary"]["warnings"])
        if output == "table":
            tables.location(snapshot, report, detail=recursive or found.is_given)
        records.put(report)
    records.put_header()
    if output == "table":
        tables.close(visits.status)
    visits.tell_notes()
    visits.tell_strangers()
    return visits.status


class _Tables:
    """Tables for people; the lines of a tree's locations are gathered into one."""

    def __init__(self, *, show_all: bool, timeline: bool, rows: bool) -> None:
        self._show_all, self._timeline, self._rows = show_all, timeline, rows
        self._overview: list[dict[str, Any]] = []
        self._page = _FIRST_PAGE
        self._due = 0
        self._unknown = 0
        self._seen = 0

    def location(self, snapshot: Snapshot, report: dict[str, Any], *, detail: bool) -> None:
        """Print it, or with others, later, as one line."""
        self._seen += 1
        if not detail:
            self._due += report["summary"]["compaction"] is not None
            self._unknown += _is_unknown(report)
            self._overview.append(report)
            if len(self._overview) == self._page:
                self._print_overview()
                self._page = _PAGE
            return
        screen = console()
        if self._seen > 1:
            screen.print()
        screen.print(printable(report["location"]), style="bold", soft_wrap=True)
        entries = [e for e in report["entries"] if self._show_all or e["kind"] not in ("staging", "other")]
        if entries:
            self._table(entries).print(screen)
        hidden = len(report["entries"]) - len(entries)
        if self._timeline:
            _print_timeline(snapshot)
        if _is_unknown(report):
            text = f"not known to be transactional: {report['transactional']['reason']}"
            screen.print(printable(text), style="yellow", soft_wrap=True)
        if problem := report["summary"]["historyProblem"]:
            screen.print(f"not enough history: {printable(problem)}", style="red")
        more = f" ({hidden} hidden, -a shows them)" if hidden else ""
        screen.print(printable(summary_line(report)) + more)

    def _table(self, entries: list[dict[str, Any]]) -> FittedTable:
        def row(entry: dict[str, Any], cells: tuple[str, ...]) -> Row:
            is_plain = entry["reasonCode"] in ("committed", "chosen-base")
            return Row(cells, entry["reason"], is_plain, ((5, STATE_STYLES[entry["state"]]),))

        return fitted(
            [
                (ScreenColumn("name"), itemgetter("name")),
                (ScreenColumn("kind", worth=5), itemgetter("kind")),
                (ScreenColumn("write ids", worth=6, is_clear=False), _write_ids),
                (ScreenColumn("stmt", True, 2, beside=True, is_clear=False), lambda e: _number(e["statementId"])),
                (
                    ScreenColumn("vis txn", True, 1, beside=True, is_clear=False),
                    lambda e: _number(e["visibilityTxnId"]),
                ),
                (ScreenColumn("state"), itemgetter("state")),
                (ScreenColumn("files", True, 3, beside=True, is_clear=False), lambda e: str(e["files"])),
                (ScreenColumn("size", True, 8), lambda e: human_bytes(e["bytes"])),
                *([(ScreenColumn("rows", True, 7, is_clear=False), lambda e: _number(e["rows"]))] * self._rows),
                (ScreenColumn("modified (UTC)", worth=4), lambda e: on_screen(e["modified"])),
            ],
            "reason",
            entries,
            row,
        )

    def close(self, status: int) -> None:
        if self._overview:
            self._print_overview()
        if self._seen > _FIRST_PAGE:
            put_line(f"{self._seen} locations; a compaction is due in {self._due}")
        if self._unknown:
            note(
                f"{human_count(self._unknown, 'location')} not known to be transactional: acidctl changes nothing there"
            )
        if not self._seen and not status:
            note("no table was found there")

    def _print_overview(self) -> None:
        def count(what: str) -> Callable[[dict[str, Any]], str]:
            return lambda report: str(report["summary"][what]["entries"])

        def row(report: dict[str, Any], cells: tuple[str, ...]) -> Row:
            return Row(cells, compaction_line(report), is_plain=report["summary"]["compaction"] is None)

        fitted(
            [
                (ScreenColumn("location"), itemgetter("location")),
                (ScreenColumn("base", worth=4, is_clear=False), lambda report: report["base"] or "-"),
                (ScreenColumn("deltas", True, is_clear=False), lambda report: str(report["summary"]["deltas"])),
                (ScreenColumn("current", True, 1, beside=True, is_clear=False), count("current")),
                (ScreenColumn("obsolete", True, is_clear=False), count("obsolete")),
                (ScreenColumn("aborted", True, 2, is_clear=False), count("aborted")),
                (ScreenColumn("size", True, 3), lambda report: human_bytes(report["summary"]["bytes"])),
            ],
            "compaction",
            self._overview,
            row,
        ).print(console())
        self._overview = []


def _is_unknown(report: dict[str, Any]) -> bool:
    return not report["transactional"]["known"] and report["transactional"]["code"] != "empty"


def _write_ids(entry: dict[str, Any]) -> str:
    low, high = entry["minWriteId"], entry["maxWriteId"]
    return "" if low is None else str(high) if low == high else f"{low} to {high}"


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def _print_timeline(snapshot: Snapshot) -> None:
    from rich.text import Text  # noqa: PLC0415 - only for people

    screen = console()
    names = [len(printable(v.name)) for v in snapshot.state.verdicts if v.directory]
    if not names:
        return
    indent = max(names) + 2
    beside = screen.width - indent > _NARROWEST_BAR
    if not beside:
        indent = 2
    width = max(_NARROWEST_BAR, min(100, screen.width - indent - 1))
    marks = marks_for(screen.encoding)
    drawn, (low, high) = bars(snapshot.state.verdicts, width)
    used = max(bar.end for bar in drawn)
    ends = f"{low}{' ' * max(1, used - len(str(low)) - len(str(high)))}{high}"
    screen.print()
    screen.print(Text(("write ids" if beside else "").ljust(indent) + ends, "dim"), soft_wrap=True)
    for bar in drawn:
        name = printable(bar.verdict.name)
        if not beside:
            screen.print(name, soft_wrap=True)
        line = Text((name if beside else "").ljust(indent))
        line.append(bar.draw(width, marks).rstrip(), STATE_STYLES[bar.verdict.state.value])
        screen.print(line, soft_wrap=True)
    legend = "  ".join(f"{mark} {state.value}" for state, mark in marks.items())
    screen.print(Text(" " * indent + legend, "dim"))
    screen.print()
