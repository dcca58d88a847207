"""Writing row batches to standard output in the chosen form."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

import click
import pyarrow as pa

from acidctl.base.errors import UsageProblem
from acidctl.base.printable import printable
from acidctl.cli.output.console import UNBOUNDED, columns_told, console, note, out_stream
from acidctl.cli.output.progress import Bar, progress
from acidctl.cli.output.screen import Column, Layout, table_lines
from acidctl.orc.types import OrcType, arrow_type
from acidctl.rows.export.json_lines import cell_rows
from acidctl.rows.export.sinks import JsonArray, OrcSink, Sink, open_sink
from acidctl.rows.read.selection import limited

if TYPE_CHECKING:
    from rich.console import Console

_DOCUMENT = "acidctl.document"
_BINARY = ("parquet", "arrow", "orc")
TABLE_ROWS = 1000
"""A table for people stops here: its columns are aligned, so all of it is in memory at once."""


def write_rows(batches: Iterable[pa.RecordBatch], form: str, types: OrcType) -> None:
    """Write all batches to standard output; binary forms refuse a terminal.

    Args:
        types: of the rows.

    Raises:
        UsageProblem: a binary form would go to a terminal.
        BadDataError: the form cannot hold a value.
    """
    if form in _BINARY and sys.stdout.isatty():
        name = f"{form} is not for a terminal"
        raise UsageProblem(name, "it is binary", f"redirect it: ... -o {form} > rows.{form}")
    with progress("reading rows") as bar:
        batches = _counted(batches, bar)
        if form == "table":
            _table(batches, types)
        elif form == "json":
            document: JsonArray = click.get_current_context().meta[_DOCUMENT]
            for batch in batches:
                document.write(batch, types)
        else:
            out = out_stream()
            sink: Sink = (
                OrcSink(out, types)
                if form == "orc"
                else open_sink(
                    form, out, types=types, schema=pa.schema(list(arrow_type(types))), for_terminal=out.isatty()
                )
            )
            for batch in batches:
                sink.write(batch)
            sink.close()
        out_stream().flush()


def _counted(batches: Iterable[pa.RecordBatch], bar: Bar) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        bar.advance(batch.num_rows)
        yield batch


def begin_document(form: str) -> None:
    """Begin the document of ``-o json`` on standard output, which is closed however the command ends."""
    if form != "json":
        return
    context = click.get_current_context()
    document = context.meta[_DOCUMENT] = JsonArray(out_stream())

    def end() -> None:
        document.close()
        out_stream().flush()

    context.call_on_close(end)


def _table(batches: Iterable[pa.RecordBatch], types: OrcType) -> None:
    """Print the rows in columns; with a line for every value if they are wider than the terminal."""
    names = types.names
    rows = [cells for batch in limited(batches, TABLE_ROWS + 1) for cells in cell_rows(batch, TABLE_ROWS, types)]
    screen, layout = console(), Layout(tuple(Column(printable(name), itemgetter(i)) for i, name in enumerate(names)))
    lines = list(table_lines(layout, rows[:TABLE_ROWS], UNBOUNDED, hides=False))
    widest = max(line.cell_len for line in lines)
    if (screen.is_terminal or columns_told() is not None) and widest > screen.width:  # cells would be broken
        _print_records(names, rows[:TABLE_ROWS], screen)
    else:
        for line in lines:
            screen.print(line, soft_wrap=True)
    if len(rows) >= TABLE_ROWS:
        note(f"only the first {TABLE_ROWS} rows are shown; -o jsonl writes all of them")


_RULE = 40
"""The least columns of the line above a record."""


def _print_records(names: Sequence[str], rows: Sequence[Sequence[str]], screen: Console) -> None:
    """Print ``-[ RECORD 1 ]---``, and below it ``name | value``, as psql does."""
    from rich.cells import cell_len
    from rich.text import Text

    shown = [printable(name) for name in names]
    widest = max(map(cell_len, shown), default=0)
    for number, row in enumerate(rows, 1):
        screen.print(Text(f"-[ RECORD {number:,} ]".ljust(_RULE, "-"), "dim"), soft_wrap=True)
        for name, value in zip(shown, row, strict=True):
            line = Text(name + " " * (widest - cell_len(name)), "bold").append(" | ", "dim not bold")
            screen.print(line.append(printable(value), "not bold"), soft_wrap=True)
