"""The records of a command that lists, printed in the form and choice of the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from acidctl.cli.output.console import Records, console, note
from acidctl.cli.output.list_choice import ListChoice
from acidctl.cli.output.screen import FittedTable
from acidctl.cli.output.streams import paged
from acidctl.errors import ExitStatus

_SHOWN = 100
"""The default limit of a table for people."""


@dataclass(frozen=True, slots=True)
class View:
    """How records are shown.

    Attributes:
        limit: the most records; None for the default.
        exit_code: whether an empty list has an exit status of its own.
    """

    limit: int | None
    exit_code: bool
    output: str
    choice: ListChoice = field(default_factory=ListChoice)

    @property
    def is_table(self) -> bool:
        """Whether people read the records."""
        return self.output == "table"

    def show(
        self,
        found: Sequence[dict[str, Any]],
        columns: Mapping[str, str] | Sequence[str],
        table: Callable[[Sequence[dict[str, Any]]], FittedTable],
        nothing: str,
    ) -> int:
        """Print records, on a terminal in a pager if they are longer than the screen; return the exit status.

        Args:
            columns: the columns of CSV in order; with their kinds if the user may choose among them.
            table: makes the table for people.
            nothing: the note for people if there are no records.
        """
        with paged():
            return self._show(found, columns, table, nothing)

    def _show(
        self,
        found: Sequence[dict[str, Any]],
        columns: Mapping[str, str] | Sequence[str],
        table: Callable[[Sequence[dict[str, Any]]], FittedTable],
        nothing: str,
    ) -> int:
        chosen = self.choice.checked(columns if isinstance(columns, Mapping) else dict.fromkeys(columns, "string"))
        found = chosen.in_order(chosen.meeting(found))
        limit = self.limit or (_SHOWN if self.is_table else None)
        if not self.is_table:
            names = tuple(columns) if chosen.columns is None else chosen.columns
            records = Records(self.output, names, has_headings=chosen.has_headings)
            records.put_header()
            for record in found[:limit]:
                records.put(record)
        elif found:
            make = table if chosen.columns is None else chosen.table
            replace(make(found[:limit]), has_headings=chosen.has_headings).print(console())
        else:
            note(nothing)
        if limit and len(found) > limit:
            note(f"{len(found) - limit:,} more, which come after these; --limit shows them")
        return ExitStatus.NOTHING_TO_DO if self.exit_code and not found else ExitStatus.DONE
