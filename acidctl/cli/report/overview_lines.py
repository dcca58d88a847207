"""The object that `acidctl status` and `acidctl report` print as JSON, and the lines that are made from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.reasons import Code
from acidctl.base.errors import UsageProblem
from acidctl.cli.output.screen import on_screen
from acidctl.overview.warehouse_status import NAMED, Condition
from acidctl.verbs.reading.inspect import Overview
from acidctl.verbs.selection import Selection
from acidctl.wording import age_text, human_bytes, human_count

Record = Mapping[str, Any]


def everything(selection: Selection) -> Selection:
    """Return the selection, or all tables of the metastore for a command line without locations.

    Raises:
        UsageProblem: no metastore is configured.
    """
    if selection.places:
        return selection
    if selection.resolver.warehouse is None:
        raise UsageProblem(
            "no location is named",
            "no metastore is configured whose tables could be listed",
            "give a table, a database or a warehouse; or give --metastore",
        )
    return replace(selection, places=("hive:*.*",))


def overview_record(seen: Overview, hive_line: Callable[..., str]) -> dict[str, Any]:
    """Return the JSON form, without the keys about earlier runs.

    Args:
        hive_line: returns the line of a command of ``acidctl hive`` from its words.
    """
    return {
        "where": list(seen.where),
        "verdict": seen.condition,
        **seen.status.record(),
        **_queue_record(seen, hive_line),
    }


def _queue_record(seen: Overview, hive_line: Callable[..., str]) -> dict[str, Any]:
    queue = seen.queue
    if queue is None:
        return {"blocked": None, "stuck": None}
    from acidctl.cli.report.waits import what_frees, what_to_do, who_blocks, why_stuck  # noqa: PLC0415 - with thrift

    return {
        "blocked": {
            "count": len(queue.blockers),
            "overdue": len(queue.overdue(seen.older_than)),
            "first": [
                {**who_blocks(blocker), "advice": what_to_do(blocker, queue.known, queue.switches, hive_line)}
                for blocker in queue.blockers[:NAMED]
            ],
        },
        "stuck": {
            "count": len(queue.stuck),
            "first": [
                {
                    "id": stuck.entry.id,
                    "on": stuck.entry.name,
                    "kind": stuck.entry.kind,
                    "state": stuck.entry.state,
                    "cause": stuck.cause.value,
                    "why": why_stuck(stuck, queue.switches),
                    "frees": what_frees(stuck, queue.switches, hive_line),
                }
                for stuck in queue.stuck[:NAMED]
            ],
        },
    }


# --- for people -----------------------------------------------------------------------------------------------------

VERDICTS = {
    Condition.FINE: "fine: nothing to do",
    Condition.DUE: "due: maintenance is due, and there are no problems",
    Condition.TROUBLE: "trouble: something needs attention",
}


def status_values(record: Record, older_than: float, next_lines: Mapping[str, str]) -> dict[str, Any]:
    """Return what the template of `acidctl status` needs.

    Args:
        older_than: the retention in seconds.
        next_lines: the lines of commands that go on, by their verbs.
    """
    due, kept = record["compaction"], record["cleaning"]["keptBack"]
    return {
        "r": record,
        "next": next_lines,
        "where": where_text(record),
        "verdict": VERDICTS[record["verdict"]],
        "kinds": ", ".join(f"{due[kind.value]:,} {kind.value}" for kind in CompactionKind if due[kind.value]),
        "kept": [part for part in kept if not (record["blocked"] and part["code"] == Code.READER_HOLDS)],
        "blocked": list(blocked_lines(record)),
        "trouble": list(trouble_lines(record)),
        "retention": age_text(older_than),
    }


def name_of(location: Record) -> str:
    """Return the name by which a location was asked for."""
    name: str = location["name"] or location["location"]
    return name


def moment_text(at: str | None) -> str:
    """Return the time to the minute: ``2026-11-25 20:02 UTC``."""
    return f"{on_screen(at)[:16]} UTC"


def where_text(record: Record) -> str:
    """Return the first place, and how many more there are."""
    where: list[str] = record["where"]
    return where[0] + (f" and {len(where) - 1:,} more" if len(where) > 1 else "")


def trouble_lines(record: Record) -> Iterator[str]:
    """Yield a line for each problem, and a last line with the number of those left out."""
    if record.get("failed"):
        yield f"{human_count(record['failed'], 'location')} could not be read: see acidctl status"
    unfinished = record["unfinished"]
    for location in unfinished["first"]:
        yield f"{name_of(location)}: {location['staging']} is half published: acidctl compact finishes it"
    yield from _more(unfinished["count"], unfinished["first"], "half-published compactions")
    refused = record["refused"]
    for location in refused["first"]:
        place = "" if location["location"] in location["what"] else f"{name_of(location)}: "
        yield f"{place}{location['what']}" + (f": {location['why']}" if location["why"] else "")
    yield from _more(
        refused["locations"], refused["first"], "locations that cannot be compacted or cleaned as they are"
    )
    if stuck := record["stuck"]:
        for entry in stuck["first"]:
            yield f"{entry['id']} {entry['kind']} of {entry['on']} is stuck: {entry['why']}"
        yield from _more(stuck["count"], stuck["first"], "stuck entries of the queue")


def _more(number: int, first: list[Any], noun: str) -> Iterator[str]:
    if number > len(first):
        yield f"{number - len(first):,} more: {noun}"


def blocked_lines(record: Record) -> Iterator[str]:
    """Yield a line for each transaction or lock that holds back cleaning."""
    blocked = record["blocked"]
    if not blocked:
        return
    for blocker in blocked["first"]:
        what = f"transaction {blocker['id']}" if blocker["id"] else f"lock {blocker['lock']}"
        size = f", {human_bytes(blocker['bytes'])}" if blocker["bytes"] is not None else ""
        since = f" since {moment_text(blocker['started'])}" if blocker["started"] else ""
        places = human_count(blocker["waiting"], "location")
        yield f"{what} of {blocker['user']}@{blocker['host']}{since}: {places}{size}; {blocker['advice']}"
    yield from _more(blocked["count"], blocked["first"], "transactions and locks")
