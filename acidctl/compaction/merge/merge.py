"""The merge of sorted files in the order of their keys, with only overlapping stripes in memory.

Files are sorted by (originalTransaction, bucket, rowId), and stripes of different files seldom overlap: such stripes
pass one by one. If stripes overlap (delete deltas, ACID v1), rows wait until no later stripe can precede them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from acidctl.compaction.proof.checksum import Key, is_sorted, repeats
from acidctl.compaction.tasks import StripeCopy
from acidctl.orc.read.common_type import same_types
from acidctl.rows.read.delete_set import DELETE, INSERT, Bools, Keys
from acidctl.rows.read.events import Ids

_GATHERED_ROWS = 200_000


@dataclass(frozen=True, slots=True)
class Chunk:
    """Events for the output.

    Attributes:
        statement: the statement ids of their directories.
        file: a number for each file, or part of a file, in which keys ascend.
    """

    ids: Ids
    statement: NDArray[np.int64]
    file: NDArray[np.int64]
    rows: pa.Array

    def __len__(self) -> int:
        return len(self.statement)

    def take(self, selection: NDArray[np.intp]) -> Chunk:
        """Return the events at some positions, in this order."""
        rows = self.rows.take(pa.array(selection))
        return Chunk(self.ids.take(selection), self.statement[selection], self.file[selection], rows)

    def cut(self, count: int) -> tuple[Chunk, Chunk]:
        """Return the first `count` events and the others, without copying."""
        first, rest = slice(count), slice(count, None)
        return (
            Chunk(self.ids.take(first), self.statement[first], self.file[first], self.rows.slice(0, count)),
            Chunk(self.ids.take(rest), self.statement[rest], self.file[rest], self.rows.slice(count)),
        )

    @classmethod
    def concat(cls, chunks: Sequence[Chunk]) -> Chunk:
        """Concatenate chunks in the given order."""
        if len(chunks) == 1:
            return chunks[0]
        ids = Ids.concat([chunk.ids for chunk in chunks])
        statement, file = (np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in ("statement", "file"))
        return cls(ids, statement, file, pa.concat_arrays(same_types([chunk.rows for chunk in chunks])))


@dataclass(frozen=True, slots=True)
class StripeRun:
    """A stripe before it is loaded: its least and greatest key, and a function that loads its events.

    Attributes:
        copy: the stripe for a copy byte for byte; None if its rows must be encoded again.
        held: its events, if they are few and have been read already.
        is_small: it should be encoded together with its neighbours, if these are encoded.
    """

    first: Key
    last: Key
    load: Callable[[], Chunk]
    copy: StripeCopy | None = None
    held: Chunk | None = None
    is_small: bool = False


def merge(
    pieces: Sequence[StripeRun],
    on_collapse: Callable[[Ids, pa.Array], None] | None = None,
    on_twin: Callable[[Ids, int, int], None] | None = None,
) -> Iterator[tuple[Ids, pa.Array] | StripeCopy]:
    """Yield all events in the order of format section 4.2, in batches of about a stripe, and the stripes to copy.

    Args:
        on_collapse: called with the events that a newer event of the same key and current write id replaces
            (section 8.2), which are left out; None keeps all events.
        on_twin: called with a row that has the ROW__ID of a row in another file, or another part of its file, and with
            the numbers of both.
    """
    ordered = list(_gathered(sorted(pieces, key=lambda piece: piece.first)))
    waiting: Chunk | None = None
    after_copy = True
    for at, piece in enumerate(ordered):
        following = ordered[at + 1] if at + 1 < len(ordered) else None
        alone = waiting is None and (following is None or piece.last < following.first)
        if piece.copy is not None and alone and not (piece.is_small and _can_join(after_copy, following)):
            after_copy = True
            yield piece.copy
            continue
        after_copy = False
        events = piece.load()
        if waiting is not None:
            events = Chunk.concat([waiting, events])
        waiting = None
        if not len(events):
            continue
        events = sorted_events(events)
        if following is not None:
            events, later = events.cut(_count_before(events.ids.keys, following.first))
            waiting = later if len(later) else None
        if on_twin and (repeated := repeats(events.ids.keys)).any():
            _tell_twin(events, np.flatnonzero(repeated), on_twin)
        if on_collapse:
            events = _collapse(events, on_collapse)
        if len(events):
            yield events.ids, events.rows


def _can_join(after_copy: bool, following: StripeRun | None) -> bool:
    """Say if something is encoded before or after: encoding a small stripe alone would gain nothing."""
    return not after_copy or (following is not None and (following.copy is None or following.is_small))


def _gathered(ordered: Iterable[StripeRun]) -> Iterator[StripeRun]:
    """Join neighbours that are held in memory: hundreds of deltas with a few rows then cost as much as one."""
    run: list[StripeRun] = []
    rows = 0
    for piece in ordered:
        size = len(piece.held or ())
        if run and (piece.held is None or rows + size > _GATHERED_ROWS):
            yield _joined(run)
            run, rows = [], 0
        if piece.held is None:
            yield piece
        else:
            run.append(piece)
            rows += size
    if run:
        yield _joined(run)


def _joined(run: list[StripeRun]) -> StripeRun:
    chunks = [piece.held for piece in run if piece.held is not None]
    last = max(piece.last for piece in run)
    copy = run[0].copy if len(run) == 1 else None
    return StripeRun(run[0].first, last, lambda: Chunk.concat(chunks), copy, is_small=True)


def sorted_events(events: Chunk) -> Chunk:
    """Sort events by key, then newest first, and a delete before an insert (sections 4.1 and 4.2)."""
    ids, keys = events.ids, events.ids.keys
    if is_sorted(keys) and not repeats(keys).any():
        return events
    return events.take(
        np.lexsort((-ids.operation, -events.statement, -ids.current, keys.row_id, keys.bucket, keys.original))
    )


def _tell_twin(events: Chunk, places: NDArray[np.intp], on_twin: Callable[[Ids, int, int], None]) -> None:
    """Report the first of `places` whose event and the next one are inserted rows of different files."""
    operation, file = events.ids.operation, events.file
    twins = places[
        (operation[places] == INSERT) & (operation[places + 1] == INSERT) & (file[places] != file[places + 1])
    ]
    if len(twins):
        at = int(twins[0])
        on_twin(events.ids.take(slice(at, at + 1)), int(file[at]), int(file[at + 1]))


def _collapse(events: Chunk, on_collapse: Callable[[Ids, pa.Array], None]) -> Chunk:
    """Drop events that an update or a delete of the same write id replaces.

    Inserts that share a ROW__ID all stay, because readers show all of them.
    """
    same = repeats(events.ids.keys) & (np.diff(events.ids.current) == 0)
    if not same.any():
        return events
    replaced = _replaced(events, np.flatnonzero(np.concatenate([[True], ~same])))
    if not replaced.any():
        return events
    left_out = events.take(np.flatnonzero(replaced))
    on_collapse(left_out.ids, left_out.rows)
    return events.take(np.flatnonzero(~replaced))


def _replaced(events: Chunk, starts: NDArray[np.intp]) -> Bools:
    """Return which events follow a delete, or an update by a later statement.

    The events of a run are ordered by statement, the last first, and a delete comes before the event that it deletes.

    Args:
        starts: the first event of each run with the same key and write id.
    """
    places, operation, statement = np.arange(len(events)), events.ids.operation, events.statement
    killers = np.where(operation == INSERT, len(events), places)
    first = np.repeat(np.minimum.reduceat(killers, starts), np.diff([*starts, len(events)]))
    killer = np.minimum(first, len(events) - 1)
    by: Bools = (operation[killer] == DELETE) | (statement[killer] > statement)
    return (places > first) & by


def _count_before(keys: Keys, key: Key) -> int:
    original, bucket, row_id = key
    low = int(np.searchsorted(keys.original, original, "left"))
    high = int(np.searchsorted(keys.original, original, "right"))
    middle = keys.bucket[low:high]
    start = low + int(np.searchsorted(middle, bucket, "left"))
    end = low + int(np.searchsorted(middle, bucket, "right"))
    return start + int(np.searchsorted(keys.row_id[start:end], row_id, "left"))
