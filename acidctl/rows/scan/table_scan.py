"""The rows of a snapshot of a table: all its locations, in one row type.

The Arrow types of all batches are found before the first is read. Timestamps that do not fit into 64 bits of
nanoseconds need the wide form. Statistics nearly always decide. If a file has no statistics of its timestamps
(streaming, old compactions, Parquet), these columns are read. A union always gets its alternative for NULL, although
batches without a NULL come without it.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pyarrow as pa

from acidctl.acid.reasons import Reason
from acidctl.base import parallel
from acidctl.base.arguments import as_count
from acidctl.base.errors import BadDataError, UsageProblem, importing
from acidctl.location.snapshot import Snapshot
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.arrow import below
from acidctl.orc.read.common_type import as_type, common_type, same_types
from acidctl.orc.read.union_nulls import NULL_MEMBER
from acidctl.orc.read.wide_timestamps import WideTimestamp
from acidctl.orc.types import TIMESTAMP_KINDS, OrcType, arrow_type
from acidctl.rows.convert.matching import Place, fields_of, place_in, type_at
from acidctl.rows.foreign.format import Format, text_beside
from acidctl.rows.read.events import EventFile
from acidctl.rows.read.selection import limited
from acidctl.rows.read.visibility import Unreadable, is_undeclared_text, with_loss
from acidctl.rows.scan.columns import ColumnSource, FileColumns, PartitionColumn, ScanColumn
from acidctl.rows.scan.odd_layout import misplaced_deletes, odd_layout
from acidctl.rows.scan.predicate import RowCondition
from acidctl.rows.scan.pruning import DAY_MS, YEAR_1700_MS
from acidctl.rows.scan.scan import Scan

if TYPE_CHECKING:
    import pandas


class ArrowRows(ABC):
    """Rows that are read a stripe at a time; pyarrow, polars, pandas and DuckDB accept them directly."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """Return the schema of all batches."""

    @abstractmethod
    def to_batches(self, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches of :attr:`schema`; only the first `limit` rows if it is given."""

    def _rows(self) -> ArrowRows:
        """Return the rows of one snapshot, so that schema and batches match."""
        return self

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows to any library that reads Arrow's C stream, without a copy."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return a reader of all batches; errors of :meth:`to_batches` occur while it reads."""
        rows = self._rows()
        return pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches())

    def to_table(self) -> pa.Table:
        """Read all rows into memory; for errors see :meth:`to_batches`."""
        rows = self._rows()
        return one_table(list(rows.to_batches()), rows.schema)

    def head(self, count: int = 10) -> pa.Table:
        """Read the first rows; a small count reads little. UsageProblem if it is not a whole number from 0 on."""
        count = as_count(count, "count", 0, None)
        rows = self._rows()
        return one_table(list(rows.to_batches(count)), rows.schema)

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """Read all rows into a pandas data frame.

        Args:
            options: of :meth:`pyarrow.Table.to_pandas`.

        Raises:
            EnvironmentProblem: pandas is not installed.
            UsageProblem: pandas has no type for a column, such as a union.
        """
        with importing("cannot import pandas", "pip install pandas"):
            import pandas  # noqa: F401, PLC0415 - optional; pyarrow's own error is less clear
        rows = self.to_table()
        try:
            return rows.to_pandas(**options)
        except pa.ArrowNotImplementedError as error:
            raise UsageProblem(
                "these columns cannot be put into a pandas data frame",
                str(error),
                "read the other columns, with columns=[...], or call to_table(), which keeps every type",
            ) from error

    def _repr_html_(self) -> str:
        """Describe the object and its columns, without reading rows."""
        from acidctl.notebook import html_table  # noqa: PLC0415 - only for notebooks

        return html_table(repr(self), ("column", "type"), [(field.name, field.type) for field in self.schema])


def one_table(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Return all rows of the batches as one table; `schema` is used if there are none."""
    if not batches:
        # Not schema.empty_table(), which does not support unions.
        return pa.Table.from_arrays([pa.chunked_array([], kind) for kind in schema.types], schema=schema)
    places = range(len(schema.names))
    columns = [pa.chunked_array(same_types([batch.column(place) for batch in batches])) for place in places]
    return pa.Table.from_arrays(columns, names=schema.names)


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
            arrays = {place: files.get(rows, place, source.shown) for place in places}
            for leaf in missing:
                array = arrays[leaf.top]
                for position in leaf.path[1:]:
                    array = below(array)[position]
                if isinstance(array.type, WideTimestamp):
                    wide.add(leaf.path)


_T = TypeVar("_T")


@contextmanager
def may_be_skipped(hint: str, lost: str = "") -> Iterator[None]:
    """Add to an error what is lost, and `hint`: how to get the rest."""
    try:
        yield
    except Unreadable as error:
        whole = with_loss(error, lost)
        raise type(error)(whole.what, whole.why, "; ".join(filter(None, (whole.hint, hint)))) from error


class Summary:
    """Facts about all locations of a table, gathered while each is in memory; see :class:`TableScan`."""

    def __init__(self) -> None:
        self.row_type = OrcType("struct")
        self.notes: dict[Reason, None] = {}
        self.newest = 0
        self.warnings: list[str] = []
        self._other: tuple[str, Format] | None = None  # a file that is not text without a metastore
        self._text: dict[OrcType, str] = {}  # with a file of each
        self._newest_of: dict[OrcType, int] = {}  # the last write id of the files of a type; most files have the same

    def add(self, snapshot: Snapshot, sources: Sequence[EventFile], *, is_wanted: bool) -> None:
        """Add a location. The types of its files count even if its rows are not wanted."""
        for source in (source for source in sources if not source.is_delete):
            kind, write_id = source.row_type, source.file.max_write_id
            if is_undeclared_text(source):
                self._text.setdefault(kind, source.shown)
                continue
            self._other = self._other or (source.shown, source.format)
            if write_id >= self._newest_of.get(kind, 0):
                self._newest_of.pop(kind, None)  # of equal write ids the last file counts as the newest
                self._newest_of[kind] = write_id
        if is_wanted:
            self.notes |= dict.fromkeys(snapshot.state.notes)
            ids = (v.directory.max_write_id for v in snapshot.state.verdicts if v.directory)
            self.newest = max(self.newest, max(ids, default=0))
            self.warnings += [*odd_layout(snapshot), *misplaced_deletes(snapshot, sources)]

    def types(self) -> list[OrcType]:
        """Return the row types of the files, each once, that of the newest file last."""
        return sorted(self._newest_of, key=self._newest_of.__getitem__) or list(self._text)

    @property
    def stray_text(self) -> BadDataError | None:
        """Return why the files are not one table: some are text without a metastore, and others are not; else None."""
        return text_beside(next(iter(self._text.values())), *self._other) if self._other and self._text else None

    def stray(self, source: EventFile) -> BadDataError | None:
        """Return why the lines of a file are no rows of the table; None if its rows are."""
        if self._other is None or not is_undeclared_text(source):
            return None
        return text_beside(source.shown, *self._other)


class Part(NamedTuple):
    """The files of one location that a scan reads."""

    snapshot: Snapshot
    partition: tuple[PartitionColumn, ...]
    sources: Sequence[EventFile]


class TableScan(ArrowRows):
    """The rows of a snapshot of a table; made by :meth:`Table.scan`. It may be read any number of times.

    Attributes:
        parts: one for each location.
        notes: the assumptions of the snapshots, without duplicates.
        newest: the greatest write id in the names of directories, read or not; 0 if there are none.
        warnings: a sentence for each layout that Hive never writes, and its effect on the rows.
        output_type: the type of the rows in ORC's types, which distinguish CHAR from STRING.
        declared: the same type as an Arrow schema.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        summary: Summary,
        scan_of: Callable[[Part, str | RowCondition | None], Scan],
        where: str | None,
        skip_hint: str,
    ) -> None:
        self.parts = parts
        self.notes, self.newest, self.warnings = tuple(summary.notes), summary.newest, summary.warnings
        self._scan_of = scan_of
        self._condition = where
        self._skip_hint = skip_hint
        first = scan_of(parts[0], where)
        self._first: Scan | None = first
        self._where = first.where
        self._row_type = first.row_type
        self._deleted = first.deleted
        self.output_type = first.output_type
        self.declared: pa.Schema = first.schema

    def _scans(self) -> Iterator[Scan]:
        for position, part in enumerate(self.parts):
            first, self._first = self._first, None
            yield first if first and not position else self._scan_of(part, self._where)

    def __repr__(self) -> str:
        names = ", ".join(self.declared.names)
        where = f", where {self._condition}" if self._condition else ""
        deleted = ", deleted rows" if self._deleted else ""
        return f"<acidctl scan of ({names}){where}{deleted}, locations: {len(self.parts)}>"

    @cached_property
    def schema(self) -> pa.Schema:
        """Return the schema of all batches: :attr:`declared`, with wider types for columns whose values need them.

        A timestamp column is ``acidctl.wide_timestamp`` instead of ``timestamp[ns]`` if a file may hold a value outside
        its range, by its statistics; timestamps of files without statistics are read. A union has one more alternative,
        for NULL.
        """
        if not self._varying_columns:
            return self.declared
        wide: set[Place] = set()
        for scan in self._scans():
            add_wide(wide, scan.sources, scan.columns, self._row_type)
            wide |= {(at,) for at in scan.far_times()}
        return schema_of(self.output_type, wide)

    @cached_property
    def _varying_columns(self) -> list[int]:
        return [position for position, kind in enumerate(self.output_type.children) if varies(kind)]

    @property
    def snapshots(self) -> list[Snapshot]:
        """Return the snapshot of every location."""
        return [part.snapshot for part in self.parts]

    def to_batches(self, limit: int | None = None, *, threads: int = 1) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches of :attr:`schema`, location by location, a stripe at a time.

        Memory is bounded by a stripe and the deletes.

        Args:
            limit: yield only the first rows, up to this number; a small limit reads little.
            threads: threads that read stripes ahead; the order stays the same. Each needs memory for one stripe.

        Raises:
            BadDataError, NotFoundError: a file is damaged or has vanished; the error says which rows are lost.
        """
        batches = self.batches_as_read(limit)
        if threads > 1:  # each reads a stripe ahead
            pieces = (piece for scan in self._scans() for piece in scan.pieces())
            by_piece = self._with_hint(parallel.results(lambda piece: piece(), pieces, threads, ahead=threads))
            batches = limited(itertools.chain.from_iterable(by_piece), limit)
        for batch in batches:
            yield of_schema(batch, self.schema, self._varying_columns) if self._varying_columns else batch

    def batches_as_read(self, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """Like :meth:`to_batches`, but each batch has the types that its own values need, so no other file is read."""
        batches = (batch for scan in self._scans() for batch in self._with_hint(scan.batches(limit or 0)))
        return limited(batches, limit)

    def _with_hint(self, values: Iterator[_T]) -> Iterator[_T]:
        """Yield the values; errors get the hint of this scan."""
        while True:
            with may_be_skipped(self._skip_hint):
                value = next(values, None)
            if value is None:
                return
            yield value

    def count(self) -> int:
        """Count the rows, from footers alone if possible, else from as few columns as possible.

        Raises:
            BadDataError, NotFoundError: see :meth:`to_batches`.
        """
        return sum(self.counts())

    def counts(self) -> Iterator[int]:
        """Yield the counts of parts of the rows, as they are counted."""
        with may_be_skipped(self._skip_hint):
            for scan in self._scans():
                yield from scan.counts()
