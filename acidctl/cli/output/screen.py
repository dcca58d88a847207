"""Tables for people that fit the screen: columns are dropped in the order of their worth, and names are never cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from acidctl.base.printable import printable
from acidctl.cli.output.console import broken
from acidctl.cli.output.redact import hidden_in

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

T = TypeVar("T")
_GAP = 2

STATE_STYLES = {"current": "green", "obsolete": "yellow", "aborted": "red", "ignored": "dim"}
"""The colours of the states of entries."""


@dataclass(frozen=True, slots=True)
class ScreenColumn:
    """A column of a :class:`FittedTable`.

    Attributes:
        right: align the cells to the right, as for numbers.
        worth: on a narrow screen the column with the lowest worth is dropped first; None is never dropped.
        beside: drop the column before the remark moves below its row.
        is_clear: whether the cells can be understood without a heading.
    """

    heading: str
    right: bool = False
    worth: int | None = None
    beside: bool = False
    is_clear: bool = True


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a :class:`FittedTable`.

    Attributes:
        cells: one per column; made printable when shown.
        remark: the last cell, or on a narrow screen a line below the row.
        is_plain: leave the remark out if it would take a line.
        styles: pairs of a column's number and the style of its cell.
    """

    cells: tuple[str, ...]
    remark: str
    is_plain: bool = False
    styles: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class FittedTable:
    """Columns, and a remark on every row.

    On a wide screen, and in a pipe, the remark is the last column.  If that is too wide, columns marked `beside` are
    dropped; then the remark moves below its row, and columns are dropped by their worth; if the rest is still too
    wide, the first column gets a line of its own.  Cells are never cut: a terminal wraps a name that is wider.
    """

    columns: tuple[ScreenColumn, ...]
    remark: str
    rows: tuple[Row, ...]
    has_headings: bool = True

    def print(self, console: Console) -> None:
        """Print the table at the width of the console."""
        for line in self.lines(console.width):
            console.print(line, soft_wrap=True)

    def lines(self, width: int) -> Iterator[Text]:
        """Yield the lines; only a long name makes one wider than `width`."""
        rows = [
            replace(row, cells=tuple(map(printable, hidden_in(row.cells))), remark=printable(hidden_in(row.remark)))
            for row in self.rows
        ]
        remark = self.remark if not rows or any(row.remark for row in rows) else ""
        heading = Row(tuple(column.heading for column in self.columns), remark)
        widths = [_widest([row.cells[i] for row in (heading, *rows)]) for i in range(len(self.columns))]
        remark_width = _widest([row.remark for row in (heading, *rows)]) + _GAP
        by_worth = [i for _, i in sorted((c.worth, i) for i, c in enumerate(self.columns) if c.worth is not None)]
        filled = [i for i in range(len(self.columns)) if any(row.cells[i] for row in rows)]

        def fitting(kept: list[int], going: Sequence[int], beside: int) -> tuple[list[int], bool]:
            """Drop columns until the rest fits with `beside` more; return the rest, and whether it fits."""
            for i in (*going, None):
                if sum(widths[k] + _GAP for k in kept) - _GAP + beside <= width:
                    return kept, True
                kept = [k for k in kept if k != i]
            return kept, False

        going = [i for i in by_worth if self.columns[i].beside]
        kept, is_beside = fitting(list(range(len(self.columns))), going, remark_width)
        if not is_beside:
            kept = [i for i in range(len(self.columns)) if i in filled or i not in by_worth]
            kept, is_fitting = fitting(kept, [i for i in by_worth if i in kept], 0)
            if not is_fitting:
                spare = [i for i in reversed(by_worth) if i in filled]
                yield from self._stacked(self._second_line(kept, spare, rows, width), rows, width)
                return
        for row in (heading, *rows):
            line = self._line(kept, widths, row)
            if is_beside:
                line.append(" " * _GAP + row.remark)
            line.rstrip()
            line.stylize("dim" if row is heading else "")
            if row is not heading or self.has_headings:
                yield line
            if row is not heading and not is_beside:
                yield from _remark_lines(row, width)

    def _stacked(self, kept: Sequence[int], rows: Sequence[Row], width: int) -> Iterator[Text]:
        from rich.text import Text  # noqa: PLC0415 - only for people

        for row in rows:
            styles = dict(row.styles)
            yield Text(row.cells[kept[0]], styles.get(kept[0], ""))
            line = Text(" ")
            for i in kept[1:]:
                column = self.columns[i]
                if row.cells[i]:
                    line.append(" " if len(line) == 1 else " " * _GAP)
                    line.append("" if column.is_clear else f"{column.heading} ", "dim")
                    line.append(row.cells[i], styles.get(i, ""))
            yield line
            yield from _remark_lines(row, width)

    def _second_line(self, kept: Sequence[int], spare: Sequence[int], rows: Sequence[Row], width: int) -> Sequence[int]:
        """Return the columns of the stacked form in order: those always kept, and others as far as there is room."""

        def size(i: int) -> int:
            heading = 0 if self.columns[i].is_clear else len(self.columns[i].heading) + 1
            return _GAP + _widest([row.cells[i] for row in rows]) + heading

        chosen, room = list(kept), width - sum(map(size, kept[1:]))
        for i in spare:
            if size(i) > room:
                break
            chosen.append(i)
            room -= size(i)
        return sorted(chosen)

    def _line(self, kept: Sequence[int], widths: Sequence[int], row: Row) -> Text:
        from rich.cells import cell_len  # noqa: PLC0415 - only for people
        from rich.text import Text  # noqa: PLC0415 - only for people

        styles = dict(row.styles)
        line = Text()
        for place, i in enumerate(kept):
            blank = " " * (widths[i] - cell_len(row.cells[i]))
            line.append(" " * _GAP if place else "")
            line.append(blank if self.columns[i].right else "")
            line.append(row.cells[i], styles.get(i, ""))
            line.append("" if self.columns[i].right else blank)
        return line


def fitted(
    columns: Iterable[tuple[ScreenColumn, Callable[[T], str]]],
    remark: str,
    items: Iterable[T],
    row: Callable[[T, tuple[str, ...]], Row],
    *,
    has_headings: bool = True,
) -> FittedTable:
    """Return a table with one row per item.

    Args:
        columns: each column with a function from an item to its cell.
        row: returns the row for an item and its cells.
    """
    columns = tuple(columns)
    rows = (row(item, tuple(cell(item) for _, cell in columns)) for item in items)
    return FittedTable(tuple(column for column, _ in columns), remark, tuple(rows), has_headings)


def on_screen(time: str | None) -> str:
    """Return a time of JSON for people; the heading must say that it is UTC."""
    return (time or "-").replace("T", " ").rstrip("Z")


def _remark_lines(row: Row, width: int) -> Iterator[Text]:
    from rich.text import Text  # noqa: PLC0415 - only for people

    if row.remark and not row.is_plain:
        for part in broken(row.remark, max(20, width - 4)):
            yield Text("    " + part, "dim")


def _widest(texts: Sequence[str]) -> int:
    from rich.cells import cell_len  # noqa: PLC0415 - only for people

    return max(map(cell_len, texts))
