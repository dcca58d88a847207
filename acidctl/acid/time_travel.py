"""The rows of an earlier write id: whether the directories that newer bases made obsolete can still be read.

A base does not hold what was deleted up to its write id, so a snapshot of an earlier write id cannot use it. Its
sources lie beside it until a cleaning removes them (format section 10). Two methods detect whether they are complete.

By name: every write id has a directory. But a write id that wrote nothing here has none, so an older base that still
exists counts as a sign that nothing was cleaned; without such a base, names must cover all write ids.

By comparison: the remaining rows and delete events must result in the base's rows. A missing row is detected, because
the base has it or because a delete event names it; a missing delete event is detected, because the base lacks the row
that it names. This detects a cleaning that was interrupted between two directories of one write id, and aborted write
ids that no list contains. An INSERT OVERWRITE cannot be compared, so names alone decide. Original files have no write
ids. That a table never had any shows if Hive 3 wrote the first write id, since it gives a converted table higher ids,
and takes over a table of Hive 2 only after a major compaction. Insert-only tables need no names: their rows are never
deleted, so comparing the number of rows suffices.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from acidctl.acid.listing import Listing, with_entries
from acidctl.acid.names import MINL, ORC_ACID_VERSION, AcidDirectory, Kind, OriginalFile, parse_file
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.sidefiles import BaseFormat
from acidctl.acid.state import AcidState, EntryKind, State, Verdict, select
from acidctl.acid.writeids import IdRun, IdStatus, ValidTxns, ValidWriteIds, holes, joined_ranges, write_id_runs

CONVERTED_FROM = 10_000_000
"""The write ids of a table that was converted to ACID begin above this (format section 1.1)."""

OBSOLETE_READ = reason(Code.OBSOLETE_IS_READ)

_MANY_RANGES = 10_000
"""Above this number, adjacent ranges of write ids are joined, to save memory."""

_INVISIBLE = (Code.VISIBILITY_OPEN, Code.VISIBILITY_ABORTED, Code.UNPARSEABLE)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two states of one write id that hold the same rows, unless a source of a merged directory is missing.

    Attributes:
        name: the merged directory.
        write_ids: of both states.
        merged: the state that reads the merged directory.
        parts: the state that reads its sources.
        full: the table is full ACID, and its rows have keys; otherwise only the number of rows can be compared.
        marked: the directory is known to be a compaction's; a base without a mark may come from an INSERT OVERWRITE,
            which holds rows of its own write id alone and cannot be compared.
    """

    name: str
    write_ids: ValidWriteIds
    merged: AcidState
    parts: AcidState
    full: bool
    marked: bool


@dataclass(frozen=True, slots=True)
class Past:
    """A location as it was when one write id was the newest.

    Attributes:
        state: what to read, if `gone` is None and the comparison finds no difference.
        gone: why the rows cannot be read any more.
        comparison: must be done first.
    """

    state: AcidState
    gone: Reason | None = None
    comparison: Comparison | None = None


def state_at(
    listing: Listing,
    write_id: int,
    write_ids: ValidWriteIds | None = None,
    txns: ValidTxns | None = None,
    base_formats: Mapping[str, BaseFormat] | None = None,
    *,
    since: int | None = None,
) -> Past:
    """Return what a reader of the write id `write_id` sees, even if newer directories exist.

    Args:
        write_ids: what counts as committed, not lowered to `write_id` yet; None counts all.
        since: only changes by write ids above it are needed. Then any directory at or below it that a compaction made
            obsolete is a sign that nothing was cleaned, and the comparison must still succeed.
    """
    ids = write_ids or ValidWriteIds()
    view = _View(listing, ids, txns, base_formats)
    state = view.select(ids.at(write_id))
    full = listing.is_full_acid
    newer = [verdict for verdict in state.verdicts if _reaches_above(verdict, write_id, ids, full=full)]
    problem = state.history_problem
    if problem and not {verdict.name for verdict in newer}.intersection(problem.by):
        return Past(state, gone=problem)
    if not newer:
        return Past(_with_doubt(state, write_id, ids))
    state = view.select(ids.at(write_id), without=newer)
    if state.base and _top(state.base) == write_id:
        return Past(state)  # all rows are in that base
    newer.sort(key=lambda verdict: (_top(verdict), _is_marked(verdict), verdict.name))
    base = next((verdict for verdict in newer if verdict.kind is EntryKind.BASE), None)
    is_shown = base is not None and _is_marked(base) and since is not None and _has_any(state, since)
    is_asked = base is not None and not is_shown and (full or not _is_marked(base))
    if base and is_asked and (gone := _gap(state, base, write_id, ids, listing, full=full)):
        return Past(state, gone=gone)
    # Directories above an INSERT OVERWRITE hold nothing from before it.
    comparable = list(takewhile(_is_marked, newer)) or newer[:1]
    # If the directory that begins lowest has all its sources, so do the others.
    widest = min(comparable, key=lambda v: (not view.counts(v), v.kind is not EntryKind.BASE, _start(v)))
    comparison = view.comparison(widest, listing.by_child.keys() - {verdict.name for verdict in newer}, full=full)
    return Past(replace(state, notes=(*state.notes, OBSOLETE_READ)), comparison=comparison)


def bases_between(
    listing: Listing,
    older: int,
    newer: ValidWriteIds,
    txns: ValidTxns | None = None,
    base_formats: Mapping[str, BaseFormat] | None = None,
) -> tuple[Comparison, ...]:
    """Return the bases between two snapshots of a full-ACID table that may have new row ids, lowest first.

    Names do not distinguish a REBALANCE of Hive 4 from other compactions; it did not happen if a base has the keys of
    its sources.

    Args:
        older: the newest write id of the older snapshot.
        newer: the write ids that count in the newer snapshot.
    """
    if not listing.is_full_acid:
        return ()
    view = _View(listing, newer, txns, base_formats)
    verdicts = view.select(newer).verdicts
    bases = [
        verdict
        for verdict in verdicts
        if verdict.kind is EntryKind.BASE
        and verdict.state in (State.CURRENT, State.OBSOLETE)
        and _reaches_above(verdict, older, newer, full=True)
    ]
    bases.sort(key=_base_order)
    first = max((i + 1 for i, base in enumerate(bases) if not _is_marked(base)), default=0)  # above the last overwrite
    bases, taken = bases[first:], {base.name for base in bases[first:]}
    others = deque(sorted((verdict for verdict in verdicts if verdict.name not in taken), key=_start))
    comparisons, parts = [], []
    for base in bases:
        while others and _start(others[0]) <= _top(base):
            parts.append(others.popleft())
        if base.directory and base.directory.visibility_txn:
            comparisons.append(view.comparison(base, (part.name for part in parts), full=True))
        parts = [base, *(part for part in parts if part.directory and _top(part) > _top(base))]
    return tuple(comparisons)


@dataclass(frozen=True, slots=True)
class _View:
    """A location whose states are selected for several write ids."""

    listing: Listing
    known: ValidWriteIds
    txns: ValidTxns | None
    base_formats: Mapping[str, BaseFormat] | None

    def select(self, write_ids: ValidWriteIds, without: Iterable[Verdict] = ()) -> AcidState:
        names = frozenset(verdict.name for verdict in without)
        return select(self.listing, write_ids, self.txns, self.base_formats, without=names)

    def select_of(self, names: Iterable[str], write_ids: ValidWriteIds) -> AcidState:
        """Return the state of some children of the location."""
        children = self.listing.by_child
        part = with_entries(self.listing, (entry for name in sorted(names) for entry in children[name]))
        return select(part, write_ids, self.txns, self.base_formats)

    def up_to(self, verdict: Verdict) -> ValidWriteIds:
        """Return the write ids that count when the last write id of a directory is the newest."""
        top = _top(verdict)
        return replace(self.known, high_watermark=max(top, self.known.high_watermark)).at(top)

    def counts(self, verdict: Verdict) -> bool:
        """Return whether any reader uses a directory: not if all its write ids are aborted."""
        return bool(self.select_of([verdict.name], self.up_to(verdict)).current_names)

    def comparison(self, verdict: Verdict, parts: Iterable[str], *, full: bool) -> Comparison:
        """Compare a directory with the children of the location that it was made from."""
        write_ids, names = self.up_to(verdict), {*parts}
        merged = self.select_of({*names, verdict.name}, write_ids)
        sources = self.select_of(names, write_ids)
        return Comparison(verdict.name, write_ids, merged, sources, full, _is_marked(verdict))


def _is_marked(verdict: Verdict) -> bool:
    """Return whether a compaction is known to have made it; an unmarked base counts as an INSERT OVERWRITE."""
    return verdict.compacted or verdict.kind is not EntryKind.BASE


def _top(verdict: Verdict) -> int:
    assert verdict.directory is not None
    return verdict.directory.max_write_id


def _start(verdict: Verdict) -> int:
    """Return the first write id in the name of a child of the location; original files come before all others."""
    return verdict.directory.min_write_id if verdict.directory else MINL


def _base_order(base: Verdict) -> tuple[int, bool, int, str]:
    """Return a key that sorts bases in the order in which a reader prefers them (format section 6.2)."""
    return _top(base), _is_marked(base), base.directory.visibility_txn if base.directory else 0, base.name


def _reaches_above(verdict: Verdict, write_id: int, known: ValidWriteIds, *, full: bool) -> bool:
    """Return whether a directory mixes in rows of newer write ids, or hid older rows."""
    directory = verdict.directory
    if directory is None or verdict.reason.code in _INVISIBLE or directory.max_write_id <= write_id:
        return False
    if directory.kind is Kind.BASE:
        top = directory.max_write_id
        committed = verdict.compacted or not (known.is_open(top) or known.is_aborted(top))
        return committed and verdict.state is not State.ABORTED
    # Rows of insert-only tables have no write id.
    return not full and directory.min_write_id <= write_id


def _has_any(state: AcidState, upto: int) -> bool:
    """Return whether a directory exists that holds nothing above a write id."""
    return any(v.directory is not None and v.directory.max_write_id <= upto for v in state.verdicts)


def _gap(
    state: AcidState, newer: Verdict, write_id: int, known: ValidWriteIds, listing: Listing, *, full: bool
) -> Reason | None:
    """Return a reason if names do not show that all sources of a newer base still exist, else None."""
    marked = _is_marked(newer)
    if state.base and marked:
        return None
    deltas = [
        v.directory
        for v in state.verdicts
        if v.directory and v.directory.kind is not Kind.BASE and v.reason.code not in (*_INVISIBLE, Code.LEFT_OUT)
    ]
    ranges = [delta.range for delta in deltas]
    bases = (_top(v) for v in state.verdicts if v.directory and v.directory.kind is Kind.BASE)
    start = max(0, _top(state.base)) if state.base else 0
    if min([*(low for low, _ in ranges), *(top for top in bases if top > 0)]) > CONVERTED_FROM:
        start = max(start, CONVERTED_FROM)
    # If there is a base to compare with, later directories count, too: a delete event may name a missing row.
    missing = _missing(ranges, start + 1, _top(newer) if marked else write_id, known)
    # Original files have no write ids.
    if state.base or state.originals:
        has_originals = marked or bool(state.base)
    else:  # there must never have been any
        has_originals = not _missing(ranges, 1, 1, known) and (not full or _is_of_hive_3(deltas, listing))
    if missing or not has_originals:
        return reason(Code.PAST_NOT_PROVEN, by=(newer.name,), missing=tuple(missing))
    return None


def _with_doubt(state: AcidState, write_id: int, known: ValidWriteIds) -> AcidState:
    """Return the state, with a note if no directory of the first write ids remains.

    Hive 3's TRUNCATE removes directories and leaves no base as a trace.
    """
    first = min((low for low, _ in _ranges(state)), default=write_id + 1)
    missing = _missing(_ranges(state), 1, min(first - 1, write_id), known)
    if state.base or state.originals or not missing:
        return state
    return replace(state, notes=(*state.notes, reason(Code.PAST_MAY_LACK, missing=tuple(missing))))


def doubts_of_table(states: Iterable[AcidState], write_id: int, known: ValidWriteIds) -> tuple[Reason, ...]:
    """Return a note if no partition of a table has directories of some ids, else nothing.

    DROP PARTITION, and Hive 3's TRUNCATE, remove directories without a trace. One partition alone cannot show that,
    because its first write ids are usually those of other partitions.

    Args:
        states: results of :func:`state_at` for all partitions, one after the other.
    """
    ranges: set[tuple[int, int]] = set()
    start, has_originals, most = 0, False, _MANY_RANGES
    for state in states:
        ranges.update(_ranges(state))
        start = max(start, _top(state.base) if state.base else 0)
        has_originals = has_originals or bool(state.originals)
        if len(ranges) > most:
            ranges = set(joined_ranges(ranges))
            most = max(most, 2 * len(ranges))
    if has_originals or min(ranges, default=(0, 0))[0] > CONVERTED_FROM:
        start = max(start, CONVERTED_FROM)
    missing = _missing(ranges, start + 1, min(write_id, max((high for _, high in ranges), default=write_id)), known)
    return (reason(Code.PAST_MAY_LACK, missing=tuple(missing)),) if missing else ()


def with_doubts(state: AcidState, doubts: tuple[Reason, ...]) -> AcidState:
    """Return the state of a partition with the doubts about its whole table in place of those about itself."""
    notes = (note for note in state.notes if note.code is not Code.PAST_MAY_LACK)
    return replace(state, notes=(*notes, *doubts))


def _ranges(state: AcidState) -> list[tuple[int, int]]:
    """Return the write ids of the existing directories, whether or not they are read."""
    return [v.directory.range for v in state.verdicts if v.directory and v.reason.code not in _INVISIBLE]


def _is_of_hive_3(deltas: Sequence[AcidDirectory], listing: Listing) -> bool:
    """Return whether Hive 3 or newer wrote the first remaining write id, in deltas of a full-ACID table."""
    first = min((delta.min_write_id for delta in deltas), default=0)
    names = {delta.name for delta in deltas if delta.min_write_id == first and not delta.visibility_txn}
    for entry in listing.entries:
        directory, _, file = entry.path.partition("/")
        # Either the marker of Hive 3, or a file without row ids from LOAD DATA.
        if directory in names and (file == ORC_ACID_VERSION or isinstance(parse_file(file), OriginalFile)):
            names.discard(directory)
    return not names


def _missing(ranges: Iterable[tuple[int, int]], low: int, high: int, known: ValidWriteIds) -> list[IdRun]:
    """Return the write ids low..high that no range holds and that may have been committed."""
    runs = (run for first, last in holes(ranges, low, high) for run in write_id_runs(known, first, last))
    return [run for run in runs if run.status in (IdStatus.COMMITTED, IdStatus.ABOVE)]
