"""`acidctl hive request`: ask the metastore for compactions, which Hive's own workers then do."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import asked_metastore
from acidctl.cli.options.key_value import key_and_value
from acidctl.cli.options.metastore import exclude_option
from acidctl.cli.options.param_types import COUNT, DURATION


def _properties(property_: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple(key_and_value(item, "--property") for item in property_)


@shared.command(
    "request",
    "acidctl hive request --major hive:sales.orders",
    "acidctl hive request --minor --dry-run 'hive:sales.*'",
    "acidctl hive request --major --wait --deadline 2h hive:sales.orders/day=2026-11-20",
    "acidctl hive request --rebalance --buckets 8 --order-by 'id desc' hive:sales.orders",
    "acidctl hive request --major --pool nightly --property compactor.mapreduce.map.memory.mb=4096 hive:sales.orders",
)
@shared.places_argument("names", "TABLE...", only_names=True)
@shared.typed_option("--major", "kind", flag_value="major", help="All rows into a base.")
@shared.typed_option("--minor", "kind", flag_value="minor", help="The deltas into one.")
@shared.typed_option(
    "--rebalance", "kind", flag_value="rebalance", help="All rows into a base, spread evenly over buckets (Hive 4)."
)
@click.option("--pool", metavar="NAME", help="For the workers of this pool (Hive 4).")
@shared.passed_as(
    "properties",
    _properties,
    click.option(
        "--property",
        "property_",
        multiple=True,
        metavar="KEY=VALUE",
        help="A property of this compaction, compactor.KEY for its job, tblprops.KEY for the table. Repeatable.",
    ),
)
@click.option("--buckets", type=COUNT, help="With --rebalance: so many buckets.")
@shared.typed_option("--order-by", metavar="SQL", help="With --rebalance: sort the rows by this, 'id desc'.")
@click.option("--wait", is_flag=True, help="Wait until they are compacted or have failed, and say what became of each.")
@click.option("--deadline", type=DURATION, metavar="TIME", help="With --wait: wait no longer than this, e.g. 2h.")
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be asked for and stop.")
@click.option("--exit-code", is_flag=True, help="With --deadline: exit with 13 where some were not done by then.")
@exclude_option
@asked_metastore
@shared.output_option("table", "json", "jsonl", default="table")
@shared.by_work()
def command() -> None:
    """Put compactions into the metastore's queue, as ALTER TABLE ... COMPACT does, one for each partition.

    TABLE is hive:db.table, hive:db.table/day=2026-11-20 or hive:db.*. Hive's own workers compact; `acidctl compact`
    does it itself. A location of which an entry waits already is refused, by the metastore, with that entry.

    Exits with 7 where one was refused, and with 6 where a compaction failed that was waited for.
    """
