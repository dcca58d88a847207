"""Which Arrow types the batches of a scan need, told before the first is read.

Two depend on the values: a timestamp that 64 bits of nanoseconds do not hold needs the wide form, a union with NULLs
an alternative for them.  Statistics and stripe footers tell nearly always; where a file has no statistics of its
timestamps (streaming, old compactions, Parquet) these columns are read for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa

from acidctl.errors import BadDataError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.arrow import below
from acidctl.orc.read.common_type import as_type, common_type
from acidctl.orc.read.union_nulls import NULL_MEMBER, present_streams
from acidctl.orc.read.wide_timestamps import WideTimestamp
from acidctl.orc.tail import Tail
from acidctl.orc.types import TIMESTAMP_KINDS, OrcType, arrow_type
from acidctl.rows.convert.matching import Place, fields_of, place_in, type_at
from acidctl.rows.foreign.format import Format
from acidctl.rows.read.events import EventFile
from acidctl.rows.read.visibility import Unreadable
from acidctl.rows.scan.columns import ColumnSource, FileColumns, ScanColumn
from acidctl.rows.scan.pruning import DAY_MS, YEAR_1700_MS

_FIRST_MS = YEAR_1700_MS
"""A good day inside what 64 bits of nanoseconds hold, and where bounds in statistics can be trusted."""
_LAST_MS = 9_223_372_036_854 - 2 * DAY_MS


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A timestamp or a union somewhere in a column, in one file.

    Attributes:
        path: of the result's column, then positions below it.
        top: where the column lies in the row type.
        own: in the file; None for a union that is NULL in all of its rows, as it has no such column.
    """

    path: Place
    top: Place
    own: OrcType | None

    @property
    def column_id(self) -> int:
        assert self.own is not None
        return self.own.column_id


@dataclass(slots=True)
class Needs:
    """What values need, by the path of the timestamp or the union in the result."""

    wide: set[Place] = field(default_factory=set)
    null_unions: set[Place] = field(default_factory=set)

    def schema(self, row: OrcType) -> pa.Schema:
        """The schema of batches of `row` that hold such values."""
        found = (*self.wide, *self.null_unions)
        above = {path[:length] for path in found for length in range(1, len(path) + 1)}
        kinds = (self._type(kind, (i,), above) for i, kind in enumerate(row.children))
        return pa.schema([pa.field(name, kind) for name, kind in zip(row.names, kinds, strict=True)])

    def _type(self, node: OrcType, path: Place, above: Collection[Place]) -> pa.DataType:
        """The type of a node; `above` are the paths of all that is needed and of what lies around it."""
        if path not in above:
            return arrow_type(node)
        if node.kind in TIMESTAMP_KINDS:
            return WideTimestamp(node.kind != "timestamp")
        children = [self._type(child, (*path, i), above) for i, child in enumerate(node.children)]
        if node.kind == "struct":
            return pa.struct([pa.field(name, kind) for name, kind in zip(node.names, children, strict=True)])
        if node.kind == "array":
            return pa.list_(pa.field("item", children[0]))
        if node.kind == "map":
            return pa.map_(*children)
        fields = [pa.field(f"_union_{i}", kind) for i, kind in enumerate(children)]
        return pa.sparse_union(fields + [pa.field(NULL_MEMBER, pa.null())] * (path in self.null_unions))


def varies(node: OrcType) -> bool:
    """Whether a column's Arrow type depends on its values."""
    return any(one.kind in TIMESTAMP_KINDS or one.kind == "uniontype" for one in node.walk())


def of_schema(batch: pa.RecordBatch, schema: pa.Schema, varying: Sequence[int]) -> pa.RecordBatch:
    """A batch whose columns at the places `varying` get the types of `schema`.

    Raises:
        BadDataError: a value does not fit its type: the statistics of a file do not tell the truth.
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


def look(needs: Needs, sources: Iterable[EventFile], columns: Sequence[ScanColumn], row: OrcType) -> None:
    """Add to `needs` what the rows of some files need, live or not.

    Args:
        columns: of the result, in its order.
        row: the row type that `columns` are places in.
    """
    chosen = [(i, one) for i, one in enumerate(columns) if one.kind is ColumnSource.DATA and varies(one.type)]
    for source in sources if chosen else ():
        if not source.is_delete:
            with suppress(*Unreadable):  # who reads the rows will say so
                _look_at(needs, source, chosen, row)


def _look_at(needs: Needs, source: EventFile, columns: Sequence[tuple[int, ScanColumn]], row: OrcType) -> None:
    leaves = [leaf for i, column in columns for leaf in _leaves(source.row_type, i, column, row)]
    needs.null_unions |= {leaf.path for leaf in leaves if leaf.own is None}
    unions = [leaf for leaf in leaves if leaf.own and leaf.own.kind == "uniontype"]
    if unions and source.format is Format.ORC:
        needs.null_unions |= _unions_with_nulls(source.tail, unions)
    times = [leaf for leaf in leaves if leaf.own and leaf.own.kind != "uniontype" and leaf.path not in needs.wide]
    statistics = source.tail.footer.statistics if source.tail.stride else ()
    times = [leaf for leaf in times if not _fits(statistics, source.tail.rows, leaf.column_id)]
    unsure: dict[int, list[_Leaf]] = {}
    for number, stripe in enumerate(source.tail.stripes if times else ()):
        bounds = (source.tail.stripe_statistics(number) or ()) if source.tail.stride else ()
        fits = [_fits(bounds, stripe.numberOfRows, leaf.column_id) for leaf in times]
        needs.wide |= {leaf.path for leaf, known in zip(times, fits, strict=True) if known is False}
        if None in fits:
            unsure[number] = [leaf for leaf, known in zip(times, fits, strict=True) if known is None]
    _read(needs, source, unsure, row)


def _leaves(own_row: OrcType, number: int, column: ScanColumn, row: OrcType) -> Iterator[_Leaf]:
    """The timestamps and unions of one column of the result in a file."""
    found = place_in(own_row, column.place, row)
    own = None if found is None else type_at(own_row, found)
    if column.type.kind == "uniontype" and len(column.place) > 1:
        yield _Leaf((number,), column.place, None)  # NULL where a struct around it is
    waiting: list[tuple[Place, OrcType | None, OrcType]] = [((number,), own, column.type)]
    while waiting:
        path, own, target = waiting.pop()
        if own is None:
            if target.kind == "uniontype":
                yield _Leaf(path, column.place, None)
        elif own.kind == target.kind or target.kind in TIMESTAMP_KINDS:  # dates and numbers may become timestamps
            if target.kind in (*TIMESTAMP_KINDS, "uniontype"):
                yield _Leaf(path, column.place, own)
            places = fields_of(own, target) if own.kind == "struct" else range(len(own.children))
            having = {i: own.children[place] for i, place in enumerate(places) if place is not None}
            waiting += [((*path, i), having.get(i), child) for i, child in enumerate(target.children)]


def _unions_with_nulls(tail: Tail, unions: Sequence[_Leaf]) -> set[Place]:
    """Unions that have a stream of their nulls in some stripe."""
    found: set[Place] = set()
    for stripe in range(len(tail.stripes)):
        present = present_streams(tail.stripe_footer(stripe), tail.type_tree)
        found |= {leaf.path for leaf in unions if leaf.column_id in present}
    return found


def _fits(statistics: Sequence[pb.ColumnStatistics], rows: int, column: int) -> bool | None:
    """Whether all timestamps of a column fit, by the statistics of so many rows; None where these do not tell."""
    if column >= len(statistics) or statistics[0].numberOfValues != rows:
        return None
    found = statistics[column]
    if not found.HasField("numberOfValues"):
        return None
    if not found.numberOfValues:
        return True
    block = found.timestampStatistics
    for low, high in (("minimumUtc", "maximumUtc"), ("minimum", "maximum")):
        if block.HasField(low) and block.HasField(high):
            return bool(_FIRST_MS <= getattr(block, low) <= getattr(block, high) <= _LAST_MS)
    return None


def _read(needs: Needs, source: EventFile, unsure: dict[int, list[_Leaf]], row: OrcType) -> None:
    """Look at the timestamps themselves."""
    if not unsure:
        return
    with source.open() as events:
        for stripe, leaves in unsure.items():
            left = [leaf for leaf in leaves if leaf.path not in needs.wide]
            places = list(dict.fromkeys(leaf.top for leaf in left))
            if not places:
                continue
            files = FileColumns(source.row_type, row, places, source.format, source.declared)
            rows = events.rows(stripe, files.names)
            arrays = {place: files.get(rows, place, source.fs.display(source.path)) for place in places}
            needs.wide |= {leaf.path for leaf in left if _is_wide(arrays[leaf.top], leaf.path[1:])}


def _is_wide(array: pa.Array, path: Place) -> bool:
    """Whether the timestamp at a path in a column came in the wide form."""
    for position in path:
        array = below(array)[position]
    return isinstance(array.type, WideTimestamp)
