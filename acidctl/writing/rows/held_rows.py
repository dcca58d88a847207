"""Read all rows of a source into memory, in the types of a table."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from acidctl.base.errors import BadDataError, UsageProblem
from acidctl.metastore.tables import HiveTable
from acidctl.orc.types import OrcType, arrow_type, parse_type
from acidctl.writing.rows.conform import RowConformer, column_hint, decoded, joined
from acidctl.writing.rows.sources import RowPart, RowSource

_PARTS = b"acidctl.parts"
"""The key of held rows' metadata: for each source the words after the number of a row, and how many it has."""

Columns = dict[str, pa.Array]
"""Columns of rows, by their names in lower case."""


def held_rows(
    rows: RowSource,
    table: HiveTable,
    names: Sequence[str] | None = None,
    *,
    extra: Iterable[str] = (),
) -> pa.Table:
    """Return all rows of a source, or only some columns of them, with names in lower case.

    Columns of the table are converted to its types; other columns keep theirs, but dictionaries are decoded. A source
    without a part, such as an empty file of JSON lines, has no rows, and all columns of the table that can be keys.

    Args:
        names: the columns to return; by default all.
        extra: further columns of a source without a part.

    Raises:
        UsageProblem: the rows lack one of the columns, or have two of one name.
        BadDataError: a value does not fit its column, or two files differ in their columns.
    """
    kinds = {column.name: parse_type(column.type) for column in (*table.columns, *table.partition_keys)}
    types = {name: arrow_type(kind) for name, kind in kinds.items()}
    read = [(part, _columns(part, kinds, names)) for part in rows(types)]
    parts = [(part.name, columns) for part, columns in read]
    if not parts:
        chosen = [name for name, kind in kinds.items() if not kind.children] if names is None else names
        lower = [name.lower() for name in (*chosen, *extra)]
        return pa.schema({name: types.get(name, pa.null()) for name in lower}).empty_table()
    first, *others = parts
    for other in others:
        _refuse_missing(first, other)
        _refuse_missing(other, first)
    whole = {name: [column, *(columns[name] for _, columns in others)] for name, column in first[1].items()}
    held = pa.table({name: joined(_of_one_type(name, pieces, types)) for name, pieces in whole.items()})
    counts = [(part.of, len(next(iter(columns.values()), ()))) for part, columns in read]
    return held.replace_schema_metadata({_PARTS: json.dumps(counts)})


def row_words(held: pa.Table, place: int) -> str:
    """Return the words for a row of :func:`held_rows`, ``row 3 of changes.parquet``.

    Args:
        place: of the row, from 0.
    """
    for of, count in json.loads((held.schema.metadata or {}).get(_PARTS, b"[]")):
        if place < count:
            return f"row {place + 1:,}{of}"
        place -= count
    return f"row {place + 1:,}"


def _columns(part: RowPart, kinds: Mapping[str, OrcType], names: Sequence[str] | None) -> Columns:
    schema = part.rows.schema
    lower = [name.lower() for name in schema.names]
    if twice := [name for name, count in Counter(lower).items() if count > 1]:
        raise UsageProblem(f"the rows have two columns {twice[0]}", "Hive's names have no case", "rename one")
    wanted = lower if names is None else [name.lower() for name in names]
    for name in wanted:
        if name not in lower:
            raise UsageProblem(f"the keys have no column {name}", "", column_hint(name, schema.names))
    fields = {name: schema.field(lower.index(name)) for name in wanted}
    typed = [name for name in fields if name in kinds]
    conformer = RowConformer(pa.schema([fields[name] for name in typed]), typed, [kinds[name] for name in typed], part)
    parts: dict[str, list[pa.Array]] = {name: [] for name in fields}
    for batch in part.rows:
        fitted = conformer.columns(batch.select([lower.index(name) for name in typed]))
        columns = dict(zip(typed, fitted, strict=True))
        for name, pieces in parts.items():
            pieces.append(columns[name] if name in columns else decoded(batch.column(lower.index(name))))
    empty = {name: arrow_type(kinds[name]) if name in kinds else fields[name].type for name in fields}
    return {name: joined(pieces or [decoded(pa.nulls(0, empty[name]))]) for name, pieces in parts.items()}


def _refuse_missing(file: tuple[str, Columns], other: tuple[str, Columns]) -> None:
    for name in file[1]:
        if name not in other[1]:
            raise BadDataError(
                f"{other[0]} has no column {name}",
                f"{file[0]} has it, and files of one statement need the same columns",
                "nothing was changed; add the column, or run the command for each file",
            )


def _of_one_type(name: str, parts: Sequence[pa.Array], types: Mapping[str, pa.DataType]) -> list[pa.Array]:
    """Return the parts of a column in one type: a part of NULLs alone has no type of its own."""
    kinds = list(dict.fromkeys(part.type for part in parts if not pa.types.is_null(part.type)))
    if name in types or not kinds:
        return list(parts)
    if len(kinds) > 1:
        raise BadDataError(
            f"the files have different types of the column {name}",
            f"it is {kinds[0]} in one file, and {kinds[1]} in another",
            "nothing was changed; write it with one type",
        )
    return [part.cast(kinds[0]) for part in parts]
