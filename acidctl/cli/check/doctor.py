"""`acidctl doctor`: which Java, Spark, packages and metastore are used, and why."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.engine_choice import spark_options
from acidctl.cli.options.metastore import CONFIGURED, metastore_option_option


@shared.command(
    "doctor",
    "acidctl doctor",
    "acidctl doctor --spark --master yarn --queue etl",
    "acidctl doctor --metastore",
    "acidctl doctor --metastore thrift://metastore:9083 --metastore-option auth=kerberos -o json",
)
@click.option(
    "--spark",
    is_flag=True,
    help="Start Spark too, look around on its executors, and run one task. --master, --conf, --queue and --name do so "
    "as well.",
)
@spark_options("acidctl doctor")
@click.option(
    "--metastore",
    is_flag=False,
    flag_value=CONFIGURED,
    metavar="[URI[,URI]]",
    help="Ask every server of this metastore, or of the configured one: how it is reached, what it can do, how it is "
    "set. A transaction is opened, and ended at once, to read its clock.",
)
@metastore_option_option
@shared.output_option("table", "json", default="table")
@shared.by_work()
def command() -> None:
    """Show what acidctl runs on: Python, packages, every Java that was found and which one is used.

    With --metastore also which settings of a metastore count and where each is from, and of each of its servers the way
    in, the version, the switches, the clock, what waits there, and what acidctl can do with it. Secrets are not shown.
    """
