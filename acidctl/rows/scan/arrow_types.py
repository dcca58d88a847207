"""The Arrow types that the batches of a scan need, found before the first is read.

Timestamps that do not fit into 64 bits of nanoseconds need the wide form. Statistics nearly always decide. If a file
has no statistics of its timestamps (streaming, old compactions, Parquet), these columns are read. A union always gets
its alternative for NULL here, although batches without a NULL come without it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from acidctl.base.errors import BadDataError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.arrow import below
from acidctl.orc.read.common_type import as_type, common_type
from acidctl.orc.read.union_nulls import NULL_MEMBER
from acidctl.orc.read.wide_timestamps import WideTimestamp
from acidctl.orc.types import TIMESTAMP_KINDS, OrcType, arrow_type
from acidctl.rows.convert.matching import Place, fields_of, place_in, type_at
from acidctl.rows.read.events import EventFile
from acidctl.rows.read.visibility import Unreadable
from acidctl.rows.scan.columns import ColumnSource, FileColumns, ScanColumn
from acidctl.rows.scan.pruning import DAY_MS, YEAR_1700_MS

# Bounds at least a day inside the range of 64-bit nanoseconds, and in which statistics can be trusted.
_FIRST_MS = YEAR_1700_MS
_LAST_MS = 9_223_372_036_854 - 2 * DAY_MS


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A timestamp somewhere in a column, in one file.

    Attributes:
        path: of the result's column, then positions below it.
        top: the position of the column in the row type.
        column_id: in the file.
    """

    path: Place
    top: Place
    column_id: int


def schema_of(row: OrcType, wide: Collection[Place]) -> pa.Schema:
    """Return the schema of batches of `row` whose timestamps at the places `wide` need the wide form."""
    fields = zip(row.names, row.children, strict=True)
    return pa.schema([pa.field(name, _type(kind, (i,), wide)) for i, (name, kind) in enumerate(fields)])


def _type(node: OrcType, path: Place, wide: Collection[Place]) -> pa.DataType:
    if path in wide:
        return WideTimestamp(node.kind != "timestamp")
    children = [_type(child, (*path, i), wide) for i, child in enumerate(node.children)]
    if node.kind == "struct":
        return pa.struct([pa.field(name, kind) for name, kind in zip(node.names, children, strict=True)])
    if node.kind == "array":
        return pa.list_(pa.field("item", children[0]))
    if node.kind == "map":
        return pa.map_(*children)
    if node.kind == "uniontype":
        fields = [pa.field(f"_union_{i}", kind) for i, kind in enumerate(children)]
        return pa.sparse_union([*fields, pa.field(NULL_MEMBER, pa.null())])
    return arrow_type(node)


def varies(node: OrcType) -> bool:
    """Return whether a column's Arrow type depends on its values."""
    return any(inner.kind in TIMESTAMP_KINDS or inner.kind == "uniontype" for inner in node.walk())


def of_schema(batch: pa.RecordBatch, schema: pa.Schema, varying: Sequence[int]) -> pa.RecordBatch:
    """Return a batch whose columns at the positions `varying` have the types of `schema`.

    Raises:
        BadDataError: a value does not fit its type, so the statistics of a file are wrong.
    """
    if all(batch.column(place).type == schema.field(place).type for place in varying):
        return batch
    columns = batch.columns
    for place in varying:
        own, target = columns[place].type, schema.field(place).type
        if common_type(own, target) != target:
            raise BadDataError(
                f"column {schema.field(place).name} has values that statistics of its files exclude",
                f"it came as {own}",
                "a file is damaged, or its writer's statistics are wrong",
            )
        columns[place] = as_type(columns[place], target)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def add_wide(wide: set[Place], sources: Iterable[EventFile], columns: Sequence[ScanColumn], row: OrcType) -> None:
    """Add the timestamps that need the wide form in some rows of the files, live or not.

    Args:
        wide: places in the result, of columns and of what is nested in them.
        columns: of the result, in order.
        row: the row type in which `columns` have their positions.
    """
    chosen = [(i, c) for i, c in enumerate(columns) if c.kind is ColumnSource.DATA and varies(c.type)]
    for source in sources if chosen else ():
        if not source.is_delete:
            with suppress(*Unreadable):  # reading the rows will raise the error
                _add_of_file(wide, source, chosen, row)


def _add_of_file(wide: set[Place], source: EventFile, columns: Sequence[tuple[int, ScanColumn]], row: OrcType) -> None:
    times = [
        leaf for i, column in columns for leaf in _leaves(source.row_type, i, column, row) if leaf.path not in wide
    ]
    statistics = source.tail.footer.statistics if source.tail.stride else ()
    times = [leaf for leaf in times if not _fits(statistics, source.tail.rows, leaf.column_id)]
    unsure: dict[int, list[_Leaf]] = {}
    for number, stripe in enumerate(source.tail.stripes if times else ()):
        bounds = (source.tail.stripe_statistics(number) or ()) if source.tail.stride else ()
        fits = [_fits(bounds, stripe.numberOfRows, leaf.column_id) for leaf in times]
        wide |= {leaf.path for leaf, leaf_fits in zip(times, fits, strict=True) if leaf_fits is False}
        if None in fits:
            unsure[number] = [leaf for leaf, leaf_fits in zip(times, fits, strict=True) if leaf_fits is None]
    if unsure:
        _read(wide, source, unsure, row)


def _leaves(own_row: OrcType, number: int, column: ScanColumn, row: OrcType) -> Iterator[_Leaf]:
    place = place_in(own_row, column.place, row)
    waiting: list[tuple[Place, OrcType | None, OrcType]]
    waiting = [((number,), None if place is None else type_at(own_row, place), column.type)]
    while waiting:
        path, own, target = waiting.pop()
        if own is None:
            continue
        if target.kind in TIMESTAMP_KINDS:  # dates and numbers may become timestamps
            yield _Leaf(path, column.place, own.column_id)
        elif own.kind == target.kind:
            places = fields_of(own, target) if own.kind == "struct" else range(len(own.children))
            having = {i: own.children[at] for i, at in enumerate(places) if at is not None}
            waiting += [((*path, i), having.get(i), child) for i, child in enumerate(target.children)]


def _fits(statistics: Sequence[pb.ColumnStatistics], rows: int, column: int) -> bool | None:
    """Return whether all timestamps of a column fit, by the statistics of `rows` rows; None if these do not decide."""
    if column >= len(statistics) or statistics[0].numberOfValues != rows:
        return None
    column_statistics = statistics[column]
    if not column_statistics.HasField("numberOfValues"):
        return None
    if not column_statistics.numberOfValues:
        return True
    block = column_statistics.timestampStatistics
    for low, high in (("minimumUtc", "maximumUtc"), ("minimum", "maximum")):
        if block.HasField(low) and block.HasField(high):
            return bool(_FIRST_MS <= getattr(block, low) <= getattr(block, high) <= _LAST_MS)
    return None


def _read(wide: set[Place], source: EventFile, unsure: dict[int, list[_Leaf]], row: OrcType) -> None:
    with source.open() as events:
        for stripe, leaves in unsure.items():
            missing = [leaf for leaf in leaves if leaf.path not in wide]
            places = list(dict.fromkeys(leaf.top for leaf in missing))
            if not places:
                continue
            files = FileColumns(source.row_type, row, places, source.format, source.declared)
            rows = events.rows(stripe, files.names)
            arrays = {place: files.get(rows, place, source.fs.display(source.path)) for place in places}
            for leaf in missing:
                array = arrays[leaf.top]
                for position in leaf.path[1:]:
                    array = below(array)[position]
                if isinstance(array.type, WideTimestamp):
                    wide.add(leaf.path)
