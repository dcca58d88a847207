"""The tasks of a compaction and their results: small values that can be pickled and sent to other processes."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from acidctl.acid.compaction_kind import CompactionKind, Hive
from acidctl.acid.layout import DataFile
from acidctl.acid.names import format_bucket
from acidctl.acid.writeids import ValidWriteIds
from acidctl.base.printable import one_line
from acidctl.compaction.proof.checksum import Key, RowProof, Verify
from acidctl.orc.read.integer_runs import IdBytes
from acidctl.orc.tail import Tail, stripe_length
from acidctl.orc.types import OrcType
from acidctl.orc.write.acid_writer import CopiedStripe
from acidctl.orc.write.writer_settings import WriterSettings
from acidctl.rows.convert.conform import How
from acidctl.rows.foreign.format import Format
from acidctl.rows.read.row_numbers import Synthetic
from acidctl.storage.port import FileSystemSpec

if TYPE_CHECKING:
    from acidctl.compaction.rebalance import Runs, Share
    from acidctl.location.metastore_schema import Declared

ATTEMPTS = "_attempts"
"""The directory below the staging directory to which tasks write."""

JULIAN_GREGORIAN, PROLEPTIC_GREGORIAN = 1, 2
"""Values of an ORC footer's calendar."""


StripeSpan = tuple[int, int]
"""The first stripe, and the end after the last."""


@dataclass(frozen=True, slots=True)
class StripeGroup:
    """Stripes of one bucket's files with keys that are all above those of the group before.

    Attributes:
        spans: the stripes of each file, by the file's index in the bucket.
        bytes: stored bytes of these stripes.
        rows: events in them.
    """

    spans: Mapping[int, StripeSpan]
    bytes: int
    rows: int

    def __add__(self, after: StripeGroup) -> StripeGroup:
        """Join a group with the group after it."""
        spans = dict(self.spans)
        for file, (first, end) in after.spans.items():
            spans[file] = (spans.get(file, (first, end))[0], end)
        return StripeGroup(spans, self.bytes + after.bytes, self.rows + after.rows)


@dataclass(frozen=True, slots=True)
class Input:
    """One file of a task; small, so that it can be sent to an executor.

    Attributes:
        path: absolute inside the file system.
        length: the logical length, None for the whole file.
        synthetic: the ids of a file that stores none.
        tail: the footer as the plan read it; None if it is too long to be sent.
        stripes: the stripes that the task writes; None for all of them.
    """

    file: DataFile
    path: str
    length: int | None
    synthetic: Synthetic | None
    stripes: StripeSpan | None = None
    tail: Tail | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTask:
    """The base of all tasks that read files.

    Attributes:
        attempts: absolute path of the directory for outputs. It is not published itself, so that an attempt that Spark
            gave up but that still writes never writes to a published directory.
        row: the table's columns in the output.
        calendar: of an ORC output's footer; 1 Julian/Gregorian, 2 proleptic Gregorian.
        weight: input bytes, for scheduling.
        rows: number of rows that it writes or drops, according to the footers of its inputs.
        may_copy: False if every stripe must be encoded again.
        verify: how the result is proven.
        reader: the version of Hive that reads the table; None if it is unknown.
        applies_all: also apply deletes that Hive overlooks.
    """

    storage: FileSystemSpec
    bucket: int
    attempts: str
    row: OrcType
    settings: WriterSettings
    calendar: int
    weight: int
    rows: int
    may_copy: bool
    verify: Verify
    reader: Hive | None = None
    applies_all: bool = False

    @property
    def conversion(self) -> How:
        """Return how to convert values of files with other columns: as the Hive version that reads them does."""
        return How(for_good=True, by=self.reader)

    def new_attempt(self, name: str) -> str:
        """Return a path for a file of the task that no other attempt uses."""
        return f"{self.attempts}/{uuid.uuid4().hex}_{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketTask(FileTask):
    """The independent part of a compaction: one bucket of one location, or a segment of a big bucket.

    Attributes:
        inserts: base, original and insert delta files of this bucket.
        deletes: the delete delta files with the events that this bucket writes (minor).
        kills: files with events that delete or replace rows of this bucket.
        kills_of: the bucket numbers in its rows' ids, whatever its files are called; None for any.
        acid_version: 2, or 0 for ACID v1, whose files have no version: with a version, readers would ignore the
            operation of each event and show deleted rows (rule V12).
        row_files: the files of the bucket's rows, if other tasks read them.
        segment: its index among the bucket's segments; None for the whole bucket.
        pieces: the groups of stripes into which the bucket may still be cut; they are not sent to executors.
        shares: the rows that this bucket gets from a rebalance, one share after another.
    """

    __repr__ = one_line

    kind: CompactionKind
    inserts: tuple[Input, ...]
    deletes: tuple[Input, ...]
    kills: tuple[Input, ...]
    write_ids: ValidWriteIds
    acid_version: int
    kills_of: frozenset[int] | None = None
    row_files: tuple[DataFile, ...] = ()
    segment: int | None = None
    pieces: tuple[StripeGroup, ...] = ()
    shares: tuple[Share, ...] = ()

    @property
    def is_spread(self) -> bool:
        """Say if it gives rows new ids."""
        return bool(self.shares)

    @property
    def sources(self) -> tuple[Input, ...]:
        """Return all files that it reads."""
        return self.inserts + self.deletes + self.kills

    @property
    def name(self) -> str:
        """Return the name of its outputs, which lie in separate directories."""
        return format_bucket(self.bucket)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcatTask(FileTask):
    """One bucket of a compaction of an insert-only location; all bytes of its result are always compared.

    Attributes:
        sources: in read order.
        format: the format of all sources and of the output.
        declared: the layout of text lines in the metastore.
    """

    sources: tuple[Input, ...]
    format: Format
    declared: Declared | None = None

    @property
    def name(self) -> str:
        """Return the name of the output, in the form of Hive's own writers."""
        return f"{self.bucket:06d}_0"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountTask(FileTask):
    """A rebalance's count of the live rows in some files.

    Attributes:
        inserts, kills, kills_of, write_ids: see :class:`BucketTask`.
        first: index of the first of `inserts` among all files that are read.
    """

    inserts: tuple[Input, ...]
    kills: tuple[Input, ...]
    kills_of: frozenset[int] | None
    write_ids: ValidWriteIds
    first: int

    @property
    def sources(self) -> tuple[Input, ...]:
        """Return all files that it reads."""
        return self.inserts + self.kills


@dataclass(frozen=True, slots=True)
class StripeCopy:
    """A stripe that is copied byte for byte: all its events are kept; small, so that it can be sent to a process.

    Attributes:
        path: absolute.
        offset: position of its first byte in the file.
        checksum: checksum of its keys.
        block_size: the compression block size in its file's postscript.
        ids: the encoded form of its ids, if they were not decoded.
    """

    path: str
    offset: int
    stripe: CopiedStripe
    checksum: int
    block_size: int
    ids: IdBytes | None = None

    @property
    def length(self) -> int:
        """Return its size in bytes."""
        return stripe_length(self.stripe.info)


@dataclass(frozen=True, slots=True)
class OutputFile:
    """One written file.

    Attributes:
        attempt_path: absolute; unique to this attempt, so that a repeated task never meets another's file.
        name: its later name, ``bucket_N``.
        stripes_copied: how many of its stripes are byte copies.
        expected: proof of the rows that were read, less those that were dropped.
        found: proof of the rows in the written file, read again.
        counts: number of inserts, updates and deletes.
        first, last: its least and greatest key; zeros if rows have no keys.
    """

    attempt_path: str
    name: str
    bytes: int
    stripes: int
    stripes_copied: int
    expected: RowProof
    found: RowProof
    counts: tuple[int, int, int]
    first: Key = (0, 0, 0)
    last: Key = (0, 0, 0)

    @property
    def rows(self) -> int:
        """Return the number of events in it."""
        return self.found.rows


@dataclass(frozen=True, slots=True)
class Segment:
    """The result of a task for a part of a bucket: stripes for a join.

    Attributes:
        number: its index in the bucket.
        stripes: in order; stripes of the inputs that can be copied, and stripes of the segment's file.
        encoded: how many of them are in the segment's file.
    """

    number: int
    stripes: tuple[StripeCopy, ...]
    encoded: int
    expected: RowProof


@dataclass(frozen=True, slots=True)
class BucketResult:
    """The result of a task; `inserts` and `deletes` are None if there were no such events.

    Attributes:
        segment: the result of a task for a part of a bucket, instead of `inserts`.
        runs: the live rows that a :class:`CountTask` counted.
        seconds: duration of the task.
    """

    bucket: int
    inserts: OutputFile | None = None
    deletes: OutputFile | None = None
    rows_read: int = 0
    rows_dropped: int = 0
    segment: Segment | None = None
    runs: Runs | None = None
    seconds: float = 0.0

    @property
    def files(self) -> tuple[OutputFile, ...]:
        """Return the files for readers."""
        return tuple(file for file in (self.inserts, self.deletes) if file)


@dataclass(frozen=True, slots=True)
class JoinTask:
    """The join of one bucket's segments; without segments it makes a file without rows.

    Attributes:
        like: a task of the bucket, with the attributes that its segments share.
        segments: in the order of their numbers.
    """

    like: BucketTask
    segments: tuple[Segment, ...]

    @property
    def weight(self) -> int:
        """Return the number of bytes to copy, for scheduling."""
        return sum(stripe.length for segment in self.segments for stripe in segment.stripes)


Task = BucketTask | ConcatTask | CountTask | JoinTask
