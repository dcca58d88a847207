"""`acidctl doctor`: which Java, Spark and packages are used, and why."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.engine_choice import spark_options


@shared.command(
    "doctor",
    "acidctl doctor",
    "acidctl doctor --spark --master yarn --queue etl",
    "acidctl doctor --faster-start",
)
@click.option(
    "--spark",
    is_flag=True,
    help="Start Spark too, look around on its executors, and run one task. --master, --conf, --queue and --name do so "
    "as well.",
)
@click.option(
    "--faster-start", is_flag=True, help="Make Java's class archive: later starts of Spark take half the time."
)
@spark_options("acidctl doctor")
@shared.output_option("table", "json", default="table")
@shared.by_work()
def command() -> None:
    """Show what acidctl runs on: Python, packages, every Java that was found and which one is used."""
