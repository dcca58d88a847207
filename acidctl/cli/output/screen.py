"""Tables for people that fit the screen: columns go in the order of their worth, and nothing that names is cut."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from acidctl.printable import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_GAP = 2

STATE_STYLES = {"current": "green", "obsolete": "yellow", "aborted": "red", "ignored": "dim"}
"""The states of a location's entries, each with its colour."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a :class:`FittedTable`.

    Attributes:
        right: numbers are set to the right.
        worth: the lowest goes first where the screen is narrow; None stays always.
        beside: it goes sooner than the remark goes below its row.
        is_clear: its cells need no heading to be understood.
    """

    heading: str
    right: bool = False
    worth: int | None = None
    beside: bool = False
    is_clear: bool = True


@dataclass(frozen=True, slots=True)
class Row:
    """One row.

    Attributes:
        cells: one a column; made safe here.
        remark: the last cell, or a line of its own below the row where the screen is narrow.
        is_plain: nobody needs the remark: it is left out where it would take a line.
        styles: of cells, by column.
    """

    cells: tuple[str, ...]
    remark: str
    is_plain: bool = False
    styles: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class FittedTable:
    """Columns, and a remark on every row.

    On a wide screen, and in a pipe, the remark is the last column.  Where that is too wide, columns that are marked so
    go first; then the remark moves below its row, and columns go by their worth; where even what stays is too wide,
    the first column has a line of its own.  Cells are never cut: a terminal wraps a name that is wider than itself.
    """

    columns: tuple[Column, ...]
    remark: str
    rows: tuple[Row, ...]

    def print(self, console: Console) -> None:
        """Print it at the width of the console."""
        for line in self.lines(console.width):
            console.print(line, soft_wrap=True)

    def lines(self, width: int) -> Iterator[Text]:
        """The lines, none wider than `width` but for names that are."""
        cells = [tuple(map(printable, row.cells)) for row in self.rows]
        remarks = [printable(row.remark) for row in self.rows]
        widths = [_widest([c.heading, *(row[i] for row in cells)]) for i, c in enumerate(self.columns)]
        remark_width = _widest([self.remark, *remarks]) + _GAP
        by_worth = sorted((c.worth, i) for i, c in enumerate(self.columns) if c.worth is not None)
        kept = list(range(len(self.columns)))

        def fits(more: int = 0) -> bool:
            return sum(widths[i] + _GAP for i in kept) - _GAP + more <= width

        for _, i in by_worth:
            if self.columns[i].beside and not fits(remark_width):
                kept.remove(i)
        if fits(remark_width):
            yield from self._beside(kept, widths, cells, remarks)
            return
        kept = [i for i in range(len(self.columns)) if any(row[i] for row in cells) or self.columns[i].worth is None]
        for _, i in by_worth:
            if i in kept and not fits():
                kept.remove(i)
        if fits():
            yield from self._below(kept, widths, cells, width)
        else:
            spare = [i for worth, i in reversed(by_worth) if any(row[i] for row in cells)]
            yield from self._stacked(self._second_line(kept, spare, cells, width), cells, width)

    def _beside(
        self, kept: Sequence[int], widths: Sequence[int], cells: Sequence[tuple[str, ...]], remarks: Sequence[str]
    ) -> Iterator[Text]:
        heading = self._heading(kept, widths)
        heading.append(" " * _GAP + self.remark)
        heading.stylize("dim")
        yield heading
        for row, shown, remark in zip(self.rows, cells, remarks, strict=True):
            line = self._line(kept, widths, row, shown)
            line.append(" " * _GAP + remark)
            yield line

    def _below(
        self, kept: Sequence[int], widths: Sequence[int], cells: Sequence[tuple[str, ...]], width: int
    ) -> Iterator[Text]:
        heading = self._heading(kept, widths)
        heading.stylize("dim")
        heading.rstrip()
        yield heading
        for row, shown in zip(self.rows, cells, strict=True):
            line = self._line(kept, widths, row, shown)
            line.rstrip()
            yield line
            yield from _remark_lines(row, width)

    def _stacked(self, kept: Sequence[int], cells: Sequence[tuple[str, ...]], width: int) -> Iterator[Text]:
        from rich.text import Text  # noqa: PLC0415 - only for people

        for row, shown in zip(self.rows, cells, strict=True):
            styles = dict(row.styles)
            yield Text(shown[kept[0]], styles.get(kept[0], ""))
            line = Text(" ")
            for i in kept[1:]:
                column = self.columns[i]
                if shown[i]:
                    line.append(" " if len(line) == 1 else " " * _GAP)
                    line.append("" if column.is_clear else f"{column.heading} ", "dim")
                    line.append(shown[i], styles.get(i, ""))
            yield line
            yield from _remark_lines(row, width)

    def _second_line(
        self, kept: Sequence[int], spare: Sequence[int], cells: Sequence[tuple[str, ...]], width: int
    ) -> Sequence[int]:
        """The columns of the stacked form: what stays always, and what else has room beside it, in their order."""

        def size(i: int) -> int:
            return (
                _GAP
                + _widest([row[i] for row in cells])
                + (0 if self.columns[i].is_clear else len(self.columns[i].heading) + 1)
            )

        chosen, left = list(kept), width - sum(map(size, kept[1:]))
        for i in spare:
            if size(i) > left:
                break
            chosen.append(i)
            left -= size(i)
        return sorted(chosen)

    def _heading(self, kept: Sequence[int], widths: Sequence[int]) -> Text:
        return self._line(kept, widths, Row((), ""), tuple(column.heading for column in self.columns))

    def _line(self, kept: Sequence[int], widths: Sequence[int], row: Row, shown: tuple[str, ...]) -> Text:
        from rich.cells import cell_len  # noqa: PLC0415 - only for people
        from rich.text import Text  # noqa: PLC0415 - only for people

        styles = dict(row.styles)
        line = Text()
        for place, i in enumerate(kept):
            blank = " " * (widths[i] - cell_len(shown[i]))
            line.append(" " * _GAP if place else "")
            line.append(blank if self.columns[i].right else "")
            line.append(shown[i], styles.get(i, ""))
            line.append("" if self.columns[i].right else blank)
        return line


def _remark_lines(row: Row, width: int) -> Iterator[Text]:
    from rich.text import Text  # noqa: PLC0415 - only for people

    if row.is_plain or not row.remark:
        return
    text = printable(row.remark)
    for part in textwrap.wrap(text, max(20, width - 4), break_long_words=False, break_on_hyphens=False):
        yield Text("    " + part, "dim")


def _widest(texts: Sequence[str]) -> int:
    from rich.cells import cell_len  # noqa: PLC0415 - only for people

    return max(map(cell_len, texts))
