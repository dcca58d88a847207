"""What `acidctl advise` does: weigh every location by its listing, and rank them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.layout import current_files
from acidctl.acid.triggers import Advice, advise
from acidctl.cli.options.shared import other_line, refuse_unused
from acidctl.cli.output.console import Records, console, note, put_text
from acidctl.cli.output.list_choice import BYTES, CheckedChoice, ListChoice
from acidctl.cli.output.screen import FittedTable, Row, ScreenColumn, fitted
from acidctl.cli.report.outcomes import Visits
from acidctl.errors import AcidctlError
from acidctl.location.find import Found, find
from acidctl.location.lists import SnapshotLists
from acidctl.location.snapshot import Snapshot
from acidctl.rows.scan.odd_layout import odd_layout
from acidctl.wording import human_bytes, human_count, text_of

ORDERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "cost": lambda found: found["cost"],
    "gain": lambda found: found["gain"],
    "files": lambda found: found["files"],
    "small-files": lambda found: found["smallFiles"],
    "deletes": lambda found: (found["deleteRows"] or 0, found["deleteBytes"]),
}

ADVICE_COLUMNS = {
    "location": "string", "cost": BYTES, "directories": "bigint", "files": "bigint", "smallFiles": "bigint",
    "bytes": BYTES, "deleteFiles": "bigint", "deleteBytes": BYTES, "deleteRows": "bigint", "compaction": "string",
    "rewritten": BYTES, "saved": BYTES, "gain": "double", "score": "bigint", "filesAfter": "bigint",
    "seconds": "double", "secondsAfter": "double", "fits": "boolean", "command": "string",
}  # fmt: skip
"""Of a record, in the order of CSV."""


def work(
    *,
    locations: tuple[str, ...],
    choice: ListChoice,
    limit: int | None,
    max_bytes: int | None,
    rows: bool,
    lists: SnapshotLists,
    storage: dict[str, str],
    output: str,
    shown: int,
) -> int:
    """Rank as asked; the exit status.

    Args:
        shown: locations in the table, where `limit` says nothing.
    """
    visits = Visits()
    if output in ("json", "jsonl"):
        refuse_unused(f"-o {output}", "columns", "no_headers")
    chosen = choice.checked(ADVICE_COLUMNS, ORDERS)
    names = tuple(ADVICE_COLUMNS) if chosen.columns is None else chosen.columns
    records = Records(output, names, has_headings=chosen.has_headings)
    ranked: list[dict[str, Any]] = []
    for found in visits.known(find(locations, storage, lists, visits.observer)):
        try:
            snapshot = found.snapshot(lists)
            visits.remember(map(text_of, snapshot.state.notes) if output == "table" else (), odd_layout(snapshot))
            snapshot.require_history()
            advice = advise(snapshot.listing, snapshot.state)
            delete_rows = _delete_rows(snapshot, advice) if rows else None
            ranked.append({**_record(found, advice, delete_rows), "snapshotSource": snapshot.source.record})
        except AcidctlError as error:
            visits.failed(found.shown, error)
    visits.looked_through()
    ranked.sort(key=lambda one: one["location"])
    if max_bytes is not None:
        _fit(ranked, max_bytes)
    ranked = chosen.meeting(ranked)
    if chosen.key in ADVICE_COLUMNS.keys() - ORDERS.keys():
        ranked = chosen.in_order(ranked)
    else:
        ranked.sort(key=ORDERS[chosen.key or "cost"], reverse=chosen.way != "asc")
    _show(ranked, limit or (shown if output == "table" else None), output, records, chosen, failed=visits.status > 0)
    visits.tell_notes()
    visits.tell_strangers()
    return visits.status


def _fit(ranked: Sequence[dict[str, Any]], left: int) -> None:
    """Say of each compaction whether it fits into so many bytes that are rewritten: those with the highest gain do."""
    for one in sorted(ranked, key=ORDERS["gain"], reverse=True):
        if one["compaction"]:
            one["fits"] = one["rewritten"] <= left
            left -= one["rewritten"] if one["fits"] else 0


def _delete_rows(snapshot: Snapshot, advice: Advice) -> int:
    from acidctl.rows.foreign.format import footer_rows  # noqa: PLC0415 - with Arrow: only for --rows

    wanted = set(advice.delete_files)
    files = (file for file in current_files(snapshot.state, snapshot.listing) if file.path in wanted)
    return sum(footer_rows(snapshot, file, full=True) or 0 for file in files)


def _record(found: Found, advice: Advice, delete_rows: int | None) -> dict[str, Any]:
    """Its JSON form."""
    kind = advice.kind.value if advice.kind else None
    return {
        "location": found.shown,
        "cost": advice.cost,
        "directories": advice.directories,
        "files": advice.files,
        "smallFiles": advice.small_files,
        "bytes": advice.bytes,
        "deleteFiles": len(advice.delete_files),
        "deleteBytes": advice.delete_bytes,
        "deleteRows": delete_rows,
        "compaction": kind,
        "rewritten": advice.rewritten,
        "saved": advice.saved,
        "gain": round(advice.gain, 4),
        "score": advice.score,
        "filesAfter": advice.files_after,
        "seconds": round(advice.seconds, 3),
        "secondsAfter": round(advice.seconds_after, 3),
        "fits": None,
        "command": _command(found, advice, advice.kind) if advice.kind else None,
    }


def _command(found: Found, advice: Advice, kind: CompactionKind) -> str:
    # Both kinds of delta may appear one after the other.
    offline = ["--offline"] if kind is CompactionKind.MINOR and advice.delete_files else []
    words = "compact", f"--{kind.value}", *offline
    return other_line(*words, path=found.shown, hive_name=found.hive_name, of_snapshot=True)


def _show(
    ranked: Sequence[dict[str, Any]],
    limit: int | None,
    output: str,
    records: Records,
    chosen: CheckedChoice,
    *,
    failed: bool,
) -> None:
    if output != "table":
        records.put_header()
        for record in ranked[:limit]:
            records.put(record)
    elif ranked:
        table = _table(ranked[:limit]) if chosen.columns is None else chosen.table(ranked[:limit])
        replace(table, has_headings=chosen.has_headings).print(console())
        if chosen.has_headings:
            _sum_up(ranked)
        if left := len(ranked[limit:]):
            note(f"{left} more, which come after these; --limit shows them")
    elif not failed:
        note("no table was found there")


def _table(ranked: Sequence[dict[str, Any]]) -> FittedTable:
    return fitted(
        [
            (ScreenColumn("location"), itemgetter("location")),
            (ScreenColumn("score", True), lambda one: str(one["score"])),
            (ScreenColumn("files", True, 5, is_clear=False), lambda one: _becomes(one, "files", _count)),
            (ScreenColumn("a read", True, 4, is_clear=False), lambda one: _becomes(one, "seconds", _seconds)),
            (ScreenColumn("deletes", True, 3, is_clear=False), _deletes),
            (ScreenColumn("size", True, 1, beside=True), lambda one: human_bytes(one["bytes"])),
        ],
        "compaction",
        ranked,
        lambda one, cells: Row(cells, _remark(one), is_plain=one["compaction"] is None),
    )


def _deletes(one: dict[str, Any]) -> str:
    if not one["deleteFiles"]:
        return "-"
    return human_bytes(one["deleteBytes"]) if one["deleteRows"] is None else f"{one['deleteRows']:,} rows"


def _remark(one: dict[str, Any]) -> str:
    if one["compaction"] is None:
        return "none"
    offline = " --offline" if "--offline" in one["command"].split() else ""
    fits = ", which is more than fits" if one["fits"] is False else ""
    return f"--{one['compaction']}{offline} rewrites {human_bytes(one['rewritten'])}{fits}"


def _becomes(one: dict[str, Any], key: str, form: Callable[[Any], str]) -> str:
    """What it is, and what it would be."""
    now, after = form(one[key]), form(one[f"{key}After"])
    return now if now == after else f"{now} -> {after}"


def _count(number: int) -> str:
    return f"{number:,}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 600 else f"{seconds / 60:,.0f} min"


def _sum_up(ranked: Sequence[dict[str, Any]]) -> None:
    """Of all compactions that would help, or of those that fit."""
    helped = [one for one in ranked if one["compaction"]]
    chosen = [one for one in helped if one["fits"] is not False]
    if len(ranked) < 2 or not helped:
        return
    total = {key: sum(one[key] for one in chosen) for key in ("files", "filesAfter", "seconds", "secondsAfter")}
    which = human_count(len(helped), "compaction")
    which = which if len(chosen) == len(helped) else f"{len(chosen)} of {which} fit"
    files = _becomes(total, "files", _count)
    reads = _becomes(total, "seconds", _seconds)
    rewritten = human_bytes(sum(one["rewritten"] for one in chosen))
    put_text(f"{which}: {files} files, {reads} for a read of each, {rewritten} to rewrite")
