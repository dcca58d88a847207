"""Options of the commands that can do nothing without a metastore."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from acidctl.cli.options.list_options import list_options
from acidctl.cli.options.metastore import metastore_of, metastore_options
from acidctl.cli.options.param_types import COUNT
from acidctl.cli.options.shared import output_option, passed_as, refuse_unused, together
from acidctl.errors import UsageProblem

if TYPE_CHECKING:
    from acidctl.cli.output.list_choice import ListChoice
    from acidctl.cli.output.view import View
    from acidctl.metastore.client import Metastore


def _asked(metastore: str | None, metastore_option: tuple[str, ...]) -> Metastore:
    found = metastore_of(metastore, metastore_option)
    if found is None:
        raise UsageProblem(
            "no metastore is known",
            "none is given or configured, and no hive-site.xml was found that names one",
            "give `metastore`, or set HIVE_CONF_DIR to where hive-site.xml says where it is",
        )
    return found


asked_metastore = passed_as("metastore", _asked, *metastore_options)
"""``--metastore`` and ``--metastore-option``: passed on as the keyword `metastore`, a Metastore."""


def _view(limit: int | None, exit_code: bool, output: str) -> View:
    from acidctl.cli.output.view import View  # noqa: PLC0415 - --help does without

    return View(limit, exit_code, output)


def _chosen_view(view: View, choice: ListChoice) -> View:
    if not view.is_table and view.output != "csv":
        refuse_unused(f"-o {view.output}", "columns", "no_headers")
    return replace(view, choice=choice)


view_options = passed_as(
    "view",
    _view,
    click.option(
        "--limit",
        type=COUNT,
        help="Show the first N; without it 100 in the table, and all in the other forms.",
    ),
    click.option("--exit-code", is_flag=True, help="Exit with 12 where there is nothing to show."),
    asked_metastore,
    output_option("table", "json", "jsonl", "csv", default="table"),
)
"""Of commands that list: passed on as the keywords `metastore` and `view`."""


def chosen_view_options(example: str, columns: Callable[[], Mapping[str, str]]) -> Callable[[Any], Any]:
    """The same, where the user may choose lines and columns, too.

    Args:
        example: of a condition.
        columns: imports those of the list.
    """
    chosen: Callable[[Any], Any] = passed_as("view", _chosen_view, takes=("view", "choice"))
    return together(view_options, list_options(example, columns), chosen)
