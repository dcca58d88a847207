"""Everything that a location still holds, by directory and whatever its state: what was before is history too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from acidctl.acid.layout import data_files_of, files_by_child, original_files
from acidctl.acid.names import MINL, AcidDirectory, Kind, is_visible_path
from acidctl.acid.state import EntryKind, State, Verdict
from acidctl.errors import AcidctlError
from acidctl.rows.events import EventFile, open_event_files
from acidctl.rows.live import Unreadable
from acidctl.storage.snapshot import Snapshot

_INVISIBLE = ("visibility-open", "visibility-aborted", "unparseable")


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
    """

    names: tuple[str, ...]
    directory: AcidDirectory | None
    verdict: Verdict
    sources: tuple[EventFile, ...]
    modified: float | None
    error: AcidctlError | None = None

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
    def has_side_files(self) -> bool:
        """Whether a streaming writer's side file lies beside a bucket (format section 12)."""
        return any(source.file.flush_length_path is not None for source in self.sources)

    @property
    def is_rewritten(self) -> bool:
        """Whether a compaction made it, as far as can be told: see :meth:`is_overwrite` for bases without a mark."""
        if self.directory is None:
            return False
        if self.is_base:
            return not self.is_overwrite
        return self.low != self.high and not self.has_side_files

    @property
    def is_overwrite(self) -> bool:
        """Whether it is a base that one write id wrote: INSERT OVERWRITE, LOAD DATA OVERWRITE or TRUNCATE.

        Compactions of Hive 2 and older leave no mark either: there every row of such a base would be of its write id.
        """
        if not self.is_base or self.verdict.compacted:
            return False
        return all(source.synthetic is not None or _is_all_of(source, self.high) for source in self.sources)


def _is_all_of(source: EventFile, write_id: int) -> bool:
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
    children = files_by_child(snapshot.listing)
    originals: list[Verdict] = []
    for verdict in snapshot.state.verdicts:
        if verdict.kind is EntryKind.ORIGINAL:
            originals.append(verdict)
        if verdict.directory is None or verdict.reason.code in _INVISIBLE:
            continue
        files = data_files_of(verdict.directory, children.get(verdict.name, ()))
        modified = _newest(snapshot, (verdict.name,))
        try:
            opened = tuple(open_event_files(snapshot, files))
        except Unreadable as error:
            if verdict.state is State.CURRENT:
                raise
            yield Archive((verdict.name,), verdict.directory, verdict, (), modified, error)
            continue
        yield Archive((verdict.name,), verdict.directory, verdict, opened, modified)
    entries = [entry for one in originals for entry in children.get(one.name, ()) if is_visible_path(entry.path)]
    if entries:
        names = tuple(sorted({entry.path.partition("/")[0] for entry in entries}))
        modified = _newest(snapshot, names)
        opened = tuple(open_event_files(snapshot, original_files(entries)))
        yield Archive(names, None, originals[0], opened, modified)


def _newest(snapshot: Snapshot, names: tuple[str, ...]) -> float | None:
    wanted = frozenset(names)
    times = [
        e.modified for e in snapshot.listing.entries if e.path.partition("/")[0] in wanted and e.modified is not None
    ]
    return max(times, default=None)
