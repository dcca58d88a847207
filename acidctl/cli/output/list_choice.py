"""The choice of a user for a list: which lines and columns, in which order, and their printing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from acidctl.base.errors import ExitStatus, UsageProblem
from acidctl.base.nearest import asked, did_you_mean
from acidctl.cli.output.console import Records, in_short, note
from acidctl.cli.output.screen import Layout, column, print_table
from acidctl.wording import human_bytes

if TYPE_CHECKING:
    from acidctl.rows.scan.predicate import Predicate

Record = dict[str, Any]
T = TypeVar("T")
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
