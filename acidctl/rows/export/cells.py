"""Values as a terminal may show them: nothing in the data can move the cursor, change colours or reorder the text."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from acidctl.orc.types import OrcType
from acidctl.rows.export.json_lines import (
    JsonEncoder,
    child_types,
    is_float,
    is_text,
    nth_child,
    row_slices,
    union_parts,
)
from acidctl.rows.export.text import Kernels, Text

NULL_CELL = "null"


def cell_rows(batch: pa.RecordBatch, limit: int, types: OrcType | None = None) -> list[list[str]]:
    """The first `limit` rows as texts for display: JSON's forms, simple values without quotes, all printable.

    Null reads ``null``, as the string of the same letters does; the other forms tell them apart.

    Args:
        batch: any columns that an ORC file can give.
        limit: rows at most; these are loops over values, meant for a screen, not for an export.
        types: as for :func:`~acidctl.rows.export.json_lines.json_buffers`.
    """
    rows: list[list[str]] = []
    for part, kernels in row_slices(batch.slice(0, limit), types):
        children = child_types(types, part.type.names)
        columns = [_cells(part.field(i), child, kernels) for i, child in enumerate(children)]
        rows += [list(cells) for cells in zip(*columns, strict=True)] if columns else [[] for _ in range(len(part))]
    return rows


def _cells(column: pa.Array, types: OrcType | None, kernels: Kernels) -> list[str]:
    texts = kernels.printable(kernels.complete(unquoted(column, types, kernels), NULL_CELL.encode()))
    return [text.decode() for text in texts.to_pylist()]


def unquoted(column: pa.Array, types: OrcType | None, kernels: Kernels) -> Text:
    """Like the JSON text of a column, but simple values (in unions too) without quotes, strings without escapes."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_union(column.type):
        which, children = union_parts(column)
        texts = [
            kernels.wrapped(unquoted(child, nth_child(types, place), kernels)) for place, child in enumerate(children)
        ]
        return Text(pc.choose(pa.array(which), *texts))
    encoder = JsonEncoder(kernels)
    if is_text(column.type):
        return Text(encoder.string(column, types))
    if is_float(column.type):
        return kernels.floats(column, quote=b"")
    text = encoder.text(column, types)
    return Text(text.values, text.before.removeprefix(b'"'), text.after.removesuffix(b'"'))
