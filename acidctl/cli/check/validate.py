"""`acidctl validate`: Check names, files and rows by the rules of the format."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from acidctl.cli.options import shared
from acidctl.cli.options.verb_command import verb_command
from acidctl.verbs.reading.validate import ValidateOptions, validate

if TYPE_CHECKING:
    from acidctl.cli.options.verb_command import Call


@verb_command(
    "validate",
    ValidateOptions,
    "acidctl validate /warehouse/sales.db",
    "acidctl validate --deep orders",
    "acidctl validate --for trino --for impala webhdfs://namenode:9870/warehouse/sales.db/orders",
    "acidctl validate --footers --ignore V13 --fail-on warning -o jsonl /warehouse",
    "acidctl validate --deep --engine spark --master yarn --conf spark.yarn.queue=etl hdfs://nn/warehouse/sales.db",
    source=shared.snapshot_of("exclude", "read_lock"),
    extras=(
        click.option(
            "--fail-on",
            type=click.Choice(["error", "warning"]),
            default="error",
            show_default=True,
            help="The least severity that ends the command with status 14.",
        ),
    ),
    forms=("table", "json", "jsonl"),
    main="deep footers readers rules ignored fail_on jobs engine output",
    records=True,
    isolates=True,
)
def command(call: Call[ValidateOptions], *, fail_on: str) -> int:
    """Check every location at or below LOCATION against the rules of Hive's ACID format; change nothing.

    Without options only names, sizes and times are looked at, from one listing per location. --footers reads the
    footers of the current data files, --deep all of their rows. `acidctl explain rules` prints the rules.

    Files are read in processes of their own: one that ends its reader is a finding, and the rest goes on. With
    --engine spark these processes stand beside Spark's workers; locations are listed, and files compared with each
    other, here.
    """
    from acidctl.cli.check.validate_screen import ValidateScreen  # noqa: PLC0415 - --help does without

    if not (call.options.deep or call.options.footers or call.options.readers):
        shared.refuse_unused("a look at names alone", "jobs", "timeout", "all_directories", "schema")
    screen = ValidateScreen(call.output, call.run)
    screen.show(validate(call.selection, call.options, screen))
    return screen.exit_status(fail_on)
