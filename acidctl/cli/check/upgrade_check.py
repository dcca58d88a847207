"""`acidctl upgrade-check`: what tables need before a newer Hive reads them, and whether it reads the same."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.param_types import FILE, NEW_FILE


@shared.command(
    "upgrade-check",
    "acidctl upgrade-check /warehouse/sales.db",
    "acidctl upgrade-check --to hive4 -o json 'hive:*.*' | jq -r '.steps[].command'",
    "acidctl upgrade-check --save before.json /warehouse/sales.db",
    "acidctl upgrade-check --compare before.json /warehouse/sales.db && echo 'reads the same'",
)
@shared.places_argument("locations", "WHERE...")
@click.option(
    "--from", "source", type=click.Choice(["hive2", "hive3"]), default="hive2", show_default=True, help="What wrote it."
)
@click.option(
    "--to",
    "target",
    type=click.Choice(["hive3", "hive4"]),
    default="hive3",
    show_default=True,
    help="What reads it.",
)
@shared.typed_option("--save", metavar="FILE", type=NEW_FILE, help="Write checksums of all rows, a location each.")
@shared.typed_option(
    "--compare",
    metavar="FILE",
    type=FILE,
    help="Read all rows again, and compare them with a FILE of --save.",
)
@click.option("-v", "--verbose", is_flag=True, help="Show locations that need nothing, and every remark, too.")
@shared.reading_options("table", "json", default="table")
@shared.by_work(isolates=False)
def command() -> None:
    """Say what tables need before Hive 3 or 4 reads what an older one wrote: what Hive's pre-upgrade tool looks for,
    without Hive, and what else the newer one reads otherwise, or Trino, Impala and Spark cannot read.

    A location has to be compacted where a current delta holds updates or deletes of ACID version 1, by the footers. The
    commands that prepare it are shown in their order, with sizes and an estimated time. Nothing is changed.

    --save writes a checksum of the rows of every location, with their ROW__IDs, that no order of rows or files changes;
    --compare reads them again, after the upgrade or a compaction, and says whether every location reads the same.

    The exit status is 14 where something has to be done before, or rows differ, and 15 where that is not known.
    """
