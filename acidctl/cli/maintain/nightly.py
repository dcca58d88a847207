"""`acidctl nightly`: compact what is due, clean what is obsolete, and purge what is old, in one go."""

from __future__ import annotations

import click

from acidctl.cli.maintain.compact import compaction_engine_options, writing_options
from acidctl.cli.options import shared
from acidctl.cli.options.param_types import COUNT, DIRECTORY, DURATION, SIZE, WINDOW
from acidctl.cli.options.removal import how_options

_what_options = shared.together(
    click.option(
        "--min-deltas",
        type=COUNT,
        help="Leave locations with fewer deltas alone, and compact from so many on, instead of Hive's count (more than "
        "10).",
    ),
    click.option(
        "--max-ratio",
        type=click.FloatRange(min=0),
        metavar="R",
        help="Major when the deltas have more than R of the base's bytes, instead of 0.1.",
    ),
    shared.retention_option("Keep what was superseded, or written, less than this long ago; at least 1h."),
    click.option(
        "--purge-older-than",
        type=DURATION,
        default="7d",
        show_default=True,
        help="Keep in the trash what was cleaned less than this long ago. Of this very night nothing is purged.",
    ),
    click.option("--leftovers", is_flag=True, help="Clean abandoned _tmp_*, -tmp.delta_* and .hive-staging* too."),
)

_when_options = shared.together(
    click.option("--window", type=WINDOW, help="Work only in these hours, e.g. 01:00-05:00, local time."),
    shared.deadline_option,
    click.option("--max-bytes", type=SIZE, help="Read at most so much for compactions: those that gain most first."),
    click.option(
        "--state",
        "state",
        type=DIRECTORY,
        metavar="DIR",
        help="Where is kept what was left for later; one night at a time works with it. Without it that of systemd, or "
        "~/.local/state/acidctl.",
    ),
)


@shared.command(
    "nightly",
    "acidctl nightly --dry-run --assume-committed=6h /warehouse",
    "acidctl nightly --yes --window 01:00-05:00 --max-bytes 2t 'hive:*.*'",
    "acidctl nightly --yes --deadline 4h --assume-committed=6h --report nightly.json hdfs://nn/warehouse/sales.db",
    "acidctl nightly --yes --engine local --purge-older-than 14d --tables /etc/acidctl/tables.txt",
    main=(
        "dry_run",
        "yes",
        "window",
        "max_bytes",
        "older_than",
        "purge_older_than",
        "engine",
        "assume_committed",
        "metastore",
        "report",
    ),
)
@shared.report_options
@shared.locations_argument()
@click.option("-n", "--dry-run", is_flag=True, help="Show the plan of the whole night and stop, at any hour.")
@how_options
@_what_options
@_when_options
@shared.typed_option(
    "--offline", is_flag=True, help="Nothing reads the tables meanwhile: lets a minor compaction rename twice."
)
@compaction_engine_options
@writing_options
@shared.lock_options
@shared.exit_code_option
@shared.snapshot_options
@shared.changed_storage_options
@shared.verbosity_options
@shared.output_option("table", "json", "jsonl", default="table")
@shared.by_work()
def command() -> None:
    """Compact what is due, clean what is obsolete and purge what is old, at or below every LOCATION.

    First it decides for every location, as `acidctl compact --auto` does, and ranks what is due: by priority, what was
    left for later before, and what readers gain. That is compacted, as long as time and bytes last; a tenth of the
    time, half an hour at most, is left for the rest. Then obsolete directories move to the trash, as `acidctl clean`
    does it, where most is freed first, and what has been in the trash for --purge-older-than is deleted.

    [policy."sales.*"] of a configuration file says otherwise for some tables: exclude, kind, min-deltas, max-ratio,
    older-than, purge-older-than, priority. The most specific pattern wins, key by key.

    A location that fails does not hold up the others. One id names the whole night: `acidctl restore --run ID` brings
    back what it cleaned, everywhere. What it compacted needs no undoing: readers see the same rows, and the inputs stay
    until a later night.
    """
