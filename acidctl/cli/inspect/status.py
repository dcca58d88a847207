"""`acidctl status`: Show what is due, held back, broken or stuck on one screen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from acidctl.base.errors import ExitStatus
from acidctl.cli.options import shared
from acidctl.cli.options.param_types import DIRECTORY
from acidctl.cli.output.console import put_json, put_text
from acidctl.cli.report.outcomes import RunReporter
from acidctl.wording import time_of

if TYPE_CHECKING:
    from acidctl.location.snapshot_resolver import SnapshotResolver

_LABEL = 12
"""Columns of the labels, by which continued lines are indented."""


@shared.command(
    "status",
    "acidctl status",
    "acidctl status 'hive:sales.*' || mail -s 'acidctl: something needs attention' ops",
    "acidctl status --fail-on due -o json 'hive:*.*' | jq '.cleaning.freeBytes'",
)
@shared.places_argument("locations", "[WHERE...]", required=False)
@shared.retention_option()
@click.option(
    "--fail-on",
    type=click.Choice(["trouble", "due"]),
    default="trouble",
    show_default=True,
    help="Exit with 14 on trouble, which someone must mend, or also on due work.",
)
@click.option(
    "--state",
    "state",
    type=DIRECTORY,
    metavar="DIR",
    help="The --state of `acidctl nightly`, if it is not the usual folder.",
)
@shared.reading_options("table", "json", default="table")
@shared.runs()
def command(
    *,
    locations: tuple[str, ...],
    older_than: float,
    fail_on: str,
    state: str | None,
    resolver: SnapshotResolver,
    storage: dict[str, str],
    output: str,
) -> int:
    """Show on one screen what tables need: compactions that are due, what cleaning can free, what holds it back,
    trash, and what was interrupted or is stuck.

    WHERE is a location, a table, a database, a warehouse, or names of a metastore: hive:db.table, hive:db.*. Without
    one, where a metastore is configured, it is all of its tables. At most five of each kind are named, the worst
    first; `acidctl ls --sort gain`, `clean --dry-run`, `hive txns --blocking` and `hive compactions --stuck` have the
    rest.

    Trouble is: a publication that was interrupted half-way; a location that cannot be compacted, cleaned or read as it
    is; an entry of Hive's queue that is stuck; a transaction or lock that has held back a cleaning for longer than
    --older-than. Nothing is changed, no file of data is opened, and each location is listed once.
    """
    from acidctl.cli.report.overview_lines import (  # noqa: PLC0415 - --help does without
        everything,
        overview_record,
        status_values,
    )
    from acidctl.overview.warehouse_status import Condition  # noqa: PLC0415 - --help does without
    from acidctl.verbs.nightly_state import NightlyState, usual_folder  # noqa: PLC0415 - --help does without
    from acidctl.verbs.reading.inspect import inspect_all  # noqa: PLC0415 - --help does without
    from acidctl.verbs.selection import Selection  # noqa: PLC0415 - --help does without

    events = RunReporter()
    last_run = NightlyState(Path(state) if state else usual_folder())
    selection = Selection(locations or everything(resolver), storage, resolver)
    seen = inspect_all(selection, older_than, events, lambda _, key: last_run.looked(key))
    ended = last_run.written and time_of(last_run.written)
    record = {**overview_record(seen, shared.hive_line), "notLookedAt": events.coverage.as_json(), "lastNightly": ended}
    if output == "json":
        put_json(record, lines=False)
    else:
        from acidctl.cli.page.rendering import rendered  # noqa: PLC0415 - with jinja2: JSON needs none

        values = status_values(record, older_than, shared.next_lines(record["where"]))
        for line in rendered("status.txt.j2", values).splitlines():
            put_text(line, _LABEL)
    events.tell_strangers()
    wanted = seen.condition is Condition.TROUBLE or (seen.condition is Condition.DUE and fail_on == "due")
    return events.status or (ExitStatus.FINDINGS if wanted else ExitStatus.DONE)
