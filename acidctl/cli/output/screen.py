"""The one printer of tables for people, and the lines and columns that a user chooses for a list.

Columns are dropped in the order of their worth, and names are never cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from acidctl.base.errors import ExitStatus, UsageProblem
from acidctl.base.nearest import asked, did_you_mean
from acidctl.base.printable import printable
from acidctl.cli.output.console import Records, broken, console, in_short, note
from acidctl.cli.output.redact import hidden_in
from acidctl.wording import human_bytes

if TYPE_CHECKING:
    from rich.text import Text

    from acidctl.rows.scan.predicate import Predicate

T = TypeVar("T")
_GAP = 2

STATE_STYLES = {"current": "green", "obsolete": "yellow", "aborted": "red", "ignored": "dim"}
"""The colours of the states of entries."""


@dataclass(frozen=True)
class Column(Generic[T]):
    """A column of a table.

    Attributes:
        cell: returns the text of an item, which is made printable when it is shown.
        right: align the cells to the right, as for numbers.
        worth: on a narrow screen the column with the lowest worth is dropped first; None is never dropped.
        beside: drop the column before the remark moves below its row.
        optional: leave the column out if all its cells are empty.
        style: returns the style of an item's cell.
    """

    heading: str
    cell: Callable[[T], str]
    right: bool = False
    worth: int | None = None
    beside: bool = False
    optional: bool = False
    style: Callable[[T], str] = lambda _: ""


def column(
    heading: str, key: str = "", text: Callable[[Any], str] = lambda value: str(value or ""), **more: Any
) -> Column[dict[str, Any]]:
    """Return a column of records.

    Args:
        key: of the records; default: the heading.
        text: returns the cell for a value.
        more: further attributes of :class:`Column`.
    """
    return Column(heading, lambda record: text(record[key or heading]), **more)


def number(value: int | None) -> str:
    """Return ``1,234``; empty for None."""
    return "" if value is None else f"{value:,}"


@dataclass(frozen=True)
class Layout(Generic[T]):
    """Columns, and a remark on every item.

    On a wide screen, and in a pipe, the remark is the last column.  If that is too wide, columns marked `beside` are
    dropped; then the remark moves below its row, and columns are dropped by their worth; if the rest is still too
    wide, the first column gets a line of its own.  Cells are never cut: a terminal wraps a name that is wider.

    Attributes:
        remark: the heading of the remarks.
        remark_of: returns the remark of an item.
        is_plain: returns whether the remark is left out if it would take a line.
    """

    columns: tuple[Column[T], ...]
    remark: str = ""
    remark_of: Callable[[T], str] = lambda _: ""
    is_plain: Callable[[T], bool] = lambda _: False


@dataclass
class Pages:
    """The parts of a long list: later ones are in line with those before, and have headings if other columns are shown.

    Attributes:
        widths: the widths of columns so far, by their numbers.
        shown: the numbers of the columns in each line; None before the first part.
    """

    widths: dict[int, int] = field(default_factory=dict)
    shown: list[list[int]] | None = None


def print_table(
    layout: Layout[T], items: Iterable[T], *, has_headings: bool = True, pages: Pages | None = None
) -> None:
    """Print a table on standard output, at the width of the console.

    Args:
        pages: the earlier parts of the same list.
    """
    screen = console()
    for line in table_lines(layout, items, screen.width, has_headings=has_headings, pages=pages):
        screen.print(line, soft_wrap=True)


def table_lines(
    layout: Layout[T],
    items: Iterable[T],
    width: int,
    *,
    has_headings: bool = True,
    hides: bool = True,
    pages: Pages | None = None,
) -> Iterator[Text]:
    """Yield the lines of a table; only a long name makes one wider than `width`.

    Args:
        hides: hide known secrets; not in rows of tables.
        pages: the earlier parts of the same list, to which this one is added.
    """
    from rich.cells import cell_len  # noqa: PLC0415 - only for people
    from rich.text import Text  # noqa: PLC0415 - only for people

    items, columns = list(items), layout.columns
    safe: Callable[[str], str] = (lambda text: printable(hidden_in(text))) if hides else printable
    cells = [[safe(column.cell(item)) for column in columns] for item in items]
    remarks = [safe(layout.remark_of(item)) for item in items]
    filled = [i for i in range(len(columns)) if any(row[i] for row in cells)]
    every = [i for i in range(len(columns)) if i in filled or not columns[i].optional]
    headings = [column.heading for column in columns]
    widths = [max(map(cell_len, (headings[i], *(row[i] for row in cells)))) for i in range(len(columns))]
    pages = pages or Pages()
    pages.widths |= {i: max(widths[i], pages.widths.get(i, 0)) for i in every}
    for i, of_all in pages.widths.items():
        widths[i] = of_all
    by_worth = [i for _, i in sorted((columns[i].worth or 0, i) for i in every if columns[i].worth is not None)]
    heading = layout.remark if not items or any(remarks) else ""

    def fitting(kept: Sequence[int], dropped: Sequence[int], room: int) -> tuple[list[int], bool]:
        """Drop columns until the rest fits into the room; return the rest, and whether it fits."""
        kept = list(kept)
        for i in (*dropped, None):
            if sum(widths[k] + _GAP for k in kept) - _GAP <= room:
                return kept, True
            kept = [k for k in kept if k != i]
        return kept, False

    def line(kept: Sequence[int], row: Sequence[str], item: T | None, indent: str = "") -> Text:
        text = Text(indent)
        for place, i in enumerate(kept):
            blank = " " * (widths[i] - cell_len(row[i]))
            text.append(" " * _GAP * bool(place) + blank * columns[i].right)
            text.append(row[i], "" if item is None else columns[i].style(item))
            text.append("" if columns[i].right else blank)
        return text

    beside = max(map(cell_len, (heading, *remarks))) + _GAP
    kept, is_beside = fitting(every, [i for i in by_worth if columns[i].beside], width - beside)
    is_stacked = False
    if not is_beside:
        kept = [i for i in every if i in filled or i not in by_worth]
        kept, fits = fitting(kept, [i for i in by_worth if i in kept], width)
        if is_stacked := not fits:
            kept, _ = fitting([i for i in filled if i], [i for i in by_worth if i in filled], width - _GAP)
    shown_before, pages.shown = pages.shown, [[0], kept] if is_stacked else [kept]
    has_headings = has_headings and pages.shown != shown_before
    rows = [(headings, heading, None), *zip(cells, remarks, items, strict=True)]
    for row, remark, item in rows if has_headings else rows[1:]:
        shown = [line([0], row, item), line(kept, row, item, " " * _GAP)] if is_stacked else [line(kept, row, item)]
        if is_beside:
            shown[0].append(" " * _GAP + remark)
        elif remark and item is not None and not layout.is_plain(item):
            shown += [Text("    " + part, "dim") for part in broken(remark, max(20, width - 4))]
        for text in shown:
            text.rstrip()
            text.stylize("dim" if item is None else "")
            yield text


def on_screen(time: str | None) -> str:
    """Return a time of JSON for people; the heading must say that it is UTC."""
    return (time or "-").replace("T", " ").rstrip("Z")


Record = dict[str, Any]
BYTES = "bytes"
"""The kind of a column of sizes; all other kinds are ORC's."""


@dataclass(frozen=True, slots=True)
class ListChoice:
    """The values of `--columns`, `--sort`, `--where` and `--no-headers`; :meth:`checked` resolves their names.

    Attributes:
        columns: names as in JSON; None for the usual columns.
        sort: the name of a column, optionally with ``:asc`` or ``:desc``; None for the usual order.
        where: a condition in SQL; None for all lines.
        known: the columns of the list, kinds by name.
        key, way: the column to sort by, and asc, desc or nothing.
        condition: `where`, parsed.
    """

    columns: Sequence[str] | None = None
    sort: str | None = None
    where: str | None = None
    has_headings: bool = True
    known: Mapping[str, str] = field(default_factory=dict)
    key: str = ""
    way: str = ""
    condition: Predicate | None = None

    def checked(self, known: Mapping[str, str]) -> ListChoice:
        """Return the choice for a list with these columns.

        Args:
            known: the columns of the list, kinds by name: ``bigint``, ``double``, ``boolean``, ``string`` or
                :data:`BYTES`.

        Raises:
            UsageProblem: a name is unknown, or the condition is invalid.
        """
        columns = None if self.columns is None else [_named(name, known, "column") for name in self.columns]
        key, _, way = (self.sort or "").partition(":")
        if way not in ("", "asc", "desc"):
            raise UsageProblem(f"cannot sort by {self.sort}", f"{way!r} is not a direction", "write asc or desc")
        if key:
            key = _named(key, known, "column to sort by")
        condition = None
        if self.where is not None:
            from acidctl.orc.types import OrcType  # noqa: PLC0415 - with Arrow and sqlglot: only for a condition
            from acidctl.rows.scan.condition import parse_condition  # noqa: PLC0415

            kinds = tuple(OrcType("bigint" if kind == BYTES else kind) for kind in known.values())
            condition = parse_condition(self.where, OrcType("struct", children=kinds, names=tuple(known)))
        return replace(self, columns=columns, known=dict(known), key=key, way=way, condition=condition)

    def meeting(self, records: Sequence[Record]) -> list[Record]:
        """Return the records for which the condition is true."""
        if self.condition is None or not records:
            return list(records)
        import pyarrow as pa  # noqa: PLC0415 - only for a condition

        arrow = {"bigint": pa.int64(), BYTES: pa.int64(), "double": pa.float64(), "boolean": pa.bool_()}

        def column(path: tuple[str, ...]) -> pa.Array:
            kind = self.known[path[0]]
            values = [record[path[0]] for record in records]
            return pa.array(values if kind in arrow else map(_text, values), arrow.get(kind, pa.string()))

        mask = self.condition.mask(column).to_pylist()
        return [record for record, is_met in zip(records, mask, strict=True) if is_met]

    def in_order(self, items: Sequence[T], record_of: Callable[[T], Record] = lambda item: item) -> list[T]:  # type: ignore[assignment,return-value]
        """Return the items in the chosen order: by default the greatest numbers first, text ascending, nulls last.

        Args:
            record_of: returns the record of an item; by default an item is a record.
        """
        if self.key not in self.known:
            return list(items)
        present = [item for item in items if record_of(item)[self.key] is not None]
        is_number = self.known[self.key] != "string"
        descending = self.way == "desc" or (is_number and not self.way)

        def value(item: T) -> Any:
            value = record_of(item)[self.key]
            return value if is_number else _text(value) or ""

        present.sort(key=value, reverse=descending)
        return [*present, *(item for item in items if record_of(item)[self.key] is None)]

    def layout(self) -> Layout[Record]:
        """Return the chosen columns in their order; none is dropped on a narrow screen."""
        is_text = ("string", "boolean")
        return Layout(
            tuple(
                column(name, text=partial(self._shown, name), right=self.known[name] not in is_text)
                for name in self.columns or ()
            )
        )

    def _shown(self, name: str, value: Any) -> str:
        if value is None:
            return "-"
        if self.known[name] == BYTES:
            return human_bytes(value)
        return f"{value:,}" if self.known[name] == "bigint" else _text(value) or ""


_OTHER_WORDS = {"size": "bytes", "time": "modified", "write-id": "maxWriteId"}
"""Other names under which users ask for a column."""


def _named(name: str, known: Mapping[str, str], what: str) -> str:
    """Return the name as the list spells it, ignoring case."""
    spelled = {spelling.lower(): spelling for spelling in known}
    if name.lower() not in spelled:
        every, other = tuple(known), _OTHER_WORDS.get(name.lower(), "")
        hint = asked([other]) if other in known else did_you_mean(name, every)
        raise UsageProblem(f"no {what} is called {name}", f"known are {', '.join(every)}", hint)
    return spelled[name.lower()]


def _text(value: Any) -> str | None:
    return None if value is None else str(in_short(value))


_SHOWN = 100
"""The default limit of a table for people."""


@dataclass(frozen=True, slots=True)
class View:
    """How records are shown.

    Attributes:
        limit: the most records; None for the default.
    """

    limit: int | None
    output: str

    @property
    def is_table(self) -> bool:
        """Whether people read the records."""
        return self.output == "table"

    def show(self, found: Sequence[Record], columns: Sequence[str], layout: Layout[Record], nothing: str) -> int:
        """Print records; return the exit status.

        Args:
            columns: the columns of CSV in order.
            layout: of the table for people.
            nothing: the note for people if there are no records.
        """
        limit = self.limit or (_SHOWN if self.is_table else None)
        if not self.is_table:
            records = Records(self.output, columns)
            records.put_header()
            for record in found[:limit]:
                records.put(record)
        elif found:
            print_table(layout, found[:limit])
        else:
            note(nothing)
        if limit and len(found) > limit:
            note(f"{len(found) - limit:,} more, which come after these; --limit shows them")
        return ExitStatus.DONE
