"""The events of one data file, as ACID's six columns.

Native files hold these columns. Rows of original and raw files get the synthetic columns that every reader of Hive
gives them (format section 5), from the file's name, its directory and the files before it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from acidctl.acid.compaction_kind import Hive
from acidctl.acid.layout import NO_BUCKET, DataFile, Role
from acidctl.acid.listing import TableType
from acidctl.acid.names import Kind
from acidctl.base.errors import AcidctlError, BadDataError
from acidctl.orc.arrow import struct_of
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.read.hostile_streams import check_all_rows, check_rows
from acidctl.orc.read.reader import OrcFile, open_orc
from acidctl.orc.read.wide_timestamps import is_hybrid, proleptic_batch
from acidctl.orc.tail import Tail
from acidctl.orc.types import ACID_COLUMNS, OrcType
from acidctl.rows.foreign.format import Format, open_foreign, read_any_tail, read_orc_tail, unnamed_text
from acidctl.rows.read.delete_set import Bools, Bound, Keys, Longs, StripeRange, stripe_ranges
from acidctl.rows.read.row_numbers import RowNumbers, Synthetic
from acidctl.storage.port import FileSystem
from acidctl.storage.remote import fetch_tails

if TYPE_CHECKING:
    from acidctl.location.metastore_schema import Declared
    from acidctl.location.snapshot import Snapshot
    from acidctl.rows.foreign.foreign_reader import ForeignReader

ID_COLUMNS = ("operation", "originalTransaction", "bucket", "rowId", "currentTransaction")

_IDS = frozenset(map(str.lower, ACID_COLUMNS))
_ENDS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Ids:
    """The id columns of one stripe as NumPy columns of equal length."""

    operation: Longs
    keys: Keys
    current: Longs

    @classmethod
    def concat(cls, parts: Sequence[Ids]) -> Ids:
        """Concatenate the parts in the order given."""
        return cls(
            np.concatenate([part.operation for part in parts]),
            Keys.concat([part.keys for part in parts]),
            np.concatenate([part.current for part in parts]),
        )

    def take(self, selection: NDArray[np.intp] | Bools | slice | None) -> Ids:
        """Return the selected ids; None selects all."""
        if selection is None:
            return self
        return Ids(self.operation[selection], self.keys.take(selection), self.current[selection])

    def bound(self, statement_id: int) -> Bound:
        """Return the position of each event in the order of events (format section 4.1)."""
        return Bound(self.current, np.full(len(self.current), statement_id, np.int64))


@dataclass(frozen=True)
class EventFile:
    """A data file with its footer; it holds no file open.

    Attributes:
        path: absolute inside `fs`.
        length: the logical length in bytes, None for the whole file.
        tail: the file's own; for Parquet and text the one that an ORC file of these rows would have.
        synthetic: None for a native file.
        format: anything but ORC is for insert-only tables.
        declared: the table in the metastore.
    """

    fs: FileSystem
    file: DataFile
    path: str
    length: int | None
    tail: Tail
    synthetic: Synthetic | None
    format: Format = Format.ORC
    declared: Declared | None = None

    @property
    def shown(self) -> str:
        """Return the path, as a user would type it."""
        return self.fs.display(self.path)

    @property
    def row_type(self) -> OrcType:
        """Return the table's columns as this file declares them; without ids they may have the names of ids."""
        return self.tail.schema.row_type if self.synthetic is None else self.tail.type_tree

    @property
    def rows(self) -> int:
        return self.tail.rows

    @property
    def is_delete(self) -> bool:
        """Return whether its events are deletes, by its directory."""
        return self.file.role is Role.DELETE

    @property
    def is_hybrid(self) -> bool:
        """Return whether its dates are in old Hive's Julian/Gregorian calendar."""
        return is_hybrid(self.tail)

    @property
    def moves_dates(self) -> bool:
        """Return whether its dates before 1582 are converted to the other calendar, which Hive 3 does not do."""
        return self.is_hybrid and not (self.declared and self.declared.hive is Hive.HIVE3)

    @cached_property
    def may_hold_changes(self) -> bool:
        """Return whether there may be updates or deletes among the events, by the statistics of the operation column.

        Without usable statistics this is True.
        """
        if self.synthetic is not None:
            return False
        statistics = self.tail.column_statistics(1)
        if statistics is None or not statistics.HasField("intStatistics"):
            return self.rows > 0
        integers = statistics.intStatistics
        return not (integers.HasField("maximum") and integers.minimum == integers.maximum == 0)

    @cached_property
    def may_hold_moved(self) -> bool:
        """Return whether rows of a delta have a later write id than their ROW__ID, which only ACID v1 writes.

        Without usable statistics this is False, since nearly all rows have the write id of their ROW__ID.
        """
        directory = self.file.directory
        if self.synthetic is not None or self.is_delete or directory is None or directory.kind is Kind.BASE:
            return False
        return any(keys is not None and keys.original != keys.current for keys in self.ranges)

    @cached_property
    def ranges(self) -> list[StripeRange | None]:
        """Return the key range of every stripe, from statistics alone."""
        if self.synthetic is None:
            return stripe_ranges(self.tail)
        write_ids, buckets = (self.synthetic.write_id,) * 2, (self.synthetic.bucket,) * 2
        rows = (stripe.numberOfRows for stripe in self.tail.stripes)
        firsts = itertools.accumulate(rows, initial=self.synthetic.first_row_id)
        return [StripeRange(write_ids, buckets, (a, b - 1), write_ids, True) for a, b in itertools.pairwise(firsts)]

    def open(self) -> EventReader:
        """Open the file for reading. Raises BadDataError, NotFoundError or AccessError."""
        if self.format is not Format.ORC:
            return EventReader(self, open_foreign(self.tail.source, self.format, self.tail, self.declared))
        return EventReader(self, open_orc(self.fs, self.path, self.length, self.tail, has_ids=self.synthetic is None))

    def stripe_ids(self) -> Iterator[Ids]:
        """Yield the ids of every stripe; for errors see :meth:`open` and :meth:`EventReader.ids`."""
        with self.open() as events:
            for stripe in range(events.stripes):
                yield events.ids(stripe)


class EventReader:
    """An open event file; a context manager."""

    def __init__(self, source: EventFile, orc: OrcFile | ForeignReader) -> None:
        check_all_rows(source.tail)
        self.source = source
        self._orc = orc
        rows = (stripe.numberOfRows for stripe in source.tail.stripes)
        self._starts = list(itertools.accumulate(rows, initial=0))

    def __enter__(self) -> EventReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._orc.close()

    @property
    def stripes(self) -> int:
        return self._orc.stripe_count

    def ids(self, stripe: int) -> Ids:
        """Return the id columns of a stripe.

        Raises:
            BadDataError: the stripe cannot be read, or one of the columns holds NULL (rule V29).
        """
        if self.source.synthetic is not None:
            check_rows(self.source.tail, stripe)
            return _synthetic_ids(self.source.synthetic, self._starts[stripe], self._starts[stripe + 1])
        return read_ids(self._orc.read_stripe(stripe, ID_COLUMNS), self.source.shown)

    def buckets(self, stripe: int) -> Longs:
        """Return only the ``bucket`` column of a stripe; for errors see :meth:`ids`."""
        if self.source.synthetic is not None:
            return self.ids(stripe).keys.bucket
        column = self._orc.read_stripe(stripe, ("bucket",)).column(0)
        return _longs(column, "bucket", self.source.shown)

    def ids_with_rows(
        self, stripe: int, columns: Sequence[str] | None, *, proleptic: bool = True
    ) -> tuple[Ids, pa.StructArray]:
        """Return :meth:`ids` and :meth:`rows` of a stripe, read together."""
        if self.source.synthetic is not None or columns == []:
            return self.ids(stripe), self.rows(stripe, columns, proleptic=proleptic)
        wanted = None if columns is None else [*ID_COLUMNS, *(f"row.{name}" for name in columns)]
        batch = self._read(stripe, wanted, proleptic=proleptic)
        return read_ids(batch, self.source.shown), batch.column("row")

    def rows(self, stripe: int, columns: Sequence[str] | None = None, *, proleptic: bool = True) -> pa.StructArray:
        """Return the table's columns of a stripe as one struct array.

        Args:
            columns: top-level names as this file spells them; None for all. The order is the file's.
            proleptic: convert dates of old Hive's Julian/Gregorian calendar to the proleptic Gregorian one. A
                compaction keeps the stored numbers, and the footer's calendar.
        """
        if columns is not None and not columns:
            return struct_of((), (), self._starts[stripe + 1] - self._starts[stripe])
        if self.source.synthetic is not None:
            batch = self._read(stripe, columns, proleptic=proleptic)
            return pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
        wanted = ["row"] if columns is None else [f"row.{name}" for name in columns]
        return self._read(stripe, wanted, proleptic=proleptic).column("row")

    def _read(self, stripe: int, columns: Sequence[str] | None = None, *, proleptic: bool = True) -> pa.RecordBatch:
        batch = self._orc.read_stripe(stripe, columns)
        return proleptic_batch(batch) if proleptic and self.source.moves_dates else batch

    def first(self, count: int) -> pa.RecordBatch | None:
        """Return the first `count` events like :meth:`batch`; None if that needs the rest of a stripe."""
        if not isinstance(self._orc, OrcFile):
            return None
        batch = self._orc.read_first(count)
        if batch is None:
            return None
        if self.source.synthetic is not None:
            rows = pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
            batch = with_ids(_synthetic_ids(self.source.synthetic, 0, count), rows)
        return proleptic_batch(batch) if self.source.moves_dates else batch

    def batch(self, stripe: int) -> pa.RecordBatch:
        """Return the stripe with all six columns, dates in the proleptic Gregorian calendar."""
        if self.source.synthetic is not None:
            return with_ids(self.ids(stripe), self.rows(stripe))
        return self._read(stripe)


def _synthetic_ids(synthetic: Synthetic, start: int, end: int) -> Ids:
    count = end - start
    write_ids = np.full(count, synthetic.write_id, np.int64)
    first = synthetic.first_row_id
    row_ids = np.arange(first + start, first + end, dtype=np.int64)
    return Ids(
        np.zeros(count, np.int64), Keys(write_ids, np.full(count, synthetic.bucket, np.int64), row_ids), write_ids
    )


def read_ids(batch: pa.RecordBatch, path: str) -> Ids:
    """Return the ids of a batch that holds the five id columns.

    Raises:
        BadDataError: one of them holds NULL, or is missing.
    """
    if missing := sorted(set(ID_COLUMNS) - set(batch.schema.names)):
        raise BadDataError(
            f"{path} is not a valid ACID file",
            f"it has no column {missing[0]}",
            "restore the file, or leave its directory out",
        )
    operation, original, bucket, row_id, current = (_longs(batch.column(name), name, path) for name in ID_COLUMNS)
    return Ids(operation, Keys(original, bucket, row_id), current)


def _longs(column: pa.Array, name: str, path: str) -> Longs:
    if column.null_count:
        raise BadDataError(
            f"{path} is not a valid ACID file",
            f"{column.null_count} rows have no {name}",
            "restore the file, or leave its directory out",
        )
    return np.asarray(column.to_numpy(zero_copy_only=False), np.int64)


def ids_batch(ids: Ids) -> pa.RecordBatch:
    """Return the five id columns in ORC's types."""
    columns = [
        pa.array(ids.operation.astype(np.int32)),
        pa.array(ids.keys.original),
        pa.array(ids.keys.bucket.astype(np.int32)),
        pa.array(ids.keys.row_id),
        pa.array(ids.current),
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(ID_COLUMNS))


def with_ids(ids: Ids, rows: pa.Array) -> pa.RecordBatch:
    """Return a batch of the six ACID columns."""
    return ids_batch(ids).append_column("row", rows)


def open_event_files(
    snapshot: Snapshot, files: Iterable[DataFile], on_error: Callable[[DataFile, AcidctlError], None] | None = None
) -> list[EventFile]:
    """Read the footers of data files and number the rows of those without ids.

    Args:
        files: in read order. Original files must come with all that precede them, raw files with all of their
            directory: row ids continue from file to file (format section 5).
        on_error: receives a file that cannot be opened, and its error; by default the error is raised.

    Raises:
        BadDataError: a file's format is not allowed in the table (full-ACID tables: ORC), or its flush
            length is damaged or longer than the file.
    """
    listed = list(files)
    full = snapshot.listing.is_full_acid
    opened: list[EventFile] = []
    numbers = RowNumbers(snapshot, listed)
    for index, file in enumerate(listed):
        if index % _ENDS_AT_ONCE == 0:
            ahead = listed[index : index + _ENDS_AT_ONCE]
            fetch_tails(snapshot.fs, [(snapshot.absolute(file.path), file.size) for file in ahead])
        try:
            if source := _opened(snapshot, file, numbers, full=full):
                opened.append(source)
        except AcidctlError as error:
            if on_error is None:
                raise
            numbers.stop(file)
            on_error(file, error)
    if not full and any(source.synthetic is None for source in opened):
        return [source for source in opened if _belongs(snapshot, source, on_error)]
    return opened


def _opened(snapshot: Snapshot, file: DataFile, numbers: RowNumbers, *, full: bool) -> EventFile | None:
    """Read a file's footer; return None if the file has no rows."""
    length = snapshot.logical_length(file)
    if length == 0:
        return None  # an empty bucket, or a streaming writer that has not committed yet (section 12)
    if length is not None and length > file.size:
        raise BadDataError(
            f"{snapshot.display(file.path)} is shorter than its flush length",
            f"{file.size} bytes are there, {length} were committed",
            "rows are lost, or the listing is stale: list again, or restore the file",
        )
    path = snapshot.absolute(file.path)
    # Without a side file the size from the listing spares one call per file.
    source = ByteSource(snapshot.fs, path, length, file.size)
    format_ = Format.ORC
    if full:
        tail = read_orc_tail(source)
    else:
        recognized = read_any_tail(source, snapshot.declared)
        format_, tail = recognized.format, recognized.tail
    if format_ is Format.TEXT and not snapshot.declared and file.directory is None and file.bucket == NO_BUCKET:
        raise unnamed_text(snapshot.display(file.path))
    synthetic = None
    has_ids = tail.is_acid and format_ is Format.ORC
    if has_ids and has_other_columns(snapshot.table_type, snapshot.declared):
        raise BadDataError(
            f"{snapshot.display(file.path)} has ids of rows, as in a full-ACID table",
            "the table is insert-only, and Hive fails on such a file there",
            "move it to the table that it belongs to",
        )
    if has_ids and snapshot.table_type is not TableType.INSERT_ONLY:
        _refuse_misnamed(snapshot, file, full=full)
    else:
        synthetic = numbers.of(file, tail)
    return EventFile(snapshot.fs, file, path, length, tail, synthetic, format_, snapshot.declared)


def _refuse_misnamed(snapshot: Snapshot, file: DataFile, *, full: bool) -> None:
    """Refuse a file with the ACID columns that Hive does not read as ACID events (sections 5.1, 5.2 and 11).

    Raises:
        BadDataError: the file is among the original files of a full-ACID table, or in a delta without a bucket's name.
    """
    in_base = file.directory is not None and file.directory.kind is Kind.BASE
    # A file of an insert-only table may have this name, and six columns with these names.
    is_either = not full and file.directory is not None
    if not file.native_name and (is_either or (full and not in_base)):
        raise BadDataError(
            f"Hive does not read {snapshot.display(file.path)} as ACID events",
            "only bucket_N may have ACID columns; in an insert-only table they would be ordinary columns",
            "move it away, or to where it belongs; if the table is insert-only, give --table-type insert-only or"
            " --metastore",
        )


def has_other_columns(table_type: TableType | None, declared: Declared | None) -> bool:
    """Return whether a table is insert-only, and its columns are known not to be those of files with ids."""
    if table_type is not TableType.INSERT_ONLY or not (declared and declared.columns):
        return False
    return not {name.lower() for name, _ in declared.columns} >= _IDS


def _belongs(snapshot: Snapshot, source: EventFile, on_error: Callable[[DataFile, AcidctlError], None] | None) -> bool:
    """Return whether a file is ORC: one ACID file makes the table full ACID, and such a table is all ORC."""
    if source.format is Format.ORC:
        return True
    error = BadDataError(
        f"{snapshot.display(source.file.path)} is not an ORC file",
        f"it is {source.format}, and other files here make this a full-ACID table",
        "the file does not belong here, or was overwritten: restore it; or see --table-type",
    )
    if on_error is None:
        raise error
    on_error(source.file, error)
    return False
