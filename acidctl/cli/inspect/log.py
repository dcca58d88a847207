"""`acidctl log`: Show what acidctl did: when, by whom, how it ended."""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator, Sequence

import click

from acidctl.base.deadline import Deadline
from acidctl.base.errors import AcidctlError
from acidctl.base.parallel import in_order
from acidctl.cli.options import shared
from acidctl.cli.options.param_types import COUNT, DURATION
from acidctl.cli.output.console import Records, console, note
from acidctl.cli.output.screen import Row, ScreenColumn, fitted, on_screen
from acidctl.cli.report.log_text import log_record, what, who
from acidctl.cli.report.outcomes import RunReporter
from acidctl.location.change.work_log import LogEntry, read_log
from acidctl.location.find import find, once, with_tables
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.location.table_location import TableLocation
from acidctl.wording import iso_time

_THREADS = 8

_STYLES = {"compacted": "green", "failed": "red", "stopped": "yellow"}

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
    visits = RunReporter()
    wanted = limit or (_SHOWN if output == "table" else None)
    after = None if since is None else time.time() - since
    lines = (line for line in _lines(locations, storage, visits) if after is None or line[1].at >= after)
    if wanted is None:
        found, more = sorted(lines, key=_order, reverse=True), False
    else:
        found = heapq.nlargest(wanted + 1, lines, key=_order)
        found, more = found[:wanted], len(found) > wanted
    if output == "table":
        _table(found)
    records = Records(output)
    for location, entry in found:
        records.put({"location": location, **log_record(entry)})
    visits.looked_through()
    if more:
        note("there is more before these; -n shows it")
    if not found and not visits.status:
        note("nothing is known to have been done there" if since is None else "nothing was done there since then")
    return visits.status


def _order(line: _Line) -> tuple[float, str, str]:
    return line[1].at, line[1].id, line[0]


def _lines(locations: Sequence[str], storage: dict[str, str], visits: RunReporter) -> Iterator[_Line]:
    places = once(find(locations, storage, SnapshotResolver(), visits.observer, looks=False))
    # The directory of a partitioned table has a log of its own, about staging directories that were cleaned.
    everywhere = (found for found, _ in with_tables(places, locations, storage))
    for found, done in in_order(everywhere, _done, _THREADS, Deadline()):
        if isinstance(done, AcidctlError):
            visits.failed(found.shown, done)
        else:
            yield from ((found.shown, entry) for entry in done)


def _done(found: TableLocation) -> list[LogEntry] | AcidctlError:
    try:
        return read_log(found.fs, found.location.path, found.top)
    except AcidctlError as error:
        return error


def _table(lines: Sequence[_Line]) -> None:
    if not lines:
        return
    is_one = len({location for location, _ in lines}) == 1
    if is_one:
        console().print(lines[0][0], style="bold", soft_wrap=True)
    fitted(
        [
            (ScreenColumn("when (UTC)"), lambda line: on_screen(iso_time(line[1].at))),
            *([] if is_one else [(ScreenColumn("location"), lambda line: line[0])]),
            (ScreenColumn("what"), lambda line: line[1].verb),
            (ScreenColumn("result"), lambda line: line[1].result.replace("-", " ")),
            (ScreenColumn("by", worth=2), lambda line: who(line[1])),
            (ScreenColumn("run", worth=1, beside=True), lambda line: line[1].run),
        ],
        "details",
        lines,
        lambda line, cells: Row(cells, what(line[1])),
    ).print(console())
