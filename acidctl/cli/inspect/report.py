"""`acidctl report`: Write a page: bytes, cost, what can go, trend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from acidctl.cli.options import shared
from acidctl.cli.options.param_types import NEW_FILE

if TYPE_CHECKING:
    from acidctl.location.snapshot_resolver import SnapshotResolver
    from acidctl.overview.warehouse_status import WarehouseStatus


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
    help="Keep the figures of each report in FILE, one line each, and show the trend.",
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
    from acidctl.cli.inspect import warehouse_report as page  # noqa: PLC0415 - --help does without
    from acidctl.cli.inspect.warehouse_lines import everything, overview_of  # noqa: PLC0415 - as above
    from acidctl.cli.report.outcomes import RunReporter  # noqa: PLC0415 - as above
    from acidctl.overview.trend import PastReport, earlier  # noqa: PLC0415 - as above

    where = locations or everything(resolver)
    page.refuse_files(out, history, output)
    visits = RunReporter()
    past: list[PastReport] = []

    def on_record(status: WarehouseStatus, _: str) -> int | None:
        past.extend(earlier(page.earlier_reports(history), where, status.now))
        return past[-1].figures.get("locations") if past else None

    seen = overview_of(where, storage, resolver, older_than, visits, on_record)
    record = page.report_record(seen, past)
    record["notLookedAt"] = visits.coverage.as_json()
    page.put(page.text_of(output, record), out)
    if history and visits.coverage.locations:
        page.remember(history, PastReport(seen.status.now, tuple(where), page.figures_of_report(record)))
    visits.tell_strangers()
    return visits.status
