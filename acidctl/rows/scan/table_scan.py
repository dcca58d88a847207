"""The rows of a snapshot of a table: all its locations, in one row type."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import NamedTuple, TypeVar

import pyarrow as pa

from acidctl.acid.reasons import Reason
from acidctl.base import parallel
from acidctl.base.errors import BadDataError
from acidctl.location.snapshot import Snapshot
from acidctl.orc.types import OrcType
from acidctl.rows.convert.matching import Place
from acidctl.rows.foreign.format import Format
from acidctl.rows.read.events import EventFile
from acidctl.rows.read.selection import limited
from acidctl.rows.read.visibility import Unreadable, with_loss
from acidctl.rows.scan.arrow_rows import ArrowRows
from acidctl.rows.scan.arrow_types import add_wide, of_schema, schema_of, varies
from acidctl.rows.scan.columns import PartitionColumn
from acidctl.rows.scan.odd_layout import misplaced_deletes, odd_layout
from acidctl.rows.scan.predicate import RowCondition
from acidctl.rows.scan.scan import Scan

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
        self._formats: dict[Format, str] = {}  # with a file of each
        self._newest_of: dict[OrcType, int] = {}  # the last write id of the files of a type; most files have the same

    def add(self, snapshot: Snapshot, sources: Sequence[EventFile], *, is_wanted: bool) -> None:
        """Add a location. The types of its files count even if its rows are not wanted.

        Raises:
            BadDataError: text has no columns without a metastore, and other files of the table have some.
        """
        for source in (source for source in sources if not source.is_delete):
            self._formats.setdefault(source.format, source.fs.display(source.path))
            text = self._formats.get(Format.TEXT)
            if text and len(self._formats) > 1 and not snapshot.declared:
                other = next(format_ for format_ in self._formats if format_ is not Format.TEXT)
                raise BadDataError(
                    f"{text} is text, and {self._formats[other]} is {other}",
                    "only a metastore says which columns the lines have",
                    "move away what is not data, or name the table: hive:db.table",
                )
            kind, write_id = source.row_type, source.file.max_write_id
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
        return sorted(self._newest_of, key=self._newest_of.__getitem__)


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
