"""`acidctl report`: the state of a warehouse as one page, to mail or to put on a server."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from acidctl import __version__
from acidctl.base.errors import BadDataError, UsageProblem
from acidctl.cleaning.retention import Policy
from acidctl.cli.inspect.status import everything, queue_seen, status_record
from acidctl.cli.options import shared
from acidctl.cli.options.param_types import NEW_FILE
from acidctl.cli.output.console import json_text, out_stream
from acidctl.cli.output.progress import progress
from acidctl.cli.report.outcomes import RunReporter
from acidctl.cli.report.run_files import refuse_target
from acidctl.location.change.own_files import alone_in, followed, replace_file
from acidctl.location.find import find, once
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.overview.location_status import Use
from acidctl.overview.trend import FIGURES, PastReport, earlier, moments_in, text_with
from acidctl.overview.warehouse_status import (
    Condition,
    TableStats,
    WarehouseStatus,
    look_over,
    overall_condition,
    sum_of,
)
from acidctl.storage.os_errors import mapped
from acidctl.wording import time_of

if TYPE_CHECKING:  # needs packages that are installed only for a metastore
    from acidctl.overview.queue_view import QueueView

Record = dict[str, Any]
LARGEST, WORST, BEFORE = 40, 15, 90
"""The most tables named by size, the most named by score, and the most earlier reports."""

_MOST_HISTORY = 64 << 20


@shared.command(
    "report",
    "acidctl report --out report.html /warehouse/sales.db",
    "acidctl report --history report.jsonl --out report.html 'hive:*.*'",
    "acidctl report -o md 'hive:sales.*' | mail -s 'tables of sales' ops",
    "acidctl report -o json /warehouse | jq '.cleaning.freeBytes'",
)
@shared.places_argument("locations", "[WHERE...]", required=False)
@shared.retention_option()
@click.option(
    "--history",
    type=NEW_FILE,
    metavar="FILE",
    help="Show the reports of the same places before this one, from a file with a line for each, and add this one.",
)
@click.option(
    "--out",
    type=NEW_FILE,
    metavar="FILE",
    help="Write to a file, in place of the report that was there, not to stdout.",
)
@shared.reading_options("html", "md", "json", default="html")
@shared.runs()
def command(
    *,
    locations: tuple[str, ...],
    older_than: float,
    history: str | None,
    out: str | None,
    resolver: SnapshotResolver,
    storage: dict[str, str],
    output: str,
) -> int:
    """Write a report on tables: one page of HTML that needs nothing else, Markdown, or JSON.

    It has the bytes of every table by what they are for (current, obsolete, aborted, trash); the tables that are read
    worst; what cleaning can free now, within a day or later, and what holds back the rest; and, with
    --history, the reports before it.

    The page loads nothing, runs no script, and adapts to light, dark, a small screen and paper. At most 40 tables are
    named, the largest first; the rest are one. Each location is listed once, and no file of data is opened.
    """
    where = locations or everything(resolver)
    _refuse(out, history, output)
    visits = RunReporter()
    with progress("looking at locations") as bar:
        places = visits.known(once(find(where, storage, resolver, visits.observer)))
        found = look_over(places, Policy(older_than), visits.failed, lambda _: bar.advance())
    past = earlier(_earlier_reports(history), where, found.now)
    visits.looked_through(lambda _: past[-1].figures.get("locations") if past else None)
    queue = queue_seen(resolver, found, where, visits)
    verdict = overall_condition(found, failed=visits.status > 0, held_up=bool(queue and queue.is_trouble(older_than)))
    record = report_record(where, found, queue, verdict, older_than, past)
    record["notLookedAt"] = visits.coverage.as_json()
    _put(_text(output, record), out)
    if history and visits.coverage.locations:
        _remember(history, PastReport(found.now, tuple(where), figures_of_report(record)))
    visits.tell_strangers()
    return visits.status


def _refuse(out: str | None, history: str | None, output: str) -> None:
    """Refuse, before minutes of work, files that cannot be written or would replace something else."""
    if out is None and output == "html" and sys.stdout.isatty():
        raise UsageProblem("a page is nothing for a terminal", "", "give --out FILE, or -o md")
    if out and history and followed(Path(out)) == followed(Path(history)):
        raise UsageProblem("--out and --history are one file", "", "give two")
    for path, kind in ((out, "page"), (history, "history")):
        if path:
            refuse_target(Path(path), kind)


def _text(output: str, record: dict[str, Any]) -> str:
    if output == "json":
        return json_text(record, lines=False) + "\n"
    from acidctl.cli.page.report_page import report_html, report_markdown  # noqa: PLC0415 - with jinja2: --help has none

    return report_html(record) if output == "html" else report_markdown(record)


def _put(text: str, out: str | None) -> None:
    data = text.encode("utf-8", "backslashreplace")
    if out is None:
        out_stream().write(data)
        out_stream().flush()
        return
    with mapped("write", out):
        replace_file(Path(out), data)


def _earlier_reports(history: str | None) -> list[PastReport]:
    if not history or not Path(history).is_file():
        return []
    with mapped("read", history), Path(history).open("rb") as file:
        data = file.read(_MOST_HISTORY + 1)
    if len(data) > _MOST_HISTORY:
        raise BadDataError(f"cannot use {history}", "it is larger than any history of reports", "give another name")
    return moments_in(data.decode("utf-8", "replace"))


def _remember(history: str, new: PastReport) -> None:
    with mapped("write", history), alone_in(followed(Path(history)).parent):
        replace_file(Path(history), text_with(_earlier_reports(history), new).encode("ascii"))


# --- for programs ---------------------------------------------------------------------------------------------------


def report_record(
    where: Sequence[str],
    found: WarehouseStatus,
    queue: QueueView | None,
    verdict: Condition,
    older_than: float,
    before: Sequence[PastReport],
) -> Record:
    """Return the JSON form of a report; `docs/reference/json.md` has the meaning of every key.

    Args:
        before: the earlier reports of the same places, the oldest first.
    """
    tables = found.largest
    slowest, others = found.slowest, sum_of(tables[LARGEST:])
    return {
        "at": time_of(found.now),
        "acidctl": __version__,
        "olderThan": older_than,
        **status_record(where, found, queue, verdict, older_than),
        "failed": found.failed,
        "sources": dict(sorted(found.sources.items())),
        "whole": _table(found.whole),
        "largest": [_table(table) for table in tables[:LARGEST]],
        "others": {"tables": len(tables) - LARGEST, **_table(others)} if len(tables) > LARGEST else None,
        "helped": len(slowest),
        "worst": [_table(table) for table in slowest[:WORST]],
        "before": [{"at": time_of(past.at), **past.figures} for past in before[-BEFORE:]],
    }


def _table(table: TableStats) -> Record:
    advice = table.reading
    return {
        "table": table.name,
        "locations": table.locations,
        "bytes": table.bytes,
        **{use.value: table.uses[use] for use in Use},
        "deltas": table.deltas,
        "files": advice.files,
        "filesAfter": advice.files_after,
        "score": advice.score,
        "seconds": round(advice.seconds, 3),
        "secondsAfter": round(advice.seconds_after, 3),
        "compaction": advice.kind.value if advice.kind else None,
        "rewritten": advice.rewritten,
        "freeBytes": table.free,
        "soonBytes": table.soon,
        "due": table.due,
    }


def figures_of_report(record: Record) -> dict[str, int]:
    """Return the figures of a report that its history keeps."""
    cleaning = record["cleaning"]
    figures = {
        **record, **record["whole"], **cleaning, "trashBytes": record["trash"]["bytes"],
        "due": record["compaction"]["due"], "bytes": record["bytes"], "locations": record["locations"],
    }  # fmt: skip
    return {name: figures[name] for name in FIGURES}
