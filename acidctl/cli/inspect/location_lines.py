"""A location as `acidctl ls` shows it: its JSON object, from which tables and CSV are made too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from acidctl.acid.layout import DataFile, data_files_of, is_full_acid, original_files
from acidctl.acid.reasons import Code, reason
from acidctl.acid.state import EntryKind, State
from acidctl.acid.triggers import Advice, Decision, decide, figures_of
from acidctl.acid.unfinished import layout_problems
from acidctl.base.errors import AcidctlError, RefusedError, UsageProblem
from acidctl.base.printable import printable
from acidctl.cli.options.shared import refuse_unused
from acidctl.cli.output.console import console, note, picture_columns
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
    reading_record,
    verdict_style,
)
from acidctl.cli.report.outcomes import RunReporter
from acidctl.cli.report.verdicts import Freeable, freeable_in, verdict_of, why_of
from acidctl.location.evidence import Evidence
from acidctl.location.metastore_schema import TableProperties
from acidctl.location.snapshot import Snapshot, children_of
from acidctl.location.table_location import TableLocation
from acidctl.overview.timeline import Lanes, lanes_of
from acidctl.rows.scan.odd_layout import odd_layout
from acidctl.wording import human_bytes, human_count, iso_time, text_of

if TYPE_CHECKING:
    from rich.console import Console

SORT_KEYS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "name": lambda entry: entry["name"],
    "write-id": lambda entry: (entry["maxWriteId"] is None, entry["maxWriteId"] or 0, entry["name"]),
    "size": lambda entry: -entry["bytes"],
    "time": lambda entry: entry["modified"] or "",
    "state": lambda entry: list(STATE_STYLES).index(entry["state"]),
}


def location_report(
    snapshot: Snapshot,
    evidence: Evidence,
    *,
    compacting: Snapshot,
    reading: Advice | None,
    rows: bool,
    wishes: TableProperties,
    on_error: Callable[[AcidctlError], None],
) -> dict[str, Any]:
    """Return a location as an object; docs/reference/json.md has the meaning of every key.

    Args:
        evidence: whether the location is known to be transactional.
        compacting: the snapshot as a compaction sees it, which decides whether one is due.
        reading: the cost of a full read; None if the location cannot be read.
        rows: count rows from the footers of files.
        wishes: the settings of the table, which decide whether a compaction is due.
        on_error: called with the error of a footer; the rows of its entry are None then.
    """
    state = snapshot.state
    counts = _row_counts(snapshot, on_error) if rows else {}
    entries = [
        {**child.record(), "rows": counts.get(child.verdict.name), "modified": iso_time(child.amount.modified)}
        for child in children_of(snapshot)
    ]
    return {
        "location": snapshot.fs.display(snapshot.path),
        "transactional": {
            "known": evidence.is_known,
            "type": evidence.table_type.value if evidence.table_type else None,
            "code": evidence.reason.code,
            "reason": evidence.text,
        },
        "snapshotSource": snapshot.source.record,
        "base": state.base.name if state.base else None,
        "entries": entries,
        "reading": reading_record(reading) if reading else None,
        "summary": _summary(snapshot, compacting, entries, wishes, is_known=evidence.may_change),
    }


def _row_counts(snapshot: Snapshot, on_error: Callable[[AcidctlError], None]) -> dict[str, int]:
    """Return the rows of each child with data, from the footers of its data files.

    A child with a text file, which has no footer, or with a damaged file is left out.
    """
    from acidctl.rows.foreign.format import footer_rows  # noqa: PLC0415 - with Arrow: only for --rows

    counts: dict[str, int] = {}
    full = is_full_acid(snapshot.listing)
    children = snapshot.listing.files_by_child
    for verdict in snapshot.state.verdicts:
        files: list[DataFile] = []
        if verdict.directory:
            files = data_files_of(verdict.directory, children.get(verdict.name, ()), snapshot.table_type)
        elif verdict.kind is EntryKind.ORIGINAL:
            files = original_files(children.get(verdict.name, ()))
        else:
            continue
        rows: list[int | None] = []
        for file in files:
            try:
                rows.append(footer_rows(snapshot, file, full=full))
            except AcidctlError as error:
                on_error(error)
                rows.append(None)
        if None not in rows:
            counts[verdict.name] = sum(filter(None, rows))
    return counts


def _summary(
    snapshot: Snapshot, compacting: Snapshot, entries: list[dict[str, Any]], wishes: TableProperties, *, is_known: bool
) -> dict[str, Any]:
    state = snapshot.state
    decision = decide(figures_of(compacting.listing, compacting.state), wishes.thresholds)
    if wishes.auto_off_by:
        decision = Decision(None, reason(Code.AUTO_IS_OFF, who=wishes.auto_off_by, how="owner"))
    problems = layout_problems(snapshot.listing, state)
    if problems:
        decision = Decision(None, reason(Code.LAYOUT_REFUSED, *(problem.reason for problem in problems)))
    if not is_known:
        decision = Decision(None, reason(Code.NOT_TRANSACTIONAL, decision.reason))
    states = {which.value: {"entries": 0, "bytes": 0} for which in State}
    for entry in entries:
        counted = states[entry["state"]]
        counted["entries"] += 1
        counted["bytes"] += entry["bytes"]
    return {
        "deltas": len(state.deltas),
        "originals": len(state.originals),
        "files": sum(entry["files"] for entry in entries),
        "bytes": sum(counted["bytes"] for counted in states.values()),
        **states,
        "compaction": decision.kind.value if decision.kind else None,
        "compactionReason": text_of(decision.reason),
        "compactionReasonCode": decision.reason.code,
        "historyProblem": text_of(state.history_problem) if state.history_problem else None,
        "notes": [text_of(note) for note in state.notes],
        "disagreements": [
            {"code": why.code, "reason": text_of(why), "directories": list(why.by)} for why in snapshot.ahead
        ],
        "warnings": odd_layout(snapshot, problems),
    }


def states_line(report: dict[str, Any]) -> str:
    """Return the number of entries by state: ``1 current, 4 obsolete``."""
    summary = report["summary"]
    parts = [f"{summary[which.value]['entries']:,} {which.value}" for which in State if summary[which.value]["entries"]]
    return ", ".join(parts) or "empty"


def as_compacted(found: TableLocation, snapshot: Snapshot) -> Snapshot:
    """Return what a compaction would see: nothing above the lowest open write id."""
    if not snapshot.write_ids.is_everything:
        with suppress(RefusedError):  # the report shows the disagreement itself
            return found.snapshot(compactor=True, refresh=False)
    return snapshot


def free_bytes(found: TableLocation, snapshot: Snapshot, evidence: Evidence, visits: RunReporter) -> Freeable:
    """Return what a cleaning would free; nothing, after reporting the error, if that cannot be found out."""
    try:
        return freeable_in(found, snapshot, evidence)
    except AcidctlError as error:
        visits.failed(found.shown, error)
        return Freeable()


class Chosen:
    """The user's choice, applied to the list of locations in a tree and to the list of entries of a location.

    Attributes:
        needs_free: whether what a cleaning would free is shown, or part of a condition.
    """

    def __init__(self, choice: ListChoice, output: str) -> None:
        self.is_table = output == "table"
        self._is_filtered = choice.where is not None
        if output in ("json", "jsonl"):
            refuse_unused(f"-o {output}", "columns", "no_headers")
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


class Tables:
    def __init__(self, chosen: Chosen, *, show_all: bool, timeline: bool, rows: bool) -> None:
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
