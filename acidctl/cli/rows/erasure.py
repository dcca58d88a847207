"""`acidctl erasure`: Find files that still hold certain rows."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from acidctl import __version__
from acidctl.base.errors import ExitStatus, NotFoundError
from acidctl.base.printable import printable
from acidctl.cli.options import shared
from acidctl.cli.options.shared import other_line
from acidctl.cli.output.console import console, note, put_json, put_line, put_text
from acidctl.cli.output.progress import progress
from acidctl.cli.report.outcomes import RunReporter
from acidctl.location.find import find, once
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.wording import human_bytes, human_count, iso_time

if TYPE_CHECKING:
    from acidctl.erasure.erasure import ErasureReport, Holding, TableErasure
    from acidctl.erasure.remedies import ErasureStep, Remedy

NOT_SEEN = (
    "snapshots of HDFS, of file systems and of disks",
    "older versions of objects, and what an object store keeps after a delete",
    "tables that are not transactional, backups, replicas, exports, and derived tables",
    "values in the metastore's statistics of columns, in caches of results and in logs of queries",
    "freed disk blocks",
)
"""What a search of a table's files cannot find."""
_FEW = 3
_NEXT_DAY = "24h after that (the retention of cleaning)"
_TEXTS = {
    "DELETE": "delete the rows with Hive: readers still see them",
    "DECIDE": "wait for the transaction, or end it: what it wrote is neither committed nor aborted",
    "WRITE": "write any row with Hive: one directory alone is not compacted",
    "COMPACT": "compact, which leaves out what is deleted or aborted",
    "CLEAN": "clean away what the compaction replaces, and what is aborted",
    "CLEAN_LEFTOVERS": "clean away what writers and compactions left",
    "PURGE": "purge the trash and the repair backups of the location",
    "EMPTY_HDFS_TRASH": "delete it from the trash of HDFS",
    "REMOVE": "remove it by hand, or move it away: nothing is known to own it",
    "LOOK": "look at what cannot be read, then search again",
}


@shared.command(
    "erasure",
    "acidctl erasure --where 'customer_id = 4711' /warehouse/sales.db/orders",
    "acidctl erasure --where \"email = 'ann@example.org'\" 'hive:sales.*'",
    "acidctl erasure --prove -o json --where 'customer_id = 4711' hive:sales.orders > proof.json && echo gone",
)
@shared.places_argument("locations", "WHERE...")
@click.option(
    "--where", "condition", metavar="CONDITION", required=True, help="The rows, by a condition in SQL as of `cat`."
)
@click.option(
    "--prove",
    is_flag=True,
    help="Take checksums of all files, and list locations once more at the end: reads every byte.",
)
@shared.typed_option("--hdfs-trash/--no-hdfs-trash", default=True, help="Look into the trashes of HDFS. [default: do]")
@click.option("-v", "--verbose", is_flag=True, help="Name every file.")
@shared.reading_options("table", "json", default="table", more=("exclude", "read_lock"))
@shared.runs(isolates=False)
def command(
    *,
    locations: tuple[str, ...],
    condition: str,
    prove: bool,
    hdfs_trash: bool,
    verbose: bool,
    resolver: SnapshotResolver,
    storage: dict[str, str],
    output: str,
) -> int:
    """Say which files of a table physically hold rows that meet a condition, what makes them go, and when.

    All files count, of whatever state: current, obsolete, aborted, of open transactions, in acidctl's trash, in
    backups of repairs, in staging, in partitions that nobody knows, and in the trashes of HDFS; and all events: rows
    that are read, older versions of them, and deleted ones. WHERE is a location, a table, a database, or a name of a
    metastore. Nothing is changed.

    The exit status is 0 only where every file could be looked at and none holds such a row: it is 14 where some do,
    and 15 where none was found but something could not be read, or lacks a column. `-o json` is a proof to keep, with
    size, time and, with --prove, checksum of each file.
    """
    from acidctl.erasure.erasure import search_tables, tables_to_search  # noqa: PLC0415 - --help does without

    visits = RunReporter()
    began = time.time()
    found: list[TableErasure] = []
    others = visits.coverage.passed
    observer = replace(visits.observer, hidden=True)
    places = once(find(locations, storage, resolver, observer, looks=False))
    seen = 0
    with progress("searching tables") as bar:
        tables = tables_to_search(places, locations, storage, hdfs_trash=hdfs_trash)
        for table in search_tables(tables, resolver, condition, prove=prove):
            seen += 1
            bar.reach(seen, seen)
            found.append(table)
    visits.looked_through()
    if not visits.status:
        _require_searched(found)
    whole = not (visits.status or others)
    if output == "json":
        put_json(
            _document(found, condition, began, others, whole=whole, prove=prove, hdfs_trash=hdfs_trash), lines=False
        )
    else:
        _Screen(condition, verbose=verbose).show(found, others, is_whole=whole)
    return _status(found, visits.status, whole=whole)


def _require_searched(found: list[TableErasure]) -> None:
    """Refuse a result if nothing was searched.

    Raises:
        NotFoundError: there is no table, or no table has the columns of the condition.
    """
    if not found:
        raise NotFoundError("no table was found there", "", "`acidctl ls` shows what is there")
    if all(table.lacks for table in found):
        raise NotFoundError(
            found[0].lacks, f"{human_count(len(found), 'table')} looked at", "see the columns: `acidctl cat --limit 1`"
        )


def _result(reports: list[ErasureReport], *, is_whole: bool = True) -> str:
    if any(report.events for report in reports):
        return "held"
    return "none" if is_whole and all(report.is_known for report in reports) else "not-known"


def _reports(found: list[TableErasure]) -> list[ErasureReport]:
    return [report for table in found for report in table.reports]


def _status(found: list[TableErasure], failed: int, *, whole: bool) -> int:
    result = _result(_reports(found), is_whole=whole)
    if result == "held":
        return ExitStatus.FINDINGS
    return failed or (ExitStatus.UNCHECKED if result == "not-known" else 0)


def _document(
    found: list[TableErasure],
    condition: str,
    began: float,
    others: list[str],
    *,
    whole: bool,
    prove: bool,
    hdfs_trash: bool,
) -> dict[str, Any]:
    reports = _reports(found)
    files = [file for report in reports for file in report.files]
    not_seen = [*NOT_SEEN, *([] if hdfs_trash else ["the trashes of HDFS, which were not asked for"])]
    return {
        "condition": condition,
        "result": _result(reports, is_whole=whole),
        "tool": f"acidctl {__version__}",
        "began": iso_time(began),
        "ended": iso_time(time.time()),
        "checksums": prove,
        "events": sum(report.events for report in reports),
        "filesRead": len(files),
        "bytes": sum(file.size for file in files),
        "stripes": sum(file.matched.stripes for file in files),
        "stripesRead": sum(file.matched.read for file in files),
        "locations": [_location(table, report, condition) for table in found for report in table.reports],
        "withoutColumns": [{"table": table.table, "why": table.lacks} for table in found if table.lacks],
        "notEntered": others,
        "notSeen": not_seen,
    }


def _location(table: TableErasure, report: ErasureReport, condition: str) -> dict[str, Any]:
    snapshot = report.snapshot
    everything = snapshot is None or snapshot.write_ids.is_everything
    return {
        "location": report.path,
        "table": table.table,
        "besideLocations": snapshot is None,
        "result": _result([report]),
        "snapshot": {
            "writeIds": None if everything or snapshot is None else str(snapshot.write_ids),
            "validTxns": None if snapshot is None or snapshot.txns is None else str(snapshot.txns),
        },
        "snapshotSource": snapshot.source.record if snapshot else None,
        "live": report.live,
        "events": report.events,
        "holdings": [_holding(holding) for holding in report.holdings],
        "notLookedAt": [{"path": missed.path, "why": _error_text(missed.error)} for missed in report.not_looked_at],
        "steps": [_step(step, report, table.table, condition) for step in report.steps],
        "files": [file.record for file in report.files],
    }


def _holding(holding: Holding) -> dict[str, Any]:
    return {
        "directory": holding.holder.name,
        "kind": holding.holder.kind.value,
        "events": holding.events,
        "files": len(holding.files),
        "bytes": holding.bytes,
        "isKnown": holding.is_known,
    }


def _step(step: ErasureStep, report: ErasureReport, table: str, condition: str) -> dict[str, Any]:
    return {
        "do": step.remedy.value,
        "text": _TEXTS[step.remedy.name],
        "command": _command(step, report, table, condition) or None,
        "directories": list(step.names),
        "notBefore": iso_time(step.not_before),
        "afterRetention": step.after_retention,
        "why": list(step.why),
        "openWriteIds": list(step.write_ids),
    }


def _error_text(error: Exception) -> str:
    why = getattr(error, "why", "")
    return f"{getattr(error, 'what', error)}: {why}" if why else str(getattr(error, "what", error))


def _command(step: ErasureStep, report: ErasureReport, table: str, condition: str) -> str:
    from acidctl.erasure.remedies import Remedy  # noqa: PLC0415 - --help does without

    line = partial(other_line, path=report.path, hive_name=report.hive_name)
    commands: dict[Remedy, Callable[[], str]] = {
        Remedy.DELETE: lambda: f"DELETE FROM {table} WHERE {condition};",
        Remedy.COMPACT: lambda: line("compact", "--major", of_snapshot=True),
        Remedy.CLEAN: lambda: line("clean"),
        Remedy.CLEAN_LEFTOVERS: lambda: line("clean", "--leftovers"),
        Remedy.PURGE: lambda: line("purge"),
        Remedy.EMPTY_HDFS_TRASH: lambda: f"hdfs dfs -rm -r -skipTrash {' '.join(map(shlex.quote, step.names))}",
        Remedy.LOOK: lambda: line("validate", "--deep", "--all"),
    }
    return commands[step.remedy]() if step.remedy in commands else ""


class _Screen:
    def __init__(self, condition: str, *, verbose: bool) -> None:
        self._condition, self._verbose = condition, verbose

    def show(self, found: list[TableErasure], others: list[str], *, is_whole: bool) -> None:
        reports = _reports(found)
        for table in found:
            for report in table.reports:
                if report.events or not report.is_known or self._verbose:
                    self._report(table, report)
        without = [table.table for table in found if table.lacks]
        if without:
            note(f"{human_count(len(without), 'table')} without the columns of the condition: {_some(without)}")
        if others:
            note(f"not entered: {_some(others)}")
        files = [file for report in reports for file in report.files]
        read, stripes = sum(file.matched.read for file in files), sum(file.matched.stripes for file in files)
        looked = f"{human_count(len(files), 'file')}, {human_bytes(sum(file.size for file in files))}"
        looked += f"; {read} of {human_count(stripes, 'stripe')} read, of the others statistics tell"
        result = _result(reports, is_whole=is_whole)
        events = sum(report.events for report in reports)
        if result == "held":
            holding = sum(1 for file in files if file.matched.events)
            put_text(f"HELD: {human_count(events, 'event')} in {human_count(holding, 'file')} ({looked})")
        elif result == "none":
            put_text(f"NONE: no file holds such a row ({looked})")
        else:
            put_text(f"NOT KNOWN: no such row was found, but not everything could be looked at ({looked})")
        note(f"not seen: {'; '.join(NOT_SEEN)}")

    def _report(self, table: TableErasure, report: ErasureReport) -> None:
        screen = console()
        beside = "" if report.snapshot else "  beside its locations"
        screen.print(printable(report.path) + beside, style="bold", soft_wrap=True, markup=False)
        if report.snapshot and (report.events or report.live):
            live = "an unknown number of rows" if report.live is None else human_count(report.live, "row")
            put_line(f"  readers see {live} of these")
        for holding in report.holdings:
            self._holding(holding)
        for missed in report.not_looked_at:
            self._text("not known", f"{missed.path}: {_error_text(missed.error)}")
        for number, step in enumerate(report.steps, 1):
            self._step(number, step, report, table.table)

    def _holding(self, holding: Holding) -> None:
        holder = holding.holder
        sure = [file for file in holding.files if file.matched.events]
        state = holder.kind.value.replace("-", " of ") if holder.kind == "hdfs-trash" else holder.kind.value
        if sure:
            size = human_bytes(sum(file.size for file in sure))
            what = f"{human_count(holding.events, 'event')} in {human_count(len(sure), 'file')}, {size}"
            put_text(f"  {holder.name}  {state}  {what}")
        for file in sure[: None if self._verbose else _FEW]:
            self._text("", f"{file.path}: {human_count(file.matched.events, 'event')}")
        if len(sure) > _FEW and not self._verbose:
            self._text("", f"and {len(sure) - _FEW} more files (-v names them)")
        for file in holding.files:
            if file.problem:
                self._text("not known", f"{file.path}: {file.problem}")

    def _step(self, number: int, step: ErasureStep, report: ErasureReport, table: str) -> None:
        command = _command(step, report, table, self._condition)
        self._text(f"{number}.", _TEXTS[step.remedy.name] + (f": {command}" if command else ""))
        if step.write_ids:
            self._text("", f"open write ids hold it back: {_some(list(map(str, step.write_ids)))}")
        if step.not_before:
            self._text("", f"not before {iso_time(step.not_before)}")
        if step.after_retention:
            self._text("", f"{_NEXT_DAY}, or with a shorter --older-than")
        if step.why:
            self._text("", "; ".join(step.why))

    def _text(self, label: str, text: str) -> None:
        put_text(f"    {label:<10}  {text}", 16)


def _some(names: list[str]) -> str:
    return ", ".join(names[:_FEW]) + (", ..." if len(names) > _FEW else "")
