"""Write one ORC file of a full-ACID table: the six columns, the user metadata, the table's true types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import BinaryIO, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acidctl.base.errors import BadDataError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.tail import ACID_STATS, ACID_VERSION, KEY_INDEX, RecordKey, key_index_of
from acidctl.orc.types import ACID_COLUMNS, OrcType, acid_tree, to_proto
from acidctl.orc.write.file_assembler import CPP_WRITER, OrcAssembler, lowest_writer
from acidctl.orc.write.rle_columns import run_columns
from acidctl.orc.write.stripe_encoder import EncodedStripe, encode_stripes
from acidctl.orc.write.writer_settings import ANY_STRIDE, WHOLE, WriterSettings, bloom_ids

_ID_TYPES: Final = (pa.int32(), pa.int64(), pa.int32(), pa.int64(), pa.int64())
_INSERT, _UPDATE, _DELETE = 0, 1, 2
# A statement may write thousands of small files of the same columns.
_tree_of, _types_of = lru_cache(maxsize=64)(acid_tree), lru_cache(maxsize=64)(to_proto)


@dataclass(frozen=True, slots=True)
class AcidFileResult:
    """Counts of a finished file: `rows` are events of all kinds; only ACID v1 has updates."""

    rows: int
    inserts: int
    updates: int
    deletes: int
    stripes: int
    bytes: int


@dataclass(frozen=True, slots=True)
class CopiedStripe:
    """A stripe of another file, to be copied byte for byte.

    Attributes:
        info: lengths and rows; the offset is ignored.
        first, last: keys of the first and the last row.
        counts: inserts, updates and deletes.
        writer: writer code and version of the other file.
    """

    info: pb.StripeInformation
    statistics: pb.StripeStatistics
    first: RecordKey
    last: RecordKey
    counts: tuple[int, int, int]
    writer: tuple[int, int]


class AcidWriter:
    """Writes events to one file of a full-ACID table (format section 3), a stripe at a time.

    At most about two stripes of decoded rows are held in memory.  Readers need the rows in ascending order of
    (originalTransaction, bucket, rowId): Hive misses deletes silently if a delete delta is out of order.

    Args:
        sink: the file to write to; it is not closed.
        row: the struct of the table's columns, with any column ids.
        settings: default: WriterSettings.for_base().
        calendar: the calendar of the rows' source, for the footer: 0 unknown, 1 Julian/Gregorian, 2 proleptic.
        check_order: refuse events that are out of order.
        acid_version: the value of ``hive.acid.version``; 0 leaves it out, as ACID v1 does.
        block_size: the largest block size among the copied stripes; the postscript states it if it exceeds the
            settings' block size.

    Raises:
        UsageProblem: the settings want bloom filters for a column that cannot have them.
    """

    def __init__(
        self,
        sink: BinaryIO,
        row: OrcType,
        settings: WriterSettings | None = None,
        *,
        calendar: int = 0,
        check_order: bool = True,
        block_size: int = 0,
        acid_version: int = 2,
    ) -> None:
        self._settings = settings or WriterSettings.for_base()
        self._tree = _tree_of(row)
        bloom_ids(self._settings.bloom_columns, self._tree)
        self._assembler = OrcAssembler(
            sink,
            compression=self._settings.compression,
            block_size=max(block_size, self._settings.block_size),
            stride=self._settings.stride,
        )
        # The rows are cut here, by their decoded size: ORC C++ counts half-empty buffers and would cut far too early.
        self._encoder = replace(self._settings, stripe_size=WHOLE)
        self._calendar = calendar
        self._check_order = check_order
        self._gathered = Gathered(self._settings.stripe_size, self._encode)
        self._keys: list[RecordKey] = []
        self._counts = np.zeros(3, np.int64)
        self._last: RecordKey | None = None
        self._writers: set[tuple[int, int]] = set()
        self._acid_version = acid_version

    def write(self, batch: pa.RecordBatch) -> None:
        """Take events; a stripe is encoded whenever enough events are gathered.

        Args:
            batch: the columns operation (int32), originalTransaction (int64), bucket (int32), rowId (int64),
                currentTransaction (int64) and row (struct of the table's columns, or Arrow's null type if every event
                is a delete), without nulls in the first five.

        Raises:
            BadDataError: the columns differ, an operation is unknown, a key is null or out of order, or (when a stripe
                is encoded) a value cannot be written.
        """
        if batch.num_rows == 0:
            return
        self._check(batch)
        self._gathered.add(batch)

    def copy_stripe(self, stripe: CopiedStripe, chunks: Iterable[bytes]) -> None:
        """Copy a stripe of another file byte for byte; events written before are encoded first.

        The caller makes sure of equal compression, types, calendar and row index stride, which cannot be checked here.
        Raises BadDataError if the keys are out of order, or `chunks` are not the whole stripe.
        """
        if self._check_order and self._last is not None and stripe.first < self._last:
            raise _bad("they are out of order", "a copied stripe begins before the last event")
        self._gathered.flush()
        self._assembler.append_stripe(chunks, stripe.info, stripe.statistics)
        self._keys.append(stripe.last)
        self._last = stripe.last
        self._counts += np.asarray(stripe.counts, np.int64)
        self._writers.add(stripe.writer)

    def flush(self) -> int:
        """Encode the gathered events, however few, and return the number of stripes so far."""
        self._gathered.flush()
        return self._assembler.stripes

    def close(self) -> AcidFileResult:
        """Write the remaining events and the footer.  The sink stays open."""
        self._gathered.flush()
        inserts, updates, deletes = (int(count) for count in self._counts)
        user_metadata = {
            KEY_INDEX: key_index_of(self._keys),
            ACID_STATS: f"{inserts},{updates},{deletes}".encode(),
        }
        if self._acid_version:
            user_metadata[ACID_VERSION] = str(self._acid_version).encode()
        length = self._assembler.finish(
            _types_of(self._tree), user_metadata, calendar=self._calendar, writer=lowest_writer(self._writers)
        )
        return AcidFileResult(
            rows=self._assembler.rows,
            inserts=inserts,
            updates=updates,
            deletes=deletes,
            stripes=self._assembler.stripes,
            bytes=length,
        )

    def _encode(self, pending: Sequence[pa.RecordBatch]) -> None:
        starts = np.cumsum([0, *(batch.num_rows for batch in pending)])
        at = 0
        for stripe in self._encoded(pending):
            self._assembler.append_stripe(stripe.data, stripe.info, stripe.statistics)
            self._writers.add(CPP_WRITER)
            at += stripe.rows
            # Find the stripe's last row in the pending batches.
            i = int(np.searchsorted(starts, at - 1, side="right")) - 1
            self._keys.append(_key_at(pending[i], at - 1 - int(starts[i])))

    def _encoded(self, batches: Sequence[pa.RecordBatch]) -> list[EncodedStripe]:
        """Encode the ids as runs if there are few runs, and the table's columns after them."""
        count = len(_ID_TYPES)
        ids = [np.concatenate([batch.column(i).to_numpy() for batch in batches]) for i in range(count)]
        runs = run_columns(ids, self._encoder.stride or ANY_STRIDE)
        if runs is None:
            return encode_stripes(batches, self._encoder, self._tree)
        (name,), (row,) = self._tree.names[count:], self._tree.children[count:]
        settings = replace(
            self._encoder, bloom_columns=tuple(f"{name}.{column}" for column in self._encoder.bloom_columns)
        )
        rows = [batch.select([name]) for batch in batches]
        return encode_stripes(rows, settings, OrcType("struct", children=(row,), names=(name,)), runs)

    def _check(self, batch: pa.RecordBatch) -> None:
        """Check the columns and the order of the keys, and count the events."""
        if tuple(batch.schema.names) != ACID_COLUMNS or tuple(batch.schema.types[:5]) != _ID_TYPES:
            raise _bad("they are not the six ACID columns", str(batch.schema.remove_metadata()).replace("\n", ", "))
        if any(column.null_count for column in batch.columns[:5]):
            raise _bad("an ACID column is null", "every event has an operation and a key")
        operations = batch.column(0).to_numpy()
        if operations.min() < _INSERT or operations.max() > _DELETE:
            raise _bad("an event has an unknown operation", "known are 0 insert, 1 update and 2 delete")
        if self._check_order:
            self._check_keys(batch)
        self._counts += np.bincount(operations, minlength=3)

    def _check_keys(self, batch: pa.RecordBatch) -> None:
        first = _key_at(batch, 0)
        if (self._last is not None and first < self._last) or not ascending(
            [column.to_numpy() for column in batch.columns[1:4]]
        ):
            raise _bad("they are out of order", "events must ascend by originalTransaction, bucket and rowId")
        self._last = _key_at(batch, batch.num_rows - 1)


def ascending(keys: Sequence[npt.NDArray[np.signedinteger]]) -> bool:
    """Return whether rows of `keys`, the most significant column first, never descend."""
    tied = None
    for column in keys:
        before, after = column[:-1], column[1:]
        descends = after < before if tied is None else (after < before) & tied
        if descends.any():
            return False
        equal = after == before
        tied = equal if tied is None else tied & equal
    return True


def _key_at(batch: pa.RecordBatch, row: int) -> RecordKey:
    return RecordKey(*(column[row].as_py() for column in batch.columns[1:4]))


class Gathered:
    """Gathers batches into stripes or row groups of about `size` decoded bytes each, and passes them to `use`."""

    def __init__(self, size: int, use: Callable[[Sequence[pa.RecordBatch]], None]) -> None:
        self._size, self._use = size, use
        self._pending: list[pa.RecordBatch] = []
        self._bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows, and use the gathered rows whenever there are enough."""
        while batch.num_rows:
            count = _rows_within(batch, self._size - self._bytes)
            self._pending.append(batch.slice(0, count))
            self._bytes += self._pending[-1].nbytes
            batch = batch.slice(count)
            if batch.num_rows or self._bytes >= self._size:
                self.flush()

    def flush(self) -> None:
        """Use the gathered rows, however few."""
        pending, self._pending, self._bytes = self._pending, [], 0
        if pending:
            self._use(pending)


def _rows_within(batch: pa.RecordBatch, size: int) -> int:
    """Return how many of the first rows have about `size` bytes together, at least one."""
    rows: int = batch.num_rows
    total: int = batch.nbytes
    if total <= size:
        return rows
    rows = max(1, rows * max(size, 0) // total)
    # The first rows may be longer than the average.
    while rows > 1 and batch.slice(0, rows).nbytes > 2 * size:
        rows //= 2
    return rows


def _bad(what: str, why: str) -> BadDataError:
    return BadDataError(f"events cannot be written: {what}", why)
