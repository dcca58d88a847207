"""`acidctl status`: Show what is due, held back, broken or stuck on one screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from acidctl.base.errors import ExitStatus
from acidctl.cli.options import shared
from acidctl.cli.options.param_types import DIRECTORY

if TYPE_CHECKING:
    from acidctl.location.snapshot_resolver import SnapshotResolver


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
    from pathlib import Path  # noqa: PLC0415 - --help does without

    from acidctl.cli.inspect.warehouse_lines import LABEL, everything, overview_of, status_screen  # noqa: PLC0415
    from acidctl.cli.output.console import put_json, put_text  # noqa: PLC0415 - as above
    from acidctl.cli.report.outcomes import RunReporter  # noqa: PLC0415 - as above
    from acidctl.overview.warehouse_status import Condition  # noqa: PLC0415 - as above
    from acidctl.verbs.nightly import NightlyState, usual_folder  # noqa: PLC0415 - as above
    from acidctl.wording import time_of  # noqa: PLC0415 - as above

    where = locations or everything(resolver)
    visits = RunReporter()
    last_run = NightlyState(Path(state) if state else usual_folder())
    seen = overview_of(where, storage, resolver, older_than, visits, lambda _, key: last_run.looked(key))
    record, ended = seen.record(), last_run.written
    if output == "json":
        record |= {"notLookedAt": visits.coverage.as_json(), "lastNightly": ended and time_of(ended)}
        put_json(record, lines=False)
    else:
        for line in status_screen(record, ended, older_than):
            put_text(line, LABEL + 2 * line.startswith(" "))
    visits.tell_strangers()
    wanted = seen.condition is Condition.TROUBLE or (seen.condition is Condition.DUE and fail_on == "due")
    return visits.status or (ExitStatus.FINDINGS if wanted else ExitStatus.DONE)
