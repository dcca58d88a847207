"""Rows that are wider than the screen, as records: a line for every value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from acidctl.printable import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_RULE = 40
"""Columns of the line above a record, at least."""


def is_wider(table: Table, screen: Console) -> bool:
    """Whether cells of a table would be broken."""
    return table.__rich_measure__(screen, screen.options.update(width=1 << 20)).maximum > screen.width


def print_records(names: Sequence[str], rows: Sequence[Sequence[str]], screen: Console) -> None:
    """``-[ RECORD 1 ]---``, and below it ``name | value``, as psql has them."""
    from rich.cells import cell_len  # noqa: PLC0415 - only for people
    from rich.text import Text  # noqa: PLC0415 - only for people

    shown = [printable(name) for name in names]
    widest = max(map(cell_len, shown), default=0)
    for number, row in enumerate(rows, 1):
        screen.print(Text(f"-[ RECORD {number:,} ]".ljust(_RULE, "-"), "dim"), soft_wrap=True)
        for name, value in zip(shown, row, strict=True):
            line = Text(name + " " * (widest - cell_len(name)), "bold").append(" | ", "dim not bold")
            screen.print(line.append(printable(value), "not bold"), soft_wrap=True)
