"""What is sent to where tasks run, and what comes back: small values that can be pickled."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from acidctl.acid.compaction_kind import CompactionKind, Hive
from acidctl.acid.layout import DataFile
from acidctl.acid.names import format_bucket
from acidctl.acid.writeids import ValidWriteIds
from acidctl.compaction.proof.checksum import RowProof
from acidctl.compaction.proof.keys import Key
from acidctl.compaction.proof.verify import Verify
from acidctl.compaction.split import StripeGroup, StripeSpan
from acidctl.one_line import one_line
from acidctl.orc.read.id_runs import IdBytes
from acidctl.orc.tail import Tail, stripe_length
from acidctl.orc.types import OrcType
from acidctl.orc.write.acid_writer import CopiedStripe
from acidctl.orc.write.writer_settings import WriterSettings
from acidctl.rows.convert.conform import How
from acidctl.rows.foreign.format import Format
from acidctl.rows.read.events import Synthetic
from acidctl.storage.port import FileSystemSpec

if TYPE_CHECKING:
    from acidctl.compaction.rebalance.runs import Runs
    from acidctl.compaction.rebalance.shares import Share, SortedShare
    from acidctl.location.declared import Declared

ATTEMPTS = "_attempts"
"""In the staging directory: where tasks write."""

JULIAN_GREGORIAN, PROLEPTIC_GREGORIAN = 1, 2
"""Values of an ORC footer's calendar."""


@dataclass(frozen=True, slots=True)
class Input:
    """One file of a task; small, so that it can be sent to an executor.

    Attributes:
        path: absolute inside the file system.
        length: the logical length, None for the whole file.
        synthetic: the ids of a file that has none.
        tail: as the plan read it; None where it is too long to be sent around.
        stripes: the first that the task writes and the one after the last; None for all of them.
    """

    file: DataFile
    path: str
    length: int | None
    synthetic: Synthetic | None
    stripes: StripeSpan | None = None
    tail: Tail | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTask:
    """What the tasks that read files have in common.

    Attributes:
        attempts: absolute; where the outputs go. Nothing of it is published as it is, so that an attempt that Spark
            gave up, and that writes on, is never met in a published directory.
        row: the table's columns in the output.
        settings: how ORC is encoded.
        calendar: of an ORC output's footer; 1 Julian/Gregorian, 2 proleptic Gregorian.
        weight: input bytes, for scheduling.
        rows: of all that it writes or drops, by the tails of its inputs.
        may_copy: False when every stripe is to be encoded again.
        verify: how the result is proven.
        reader: the version of Hive that reads the table; None if it is unknown.
        applies_all: deletes that Hive overlooks are applied, too.
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
        """A path for a file of the task, never met by another attempt at it."""
        return f"{self.attempts}/{uuid.uuid4().hex}_{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketTask(FileTask):
    """The independent piece of a compaction: one bucket of one location, or a segment of a big one.

    Attributes:
        inserts: base, original and insert delta files of this bucket.
        deletes: the delete delta files of which this bucket writes events (minor).
        kills: files whose events kill or replace rows of this bucket.
        kills_of: the bucket numbers of its rows, whatever its files are called; None for any.
        acid_version: 2, or 0 for ACID v1, whose files carry no version: with one, readers would ignore the operation
            of each event and show deleted rows (rule V12).
        row_files: the files of the bucket's rows, if other tasks read them.
        segment: its place among the bucket's segments; None when it is the whole bucket.
        pieces: of `inserts`, where the bucket may still be cut into segments; none are sent to where tasks run.
        shares: of a rebalance: the rows that this bucket gets, one share after the other.
        sorted_share: the same of one that sorts all rows.
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
    sorted_share: SortedShare | None = None

    @property
    def is_spread(self) -> bool:
        """Whether it gives rows new ids."""
        return bool(self.shares or self.sorted_share)

    @property
    def sources(self) -> tuple[Input, ...]:
        """All files that it reads."""
        return self.inserts + self.deletes + self.kills

    @property
    def name(self) -> str:
        """Of its outputs, in directories of their own."""
        return format_bucket(self.bucket)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcatTask(FileTask):
    """One bucket of a compaction of an insert-only location, all bytes of whose result are compared in any case.

    Attributes:
        sources: in read order.
        format: of all of them, and of the output.
        declared: of text, what a metastore says of its lines.
    """

    sources: tuple[Input, ...]
    format: Format
    declared: Declared | None = None

    @property
    def name(self) -> str:
        """Of the output, as Hive's own writers give it."""
        return f"{self.bucket:06d}_0"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountTask(FileTask):
    """The first look of a rebalance at some files: how many rows of them are live.

    Attributes:
        inserts, kills, kills_of, write_ids: as of a :class:`BucketTask`.
        first: place of the first of `inserts` among all files that are read.
    """

    inserts: tuple[Input, ...]
    kills: tuple[Input, ...]
    kills_of: frozenset[int] | None
    write_ids: ValidWriteIds
    first: int

    @property
    def sources(self) -> tuple[Input, ...]:
        """All files that it reads."""
        return self.inserts + self.kills


@dataclass(frozen=True, slots=True)
class StripeCopy:
    """A clean stripe: every event of it is kept, and the output can hold its bytes.

    Small, so that it can be sent to another process.

    Attributes:
        path: absolute.
        offset: where its bytes begin.
        checksum: of its keys.
        block_size: that its file's postscript claims.
        ids: how its ids are written, where they were not decoded.
    """

    path: str
    offset: int
    stripe: CopiedStripe
    checksum: int
    block_size: int
    ids: IdBytes | None = None

    @property
    def length(self) -> int:
        """Its bytes."""
        return stripe_length(self.stripe.info)


@dataclass(frozen=True, slots=True)
class OutputFile:
    """One written file.

    Attributes:
        attempt_path: absolute; a hidden name of this attempt, so that a repeated task never meets another's file.
        name: the name it will get, ``bucket_N``.
        stripes_copied: how many of its stripes are byte copies.
        expected: worked out from what was read, less what was dropped.
        found: worked out from the written file, read again.
        counts: inserts, updates and deletes in it.
        first, last: its least and greatest key; zeros where rows have none.
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
        """Events in it."""
        return self.found.rows


@dataclass(frozen=True, slots=True)
class Segment:
    """What a task for a part of a bucket leaves: stripes that are still to be put together.

    Attributes:
        number: its place in the bucket.
        stripes: in order; of the inputs, where they can be copied, and of the segment's own file.
        encoded: how many of them are of its own file.
    """

    number: int
    stripes: tuple[StripeCopy, ...]
    encoded: int
    expected: RowProof


@dataclass(frozen=True, slots=True)
class BucketResult:
    """What a task did; None for a kind of file that got no event.

    Attributes:
        segment: of a task that is a part of a bucket, instead of `inserts`.
        runs: of a :class:`CountTask`: the rows that it found live.
        seconds: that the task took.
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
        """What it wrote for readers."""
        return tuple(file for file in (self.inserts, self.deletes) if file)


@dataclass(frozen=True, slots=True)
class JoinTask:
    """One bucket's segments, to be put together; without any, a file without rows.

    Attributes:
        like: a task of the bucket, for what its segments have in common.
        segments: in the order of their numbers.
    """

    like: BucketTask
    segments: tuple[Segment, ...]

    @property
    def weight(self) -> int:
        """Bytes to copy, for scheduling."""
        return sum(stripe.length for segment in self.segments for stripe in segment.stripes)


Task = BucketTask | ConcatTask | CountTask | JoinTask
