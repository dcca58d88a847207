"""Everything that a location still holds, by directory and whatever its state: what was before is history too."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from heapq import nsmallest

from acidctl.acid.layout import data_files_of, original_files
from acidctl.acid.names import MINL, NO_STATEMENT, AcidDirectory, Kind, is_visible_path
from acidctl.acid.reasons import Code
from acidctl.acid.state import EntryKind, State, Verdict
from acidctl.errors import AcidctlError
from acidctl.location.snapshot import Snapshot
from acidctl.orc.tail import MAGIC, stripe_length
from acidctl.rows.read.events import EventFile, open_event_files
from acidctl.rows.read.stripe_key_ranges import stripe_ranges
from acidctl.rows.read.visibility import Unreadable

_INVISIBLE = (Code.VISIBILITY_OPEN, Code.VISIBILITY_ABORTED, Code.UNPARSEABLE)


class Origin(Enum):
    """Who wrote a delta of several write ids."""

    COMPACTION = "a compaction"
    WRITER = "a streaming writer"
    UNKNOWN = "a compaction or a streaming writer"


@dataclass(frozen=True, slots=True)
class Archive:
    """One ACID directory, or the original files of the location together.

    Attributes:
        names: children of the location: the directory's name, or those that hold the originals.
        directory: None for the originals.
        verdict: on the directory; of the originals on the first of them.
        sources: its data files, opened; empty when `error` is set.
        modified: newest time of what lies in it, epoch seconds.
        error: why it cannot be read; only of directories that readers do not use either.
        origin: who wrote it; of deltas of one write id, bases and originals it means nothing.
    """

    names: tuple[str, ...]
    directory: AcidDirectory | None
    verdict: Verdict
    sources: tuple[EventFile, ...]
    modified: float | None
    error: AcidctlError | None = None
    origin: Origin = field(default=Origin.UNKNOWN, kw_only=True)

    @property
    def low(self) -> int:
        """The first write id that may have written rows of it."""
        if self.directory is None or self.directory.kind is Kind.BASE:
            return 0
        return self.directory.min_write_id

    @property
    def high(self) -> int:
        """The last write id that may have written rows of it."""
        if self.directory is None or self.directory.max_write_id == MINL:
            return 0
        return self.directory.max_write_id

    @property
    def is_base(self) -> bool:
        return self.directory is not None and self.directory.kind is Kind.BASE

    @property
    def is_rewritten(self) -> bool:
        """Whether a compaction made it, as far as can be told: see :meth:`is_overwrite` for bases without a mark."""
        if self.directory is None:
            return False
        if self.is_base:
            return not self.is_overwrite
        return self.low != self.high and self.origin is Origin.COMPACTION

    @property
    def is_overwrite(self) -> bool:
        """Whether it is a base that one write id wrote: INSERT OVERWRITE, LOAD DATA OVERWRITE or TRUNCATE.

        Compactions of Hive 2 and older leave no mark either: there every row of such a base would be of its write id.
        """
        if not self.is_base or self.verdict.compacted:
            return False
        return all(source.synthetic is not None or is_all_of(source, self.high) for source in self.sources)


def is_all_of(source: EventFile, write_id: int) -> bool:
    """Whether every row of a file is of one write id, by the file's statistics."""
    statistics = source.tail.column_statistics(5)
    if not source.rows:
        return True
    if statistics is None or not statistics.HasField("intStatistics"):
        return False
    integers = statistics.intStatistics
    return integers.HasField("minimum") and integers.minimum == integers.maximum == write_id


def archives(snapshot: Snapshot) -> Iterator[Archive]:
    """Every directory of a location that holds data files, and its originals, in display order.

    Compactions whose transaction is open or aborted are left out: they may be half written.

    Raises:
        BadDataError, NotFoundError, AccessError: a file that readers use cannot be read.
    """
    children = snapshot.listing.files_by_child
    deltas = _Ranges(v.directory for v in snapshot.state.verdicts if v.directory and v.directory.kind is not Kind.BASE)
    originals: list[Verdict] = []
    for verdict in snapshot.state.verdicts:
        if verdict.kind is EntryKind.ORIGINAL:
            originals.append(verdict)
        if verdict.directory is None or verdict.reason.code in _INVISIBLE:
            continue
        files = data_files_of(verdict.directory, children.get(verdict.name, ()), snapshot.table_type)
        modified = _newest(snapshot, (verdict.name,))
        try:
            opened = tuple(open_event_files(snapshot, files))
        except Unreadable as error:
            if verdict.state is State.CURRENT:
                raise
            yield Archive((verdict.name,), verdict.directory, verdict, (), modified, error)
            continue
        origin = _origin(verdict.directory, deltas, opened)
        yield Archive((verdict.name,), verdict.directory, verdict, opened, modified, origin=origin)
    entries = [entry for one in originals for entry in children.get(one.name, ()) if is_visible_path(entry.path)]
    if entries:
        names = tuple(sorted({entry.path.partition("/")[0] for entry in entries}))
        modified = _newest(snapshot, names)
        opened = tuple(open_event_files(snapshot, original_files(entries)))
        yield Archive(names, None, originals[0], opened, modified)


class _Ranges:
    """The write ids of all deltas of a location, for finding deltas that lie inside others."""

    def __init__(self, deltas: Iterable[AcidDirectory]) -> None:
        ordered = sorted(deltas, key=lambda one: one.min_write_id)
        self._starts = [one.min_write_id for one in ordered]
        # The two least ends of the deltas from each place on: one may be that of the delta itself.
        two: tuple[int, ...] = ()
        self._ends: list[tuple[int, ...]] = []
        for one in reversed(ordered):
            two = tuple(nsmallest(2, (*two, one.max_write_id)))
            self._ends.append(two)
        self._ends.reverse()

    def holds_others_in(self, delta: AcidDirectory) -> bool:
        """Whether another delta lies within the write ids of `delta`."""
        ends = self._ends[bisect_left(self._starts, delta.min_write_id)]
        return len(ends) > 1 and ends[1] <= delta.max_write_id


def _origin(directory: AcidDirectory, deltas: _Ranges, sources: Iterable[EventFile]) -> Origin:
    """Who wrote a delta of several write ids: what its name, its neighbours and its files prove (format section 12).

    A streaming writer has its write ids to itself, deletes nothing, and ends the file with a footer after each of them.
    """
    low, high = directory.min_write_id, directory.max_write_id
    if directory.kind is Kind.BASE or low == high:
        return Origin.UNKNOWN
    if directory.statement_id != NO_STATEMENT or any(one.file.flush_length_path is not None for one in sources):
        return Origin.WRITER
    if directory.visibility_txn or directory.kind is Kind.DELETE_DELTA or deltas.holds_others_in(directory):
        return Origin.COMPACTION
    found = {_written_by(source) for source in sources}
    return found.pop() if len(found) == 1 else Origin.UNKNOWN


def _written_by(source: EventFile) -> Origin:
    """Who wrote a file, by the footers that a streaming writer left inside it; without one it may hold one commit."""
    tail = source.tail
    if source.synthetic is not None or (tail.software_version or "").startswith("acidctl "):
        return Origin.COMPACTION  # streaming writers write native files
    at, flushes = len(MAGIC), 0
    with suppress(AcidctlError):
        for stripe in tail.stripes:
            flushes += _ends_a_file(source, at, stripe.offset)
            at = stripe.offset + stripe_length(stripe)
        flushes += _ends_a_file(source, at, tail.content_end)
        if flushes:
            return Origin.WRITER
        ranges = [one for one in stripe_ranges(tail) if one is not None]
        ids = {write_id for one in ranges for write_id in one.current}
        ids |= {key.original_write_id for key in tail.key_index() or () if key is not None}
        return Origin.COMPACTION if len(ids) > 1 else Origin.UNKNOWN
    return Origin.UNKNOWN


def _ends_a_file(source: EventFile, start: int, end: int) -> bool:
    """Whether what lies between two stripes is a footer: its last bytes are the postscript's magic and its length."""
    if end - start <= len(MAGIC) + 1:
        return False
    last = source.tail.source.read(end - len(MAGIC) - 1, len(MAGIC) + 1)
    return last.startswith(MAGIC) and last[-1] < end - start


def _newest(snapshot: Snapshot, names: Iterable[str]) -> float | None:
    children = snapshot.listing.by_child
    times = (entry.modified for name in names for entry in children.get(name, ()))
    return max((time for time in times if time is not None), default=None)
