"""`acidctl status`: Show what is due, held back, broken or stuck on one screen."""

from __future__ import annotations

from pathlib import Path

import click

from acidctl.base.errors import ExitStatus
from acidctl.cli.options import shared
from acidctl.cli.options.param_types import DIRECTORY
from acidctl.cli.options.verb_command import Call, verb_command
from acidctl.cli.output.command_lines import hive_line, next_lines
from acidctl.cli.output.console import put_json, put_text
from acidctl.cli.report.outcomes import RunReporter
from acidctl.wording import time_of

_LABEL = 12
"""Columns of the labels, by which continued lines are indented."""


@verb_command(
    "status",
    None,
    place=shared.places_argument("locations", "[WHERE...]", required=False),
    extras=(
        shared.retention_option,
        click.option(
            "--fail-on",
            type=click.Choice(["trouble", "due"]),
            default="trouble",
            show_default=True,
            help="Exit with 14 on trouble, which someone must mend, or also on due work.",
        ),
        click.option(
            "--state",
            type=DIRECTORY,
            metavar="DIR",
            help="The --state of `acidctl nightly`, if it is not the usual folder.",
        ),
    ),
    forms=("table", "json"),
    records=True,
    isolates=True,
)
def command(call: Call[None], *, older_than: float, fail_on: str, state: str | None) -> int:
    """Show on one screen what tables need: compactions that are due, what cleaning can free, what holds it back,
    trash, and what was interrupted or is stuck.

    WHERE is a location, a table, a database, a warehouse, or names of a metastore: hive:db.table, hive:db.*. The
    default is all tables of the configured metastore. At most five of each kind are named, the worst
    first; `acidctl ls --sort gain`, `clean --dry-run`, `hive txns --blocking` and `hive compactions --stuck` have the
    rest.

    Trouble is: a publication that was interrupted half-way; a location that cannot be compacted, cleaned or read as it
    is; an entry of Hive's queue that is stuck; a transaction or lock that has held back a cleaning for longer than
    --older-than. Nothing is changed, no file of data is opened, and each location is listed once.
    """
    from acidctl.cli.report.overview_lines import everything, overview_record, status_values
    from acidctl.overview.warehouse_status import Condition
    from acidctl.verbs.nightly_state import NightlyState, usual_folder
    from acidctl.verbs.reading.inspect import inspect_all

    events = RunReporter(call.run)
    last_run = NightlyState(Path(state) if state else usual_folder())
    selection = everything(call.selection)
    seen = inspect_all(selection, older_than, events, last_run.looked)
    ended = last_run.written and time_of(last_run.written)
    if call.run and call.run.is_wanted:
        from acidctl.cli.report.state_metrics import state_samples

        call.run.state = tuple(state_samples(seen))
    record = {**overview_record(seen, hive_line), "notLookedAt": events.coverage.as_json(), "lastNightly": ended}
    if call.output == "json":
        put_json(record, lines=False)
    else:
        from acidctl.cli.page.rendering import rendered

        values = status_values(record, older_than, next_lines(record["where"]))
        for line in rendered("status.txt.j2", values).splitlines():
            put_text(line, _LABEL)
    events.tell_strangers()
    wanted = seen.condition is Condition.TROUBLE or (seen.condition is Condition.DUE and fail_on == "due")
    return events.status or (ExitStatus.FINDINGS if wanted else ExitStatus.DONE)
