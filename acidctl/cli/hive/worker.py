"""`acidctl hive worker`: takes compactions from Hive's queue, as Hive's own workers do."""

from __future__ import annotations

from typing import Any

import click

from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import asked_metastore
from acidctl.cli.options.engine_choice import engine_options
from acidctl.cli.options.param_types import COUNT, DURATION, SIZE


@shared.command(
    "worker",
    "acidctl hive worker --pool nightly --once",
    "acidctl hive worker --engine local --max-parallel 2 --max-bytes 50g --listen 9464",
    "acidctl hive worker -o jsonl --master yarn --queue compaction --max-parallel 8",
    main=("pool", "once", "max_parallel", "max_bytes", "grace", "listen", "engine", "master", "metastore", "output"),
)
@click.option("--pool", metavar="NAME", help="Take entries of this pool; without it those that have none.")
@click.option("--once", is_flag=True, help="End when nothing waits any more.")
@click.option("--max-parallel", type=COUNT, default=1, show_default=True, help="Entries at once.")
@click.option("--max-bytes", type=SIZE, help="Read at most so much at once; what is larger waits until it is alone.")
@click.option(
    "--grace",
    type=DURATION,
    default="25s",
    show_default=True,
    help="When it is ended, wait so long for what it works on; what is not done then is given back to the queue.",
)
@click.option("--listen", metavar="[HOST:]PORT", help="Serve /metrics and /healthz there, on 127.0.0.1 without HOST.")
@engine_options("spark", "acidctl-worker-<host>")
@click.option("--jobs", type=COUNT, help="Processes of --engine local for each entry; without it one per core.")
@click.option(
    "--verify",
    type=click.Choice(["keys", "bytes", "full"]),
    default="bytes",
    show_default=True,
    help="As of acidctl compact: what is compared before a result is shown.",
)
@asked_metastore
@shared.changed_storage_options
@shared.output_option("table", "jsonl", default="table")
def command(**asked: Any) -> int:
    """Compact what waits in Hive's queue, until it is ended: beside Hive's own workers, or where there are none.

    Each entry is taken as Hive's workers take it, compacted under a transaction and a shared lock, and visible in SHOW
    COMPACTIONS all the while. Its result appears with the commit; Hive's cleaner removes what it replaced.

    At the start, entries left by dead workers of this machine go back to the queue, each of them once. Entries of
    Iceberg tables, and of types that acidctl does not know, are left to other workers. Unlike Hive's own worker, it
    does not refresh column statistics: run ANALYZE TABLE if your queries depend on them.

    It needs Hive 4. On Hive 3.1, or without a service: acidctl compact --auto 'hive:*.*'.
    """
    from acidctl.cli.hive.work.worker import work  # noqa: PLC0415 - loaded when it runs

    return work(**asked)
