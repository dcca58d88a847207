"""Writing row batches to standard output in the form a command was asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from acidctl.orc.types import OrcType

ROW_FORMS = ("jsonl", "csv", "table", "parquet", "arrow")
TABLE_ROWS = 1000
"""A table for people stops here: its columns are aligned, so all of it is in memory at once."""


def limited(batches: Iterable[pa.RecordBatch], limit: int | None, offset: int = 0) -> Iterator[pa.RecordBatch]:
    """Skip `offset` rows, then pass on at most `limit`."""
    left = limit
    for batch in batches:
        if left == 0:
            return
        rows = batch
        if offset:
            skipped = min(offset, batch.num_rows)
            offset -= skipped
            rows = batch.slice(skipped)
        if left is not None:
            rows = rows.slice(0, left)
            left -= rows.num_rows
        if rows.num_rows:
            yield rows


def write_rows(batches: Iterable[pa.RecordBatch], form: str, types: OrcType | None, schema: pa.Schema) -> None:
    """Write all batches; binary forms refuse a terminal.

    Raises:
        UsageProblem: Parquet or Arrow to a terminal.
        BadDataError: a value that the form cannot hold.
    """
    if form == "table":
        _table(batches, types, schema)
        return
    import sys

    from acidctl.cli.output import out_stream
    from acidctl.errors import UsageProblem
    from acidctl.rows.export.sinks import open_sink

    if form in ("parquet", "arrow") and sys.stdout.isatty():
        raise UsageProblem(f"{form} is not for a terminal", "it is binary", f"redirect it: ... -o {form} > rows.{form}")
    out = out_stream()
    sink = open_sink(form, out, types=types, schema=schema)
    for batch in batches:
        sink.write(batch)
    sink.close()
    out.flush()


def _table(batches: Iterable[pa.RecordBatch], types: OrcType | None, schema: pa.Schema) -> None:
    from rich.table import Table

    from acidctl.cli.output import console, note, safe
    from acidctl.rows.export.cells import cell_rows

    iterator = iter(limited(batches, TABLE_ROWS + 1))
    first = next(iterator, None)
    names = schema.names if first is None else first.schema.names
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(safe(name), overflow="fold")
    shown = 0
    for batch in chain([] if first is None else [first], iterator):
        for cells in cell_rows(batch, TABLE_ROWS - shown, types):
            table.add_row(*cells)
            shown += 1
    console().print(table)
    if next(iterator, None) is not None or shown == TABLE_ROWS:
        note(f"only the first {TABLE_ROWS} rows are shown; -o jsonl writes all of them")
