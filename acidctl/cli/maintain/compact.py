"""`acidctl compact`: minor and major compaction and rebalances, on Spark or in processes of this machine."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.engine_choice import engine_options
from acidctl.cli.options.local_completion import complete_columns
from acidctl.cli.options.param_types import COUNT, DURATION, SIZE, WINDOW, NumberType

compaction_engine_options = shared.together(
    engine_options("spark", "<host>-compactor-<database>.<table>"),
    click.option("--jobs", type=COUNT, help="Processes of --engine local; without it one per core."),
    click.option(
        "--task-bytes",
        type=SIZE,
        show_default=True,
        help="Cut larger buckets into segments of this size; without it, those for which cores would wait.",
    ),
)


_when_options = shared.together(
    click.option(
        "--property",
        "properties",
        multiple=True,
        metavar="KEY=VALUE",
        help="A table property for --auto, e.g. compactorthreshold.hive.compactor.delta.num.threshold=4. Repeatable.",
    ),
    click.option(
        "--min-deltas",
        type=COUNT,
        help="Leave locations with fewer deltas alone; with --auto instead of Hive's count (more than 10).",
    ),
    click.option(
        "--max-ratio",
        type=click.FloatRange(min=0),
        metavar="R",
        help="With --auto: major when the deltas have more than R of the base's bytes, instead of 0.1.",
    ),
    click.option("--window", type=WINDOW, help="Work only in these hours, e.g. 01:00-05:00, local time."),
    shared.deadline_option,
    click.option("--max-bytes", type=SIZE, help="Read at most so much: those with most deltas per byte first."),
)


writing_options = shared.together(
    click.option(
        "--for",
        "reader",
        type=click.Choice(["hive2", "hive3", "hive4"]),
        help="The version of Hive that reads the tables, if no metastore is used. By default whatever Hive 3 and 4 "
        "read differently is refused, and so are updates of ACID version 1, which only Hive 2 reads.",
    ),
    click.option(
        "--verify",
        type=click.Choice(["keys", "bytes", "full"]),
        default="bytes",
        show_default=True,
        help="What is compared with what was read before a result is shown: the ids of all rows; all bytes too, which "
        "reads the result once more; or all column values too, which decodes all of it twice.",
    ),
    click.option(
        "--check-inputs",
        is_flag=True,
        help="First read all rows as `acidctl validate --deep` does; where it finds errors nothing is done.",
    ),
    click.option(
        "--compression",
        type=click.Choice(["none", "zlib", "snappy", "lz4", "zstd"]),
        help="Codec of the result; without it that of the newest input. Any of these settings, given, has "
        "every row encoded again.",
    ),
    click.option("--stripe-size", type=SIZE, help="Without it 64m, and 8m for deltas."),
    click.option("--row-index-stride", type=NumberType("ROWS", 0), help="Without it that of the newest input."),
    click.option(
        "--bloom-filter",
        metavar="COLUMNS",
        shell_complete=complete_columns,
        help="Columns that get bloom filters, by commas.",
    ),
)


_hive_options = shared.together(
    shared.typed_option(
        "--take-over", is_flag=True, help="Do what waits in Hive's queue for the same location in its place."
    ),
    click.option(
        "--wait",
        type=DURATION,
        help="Wait so long for Hive's own compaction of the same location, and for the lock of --rebalance, e.g. 2h.",
    ),
)


@shared.command(
    "compact",
    "acidctl compact --major orders",
    "acidctl compact --auto --dry-run /warehouse/sales.db",
    "acidctl compact --major --master yarn --queue etl --conf spark.executor.memory=4g orders",
    "acidctl compact --minor --offline --engine local orders/day=2026-11-20",
    "acidctl compact --major --wait 2h hive:sales.orders",
    "acidctl compact --rebalance --buckets 8 --order-by 'day desc, id' hive:sales.orders",
    "acidctl compact --auto --window 01:00-05:00 --max-bytes 500g hdfs://nn/warehouse/sales.db",
    main=(
        "major",
        "minor",
        "auto",
        "dry_run",
        "engine",
        "master",
        "assume_committed",
        "metastore",
        "deadline",
        "output",
    ),
)
@shared.report_options
@shared.locations_argument()
@shared.typed_option("--major", is_flag=True, help="Merge base and deltas into a new base, deletes applied.")
@shared.typed_option("--minor", is_flag=True, help="Merge deltas into one delta and one delete delta.")
@shared.typed_option(
    "--rebalance", is_flag=True, help="All rows into a new base, spread evenly over buckets, with new ids (Hive 4)."
)
@shared.typed_option("--auto", is_flag=True, help="What Hive's thresholds ask for, location by location.")
@click.option(
    "--buckets", type=NumberType("N", 1, 4096), help="With --rebalance: so many; without it as many as there are."
)
@shared.typed_option(
    "--order-by",
    metavar="COLUMNS",
    shell_complete=complete_columns,
    help="With --rebalance: sort all rows, 'day desc, id'.",
)
@click.option("-n", "--dry-run", is_flag=True, help="Show the plan and stop.")
@shared.typed_option(
    "--offline",
    is_flag=True,
    help="Nothing reads the tables meanwhile: lets a minor compaction rename twice, and an object store show several "
    "buckets.",
)
@shared.typed_option(
    "--visibility-txn",
    type=NumberType("TXN", 1),
    help="Name the results _v<TXN>, the compaction's own transaction (Hive 4): visible when it is committed.",
)
@shared.table_type_option
@shared.typed_option("--force", is_flag=True, help="Go on although a writer seems to be at work.")
@shared.typed_option(
    "--apply-all-deletes",
    is_flag=True,
    help="A major compaction applies deletes that Hive overlooks, too: in files of other buckets, or not sorted.",
)
@_when_options
@compaction_engine_options
@writing_options
@shared.lock_options
@_hive_options
@shared.exit_code_option
@shared.snapshot_options
@shared.changed_storage_options
@shared.verbosity_options
@shared.output_option("table", "json", "jsonl", default="table")
@shared.by_work()
def command() -> None:
    """Compact every location at or below LOCATION: one Spark session, one task per bucket.

    The inputs stay until `acidctl clean`. The result is written to a hidden directory, read back and compared, and
    appears by a rename; whatever fails before that leaves the table as it was.

    It must be told which write ids are committed: by Hive's lists, or by --assume-committed, with which nothing counts
    that is younger than AGE, empty, or above the first such directory. On a terminal it asks.

    A minor compaction with both kinds of delta appears by two renames, and a reader between them would see wrong rows:
    it needs --offline, or --visibility-txn; --major appears at once.

    A table that a metastore knows is compacted under a transaction of Hive's, and on Hive 4 as an entry of its queue,
    in a pool of its own: SHOW COMPACTIONS has it, and the result appears with the commit.

    A rebalance gives all rows new ROW__IDs, as Hive 4's own does. It needs a table that a metastore of Hive 4 knows,
    and a lock that keeps away who updates or deletes; --wait waits for it, too.

    On S3 and Google Cloud Storage, which cannot rename, the result is copied to its place, and the location is locked
    meanwhile. One bucket appears at once there too; several need --offline, or --visibility-txn.
    """
