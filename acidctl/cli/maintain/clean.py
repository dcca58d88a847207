"""`acidctl clean`: remove what is obsolete or aborted, after showing the plan."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.param_types import NEW_FILE
from acidctl.cli.options.removal import how_options

plan_options = shared.together(
    shared.lock_options,
    shared.unattended_options,
    shared.table_type_option,
    shared.exit_code_option,
    shared.snapshot_options,
    shared.changed_storage_options,
    shared.verbosity_options,
    shared.output_option("table", "json", "jsonl", default="table"),
    shared.procedure,
)
"""Of whoever plans cleanings and carries the plans out."""


@shared.command(
    "clean",
    "acidctl clean --dry-run /warehouse/sales.db",
    "acidctl clean --yes --older-than 36h --leftovers orders",
    "acidctl clean --write-ids 'sales.orders:12:9:9:7' --valid-txns '900:880:880:' orders",
    "acidctl clean --plan monday.json orders && acidctl apply --yes monday.json",
    "acidctl clean --yes --lock-wait 10m --deadline 2h --max-bytes 500g webhdfs://nn:9870/warehouse/sales.db",
    "acidctl clean --yes --no-trash orders",
    main=(
        "dry_run",
        "yes",
        "older_than",
        "leftovers",
        "no_trash",
        "trash",
        "assume_committed",
        "write_ids_from",
        "metastore",
        "output",
    ),
)
@shared.report_options
@shared.locations_argument()
@click.option("-n", "--dry-run", is_flag=True, help="Show the plan and stop.")
@how_options
@shared.typed_option(
    "--plan", "plan_file", metavar="FILE", type=NEW_FILE, help="Save the plan for `acidctl apply`, and stop."
)
@shared.retention_option("Keep what was superseded, or written, less than this long ago: 24h, 90m, 7d, 0.")
@shared.typed_option("--unsafe-retention", is_flag=True, help="Allow --older-than below 1h: nothing reads the tables.")
@click.option("--leftovers", is_flag=True, help="Remove abandoned _tmp_*, -tmp.delta_* and .hive-staging* too.")
@plan_options
@shared.by_work()
def command() -> None:
    """Remove the obsolete and aborted directories of every location at or below LOCATION.

    They move to a hidden directory of the location, .acidctl-trash, from which `acidctl restore` brings them back and
    `acidctl purge` deletes them for good. What is current, open, or above the high watermark is never touched.

    Queries that are running may still read what is obsolete for new ones. So an entry stays until what supersedes it is
    as old as --older-than, by the newest time in it; that must be longer than the longest query and the
    time that a writer takes from its last file to its commit, together.
    """
