"""The JSON object of a location in `acidctl ls`, from which its other forms are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from acidctl.acid.layout import DataFile, data_files_of, is_full_acid, original_files
from acidctl.acid.reasons import Code, reason
from acidctl.acid.state import EntryKind, State
from acidctl.acid.triggers import Advice, Decision, decide, figures_of
from acidctl.acid.unfinished import layout_problems
from acidctl.base.errors import AcidctlError
from acidctl.cli.report.location_list import reading_record
from acidctl.location.evidence import Evidence
from acidctl.location.metastore_schema import TableProperties
from acidctl.location.snapshot import Snapshot, children_of
from acidctl.rows.scan.odd_layout import odd_layout
from acidctl.wording import iso_time, text_of


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
