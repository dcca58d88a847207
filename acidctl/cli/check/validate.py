"""`acidctl validate`: what is wrong with tables, told with what to do about it."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.engine_choice import engine_options
from acidctl.cli.options.local_completion import complete_rules
from acidctl.cli.options.param_types import NumberType

_READERS = ("hive2", "hive3", "hive4", "trino", "impala", "spark")


@shared.command(
    "validate",
    "acidctl validate /warehouse/sales.db",
    "acidctl validate --deep orders",
    "acidctl validate --for trino --for impala webhdfs://namenode:9870/warehouse/sales.db/orders",
    "acidctl validate --footers --ignore V13 --fail-on warning -o jsonl /warehouse",
    "acidctl validate --deep --engine spark --master yarn --queue etl hdfs://nn/warehouse/sales.db",
    "acidctl validate --list-rules",
    main=("deep", "footers", "readers", "only", "ignored", "fail_on", "list_rules", "jobs", "engine", "output"),
)
@shared.report_options
@shared.locations_argument(required=False)
@click.option("--footers", is_flag=True, help="Look at the tail of every current data file, too.")
@click.option("--deep", is_flag=True, help="Read every row, too: order, duplicates, write ids, deletes, statistics.")
@click.option("-a", "--all", "all_directories", is_flag=True, help="Open the files of obsolete directories, too.")
@click.option(
    "--for",
    "readers",
    multiple=True,
    type=click.Choice(_READERS),
    help="Also tell what this reader would refuse or misread; implies --footers. Repeatable.",
)
@click.option(
    "--rule",
    "only",
    multiple=True,
    metavar="ID",
    shell_complete=complete_rules,
    help="Only this rule, V26 for example. Repeatable.",
)
@click.option(
    "--ignore", "ignored", multiple=True, metavar="ID", shell_complete=complete_rules, help="Not this rule. Repeatable."
)
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning"]),
    default="error",
    show_default=True,
    help="The least severity that ends the command with status 14.",
)
@click.option(
    "--schema", metavar="COLUMNS", help="The table's columns, 'id int, name string': files must be readable as these."
)
@shared.typed_option("--list-rules", is_flag=True, help="Print every rule with what to do, and stop.")
@click.option("-v", "--verbose", is_flag=True, help="Show remarks too, and every finding of a rule.")
@engine_options("local", "<host>-validator-<location>")
@click.option(
    "--jobs",
    type=NumberType("N", 1, 1024),
    help="Processes of --engine local that read files; as many as processors.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    default=300.0,
    show_default=True,
    help="End a process that reads one stripe for longer: its file is a finding.",
)
@shared.reading_options("table", "json", "jsonl", default="table")
@shared.by_work(pages=True)
def command() -> None:
    """Check every location at or below LOCATION against the rules of Hive's ACID format; change nothing.

    Without options only names, sizes and times are looked at, from one listing per location. --footers reads the tails
    of the current data files, --deep all of their rows.

    Files are read in processes of their own: one that ends its reader is a finding, and the rest goes on. With
    --engine spark these processes stand beside Spark's workers; locations are listed, and files compared with each
    other, here.
    """
