"""Writing row batches to standard output or a file in the chosen form."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click
import pyarrow as pa
from click.core import ParameterSource

from acidctl.base.errors import UsageProblem
from acidctl.base.printable import printable
from acidctl.cli.output.console import UNBOUNDED, columns_told, console, note, out_stream
from acidctl.cli.output.progress import Bar, progress
from acidctl.cli.output.screen import Column, Layout, table_lines
from acidctl.orc.types import OrcType, arrow_type
from acidctl.rows.export.json_lines import cell_rows
from acidctl.rows.export.sinks import JsonArray, Sink, open_sink
from acidctl.rows.read.selection import limited
from acidctl.storage.port import base_name

if TYPE_CHECKING:
    from rich.console import Console

SUFFIXES = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv", ".parquet": "parquet", ".arrow": "arrow",
    ".arrows": "arrow", ".orc": "orc",
}  # fmt: skip
"""The forms by the suffix of a file's name."""
_DOCUMENT = "acidctl.document"
_BINARY = ("parquet", "arrow", "orc")
TABLE_ROWS = 1000
"""A table for people stops here: its columns are aligned, so all of it is in memory at once."""


def form_of(output: str, to: str | None, forms: Sequence[str]) -> str:
    """Return the form to write: a typed ``-o``, else by the suffix of the file, else `output`.

    Args:
        output: the value of ``-o``, which may be a default or from the configuration.
        to: the name of the file; None for standard output.
        forms: the forms of the command.

    Raises:
        UsageProblem: the suffix stands for another form than was typed, or for none of these forms.
    """
    suffix = "" if to is None else Path(base_name(to)).suffix.lower()
    wanted = SUFFIXES.get(suffix)
    if click.get_current_context().get_parameter_source("output") is ParameterSource.COMMANDLINE:
        if wanted not in (None, output) and (suffix, output) != (".json", "json"):
            what = f"--out {to} is not a name for {output}"
            raise UsageProblem(what, f"{suffix} stands for {wanted}", f"leave -o {output} out, or choose another name")
        return output
    if suffix and wanted not in forms:
        known = ", ".join(end for end, form in SUFFIXES.items() if form in forms)
        hint = f"names end with {known}, or -o says the form: {', '.join(form for form in forms if form != 'table')}"
        why = f"its rows cannot be written as {wanted}" if wanted else f"no form is known by the ending {suffix}"
        raise UsageProblem(f"--out {to} does not say how to write it", why, hint)
    return wanted or output


def write_rows(batches: Iterable[pa.RecordBatch], form: str, types: OrcType, to: str | None = None) -> None:
    """Write all batches to standard output, or to a new file; binary forms refuse a terminal.

    A file appears under its name when it is complete, and not before.

    Args:
        types: of the rows.
        to: path of the file; it must not exist.

    Raises:
        UsageProblem: a binary form would go to a terminal, or a table for people to a file.
        NotFoundError: the directory of the file does not exist, or the name is that of a directory.
        ConflictError: the file exists.
        BadDataError: the form cannot hold a value.
    """
    if to is not None and form == "table":
        raise UsageProblem("a table is for people, not for files", "", "use --out with another form: -o csv")
    if to is None and form in _BINARY and sys.stdout.isatty():
        name = f"{form} is not for a terminal"
        raise UsageProblem(name, "it is binary", f"redirect it: ... -o {form} > rows.{form}")
    with progress("reading rows") as bar:
        batches = _counted(batches, bar)
        if to is not None:
            from acidctl.cli.rows.out_file import new_file

            with new_file(os.fspath(to)) as file:
                _write(batches, form, types, file)
        elif form == "table":
            _table(batches, types)
        else:
            if form == "json":
                document: JsonArray = click.get_current_context().meta[_DOCUMENT]
                for batch in batches:
                    document.write(batch, types)
            else:
                _write(batches, form, types, out_stream())
            out_stream().flush()


def _counted(batches: Iterable[pa.RecordBatch], bar: Bar) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        bar.advance(batch.num_rows)
        yield batch


def begin_document(form: str, to: str | None = None) -> None:
    """Begin the document of ``-o json`` on standard output, which is closed however the command ends."""
    if form != "json" or to is not None:
        return
    context = click.get_current_context()
    document = context.meta[_DOCUMENT] = JsonArray(out_stream())

    def end() -> None:
        document.close()
        out_stream().flush()

    context.call_on_close(end)


def _write(batches: Iterable[pa.RecordBatch], form: str, types: OrcType, out: BinaryIO) -> None:
    sink: Sink
    if form == "orc":
        from acidctl.rows.export.orc_sink import OrcSink

        sink = OrcSink(out, types)
    else:
        sink = open_sink(form, out, types=types, schema=pa.schema(list(arrow_type(types))), for_terminal=out.isatty())
    for batch in batches:
        sink.write(batch)
    sink.close()


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
