"""All directories of a location that hold data, including obsolete ones, which are its history."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from heapq import nsmallest

from acidctl.acid.layout import data_files_of, original_files
from acidctl.acid.names import MINL, NO_STATEMENT, AcidDirectory, Kind, is_visible_path
from acidctl.acid.reasons import Code
from acidctl.acid.state import EntryKind, State, Verdict
from acidctl.base.errors import AcidctlError
from acidctl.location.snapshot import Snapshot
from acidctl.rows.foreign.format import text_beside
from acidctl.rows.read.events import EventFile, open_event_files
from acidctl.rows.read.visibility import Unreadable, is_undeclared_text

_INVISIBLE = (Code.VISIBILITY_OPEN, Code.VISIBILITY_ABORTED, Code.UNPARSEABLE)


class Origin(Enum):
    """The kind of writer of a delta of several write ids."""

    COMPACTION = "a compaction"
    WRITER = "a streaming writer"
    UNKNOWN = "a compaction or a streaming writer"


@dataclass(frozen=True, slots=True)
class Archive:
    """One ACID directory, or the original files of the location together.

    Attributes:
        names: children of the location: the directory's name, or those that hold the originals.
        directory: None for the originals.
        verdict: on the directory; for the originals on the first of them.
        sources: its data files; empty if `error` is set.
        modified: newest time of its entries, epoch seconds.
        error: why it cannot be read; only for directories that readers do not use either.
        origin: meaningless for deltas of one write id, bases and originals.
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
        """Return the first write id that may have written rows of it."""
        if self.directory is None or self.directory.kind is Kind.BASE:
            return 0
        return self.directory.min_write_id

    @property
    def high(self) -> int:
        """Return the last write id that may have written rows of it."""
        if self.directory is None or self.directory.max_write_id == MINL:
            return 0
        return self.directory.max_write_id

    @property
    def is_base(self) -> bool:
        return self.directory is not None and self.directory.kind is Kind.BASE

    @property
    def is_rewritten(self) -> bool:
        """Return whether a compaction made it; for bases without a visibility transaction see :meth:`is_overwrite`."""
        if self.directory is None:
            return False
        if self.is_base:
            return not self.is_overwrite
        return self.low != self.high and self.origin is Origin.COMPACTION

    @property
    def is_overwrite(self) -> bool:
        """Return whether it is a base of one write id: INSERT OVERWRITE, LOAD DATA OVERWRITE or TRUNCATE.

        Compactions of Hive 2 and older leave no mark either: they count here if every row of the base has its write id.
        """
        if not self.is_base or self.verdict.compacted:
            return False
        return all(source.synthetic is not None or is_all_of(source, self.high) for source in self.sources)


def is_all_of(source: EventFile, write_id: int) -> bool:
    """Return whether statistics prove that every row of a file has this write id."""
    statistics = source.tail.column_statistics(5)
    if not source.rows:
        return True
    if statistics is None or not statistics.HasField("intStatistics"):
        return False
    integers = statistics.intStatistics
    return integers.HasField("minimum") and integers.minimum == integers.maximum == write_id


def archives(snapshot: Snapshot) -> list[Archive]:
    """Return every directory of a location that holds data files, and its originals, in display order.

    Compactions whose transaction is open or aborted are skipped: they may be half written.

    Raises:
        BadDataError, NotFoundError, AccessError: a file that readers use cannot be read.
        BadDataError: a file is text without a metastore, and others are not.
    """
    every = list(_opened(snapshot))
    sources = [source for archive in every for source in archive.sources]
    other = next((source for source in sources if not is_undeclared_text(source)), None)
    for source in sources:
        if other and is_undeclared_text(source):
            raise text_beside(source.shown, other.shown, other.format)
    return every


def _opened(snapshot: Snapshot) -> Iterator[Archive]:
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
    entries = [entry for v in originals for entry in children.get(v.name, ()) if is_visible_path(entry.path)]
    if entries:
        names = tuple(sorted({entry.path.partition("/")[0] for entry in entries}))
        modified = _newest(snapshot, names)
        opened = tuple(open_event_files(snapshot, original_files(entries)))
        yield Archive(names, None, originals[0], opened, modified)


class _Ranges:
    """The write ids of all deltas of a location, to find deltas that lie inside others."""

    def __init__(self, deltas: Iterable[AcidDirectory]) -> None:
        ordered = sorted(deltas, key=lambda delta: delta.min_write_id)
        self._starts = [delta.min_write_id for delta in ordered]
        # The two least ends of the deltas from each position on: one of them may be that of the delta itself.
        two: tuple[int, ...] = ()
        self._ends: list[tuple[int, ...]] = []
        for delta in reversed(ordered):
            two = tuple(nsmallest(2, (*two, delta.max_write_id)))
            self._ends.append(two)
        self._ends.reverse()

    def holds_others_in(self, delta: AcidDirectory) -> bool:
        ends = self._ends[bisect_left(self._starts, delta.min_write_id)]
        return len(ends) > 1 and ends[1] <= delta.max_write_id


def _origin(directory: AcidDirectory, deltas: _Ranges, sources: Iterable[EventFile]) -> Origin:
    """Return who wrote a delta of several write ids, by names alone (format section 12).

    A streaming writer has its write ids to itself, deletes nothing, and leaves a side file until it is closed.
    """
    low, high = directory.min_write_id, directory.max_write_id
    if directory.kind is Kind.BASE or low == high:
        return Origin.UNKNOWN
    if directory.statement_id != NO_STATEMENT or any(source.file.flush_length_path is not None for source in sources):
        return Origin.WRITER
    if directory.visibility_txn or directory.kind is Kind.DELETE_DELTA or deltas.holds_others_in(directory):
        return Origin.COMPACTION
    return Origin.UNKNOWN


def _newest(snapshot: Snapshot, names: Iterable[str]) -> float | None:
    children = snapshot.listing.by_child
    times = (entry.modified for name in names for entry in children.get(name, ()))
    return max((time for time in times if time is not None), default=None)
