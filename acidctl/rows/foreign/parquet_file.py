"""Parquet files opened within limits: what a footer claims is looked at before a native reader takes memory for it.

A footer is not compressed, but three bytes of it may stand for a column chunk, which takes 700 once it is parsed, and a
list may claim any number of elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyarrow import parquet as pq

from acidctl.orc.byte_source import ByteSource, ReadAheadFile, damaged
from acidctl.orc.limits import COLUMNS, STRIPES, TAIL
from acidctl.orc.types import MAX_DEPTH
from acidctl.rows.foreign.thrift import LIST, STRUCT, ThriftError, fields_of, list_head, next_field, skip

_FIRST_READ = 64 * 1024
"""What Arrow asks for first."""
_MAGIC = b"PAR1"
_LENGTH_AND_MAGIC = 8
_SCHEMA, _ROW_GROUPS = 2, 4
"""Fields of a footer."""
_CHILDREN = 5
"""Field of an element of the schema."""
_COLUMN_CHUNKS = 1
"""Field of a row group."""
_LISTS = 50_000
"""Elements that any list of a footer may have."""


def open_parquet(
    source: ByteSource,
    *,
    unit: str | None = None,
    window: ReadAheadFile | None = None,
    dictionaries: Sequence[str] = (),
) -> Any:
    """Arrow's reader of a file whose footer is within limits.

    Args:
        unit: of timestamps of 96 bits.
        window: through which it is read; None for one of its own, or the local disk.
        dictionaries: columns of texts that are to be read as places in their dictionary.

    Raises:
        BadDataError: the footer is damaged.
        LimitError: it has too many parts.
    """
    local = source.local_whole() if window is None else None
    if local is None and window is None:
        window = window_on(source)
    elements = _check_footer(source, window)
    file = pa.OSFile(local) if window is None else pa.PythonFile(window.sibling(), mode="r")
    return pq.ParquetFile(
        file,
        coerce_int96_timestamp_unit=unit,
        read_dictionary=list(dictionaries) or None,
        thrift_container_size_limit=elements,
        arrow_extensions_enabled=False,
    )


def window_on(source: ByteSource) -> ReadAheadFile:
    """A file object for Arrow that has the end of the file already."""
    return ReadAheadFile(source, source.read_end(_FIRST_READ))


def _check_footer(source: ByteSource, window: ReadAheadFile | None) -> int:
    """Refuse a footer of too many parts; the most elements that a list in it can have."""
    read = source.read if window is None else window.piece
    count = min(_FIRST_READ, source.size)
    end = read(source.size - count, count)
    length = int.from_bytes(end[-_LENGTH_AND_MAGIC : -len(_MAGIC)], "little")
    if not end.endswith(_MAGIC) or not 0 < length <= source.size - _LENGTH_AND_MAGIC:
        return 1  # whoever opens it says what is wrong
    TAIL.check(length, source.path, "size of its footer")
    start = source.size - _LENGTH_AND_MAGIC - length
    raw = read(start, length) if length + _LENGTH_AND_MAGIC > count else end[-_LENGTH_AND_MAGIC - length : -8]
    try:
        groups = _check_parts(raw, source.path)
    except (ValueError, IndexError) as error:
        why = "it is cut short" if isinstance(error, IndexError) else str(error)
        raise damaged(source.path, f"its footer: {why}") from error
    return min(length, max(COLUMNS.value, groups, _LISTS))


def _check_parts(raw: bytes, path: str) -> int:
    """Refuse too many columns, row groups or column chunks; the number of row groups."""
    at = number = groups = 0
    while True:
        number, kind, at = next_field(raw, at, number)
        if not kind:
            return groups
        end = None
        if kind == LIST and number == _SCHEMA:
            end = _check_schema(raw, at, path)
        elif kind == LIST and number == _ROW_GROUPS:
            groups, inner, first = list_head(raw, at)
            STRIPES.check(groups, path, "number of its row groups")
            # Every struct ends with a zero: where there are few, there is nothing to count.
            if raw.count(0) <= STRIPES.value:
                return groups
            if inner == STRUCT:
                end = _check_chunks(raw, first, groups, path)
        at = skip(raw, at, kind) if end is None else end


def _check_schema(raw: bytes, at: int, path: str) -> int:
    """Refuse a schema of too many columns or levels; where it ends."""
    count, kind, at = list_head(raw, at)
    COLUMNS.check(count, path, "number of its columns")
    if kind != STRUCT:
        raise ThriftError("its schema is not a list of columns")
    left = [1]
    for _ in range(count):
        element, at = fields_of(raw, at)
        while left and not left[-1]:
            left.pop()
        if left:
            left[-1] -= 1
        children = element.get(_CHILDREN, 0)
        if isinstance(children, int) and children > 0:
            left.append(children)
        if len(left) > MAX_DEPTH:
            raise ThriftError(f"its columns are nested more than {MAX_DEPTH} levels deep")
    return at


def _check_chunks(raw: bytes, at: int, groups: int, path: str) -> int:
    """Refuse too many column chunks; where the list of row groups ends."""
    chunks = 0
    for _ in range(groups):
        number = 0
        while True:
            number, kind, at = next_field(raw, at, number)
            if not kind:
                break
            if kind == LIST and number == _COLUMN_CHUNKS:
                chunks += list_head(raw, at)[0]
                STRIPES.check(chunks, path, "number of the column chunks of its row groups")
            at = skip(raw, at, kind)
    return at
