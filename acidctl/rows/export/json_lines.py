"""Record batches as JSON lines, in the form of ``hive --orcfiledump -d``, and as cells for a terminal.

The forms are listed in ``tools/tables.toml``, for the documentation. A column becomes a column of texts, nested
columns from the leaves up, and one join of all of them makes the lines: no loop over rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acidctl.base.errors import BadDataError
from acidctl.base.printable import printable_json
from acidctl.orc.arrow import below, struct_of, tags_of
from acidctl.orc.read.wide_timestamps import WideTimestamp, parts
from acidctl.orc.types import OrcType
from acidctl.rows.export import text as texts_of
from acidctl.rows.export.text import Ints, Pieces, Text, complete, data_length, nulls, raw, text_spans, wrapped

# Rows encoded at a time: enough to amortise a kernel's call, few enough for the texts to stay in the cache.
SLICE_ROWS = 1 << 16
# The most bytes of text in a slice of more than one row; this bounds memory, and Arrow's 32-bit offsets.
SLICE_TEXT = 1 << 26

# No text of a number, date, timestamp or decimal is longer (decimal256: 76 digits).
_SIMPLE_TEXT = 90

NULL_CELL = "null"


def json_buffers(batch: pa.RecordBatch, types: OrcType | None = None) -> Iterator[memoryview]:
    """Yield the rows as JSON, one object per line, in pieces of at most SLICE_ROWS rows.

    Args:
        batch: any columns that an ORC file can hold; slices too.
        types: the struct whose fields are the batch's columns; it distinguishes CHAR(n), which is padded, from STRING.

    Raises:
        BadDataError: no ORC file can hold a column of this type, or a row has too much text.
    """
    for rows in row_slices(batch, types):
        with text_of_a_row():
            lines = text_buffer(struct_texts(rows, types, end=b"\n"))
        yield lines


@contextmanager
def text_of_a_row() -> Iterator[None]:
    """Turn Arrow's error for a text of more than 2 GiB into one that says what to do; slices end at a single row."""
    try:
        yield
    except pa.ArrowCapacityError as error:
        raise BadDataError("a row has more than 2 GiB of text", "one text cannot hold it", "use -o parquet") from error


def row_slices(batch: pa.RecordBatch, types: OrcType | None) -> Iterator[pa.StructArray]:
    """Yield slices of the batch whose text stays small."""
    rows = struct_of(batch.columns, batch.schema.names, batch.num_rows)
    for start in range(0, len(rows), SLICE_ROWS):
        yield from _bounded(rows.slice(start, SLICE_ROWS), types)


def _bounded(rows: pa.StructArray, types: OrcType | None) -> Iterator[pa.StructArray]:
    if len(rows) == 1 or text_bound(rows, types) <= SLICE_TEXT:
        yield rows
        return
    half = len(rows) // 2
    yield from _bounded(rows.slice(0, half), types)
    yield from _bounded(rows.slice(half), types)


def text_buffer(texts: pa.Array) -> memoryview:
    """Concatenate the texts of a binary array without nulls."""
    return text_spans(texts)[1].data


def child_types(types: OrcType | None, names: list[str]) -> list[OrcType | None]:
    """Return the type of each field, found by position if the names agree, else by name (a projection); else None."""
    if types is None or types.kind != "struct":
        return [None] * len(names)
    if list(types.names) == names:
        return list(types.children)
    # The first of two fields of one name wins.
    by_name = dict(reversed(list(types.fields())))
    return [by_name.get(name) for name in names]


def nth_child(types: OrcType | None, place: int) -> OrcType | None:
    """Return a child of a list, map or union type, if the type is known."""
    return types.children[place] if types is not None and place < len(types.children) else None


def char_length(types: OrcType | None) -> int:
    """Return n of CHAR(n), 0 for all other types."""
    return types.max_length if types is not None and types.kind == "char" else 0


def list_parts(array: pa.Array) -> tuple[Ints, list[pa.Array]]:
    """Return the offsets from 0 and the children of a list or map array: the elements, or the keys and the items."""
    offsets = array.offsets.to_numpy().astype(np.int64)
    first, end = int(offsets[0]), int(offsets[-1])
    columns = [array.keys, array.items] if pa.types.is_map(array.type) else [array.values]
    return offsets - first, [column.slice(first, end - first) for column in columns]


def union_parts(array: pa.UnionArray) -> tuple[Ints, list[pa.Array]]:
    """Return which child is set, and every child in full length, of a sparse union array."""
    return tags_of(array).astype(np.int64), below(array)


def _constant_text(column: pa.Array) -> bytes | None:
    """Return the text of a column with one value only: nothing but nulls, or one integer, as ACID ids often are."""
    if not len(column):
        return None
    if column.null_count == len(column):
        return b"null"
    if column.null_count or column.type not in _SIGNED:
        return None
    values = texts_of.fixed_width(column, _SIGNED[column.type])
    return str(int(values[0])).encode() if values[0] == values[-1] and (values == values[0]).all() else None


_SIGNED = {pa.int8(): np.int8, pa.int16(): np.int16, pa.int32(): np.int32, pa.int64(): np.int64}


def json_text(array: pa.Array, types: OrcType | None) -> Text:
    """Return the JSON texts of a column of any type; null stays null."""
    kind = array.type
    if isinstance(kind, WideTimestamp):
        return _quoted(texts_of.wide_timestamps(*parts(array), nulls(array)))
    for test, encode in _ENCODERS:
        if test(kind):
            return encode(array, types)
    raise BadDataError(
        f"a column of type {kind} has no JSON form", "no type of ORC reads as it", "cast the column first"
    )


def strings(array: pa.Array, types: OrcType | None) -> pa.Array:
    """Return the values of a string column as UTF-8, CHAR padded, without escapes."""
    values = texts_of.cleaned(raw(array))
    length = char_length(types)
    return texts_of.char_padded(values, length) if length else values


def struct_texts(rows: pa.StructArray, types: OrcType | None, end: bytes = b"") -> pa.Array:
    """Return JSON objects of a struct's fields, each followed by `end`; the struct's own nulls are ignored."""
    if not rows.type.num_fields:
        return pa.repeat(pa.scalar(b"{}" + end), len(rows))
    pieces = Pieces()
    _add_fields(pieces, rows, types)
    pieces.literal += b"}" + end
    return pieces.joined(len(rows))


def _add_fields(pieces: Pieces, rows: pa.StructArray, types: OrcType | None) -> None:
    """Add an object without its closing brace; inner structs that are never null are part of the same join."""
    names = rows.type.names
    for place, child in enumerate(child_types(types, names)):
        name = printable_json(json.dumps(names[place], ensure_ascii=False)).encode("utf-8", "replace")
        pieces.literal += (b"," if place else b"{") + name + b":"
        column = rows.field(place)
        constant = _constant_text(column)
        if constant is not None:
            pieces.literal += constant
        elif pa.types.is_struct(column.type) and not column.null_count and column.type.num_fields:
            _add_fields(pieces, column, child)
            pieces.literal += b"}"
        else:
            pieces.add(json_text(column, child))


def _struct(array: pa.StructArray, types: OrcType | None) -> Text:
    texts = struct_texts(array, types)
    return Text(pc.if_else(array.is_valid(), texts, None) if array.null_count else texts)


def _list(array: pa.ListArray, types: OrcType | None) -> Text:
    offsets, [elements] = list_parts(array)
    texts = complete(json_text(elements, nth_child(types, 0)))
    return Text(texts_of.comma_joined(offsets, texts, nulls(array)), b"[", b"]")


def _map(array: pa.MapArray, types: OrcType | None) -> Text:
    offsets, columns = list_parts(array)
    entries = Pieces()
    for place, (name, column) in enumerate(zip((b'{"_key":', b',"_value":'), columns, strict=True)):
        entries.literal += name
        entries.add(json_text(column, nth_child(types, place)))
    entries.literal += b"}"
    return Text(texts_of.comma_joined(offsets, entries.joined(len(columns[0])), nulls(array)), b"[", b"]")


def _chosen(array: pa.UnionArray, types: OrcType | None, encode: Callable[[pa.Array, OrcType | None], Text]) -> Text:
    """Return the text of the alternative that each row of a union has."""
    which, children = union_parts(array)
    texts = [wrapped(encode(child, nth_child(types, place))) for place, child in enumerate(children)]
    return Text(pc.choose(pa.array(which), *texts))


def _quoted(text: Text) -> Text:
    return Text(text.values, b'"' + text.before, text.after + b'"')


_Encode = Callable[[Any, "OrcType | None"], Text]
_ENCODERS: tuple[tuple[Callable[[pa.DataType], bool], _Encode], ...] = (
    (pa.types.is_integer, lambda array, _: Text(texts_of.plain(array))),
    (pa.types.is_string, lambda array, types: Text(texts_of.escaped(strings(array, types)), b'"', b'"')),
    (pa.types.is_floating, lambda array, _: texts_of.floats(array)),
    (pa.types.is_timestamp, lambda array, _: _quoted(texts_of.timestamps(array))),
    (pa.types.is_date32, lambda array, _: Text(texts_of.dates(array), b'"', b'"')),
    (pa.types.is_decimal, lambda array, _: Text(texts_of.decimals(array), b'"', b'"')),
    (pa.types.is_boolean, lambda array, _: Text(texts_of.plain(array))),
    (pa.types.is_binary, lambda array, _: texts_of.byte_lists(array)),
    (pa.types.is_struct, _struct),
    (pa.types.is_map, _map),
    (pa.types.is_list, _list),
    (pa.types.is_union, lambda array, types: _chosen(array, types, json_text)),
    (pa.types.is_null, lambda array, _: Text(pa.nulls(len(array), pa.binary()))),
)


def text_bound(array: pa.Array, types: OrcType | None = None) -> int:
    """Return an upper bound for the bytes of the column's JSON text, from lengths only, without looking at values."""
    kind = array.type
    rows = len(array)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        # A byte becomes six (\u0001) at most; padding adds at most char_length blanks.
        return 6 * data_length(array) + rows * (2 + 4 + char_length(types))
    if pa.types.is_struct(kind):
        names = kind.names
        constant = sum(6 * len(name.encode("utf-8", "replace")) + 4 for name in names) + 4
        fields = enumerate(child_types(types, names))
        return rows * constant + sum(text_bound(array.field(i), child) for i, child in fields)
    if pa.types.is_map(kind) or pa.types.is_list(kind):
        _, columns = list_parts(array)
        constant = len(columns[0]) * len('{"_key":,"_value":},')
        return rows * 4 + constant + sum(text_bound(column, nth_child(types, i)) for i, column in enumerate(columns))
    if pa.types.is_union(kind):
        children = union_parts(array)[1]
        return rows * 4 + sum(text_bound(child, nth_child(types, i)) for i, child in enumerate(children))
    return rows * _SIMPLE_TEXT


def cell_rows(batch: pa.RecordBatch, limit: int, types: OrcType | None = None) -> list[list[str]]:
    """Return the first `limit` rows as texts for a terminal: JSON's forms, simple values without quotes, all printable.

    Null is ``null``, like the string of the same letters; the other formats distinguish them.

    Args:
        batch: any columns that an ORC file can hold.
        limit: keep it small: this loops over values.
        types: see :func:`json_buffers`.
    """
    rows: list[list[str]] = []
    for part in row_slices(batch.slice(0, limit), types):
        children = child_types(types, part.type.names)
        columns = [
            texts_of.printable_texts(complete(unquoted(part.field(i), child), NULL_CELL.encode())).to_pylist()
            for i, child in enumerate(children)
        ]
        texts = zip(*columns, strict=True) if columns else ((),) * len(part)
        rows += [[text.decode() for text in cells] for cells in texts]
    return rows


def unquoted(column: pa.Array, types: OrcType | None) -> Text:
    """Return texts like the JSON texts of a column, but simple values (also in unions) without quotes or escapes."""
    if pa.types.is_union(column.type):
        return _chosen(column, types, unquoted)
    if pa.types.is_string(column.type):
        return Text(strings(column, types))
    if pa.types.is_floating(column.type):
        return texts_of.floats(column, quote=b"")
    text = json_text(column, types)
    return Text(text.values, text.before.removeprefix(b'"'), text.after.removesuffix(b'"'))
