"""`acidctl log`: Show what acidctl did: when, by whom, how it ended."""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import click

from acidctl.base.deadline import Deadline
from acidctl.base.errors import AcidctlError
from acidctl.base.parallel import in_order
from acidctl.base.printable import printable
from acidctl.cli.options import shared
from acidctl.cli.options.param_types import COUNT, DURATION
from acidctl.cli.options.verb_command import Call, verb_command
from acidctl.cli.output.console import Records, console, note
from acidctl.cli.output.screen import Column, Layout, on_screen, print_table
from acidctl.cli.report.outcomes import RunReporter
from acidctl.location.arguments import FromMetastore
from acidctl.location.change.work_log import LogEntry, read_log
from acidctl.location.table_location import TableLocation
from acidctl.location.walk import WalkedLocation
from acidctl.storage.registry import open_location
from acidctl.verbs.selection import Selection
from acidctl.wording import human_bytes, human_count, iso_time, some_of, write_id_range

_THREADS = 8

_Line = tuple[str, LogEntry]
"""A location and an entry of its log."""

_ENDS = {"input": "the end of its input", "signal": "a signal"}
"""The ends of streams in words; else it is the code of an error."""

_SHOWN = 20
"""The default limit of the table."""


@verb_command(
    "log",
    None,
    source=shared.named_locations,
    extras=(
        click.option(
            "-n",
            "--limit",
            type=COUNT,
            help=f"Show the newest N operations (default: {_SHOWN} in the table, all in other forms).",
        ),
        click.option("--since", type=DURATION, help="Only operations that ended within this time, e.g. 7d or 24h."),
    ),
    forms=("table", "json", "jsonl"),
    isolates=True,
)
def command(call: Call[None], *, limit: int | None, since: float | None) -> int:
    """Show what acidctl did to every location at or below LOCATION, newest first: compactions, cleanings, restores,
    purges, repairs, statements that changed rows, and copies to Iceberg; each with its time, user and result.

    Each location has a log of its own, in a hidden file beside its data, with the newest 200 operations. Statements and
    copies are in the log of the table's directory. A run of `acidctl stream` and a streaming query of Spark have one
    line, which counts their transactions. Other runs that were interrupted may not be in it: `acidctl restore --list`
    shows what they left.

    The log is for people only: whoever may write into the table may also change its log. If the store knows the owner
    of the log's file, JSON has it as `owner`.
    """
    events, output = RunReporter(), call.output
    wanted = limit or (_SHOWN if output == "table" else None)
    after = None if since is None else time.time() - since
    lines = (line for line in _lines(call.selection, events) if after is None or line[1].at >= after)
    newest = (
        sorted(lines, key=_order, reverse=True) if wanted is None else heapq.nlargest(wanted + 1, lines, key=_order)
    )
    records = Records(output)
    for location, entry in newest[:wanted]:
        records.put({"location": location, **_record(entry)})
    if newest and output == "table":
        _print_table(newest[:wanted])
    events.looked_through()
    events.tell_strangers()
    if wanted and len(newest) > wanted:
        note("older operations are left out; -n shows more")
    if not newest and not events.status:
        note("no operations are logged there" if since is None else "no operations ended there within that time")
    return events.status


def _order(line: _Line) -> tuple[float, str, str]:
    return line[1].at, line[1].id, line[0]


def _lines(selection: Selection, events: RunReporter) -> Iterator[_Line]:
    def logged(found: TableLocation) -> list[LogEntry] | AcidctlError:
        try:
            return read_log(found.fs, found.location.path, found.top)
        except AcidctlError as error:
            return error

    for found, result in in_order(_logs(selection, events), logged, _THREADS, Deadline()):
        if isinstance(result, AcidctlError):
            events.failed(found.shown, result)
        else:
            yield from ((found.shown, entry) for entry in result)


def _logs(selection: Selection, events: RunReporter) -> Iterator[TableLocation]:
    """Yield locations, and the directories of partitioned tables, whose logs have statements and cleaned staging."""
    seen: set[tuple[str, str]] = set()
    for found in chain(_named_tables(selection), selection.trashes(events, changes=False)):
        if (key := (found.fs.url, found.location.path)) not in seen:
            seen.add(key)
            yield found


def _named_tables(selection: Selection) -> Iterator[TableLocation]:
    """Yield the directories of tables whose partitions were named, which may lie elsewhere."""
    places = (place for place in selection.places if isinstance(place, FromMetastore))
    for table in dict.fromkeys(place.table for place in places if place.table):
        fs, path = open_location(table, selection.storage)
        yield TableLocation(fs, WalkedLocation(path, ""), False, selection.resolver)


def _print_table(lines: Sequence[_Line]) -> None:
    is_single = len({location for location, _ in lines}) == 1
    if is_single:
        console().print(printable(lines[0][0]), style="bold", soft_wrap=True)
    layout = Layout[_Line](
        (
            Column("when (UTC)", lambda line: on_screen(iso_time(line[1].at))),
            Column("location", lambda line: "" if is_single else line[0], optional=True),
            Column("what", lambda line: line[1].verb),
            Column("result", lambda line: line[1].result.replace("-", " ")),
            Column("by", lambda line: "@".join(filter(None, (line[1].user, line[1].host))), worth=2),
            Column("run", lambda line: line[1].run, worth=1, beside=True),
        ),
        "details",
        lambda line: _details(line[1]),
    )
    print_table(layout, lines)


def _record(entry: LogEntry) -> dict[str, Any]:
    return {
        "at": iso_time(entry.at),
        "verb": entry.verb,
        "result": entry.result,
        "run": entry.run or None,
        "user": entry.user or None,
        "owner": entry.owner or None,
        "host": entry.host or None,
        "acidctl": entry.version or None,
        "snapshotFrom": entry.source or None,
        "facts": dict(entry.facts),
    }


def _details(entry: LogEntry) -> str:
    """Return the facts in words; unknown facts are left out."""
    facts = entry.facts
    low, high = entry.number("minWriteId"), entry.number("maxWriteId")
    ids = write_id_range(low, high) if low is not None and high is not None else ""
    outputs = facts.get("outputs")
    entries, read, size, left = (entry.number(key) for key in ("entries", "inputBytes", "bytes", "left"))
    rows = {key: count for key in ("inserted", "updated", "deleted") if (count := entry.number(key))}
    write_id, txn = entry.number("writeId"), entry.number("transaction")
    transactions, end = entry.number("transactions"), facts.get("end")
    amounts = [human_count(entries, "entry", "entries")] if entries is not None else []
    if size is not None:
        amounts.append(human_bytes(size) if read is None else f"{human_bytes(read)} -> {human_bytes(size)}")
    parts = [
        ids,
        f"write id {write_id}, transaction {txn}" if write_id and txn else "",
        human_count(transactions, "transaction") if transactions else "",
        ", ".join(f"{human_count(count, 'row')} {key}" for key, count in rows.items()),
        *(text for key in ("kind", "repair", "renamed") if isinstance(text := facts.get(key), str)),
        f"to {some_of(outputs)}" if isinstance(outputs, list) and outputs else "",
        f"to {target}" if isinstance(target := facts.get("target"), str) else "",
        ", ".join(amounts),
        f"{left:,} left for later" if left else "",
        f"ended by {_ENDS.get(end, f'an error ({end})')}" if isinstance(end, str) else "",
        f"run {night}" if isinstance(night := facts.get("night"), str) else "",
    ]
    return "; ".join(filter(None, parts))
