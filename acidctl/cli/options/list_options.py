"""``--columns``, ``--sort``, ``--where`` and ``--no-headers`` of the commands that list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from acidctl.cli.options.local_completion import complete_columns_of
from acidctl.cli.options.shared import comma_separated, passed_as

if TYPE_CHECKING:
    from acidctl.cli.output.list_choice import ListChoice


def list_options(example: str, columns: Callable[[], Mapping[str, str]], orders: str = "") -> Callable[[Any], Any]:
    """Passed on as the keyword `choice`, a ListChoice.

    Args:
        example: of a condition.
        columns: imports those of the list, for shells.
        orders: other words that --sort takes.
    """

    def choice(columns: str | None, sort: str | None, where: str | None, no_headers: bool) -> ListChoice:
        from acidctl.cli.output.list_choice import ListChoice  # noqa: PLC0415 - --help does without

        names = comma_separated(columns)
        return ListChoice(None if names is None else tuple(names), sort, where, not no_headers)

    complete = complete_columns_of(columns)
    words = f": {orders}, or a column" if orders else " a column"
    return passed_as(
        "choice",
        choice,
        click.option("--where", metavar="CONDITION", help=f"Only lines that meet a condition in SQL: {example}."),
        click.option(
            "--sort",
            metavar="COLUMN[:desc]",
            shell_complete=complete,
            help=f"Sort by{words}; numbers the greatest first, unless :asc.",
        ),
        click.option(
            "--columns",
            metavar="NAMES",
            shell_complete=complete,
            help="Only these columns, by their names in CSV, in this order.",
        ),
        click.option("--no-headers", is_flag=True, help="No line with the names of the columns."),
    )
