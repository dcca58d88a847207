"""Records of a command that lists, in the form and the choice that were asked for."""

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
"""Lines of a table for people, unless a limit says more."""


@dataclass(frozen=True, slots=True)
class View:
    """How records are shown: so many at most, with an exit status of its own where there is none, in this form."""

    limit: int | None
    exit_code: bool
    output: str
    choice: ListChoice = field(default_factory=ListChoice)

    @property
    def is_table(self) -> bool:
        """Whether it is for people."""
        return self.output == "table"

    def show(
        self,
        found: Sequence[dict[str, Any]],
        columns: Mapping[str, str] | Sequence[str],
        table: Callable[[Sequence[dict[str, Any]]], FittedTable],
        nothing: str,
    ) -> int:
        """Print records, on a terminal in a pager if they are more than the screen; the exit status.

        Args:
            columns: of CSV, in their order; with their kinds where the user may choose among them.
            table: of people's.
            nothing: what is said to people where there is none.
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
