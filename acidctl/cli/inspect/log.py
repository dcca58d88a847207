"""`acidctl log`: Show what acidctl did: when, by whom, how it ended."""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator, Sequence
from typing import Any

import click

from acidctl.base.deadline import Deadline
from acidctl.base.errors import AcidctlError
from acidctl.base.parallel import in_order
from acidctl.base.printable import printable
from acidctl.cli.options import shared
from acidctl.cli.options.param_types import COUNT, DURATION
from acidctl.cli.output.console import Records, console, note
from acidctl.cli.output.screen import Row, ScreenColumn, fitted, on_screen
from acidctl.cli.report.outcomes import RunReporter
from acidctl.location.change.work_log import LogEntry, read_log
from acidctl.location.table_location import TableLocation
from acidctl.verbs.selection import Selection
from acidctl.wording import human_bytes, human_count, iso_time, some_of, write_id_range

_THREADS = 8

_Line = tuple[str, LogEntry]
"""A location and an entry of its log."""

_SHOWN = 20
"""The default limit of the table."""


@shared.command(
    "log",
    "acidctl log orders",
    "acidctl log --since 7d /warehouse/sales.db",
    "acidctl log -n 100 'hive:sales.*'",
    "acidctl log -o jsonl /warehouse | jq -r 'select(.verb == \"clean\") | .location'",
)
@shared.locations_argument()
@click.option(
    "-n",
    "--limit",
    type=COUNT,
    help=f"Show the newest N operations; without it {_SHOWN} in the table, and all in the other forms.",
)
@click.option("--since", type=DURATION, help="Only what ended at most so long ago: 7d, 24h.")
@shared.named_locations
@shared.storage_options
@shared.output_option("table", "json", "jsonl", default="table")
@shared.runs(pages=True)
def command(
    *,
    locations: tuple[str, ...],
    limit: int | None,
    since: float | None,
    storage: dict[str, str],
    output: str,
) -> int:
    """Show what acidctl did to every location at or below LOCATION, newest first: compactions, cleanings, what was
    restored, purged or repaired; when, by whom, and with which result.

    Each location has a log of its own, in a hidden file beside its data, with the newest 200 operations. A run that was
    interrupted may not be in it: `acidctl restore --list` shows what it left.

    A log is for people, and nothing rests on it: whoever may write into the table may write into it, too. Where the
    store knows to whom its file belongs, `owner` says so in the forms for programs.
    """
    events = RunReporter()
    wanted = limit or (_SHOWN if output == "table" else None)
    after = None if since is None else time.time() - since
    lines = (line for line in _lines(locations, storage, events) if after is None or line[1].at >= after)
    newest = (
        sorted(lines, key=_order, reverse=True) if wanted is None else heapq.nlargest(wanted + 1, lines, key=_order)
    )
    records = Records(output)
    for location, entry in newest[:wanted]:
        records.put({"location": location, **_record(entry)})
    if newest and output == "table":
        _print_table(newest[:wanted])
    events.looked_through()
    if wanted and len(newest) > wanted:
        note("there is more before these; -n shows it")
    if not newest and not events.status:
        note("nothing is known to have been done there" if since is None else "nothing was done there since then")
    return events.status


def _order(line: _Line) -> tuple[float, str, str]:
    return line[1].at, line[1].id, line[0]


def _lines(locations: tuple[str, ...], storage: dict[str, str], events: RunReporter) -> Iterator[_Line]:
    def logged(found: TableLocation) -> list[LogEntry] | AcidctlError:
        try:
            return read_log(found.fs, found.location.path, found.top)
        except AcidctlError as error:
            return error

    # The directory of a partitioned table has a log, too, about staging directories that were cleaned.
    everywhere = Selection(locations, storage).trashes(events, changes=False)
    for found, result in in_order(everywhere, logged, _THREADS, Deadline()):
        if isinstance(result, AcidctlError):
            events.failed(found.shown, result)
        else:
            yield from ((found.shown, entry) for entry in result)


def _print_table(lines: Sequence[_Line]) -> None:
    is_single = len({location for location, _ in lines}) == 1
    if is_single:
        console().print(printable(lines[0][0]), style="bold", soft_wrap=True)
    fitted(
        [
            (ScreenColumn("when (UTC)"), lambda line: on_screen(iso_time(line[1].at))),
            *([] if is_single else [(ScreenColumn("location"), lambda line: line[0])]),
            (ScreenColumn("what"), lambda line: line[1].verb),
            (ScreenColumn("result"), lambda line: line[1].result.replace("-", " ")),
            (
                ScreenColumn("by", worth=2),
                lambda line: _who(line[1]),
            ),
            (ScreenColumn("run", worth=1, beside=True), lambda line: line[1].run),
        ],
        "details",
        lines,
        lambda line, cells: Row(cells, _details(line[1])),
    ).print(console())


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


def _who(entry: LogEntry) -> str:
    return f"{entry.user}@{entry.host}" if entry.user or entry.host else ""


def _details(entry: LogEntry) -> str:
    """Return the facts in words; unknown facts are left out."""
    facts = entry.facts
    low, high = entry.number("minWriteId"), entry.number("maxWriteId")
    ids = write_id_range(low, high) if low is not None and high is not None else ""
    outputs = facts.get("outputs")
    entries, read, size, left = (entry.number(key) for key in ("entries", "inputBytes", "bytes", "left"))
    amounts = [human_count(entries, "entry", "entries")] if entries is not None else []
    if size is not None:
        amounts.append(human_bytes(size) if read is None else f"{human_bytes(read)} -> {human_bytes(size)}")
    parts = [
        ids,
        *(text for key in ("kind", "repair") if isinstance(text := facts.get(key), str)),
        f"to {some_of(outputs)}" if isinstance(outputs, list) and outputs else "",
        ", ".join(amounts),
        f"{left:,} left for later" if left else "",
        f"night {night}" if isinstance(night := facts.get("night"), str) else "",
    ]
    return "; ".join(filter(None, parts))
