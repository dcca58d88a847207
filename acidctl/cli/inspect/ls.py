"""`acidctl ls`: every directory of a location with its state and the reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import click

from acidctl.acid.triggers import Advice, advise
from acidctl.base.errors import AcidctlError, RefusedError, UsageProblem
from acidctl.base.printable import printable
from acidctl.cli.inspect.listed_location import location_report, states_line
from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import list_options
from acidctl.cli.output.console import Records, console, note, picture_columns
from acidctl.cli.output.list_choice import CheckedChoice, ListChoice
from acidctl.cli.output.screen import STATE_STYLES, FittedTable, Row, ScreenColumn, fitted, on_screen
from acidctl.cli.output.verbosity import VERBOSITY
from acidctl.cli.report.location_list import (
    ENTRY_COLUMNS,
    LOCATION_COLUMNS,
    MOST_ENTRIES,
    PLAIN_CODES,
    LocationList,
    folded_entries,
    line_of,
    verdict_style,
)
from acidctl.cli.report.outcomes import RunReporter
from acidctl.cli.report.verdicts import Freeable, freeable_in, verdict_of, why_of
from acidctl.location.evidence import Evidence
from acidctl.location.find import find
from acidctl.location.snapshot import Snapshot
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.location.table_location import TableLocation
from acidctl.overview.timeline import Lanes, lanes_of
from acidctl.wording import human_bytes, human_count

if TYPE_CHECKING:
    from rich.console import Console

SORT_KEYS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "name": lambda entry: entry["name"],
    "write-id": lambda entry: (entry["maxWriteId"] is None, entry["maxWriteId"] or 0, entry["name"]),
    "size": lambda entry: -entry["bytes"],
    "time": lambda entry: entry["modified"] or "",
    "state": lambda entry: list(STATE_STYLES).index(entry["state"]),
}


@shared.command(
    "ls",
    "acidctl ls /warehouse/sales.db/orders",
    "acidctl ls --state obsolete --sort size webhdfs://namenode:9870/warehouse/sales.db",
    "acidctl ls --write-ids 'sales.orders:12:9:9:7' --timeline orders",
    "acidctl ls --where 'deltas > 50' --sort deltas --columns location,deltas,bytes /warehouse",
    "acidctl ls --sort gain --columns location,score,seconds,secondsAfter,helps,rewritten /warehouse",
    "acidctl ls --tables nightly.txt",
    "acidctl ls -o jsonl --recursive /warehouse | jq '.summary.obsolete.bytes'",
)
@shared.places_argument("paths", "[PATH...]", required=False)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(["current", "obsolete", "aborted", "ignored"]),
    help="Only entries in this state. Repeatable.",
)
@list_options("deltas > 50", lambda: LOCATION_COLUMNS | ENTRY_COLUMNS, "name, write-id, size, time, state")
@click.option("-r", "--recursive", is_flag=True, help="List the entries of every location of a tree.")
@click.option("--rows", is_flag=True, help="Count rows, from the files' footers only.")
@click.option(
    "--timeline",
    is_flag=True,
    help="Draw bases, deltas and delete deltas over the write ids.",
)
@click.option("-a", "--all", "show_all", is_flag=True, help="Show hidden entries in the table too.")
@shared.verbosity_options
@shared.reading_options("table", "json", "jsonl", "csv", default="table")
@shared.runs(pages=True)
def command(
    *,
    paths: tuple[str, ...],
    states: tuple[str, ...],
    recursive: bool,
    rows: bool,
    timeline: bool,
    show_all: bool,
    choice: ListChoice,
    resolver: SnapshotResolver,
    storage: dict[str, str],
    output: str,
) -> int:
    """List the directories of ACID tables with kind, write ids, state and the reason for it.

    PATH is a location, a partitioned table, a database or a warehouse; the current directory by default. A tree of
    several locations gives one line per location, and with --recursive every entry of each. Of a table with many
    partitions, and of many entries in the same state, -v gives all lines.

    --where, --sort and --columns go by the columns of the list: those of locations in a tree (location, verdict,
    deltas, bytes...), else those of entries (name, kind, state, reason, files, bytes...).

    A reader lists every directory, opens every file, and holds the delete events while it reads rows. The `cost` of a
    location counts 4 MiB for each directory and file beyond the fewest that there can be, and the bytes of the delete
    events once for each file of rows. The `score` is the part of a full read that is of use, 0 to 100; `seconds` are
    those of one reader of 100 MiB a second, to whom opening a file is 40 ms. `helps` is the compaction, minor or major,
    with the greater `gain`: what it saves at every full read for each byte that it rewrites once. It may help though no
    threshold asks for one, and nothing is due.

    Without --write-ids every write id on disk counts as committed. A timeline is as high as the bytes of what it shows:
    a step lower is four times less.
    """
    if output != "table":
        shared.refuse_unused(f"-o {output}", "timeline")
    visits = RunReporter()
    chosen = _Chosen(choice, output)
    tables = _Tables(chosen, show_all=show_all, timeline=timeline, rows=rows)
    columns = chosen.entries.columns if output == "csv" else None
    records = Records(output, columns or tuple(ENTRY_COLUMNS), "entries", has_headings=choice.has_headings)
    for found in find(paths or (".",), storage, resolver, visits.observer):
        try:
            seen = visits.readable(found)
            snapshot = seen.snapshot()
            wishes = found.table_properties
            evidence = seen.evidence()
            reading = None if snapshot.state.history_problem else advise(snapshot.listing, snapshot.state)
            report = location_report(
                snapshot,
                evidence,
                compacting=_as_compacted(seen, snapshot),
                reading=reading,
                rows=rows,
                wishes=wishes,
                on_error=visits.gap,
            )
            free = _free(seen, snapshot, evidence, visits) if chosen.needs_free else Freeable()
        except AcidctlError as error:
            visits.failed(found.shown, error)
            continue
        detail = recursive or found.is_given or output == "csv"
        if states:
            report["entries"] = [entry for entry in report["entries"] if entry["state"] in states]
            if not (report["entries"] or found.is_given):
                continue  # in a tree, only locations with such entries are listed
        if not chosen.apply(report, free, reading, detail=detail):
            continue
        if output in ("table", "csv"):
            visits.remember(report["summary"]["notes"] if output == "table" else (), report["summary"]["warnings"])
        if output == "table":
            tables.location(snapshot, report, free, reading, detail=detail)
        records.put(report)
    records.put_header()
    visits.looked_through()
    if output == "table":
        tables.close(visits.status)
    visits.tell_notes()
    visits.tell_strangers()
    return visits.status


def _as_compacted(found: TableLocation, snapshot: Snapshot) -> Snapshot:
    """Return what a compaction would see: nothing above the lowest open write id."""
    if not snapshot.write_ids.is_everything:
        with suppress(RefusedError):  # the report shows the disagreement itself
            return found.snapshot(compactor=True, refresh=False)
    return snapshot


def _free(found: TableLocation, snapshot: Snapshot, evidence: Evidence, visits: RunReporter) -> Freeable:
    """Return what a cleaning would free; nothing, after reporting the error, if that cannot be found out."""
    try:
        return freeable_in(found, snapshot, evidence)
    except AcidctlError as error:
        visits.failed(found.shown, error)
        return Freeable()


class _Chosen:
    """The user's choice, applied to the list of locations in a tree and to the list of entries of a location.

    Attributes:
        needs_free: whether what a cleaning would free is shown, or part of a condition.
    """

    def __init__(self, choice: ListChoice, output: str) -> None:
        self.is_table = output == "table"
        self._is_filtered = choice.where is not None
        if output in ("json", "jsonl"):
            shared.refuse_unused(f"-o {output}", "columns", "no_headers")
        choice.checked(LOCATION_COLUMNS | ENTRY_COLUMNS, SORT_KEYS)  # refuses names that neither list has
        which, how = replace(choice, columns=None, sort=None), replace(choice, where=None)
        self._which = _of(which, ENTRY_COLUMNS), _of(which, LOCATION_COLUMNS)
        self._how = _of(how, ENTRY_COLUMNS), _of(how, LOCATION_COLUMNS)
        self.needs_free = self.is_table or (choice.where is not None and self._which[1] is not None)

    @property
    def entries(self) -> CheckedChoice:
        return _one(self._how[0], "this lists the entries of a location", "leave out what locations have")

    @property
    def locations(self) -> CheckedChoice:
        return _one(self._how[1], _IS_A_TREE, _NOT_A_TREE)

    def apply(self, report: dict[str, Any], free: Freeable, reading: Advice | None, *, detail: bool) -> bool:
        """Choose and sort the entries; return whether to show the location.

        Args:
            detail: list the entries, not only the location.
        """
        is_shown = not self._is_filtered or self._meets(report, free, reading, detail=detail)
        if detail or not self.is_table:
            self._sort(report)
        return is_shown

    def _meets(self, report: dict[str, Any], free: Freeable, reading: Advice | None, *, detail: bool) -> bool:
        """Return whether a location meets the condition; a condition on entries filters them instead."""
        entries, locations = self._which
        if locations and (entries is None or not detail):
            return bool(locations.meeting([line_of(report, free, reading)]))
        if self.is_table and not detail:
            _one(locations, _IS_A_TREE, _NOT_A_TREE)
        location = {"location": report["location"]}
        met = entries.meeting([{**entry, **location} for entry in report["entries"]]) if entries else []
        names = {entry["name"] for entry in met}
        report["entries"] = [entry for entry in report["entries"] if entry["name"] in names]
        return True

    def _sort(self, report: dict[str, Any]) -> None:
        how = self._how[0]
        if how and how.key in SORT_KEYS:
            report["entries"].sort(key=SORT_KEYS[how.key], reverse=how.way == "desc")
        elif how and how.key != "location":
            report["entries"] = how.in_order(report["entries"])


_IS_A_TREE = "this lists locations, one line each"
_NOT_A_TREE = "give --recursive, or one location, to list entries"


def _of(choice: ListChoice, columns: Mapping[str, str]) -> CheckedChoice | None:
    """Return the choice for a list; None if the list lacks one of its columns."""
    try:
        return choice.checked(columns, SORT_KEYS)
    except UsageProblem:
        return None


def _one(choice: CheckedChoice | None, why: str, hint: str) -> CheckedChoice:
    if choice is None:
        raise UsageProblem("a column of --where, --sort or --columns is not in this list", why, hint)
    return choice


class _Tables:
    def __init__(self, chosen: _Chosen, *, show_all: bool, timeline: bool, rows: bool) -> None:
        self._show_all, self._timeline, self._rows = show_all, timeline, rows
        self._chosen = chosen
        self._tree: LocationList | None = None
        self._unknown = 0
        self._seen = 0

    def location(
        self, snapshot: Snapshot, report: dict[str, Any], free: Freeable, reading: Advice | None, *, detail: bool
    ) -> None:
        """Print the location, or add it as a line to the table of the tree."""
        self._seen += 1
        if not detail:
            self._unknown += _is_unknown(report)
            self._tree = self._tree or LocationList(self._chosen.locations)
            self._tree.add(line_of(report, free, reading))
            return
        screen = console()
        if self._seen > 1:
            screen.print()
        screen.print(printable(report["location"]), style="bold", soft_wrap=True)
        entries = [e for e in report["entries"] if self._show_all or e["kind"] not in ("staging", "other")]
        hidden = len(report["entries"]) - len(entries)
        drawn = lanes_of(snapshot) if self._timeline else None
        if entries:
            self._table(entries).print(screen)
        if drawn and drawn.rows:
            _print_timeline(drawn)
        if _is_unknown(report):
            text = f"not known to be transactional: {report['transactional']['reason']}"
            screen.print(printable(text), style="yellow", soft_wrap=True)
        if problem := report["summary"]["historyProblem"]:
            screen.print(f"not enough history: {printable(problem)}", style="red")
        more = f" ({hidden} hidden, -a shows them)" if hidden else ""
        _print_summary(screen, report, free, more)

    def _table(self, entries: list[dict[str, Any]]) -> FittedTable:
        chosen = self._chosen.entries
        if chosen.columns is not None:
            return chosen.table(entries)
        if len(entries) > MOST_ENTRIES and not (VERBOSITY.is_verbose or chosen.key):
            return folded_entries(entries, rows=self._rows)

        def row(entry: dict[str, Any], cells: tuple[str, ...]) -> Row:
            is_plain = entry["reasonCode"] in PLAIN_CODES
            return Row(cells, entry["reason"], is_plain, ((5, STATE_STYLES[entry["state"]]),))

        return fitted(
            [
                (ScreenColumn("name"), itemgetter("name")),
                (ScreenColumn("kind", worth=5), itemgetter("kind")),
                (ScreenColumn("write ids", True, 6, is_clear=False), _write_ids),
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
            has_headings=chosen.has_headings,
        )

    def close(self, status: int) -> None:
        if self._tree:
            self._tree.close()
        if self._unknown:
            note(
                f"{human_count(self._unknown, 'location')} not known to be transactional: acidctl changes nothing there"
            )
        if not self._seen and not status:
            note("no table was found there")


def _print_summary(screen: Console, report: dict[str, Any], free: Freeable, more: str) -> None:
    """Print ``77 current; major due: 77 deltas, limit 10; 2.9 KiB free after 23 Nov 16:27 UTC``."""
    from rich.text import Text  # noqa: PLC0415 - only for people

    verdict = verdict_of(report)
    why = report["summary"]["compactionReason"] if VERBOSITY.is_verbose else why_of(report, verdict)
    line = Text(f"{states_line(report)}; ").append(verdict, verdict_style(verdict))
    line.append(printable(f": {why}" if why else ""))
    line.append(f"; {free.text}" if free.text else "").append(more)
    screen.print(line, soft_wrap=True)


def _is_unknown(report: dict[str, Any]) -> bool:
    return not report["transactional"]["known"] and report["transactional"]["code"] != "empty"


def _write_ids(entry: dict[str, Any]) -> str:
    low, high = entry["minWriteId"], entry["maxWriteId"]
    return "" if low is None else str(high) if low == high else f"{low} to {high}"


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def _print_timeline(lanes: Lanes) -> None:
    from acidctl.cli.inspect.timeline import timeline  # noqa: PLC0415 - with rich: only for people

    screen = console()
    screen.print()
    for line in timeline(lanes, picture_columns(screen), screen.encoding):
        screen.print(line, soft_wrap=True)
    screen.print()
