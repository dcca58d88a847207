"""The document that `acidctl erasure` makes of a search: a proof to keep, and on the screen its summary."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from acidctl import __version__
from acidctl.base.printable import printable, shell_line
from acidctl.cli.output.command_lines import other_line
from acidctl.cli.output.console import console, note, put_text
from acidctl.erasure.report import ErasureReport, TableErasure
from acidctl.erasure.steps import ErasureStep, Remedy
from acidctl.orc.types import quoted_name
from acidctl.verbs.reading.erasure import ErasureOptions
from acidctl.wording import human_bytes, human_count, iso_time

NOT_SEEN = (
    "snapshots of HDFS, of file systems and of disks",
    "older versions of objects, and what an object store keeps after a delete",
    "tables that are not transactional, backups, replicas, exports, and derived tables",
    "values in the metastore's statistics of columns, in caches of results and in logs of queries",
    "freed disk blocks",
)
"""Places where a value can survive and that a search of a table's files does not see."""
_FEW = 3
_TEXTS = {
    Remedy.DELETE: "delete the rows with Hive: readers still see them",
    Remedy.DECIDE: "wait for the transaction, or end it: what it wrote is neither committed nor aborted",
    Remedy.WRITE: "write any row with Hive: one directory alone is not compacted",
    Remedy.COMPACT: "compact, which leaves out what is deleted or aborted",
    Remedy.CLEAN: "after the retention clean away what the compaction replaces, and what is aborted",
    Remedy.CLEAN_LEFTOVERS: "clean away what writers and compactions left",
    Remedy.PURGE: "purge the trash and the repair backups of the location",
    Remedy.EMPTY_HDFS_TRASH: "delete it from the trash of HDFS",
    Remedy.REMOVE: "remove it by hand, or move it away: nothing is known to own it",
    Remedy.LOOK: "look at what cannot be read, then search again",
}


def document(
    tables: Sequence[TableErasure], options: ErasureOptions, began: float, passed: Sequence[str], *, is_whole: bool
) -> dict[str, Any]:
    """Return the result of a search as its JSON form, whose locations are an iterator.

    Args:
        began: seconds since the epoch.
        passed: what the walk did not enter.
        is_whole: nothing failed besides what the reports have.
    """
    sums: Counter[str] = Counter()
    for report in (report for table in tables for report in table.reports):
        sums["unknown"] += not report.is_known
        sums["events"] += report.events
        sums["files"] += len(report.files)
        for file in report.files:
            sums["bytes"] += file.size
            sums["stripes"] += file.matched.stripes
            sums["read"] += file.matched.read
    is_known = is_whole and not passed and not sums["unknown"]
    return {
        "condition": options.where,
        "result": _result(sums["events"], is_known=is_known),
        "tool": f"acidctl {__version__}",
        "began": iso_time(began),
        "ended": iso_time(time.time()),
        "checksums": options.prove,
        "events": sums["events"],
        "filesRead": sums["files"],
        "bytes": sums["bytes"],
        "stripes": sums["stripes"],
        "stripesRead": sums["read"],
        "locations": (_location(table, report, options.where) for table in tables for report in table.reports),
        "withoutColumns": [{"table": table.table, "why": table.lacks} for table in tables if table.lacks],
        "notEntered": list(passed),
        "notSeen": [*NOT_SEEN, *([] if options.hdfs_trash else ["the trashes of HDFS, which were not asked for"])],
    }


def _result(events: int, *, is_known: bool) -> str:
    return "held" if events else "none" if is_known else "not-known"


def _location(table: TableErasure, report: ErasureReport, condition: str) -> dict[str, Any]:
    snapshot = report.snapshot
    return {
        "location": report.path,
        "table": table.table,
        "besideLocations": snapshot is None,
        "result": _result(report.events, is_known=report.is_known),
        "snapshot": {
            "writeIds": str(snapshot.write_ids) if snapshot and not snapshot.write_ids.is_everything else None,
            "validTxns": str(snapshot.txns) if snapshot and snapshot.txns is not None else None,
        },
        "snapshotSource": snapshot.source.record if snapshot else None,
        "live": report.live,
        "events": report.events,
        "holdings": [
            {
                "directory": holder.name,
                "kind": holder.kind.value,
                "events": sum(file.matched.events for file in files),
                "files": len(files),
                "bytes": sum(file.size for file in files),
                "isKnown": not any(file.problem for file in files),
            }
            for holder, files in report.holdings.items()
        ],
        "notLookedAt": [{"path": path, "why": str(error)} for path, error in report.not_looked_at],
        "steps": [
            {
                "do": step.remedy.value,
                "text": _TEXTS[step.remedy],
                "command": _command(step, report, table.table, condition) or None,
                "directories": list(step.names),
            }
            for step in report.steps
        ],
        "files": [{"directory": file.holder.name, **file.record} for file in report.files],
    }


def _command(step: ErasureStep, report: ErasureReport, table: str, condition: str) -> str:
    line = partial(other_line, path=report.path, hive_name=report.hive_name)
    commands: dict[Remedy, Callable[[], str]] = {
        Remedy.DELETE: lambda: f"DELETE FROM {'.'.join(map(quoted_name, table.split('.')))} WHERE {condition};",
        Remedy.DECIDE: lambda: line("why"),
        Remedy.COMPACT: lambda: line("compact", "--major", of_snapshot=True),
        Remedy.CLEAN: lambda: line("clean"),
        Remedy.CLEAN_LEFTOVERS: lambda: line("clean", "--leftovers"),
        Remedy.PURGE: lambda: line("purge"),
        Remedy.EMPTY_HDFS_TRASH: lambda: f"hdfs dfs -rm -r -skipTrash {shell_line(step.names)}",
        Remedy.LOOK: lambda: line("validate", "--deep", "--all"),
    }
    return commands[step.remedy]() if step.remedy in commands else ""


def put_document(proof: dict[str, Any], *, is_verbose: bool) -> None:
    """Print what a document says: each location that holds rows or is not known, and a last line with the result.

    Args:
        is_verbose: every location and every file.
    """
    holding = 0
    for location in proof["locations"]:
        holding += sum(bool(file["events"]) for file in location["files"])
        if location["result"] != "none" or is_verbose:
            _put_location(location, is_verbose=is_verbose)
    if without := [table["table"] for table in proof["withoutColumns"]]:
        note(f"{human_count(len(without), 'table')} without the columns of the condition: {_some(without)}")
    if proof["notEntered"]:
        note(f"not entered: {_some(proof['notEntered'])}")
    looked = f"{human_count(proof['filesRead'], 'file')}, {human_bytes(proof['bytes'])}"
    stripes = human_count(proof["stripes"], "stripe")
    others = proof["stripes"] - proof["stripesRead"]
    looked += f"; {proof['stripesRead']} of {stripes} read" + (
        f", {others:,} ruled out by statistics" if others else ""
    )
    lines = {
        "held": f"HELD: {human_count(proof['events'], 'event')} in {human_count(holding, 'file')}",
        "none": "NONE: no file holds such a row",
        "not-known": "NOT KNOWN: no such row was found, but not everything could be looked at",
    }
    put_text(f"{lines[proof['result']]} ({looked})", is_answer=True)
    note(f"not checked: {'; '.join(NOT_SEEN)}")


def _put_location(location: dict[str, Any], *, is_verbose: bool) -> None:
    beside = "  beside its locations" if location["besideLocations"] else ""
    console().print(printable(location["location"]) + beside, style="bold", soft_wrap=True, markup=False)
    if not beside and (location["events"] or location["live"]):
        live = location["live"]
        put_text(f"  readers see {'an unknown number of rows' if live is None else human_count(live, 'row')} of these")
    for holding in location["holdings"]:
        files = [file for file in location["files"] if file["directory"] == holding["directory"]]
        sure = [file for file in files if file["events"]]
        if sure:
            size = human_bytes(sum(file["size"] for file in sure))
            what = f"{human_count(holding['events'], 'event')} in {human_count(len(sure), 'file')}, {size}"
            put_text(f"  {holding['directory']}  {holding['kind']}  {what}")
        for file in sure[: None if is_verbose else _FEW]:
            _put("", f"{file['path']}: {human_count(file['events'], 'event')}")
        if len(sure) > _FEW and not is_verbose:
            _put("", f"and {len(sure) - _FEW} more files (-v names them)")
        for file in files:
            if file["notKnown"]:
                _put("not known", f"{file['path']}: {file['notKnown']}")
    for missed in location["notLookedAt"]:
        _put("not known", f"{missed['path']}: {missed['why']}")
    for number, step in enumerate(location["steps"], 1):
        _put(f"{number}.", ": ".join(filter(None, (step["text"], step["command"]))))


def _put(label: str, text: str) -> None:
    put_text(f"    {label:<10}  {text}", 16)


def _some(names: list[str]) -> str:
    return ", ".join(names[:_FEW]) + (", ..." if len(names) > _FEW else "")
