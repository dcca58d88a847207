"""Find the rows of a Hive table that its copy lacks, and rows of the copy that are gone, by their keys.

No delete event is looked at: a row that the source shows is new if no shown row of the copy has its key, and a row of
the copy is gone if the source does not show its key.  So it does not matter what compacted or cleaned the source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from acidctl.acid.layout import DataFile
from acidctl.base.errors import ConflictError, RefusedError
from acidctl.compaction.merge.event_stream import all_live
from acidctl.iceberg.keys import FileKeys, KeySet, Longs, Runs, ranges_outside
from acidctl.location.snapshot import Snapshot
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.read.integer_runs import id_run
from acidctl.rows.foreign.format import read_orc_tail
from acidctl.rows.read.delete_set import DeleteSet
from acidctl.rows.read.events import EventFile
from acidctl.rows.read.row_numbers import Synthetic
from acidctl.rows.read.visibility import live_rows
from acidctl.storage.port import FileSystem

if TYPE_CHECKING:
    from acidctl.location.metastore_schema import Declared

_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class ClosedFile:
    """An ORC file of the source without its footer, which takes tens of kilobytes: a plan may have many files.

    Attributes:
        stripes: the bytes and the rows of each, by which the file is known again.
    """

    fs: FileSystem
    file: DataFile
    path: str
    length: int | None
    synthetic: Synthetic | None
    declared: Declared | None
    stripes: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, events: EventFile) -> ClosedFile:
        """Return a file without its footer."""
        stripes = tuple(zip(_sizes(events), (one.numberOfRows for one in events.tail.stripes), strict=True))
        return cls(events.fs, events.file, events.path, events.length, events.synthetic, events.declared, stripes)

    def opened(self) -> EventFile:
        """Read the footer again.

        Raises:
            BadDataError, NotFoundError: it cannot be read.
            ConflictError: the file is another one now.
        """
        tail = read_orc_tail(ByteSource(self.fs, self.path, self.length, self.file.size))
        found = EventFile(self.fs, self.file, self.path, self.length, tail, self.synthetic, declared=self.declared)
        if ClosedFile.of(found).stripes != self.stripes:
            why = "its stripes are not those of the plan"
            raise ConflictError(f"{found.shown} was replaced meanwhile", why, "see who changes files; run it again")
        return found


def opened(file: ClosedFile | EventFile) -> EventFile:
    """Return a file with its footer; for errors see :meth:`ClosedFile.opened`."""
    return file if isinstance(file, EventFile) else file.opened()


def _sizes(events: EventFile) -> tuple[int, ...]:
    return tuple(stripe.indexLength + stripe.dataLength for stripe in events.tail.stripes)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A data file of the source with its keys.

    Attributes:
        ends: the position after the last row of each stripe.
        sizes: the bytes of each stripe.
        can_choose: single stripes can be copied, because the file has statistics of each.
        has_changes: there are updates or deletes among the events, as Hive 2 wrote them.
    """

    snapshot: Snapshot
    events: ClosedFile | EventFile
    keys: FileKeys
    ends: tuple[int, ...]
    sizes: tuple[int, ...]
    can_choose: bool
    has_changes: bool = False


def source_file(events: EventFile, snapshot: Snapshot, deletes: DeleteSet) -> SourceFile:
    """Return a data file with the keys of its rows; ids are decoded only in stripes where rows may be dead.

    Raises:
        BadDataError: its ids cannot be read.
    """
    write_ids = snapshot.write_ids
    runs: list[Runs] = []
    dead: list[Longs] = []
    at, ends, has_changes = 0, [], False
    with events.open() as reader:
        for stripe, info in enumerate(events.tail.stripes):
            run = id_run(events.tail, stripe) if events.synthetic is None else None
            if run and all_live(run, write_ids, deletes):
                key = (np.array([value], np.int64) for value in (*run.first, run.count))
                runs.append(Runs(*key))
                has_changes |= run.operation != 0
            else:
                ids = reader.ids(stripe)
                has_changes |= bool(ids.operation.any())
                live = live_rows(events, ids, write_ids, deletes)
                runs.append(Runs.of(ids.keys))
                if live is not None:
                    dead.append(np.flatnonzero(~live) + at)
            at += info.numberOfRows
            ends.append(at)
    keys = FileKeys(Runs.concat(runs), np.concatenate(dead) if dead else _NONE)
    can_choose = len(events.tail.metadata.stripeStats) == len(ends)
    return SourceFile(snapshot, events, keys, tuple(ends), _sizes(events), can_choose, has_changes)


@dataclass(frozen=True, slots=True)
class TargetFile:
    """A data file of the copy with its keys."""

    url: str
    keys: FileKeys

    @property
    def shown(self) -> Longs:
        """Return the positions of the shown rows."""
        return np.setdiff1d(np.arange(self.keys.runs.rows), self.keys.dead, assume_unique=True)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Stripes of a file to copy.

    Attributes:
        stripes: their numbers; None for all.
        runs: the keys of their rows.
        dead: positions in the copy of the rows that it must not show.
    """

    source: SourceFile
    stripes: tuple[int, ...] | None
    runs: Runs
    dead: Longs

    @property
    def rows(self) -> int:
        """Return the number of rows that become visible."""
        return self.runs.rows - len(self.dead)


@dataclass(frozen=True, slots=True)
class Difference:
    """The work in one partition.

    Attributes:
        gone: for a file of the copy, the positions of rows that it must not show any more.
    """

    wanted: tuple[Wanted, ...] = ()
    gone: tuple[tuple[str, Longs], ...] = ()


def difference(sources: Sequence[SourceFile], targets: Sequence[TargetFile]) -> Difference:
    """Compare the files of one partition.

    Raises:
        RefusedError: several rows of the source have the same key, so that the two cannot be told apart.
    """
    pairs = list(_same_keys(sources, targets))
    met = {id(one) for pair in pairs for one in pair}
    gone = [
        (target.url, more)
        for source, target in pairs
        if len(more := np.setdiff1d(source.keys.dead, target.keys.dead, assume_unique=True))
    ]
    rest = [source for source in sources if id(source) not in met]
    others = [target for target in targets if id(target) not in met]
    shown = KeySet(source.keys.shown()[0] for source in rest)
    if others and shown.has_twins():
        raise RefusedError(
            "cannot catch up",
            "several rows of the source have the same ROW__ID",
            "acidctl validate --deep names them; or migrate into a new table",
        )
    copied = KeySet(target.keys.shown()[0] for target in others)
    wanted = [found for source in rest if (found := _wanted(source, copied))]
    for target in others:
        lost = ranges_outside(*target.keys.shown(), shown)
        if len(lost):
            gone.append((target.url, positions_in(lost)))
    return Difference(tuple(wanted), tuple(gone))


def replaced(sources: Sequence[SourceFile], targets: Sequence[TargetFile]) -> Difference:
    """Return the work in a partition of which every row is copied again."""
    return Difference(
        difference(sources, ()).wanted, tuple((one.url, shown) for one in targets if len(shown := one.shown))
    )


def _same_keys(sources: Iterable[SourceFile], targets: Iterable[TargetFile]) -> Iterator[tuple[SourceFile, TargetFile]]:
    """Yield the files of both sides that have the same rows in the same order, of which none is shown again."""
    by_keys: dict[bytes, list[TargetFile]] = {}
    for target in targets:
        by_keys.setdefault(target.keys.runs.to_bytes(), []).append(target)
    for source in sources:
        same = by_keys.get(source.keys.runs.to_bytes()) if by_keys else None
        if same and not len(np.setdiff1d(same[-1].keys.dead, source.keys.dead, assume_unique=True)):
            yield source, same.pop()
            if not same:
                del by_keys[source.keys.runs.to_bytes()]


def _wanted(source: SourceFile, copied: KeySet) -> Wanted | None:
    """Return the stripes that hold rows which the copy lacks."""
    new = ranges_outside(*source.keys.shown(), copied)
    if not len(new):
        return None
    runs, ends = source.keys.runs, np.array(source.ends, np.int64)
    first, last = np.searchsorted(ends, new[:, 0], "right"), np.searchsorted(ends, new[:, 1] - 1, "right")
    hit = np.zeros(len(ends) + 1, np.int64)
    np.add.at(hit, first, 1)
    np.add.at(hit, last + 1, -1)
    stripes = np.flatnonzero(np.cumsum(hit)[:-1])
    is_whole = len(stripes) == len(ends) or not source.can_choose
    chosen = range(len(ends)) if is_whole else stripes.tolist()
    parts, dead, before = [], [], 0
    for stripe in chosen:
        low, high = (source.ends[stripe - 1] if stripe else 0), source.ends[stripe]
        parts.append(runs.slices(low, high) if len(ends) > 1 else runs)
        dead.append(_gaps(new, low, high) - low + before)
        before += high - low
    hidden = np.concatenate(dead)
    kept = hidden if len(hidden) else _NONE  # one for all files, as their plans are many
    return Wanted(source, None, runs, kept) if is_whole else Wanted(source, tuple(chosen), Runs.concat(parts), kept)


def _gaps(ranges: Longs, low: int, high: int) -> Longs:
    """Return the positions from `low` up to `high` that are in none of the sorted ranges."""
    inside = ranges[(ranges[:, 1] > low) & (ranges[:, 0] < high)]
    starts = np.concatenate(([low], inside[:, 1]))
    ends = np.concatenate((inside[:, 0], [high]))
    return positions_in(np.stack((starts, ends), axis=1)[starts < ends])


def positions_in(ranges: Longs) -> Longs:
    """Return all positions of ranges."""
    counts = ranges[:, 1] - ranges[:, 0]
    return np.repeat(ranges[:, 0] - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))
