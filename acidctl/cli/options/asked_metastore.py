"""Options of the commands that need a metastore, and of the commands that list."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from acidctl.base.errors import UsageProblem
from acidctl.cli.options.metastore import metastore_options, warehouse_of
from acidctl.cli.options.param_types import COUNT, comma_separated
from acidctl.cli.options.shared import output_option, passed_as, typed_option

if TYPE_CHECKING:
    from acidctl.cli.output.screen import ListChoice, View
    from acidctl.metastore.client import Metastore


def _choice(columns: tuple[str, ...] | None, sort: str | None, where: str | None, no_headers: bool) -> ListChoice:
    from acidctl.cli.output.screen import ListChoice  # noqa: PLC0415 - --help does without

    return ListChoice(columns, sort, where, not no_headers)


list_options = passed_as(
    "choice",
    _choice,
    typed_option("--where", metavar="CONDITION", help="Only lines that meet a condition in SQL: deltas > 50."),
    click.option("--sort", metavar="COLUMN[:desc]", help="Sort by a column; numbers the greatest first, unless :asc."),
    click.option(
        "--columns",
        metavar="NAMES",
        callback=comma_separated,
        help="Only these columns, by their names in CSV, in this order.",
    ),
    click.option("--no-headers", is_flag=True, help="Leave out the line with the names of the columns."),
)
"""The options that choose lines and columns, passed on as the keyword `choice`, a ListChoice."""


def _asked(metastore: str | None) -> Metastore:
    warehouse = warehouse_of(metastore)
    if warehouse is None:
        raise UsageProblem(
            "no metastore is known",
            "none is given or configured, and no hive-site.xml was found that names one",
            "give --metastore, or set HIVE_CONF_DIR to where hive-site.xml says where it is",
        )
    return warehouse.metastore


asked_metastore = passed_as("metastore", _asked, *metastore_options)
"""``--metastore`` and ``--set``: passed on as the keyword `metastore`, a Metastore."""


def _view(limit: int | None, output: str) -> View:
    from acidctl.cli.output.screen import View  # noqa: PLC0415 - --help does without

    return View(limit, output)


view_options = passed_as(
    "view",
    _view,
    click.option("--limit", type=COUNT, help="Show the first N (default: 100 in the table, all in other forms)."),
    asked_metastore,
    output_option("table", "json", "jsonl", "csv", default="table"),
)
"""The options of commands that list, passed on as the keywords `metastore` and `view`."""
