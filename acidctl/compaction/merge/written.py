"""Written files: the stripes that are copied into them, the joins of segments, and the proof of what is in them.

Stripes may be copied byte for byte if the output's footer describes them correctly. Copying a stripe costs about as
much as `cp`; encoding it again costs a hundred times that. These must agree between the input and the output's footer:

* compression kind, or the bytes cannot be read;
* row index stride: full scans would look right, but seeks would silently go wrong, and 0 crashes readers;
* types and calendar, which one footer states for all stripes;
* columns with bloom filters: rows would be right, but readers would skip less than before.

The compression block size may differ if the postscript states the largest; the writer's time zone is kept per stripe,
and the lowest writer and file version are stated.

The proof has a second reader: pyorc, another build of ORC C++ than Arrow's, with its own conversion to values. It does
not use acidctl's own steps to and from Arrow (timestamps of any year, joined streams, ids as runs).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np
import pyarrow as pa

from acidctl.base.errors import BadDataError, VerifyError, out_of_memory
from acidctl.compaction.proof.checksum import (
    Key,
    KeyFacts,
    RowProof,
    SummedSink,
    Taken,
    add,
    mismatch,
    require_bytes,
    take,
)
from acidctl.compaction.proof.values import event_checksum, spread_checksum, value_checksum
from acidctl.compaction.tasks import (
    JULIAN_GREGORIAN,
    BucketResult,
    BucketTask,
    FileTask,
    JoinTask,
    OutputFile,
    StripeCopy,
)
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.read.reader import OrcFile, open_orc
from acidctl.orc.read.wide_timestamps import WIDE_STORAGE, WideTimestamp
from acidctl.orc.tail import KNOWN_VERSIONS, RecordKey, Tail, stripe_length
from acidctl.orc.types import OrcType
from acidctl.orc.write.acid_writer import AcidFileResult, AcidWriter, CopiedStripe
from acidctl.orc.write.writer_settings import bloom_columns
from acidctl.rows.read.events import ID_COLUMNS, EventFile, Ids, read_ids
from acidctl.storage import registry
from acidctl.storage.port import FileSystem

if TYPE_CHECKING:
    from pyorc import TypeKind
    from pyorc.converters import ORCConverter


SMALL_STRIPE = 1 << 20
"""Neighbouring stripes of fewer bytes are encoded again, together: reading five hundred copied stripes of twenty rows
takes eight times as long as reading one stripe."""

Counts = tuple[int, int, int]
"""Numbers of inserts, updates and deletes."""


def agrees(source: EventFile, task: FileTask, tree: OrcType) -> bool:
    """Say if stripes of an ORC file may be copied to the output of a task.

    Args:
        tree: the root of the output's type, numbered from 0.
    """
    settings = task.settings
    tail = source.tail
    return (
        not tail.encrypted
        and tail.version in KNOWN_VERSIONS
        and tail.compression == settings.compression
        and tail.stride == settings.stride
        and tail.stride > 0
        and source.is_hybrid is (task.calendar == JULIAN_GREGORIAN)
        and len(tail.metadata.stripeStats) == len(tail.stripes)
        and tail.type_tree == tree
        and (not has_large_stripe(source) or bloom_columns(tail) == tuple(sorted(settings.bloom_columns)))
    )


def is_small(info: pb.StripeInformation) -> bool:
    """Say if a stripe should be encoded again, together with its neighbours."""
    return stripe_length(info) < SMALL_STRIPE


def has_large_stripe(source: EventFile) -> bool:
    """Say if a stripe may be worth copying; files with small stripes only are encoded again, together."""
    return not all(map(is_small, source.tail.stripes))


def counts_of(ids: Ids) -> Counts | None:
    """Return the numbers of inserts, updates and deletes; None if there are other operations."""
    counts = np.bincount(ids.operation, minlength=3).tolist()
    return (counts[0], counts[1], counts[2]) if len(counts) == 3 else None


def describe(tail: Tail, path: str, stripe: int, counts: Counts, facts: KeyFacts) -> StripeCopy:
    """Describe a stripe, which must have statistics, for a copy to another file.

    Args:
        path: absolute.
    """
    info = tail.stripes[stripe]
    statistics = pb.StripeStatistics()
    statistics.CopyFrom(tail.metadata.stripeStats[stripe])
    copied = CopiedStripe(
        info,
        statistics,
        RecordKey(*facts.first),
        RecordKey(*facts.last),
        counts,
        (tail.footer.writer, tail.writer_version),
    )
    return StripeCopy(path, info.offset, copied, facts.checksum, tail.block_size)


OnValues = Callable[[int, Ids, pa.Array], None]
"""Called with the number, ids and rows of a stripe."""


def open_writer(sink: SummedSink, task: BucketTask, block_size: int = 0) -> AcidWriter:
    """Return the writer of a task's file; `block_size` is the largest among stripes that may be copied."""
    return AcidWriter(
        cast(BinaryIO, sink),
        task.row,
        task.settings,
        calendar=task.calendar,
        block_size=block_size,
        acid_version=task.acid_version,
    )


def join_segments(task: JoinTask) -> BucketResult:
    """Copy the stripes of all segments into one file; without segments it has no rows.

    Raises:
        VerifyError: the file differs from the segments.
    """
    like = task.like
    stripes = [stripe for segment in task.segments for stripe in segment.stripes]
    if task.segments and not stripes:
        return BucketResult(like.bucket)
    fs = registry.open_file_system(like.storage)
    expected = sum((segment.expected for segment in task.segments), RowProof())
    block_size = max((stripe.block_size for stripe in stripes), default=0)
    output = write_output(fs, like, block_size, stripes, lambda: expected)
    encoded = sum(segment.encoded for segment in task.segments)
    return BucketResult(like.bucket, replace(output, stripes_copied=len(stripes) - encoded))


def write_output(
    fs: FileSystem,
    task: BucketTask,
    block_size: int,
    items: Iterable[pa.RecordBatch | StripeCopy],
    expected: Callable[[], RowProof],
) -> OutputFile:
    """Write events and copied stripes to a new file of a task, and prove it.

    Args:
        block_size: the largest among the stripes.
        items: in order.
        expected: returns the proof of the rows that the file should hold, after all items are written.

    Raises:
        BadDataError: keys are out of order, or the file of a stripe has become shorter.
        StorageError: two reads of the same bytes gave different results.
        VerifyError: the file differs from what should be in it.
    """
    path = task.new_attempt(task.name)
    copies: dict[int, StripeCopy] = {}
    taken: list[Taken] = []
    with fs.open_output(path, private=True) as file:
        sink = SummedSink(file)
        writer = open_writer(sink, task, block_size)
        for item in items:
            if isinstance(item, StripeCopy):
                append = partial(writer.copy_stripe, item.stripe)
                twice = task.verify.compares_values
                taken.append(take(fs, item.path, item.offset, item.length, sink=sink, append=append, twice=twice))
                copies[writer.flush() - 1] = item
            else:
                writer.write(item)
        result = writer.close()
    if task.verify.compares_bytes:
        require_bytes(fs, path, sink, taken)
    return _proven(fs, task, path, result, copies=copies, expected=expected())


def stripes_of(
    fs: FileSystem,
    path: str,
    on_values: OnValues | None = None,
    copies: Mapping[int, StripeCopy] | None = None,
) -> Iterator[StripeCopy]:
    """Yield the stripes of a file that was just written, and prove that its keys are in order and indexed.

    Args:
        copies: stripes that were copied. If their ids were not decoded before, the bytes of the ids are compared; the
            ids of all other stripes are decoded.
        on_values: called with the number, ids and rows of each stripe; None reads only ids.

    Raises:
        VerifyError: keys are out of order or not indexed, or a stripe cannot be read.
    """
    previous: Key | None = None
    with open_orc(fs, path) as orc:
        index = orc.tail.key_index() or []
        for stripe in range(orc.stripe_count):
            source = copies.get(stripe) if copies else None
            copied = _copied(fs, orc.tail, stripe, source) if source else None
            read = _decoded(fs, orc, stripe, on_values) if copied is None or on_values else copied
            is_next = previous is None or previous <= read.stripe.first
            if not is_next or index[stripe : stripe + 1] != [read.stripe.last]:
                raise _mismatch(fs, path, f"stripe {stripe} is out of order or not in the key index")
            previous = read.stripe.last
            yield read


def _decoded(fs: FileSystem, orc: OrcFile, stripe: int, on_values: OnValues | None) -> StripeCopy:
    try:
        batch = orc.read_stripe(stripe, None if on_values else ID_COLUMNS)
    except BadDataError as error:
        raise _mismatch(fs, orc.tail.path, f"stripe {stripe} cannot be read: {error.why}") from error
    ids = read_ids(batch, fs.display(orc.tail.path))
    if on_values:
        on_values(stripe, ids, batch.column("row"))
    facts, counts = KeyFacts.of(ids.keys), counts_of(ids)
    if counts is None or not facts.ascends:
        raise _mismatch(fs, orc.tail.path, f"the keys or operations of stripe {stripe} are not in order")
    return describe(orc.tail, orc.tail.path, stripe, counts, facts)


def _copied(fs: FileSystem, tail: Tail, stripe: int, source: StripeCopy) -> StripeCopy | None:
    """Return the copy of a stripe; None if its ids must be decoded."""
    info = tail.stripes[stripe]
    copy = replace(source, path=tail.path, offset=info.offset, stripe=replace(source.stripe, info=info))
    same = (
        copy.length == source.length
        and info.numberOfRows == source.stripe.info.numberOfRows
        and tail.metadata.stripeStats[stripe] == source.stripe.statistics
        and (source.ids is None or source.ids.are_in(tail, stripe))
    )
    if not same:
        raise _mismatch(
            fs, tail.path, f"stripe {stripe} differs from the one that was copied from {fs.display(source.path)}"
        )
    return copy if source.ids else None


def _proven(
    fs: FileSystem,
    task: BucketTask,
    path: str,
    result: AcidFileResult,
    *,
    copies: Mapping[int, StripeCopy],
    expected: RowProof,
) -> OutputFile:
    """Read the written file again, and compare all ids with the expected ones, and all values if the task requires it.

    Raises:
        VerifyError: they differ.
    """
    with fs.open_input(path) if task.verify.compares_values else nullcontext() as file:
        values = _Values(fs, task, path, copies, file) if file else None
        stripes = list(stripes_of(fs, path, values.add if values else None, copies))
    found = sum(
        (RowProof(s.stripe.info.numberOfRows, s.checksum) for s in stripes),
        RowProof(values=values.sum if values else 0),
    )
    if found != expected:
        differs = "their keys differ" if found.keys != expected.keys else "values of their columns differ"
        raise _mismatch(fs, path, f"{expected.rows} rows were to be written and {found.rows} are there; {differs}")
    counts = (result.inserts, result.updates, result.deletes)
    if counts != tuple(sum(s.stripe.counts[kind] for s in stripes) for kind in range(3)):
        raise _mismatch(fs, path, "its operations are not those of hive.acid.stats")
    made = OutputFile(path, task.name, result.bytes, result.stripes, len(copies), expected, found, counts)
    return replace(made, first=stripes[0].stripe.first, last=stripes[-1].stripe.last) if stripes else made


class _Values:
    """Sums up all values of a written file, and compares the first rows of encoded stripes with pyorc's."""

    def __init__(
        self, fs: FileSystem, task: BucketTask, path: str, copies: Mapping[int, StripeCopy], file: BinaryIO
    ) -> None:
        self._fs, self._task, self._path, self._copies = fs, task, path, copies
        self._second = SecondReader(file, task.row.children, fs.display(path))
        self.sum = 0

    def add(self, stripe: int, ids: Ids, rows: pa.Array) -> None:
        """Add the values of a stripe.

        Raises:
            VerifyError: pyorc reads other values.
        """
        if self._task.is_spread and not np.array_equal(ids.current, ids.keys.original):
            raise _mismatch(self._fs, self._path, f"rows of stripe {stripe} are not of the write id that they claim")
        checksum = spread_checksum if self._task.is_spread else event_checksum
        self.sum = add(self.sum, checksum(ids, rows, self._task.row))
        source = self._copies.get(stripe)
        # Encoded by this compaction: in this file, or in the segment's file from which it was copied.
        is_encoded = source is None or source.path.startswith(f"{self._task.attempts}/")
        if is_encoded and (column := self._second.differing(stripe, rows)):
            raise _mismatch(self._fs, self._path, f"pyorc reads other values in column {column} of stripe {stripe}")


def _mismatch(fs: FileSystem, path: str, why: str) -> VerifyError:
    return mismatch(fs.display(path), why)


SAMPLE_ROWS = 1000
"""At most this many rows at the start of a stripe are compared."""

_KINDS = frozenset(
    {
        *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal"),
        *("string", "varchar", "char", "binary", "date", "timestamp", "timestamp with local time zone"),
    }
)
"""The types of columns that are compared: all but nested ones."""


class SecondReader:
    """Compares the first rows of stripes with the rows that pyorc reads.

    Args:
        file: the written file, seekable; it is not closed.
        types: the types of the table's columns, in the order of the struct ``row``.
        shown: the file's name for messages.

    Raises:
        VerifyError: pyorc cannot read it.
    """

    def __init__(self, file: BinaryIO, types: Sequence[OrcType], shown: str) -> None:
        import pyorc  # noqa: PLC0415 - a second ORC library, only for --verify full

        self._shown = shown
        with _its_errors(shown):
            self._reader = pyorc.Reader(file, struct_repr=pyorc.StructRepr.TUPLE, converters=_converters())
        self._columns = [(place, kind) for place, kind in enumerate(types) if kind.kind in _KINDS]

    def differing(self, stripe: int, rows: pa.Array) -> str | None:
        """Return the name of a column in which pyorc reads other values; None if there is no such column.

        Args:
            rows: all rows of the stripe; the rows of delete events are NULL.

        Raises:
            VerifyError: pyorc cannot read them.
        """
        if not self._columns or not isinstance(rows, pa.StructArray):
            return None
        try:
            with _its_errors(f"stripe {stripe} of {self._shown}"):
                sample = list(islice(self._rows(stripe), SAMPLE_ROWS))
        except UnicodeDecodeError:  # a string that is not UTF-8, which pyorc cannot return
            return None
        if len(sample) != min(SAMPLE_ROWS, len(rows)):
            return "row"
        first = rows.slice(0, len(sample))
        for place, kind in self._columns:  # not flatten(), which aborts the process if a union lies in a NULL row
            column = first.field(place)
            values = _array([None if row is None else row[place] for row in sample], column.type)
            nulls = pa.array([row is None for row in sample], pa.bool_())
            if _sum(values, kind, nulls) != _sum(column, kind, first.is_null()):
                return str(rows.type.field(place).name)
        return None

    def _rows(self, stripe: int) -> Iterator[Any]:
        return (event[-1] for event in self._reader.read_stripe(stripe))


@contextmanager
def _its_errors(shown: str) -> Iterator[None]:
    """Raise VerifyError if pyorc cannot read a file; errors of the store pass."""
    import pyorc.errors  # noqa: PLC0415 - as above

    try:
        yield
    except MemoryError as error:
        raise out_of_memory(shown, str(error)) from error
    except (pyorc.errors.ORCError, RuntimeError, OSError) as error:
        raise mismatch(shown, f"pyorc cannot read it: {error}") from error


def _sum(values: pa.Array, kind: OrcType, nulls: pa.Array) -> int:
    struct = OrcType("struct", children=(kind,), names=("value",))
    return value_checksum(None, pa.StructArray.from_arrays([values], names=["value"], mask=nulls), struct)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_date(kind):
        return pa.array(values, pa.int32()).view(kind)
    if pa.types.is_timestamp(kind) or isinstance(kind, WideTimestamp):
        return pa.ExtensionArray.from_storage(WideTimestamp(), pa.array(values, WIDE_STORAGE))
    return pa.array(values, kind)


def _converters() -> dict[TypeKind, type[ORCConverter]]:
    """Return converters from ORC C++'s values to Arrow's, without rounding and for all years."""
    from pyorc import TypeKind  # noqa: PLC0415 - as above
    from pyorc.converters import ORCConverter  # noqa: PLC0415 - as above

    class Days(ORCConverter):
        @staticmethod
        def from_orc(days: int) -> int:
            return days

    class Seconds(ORCConverter):
        @staticmethod
        def from_orc(seconds: int, nanoseconds: int, _timezone: object) -> dict[str, int]:
            return {"seconds": seconds, "nanos": nanoseconds}

    return {TypeKind.DATE: Days, TypeKind.TIMESTAMP: Seconds, TypeKind.TIMESTAMP_INSTANT: Seconds}
