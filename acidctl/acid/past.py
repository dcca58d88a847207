"""The rows of an earlier write id: whether what newer bases made obsolete is still there to be read.

A base holds nothing of what was deleted up to its write id, so a snapshot of an earlier one cannot use it. What it
was made from lies beside it until a cleaning takes it away (format section 10), and that shows in two ways.

By name: every write id has a directory. One that wrote nothing here has none either,
so an older base that is still there is taken for a sign that nothing was cleaned; without one, names must show it.

By comparison: the rows and delete events that are left make the base's rows again. A row that is missing shows,
because the base has it or because a delete event names it; a delete event that is missing shows, because the base has
not the row that it names. That tells a cleaning that was interrupted between two directories of one write id, and
aborted write ids that nobody named. With an INSERT OVERWRITE nothing can be compared, there names alone decide.
Original files have no write ids: that a table never had any shows where Hive 3 wrote the first one, since it gives a
converted table higher ones, and takes over a table of Hive 2 after a major compaction.
Insert-only tables need no names: their rows are never deleted, so the number of rows tells.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from acidctl.acid.layout import is_full_acid
from acidctl.acid.listing import Listing, with_entries
from acidctl.acid.names import MINL, ORC_ACID_VERSION, AcidDirectory, Kind, OriginalFile, parse_file
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.sidefiles import BaseFormat
from acidctl.acid.state import AcidState, EntryKind, State, Verdict, select
from acidctl.acid.writeids import IdRun, IdStatus, ValidTxns, ValidWriteIds, holes, write_id_runs

CONVERTED_FROM = 10_000_000
"""A table that was converted to ACID begins above this write id (format section 1.1)."""

OBSOLETE_READ = reason(Code.OBSOLETE_IS_READ)

_INVISIBLE = (Code.VISIBILITY_OPEN, Code.VISIBILITY_ABORTED, Code.UNPARSEABLE)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two states of one write id that hold the same rows, unless something of what was merged is missing.

    Attributes:
        name: the directory that merged.
        write_ids: of both states.
        merged: the state that reads it.
        parts: the state that reads what it was made from.
        full: of a full-ACID table, whose rows have keys; of others only the number of rows can be compared.
        marked: whether the directory is known to be a compaction's; a base without a mark may be that of an INSERT
            OVERWRITE, which holds rows of its own write id alone and can be compared with nothing.
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
        state: what is read, if `gone` is None and the comparison finds no difference.
        gone: why the rows cannot be read any more.
        comparison: what must be compared first.
    """

    state: AcidState
    gone: Reason | None = None
    comparison: Comparison | None = None


def look_back(
    listing: Listing,
    write_id: int,
    write_ids: ValidWriteIds | None = None,
    txns: ValidTxns | None = None,
    base_formats: Mapping[str, BaseFormat] | None = None,
    *,
    since: int | None = None,
) -> Past:
    """What a reader of the write id `write_id` sees, newer directories or not.

    Args:
        write_ids: what counts as committed, not lowered to `write_id` yet; None for all.
        since: only what write ids above it changed is asked for. Then any directory from there or below that a
            compaction made obsolete is a sign that nothing was cleaned, and what is compared must still be the same.
    """
    known = write_ids or ValidWriteIds()
    view = _View(listing, known, txns, base_formats)
    state = view.select(known.at(write_id))
    full = is_full_acid(listing)
    newer = [one for one in state.verdicts if _reaches_above(one, write_id, known, full=full)]
    problem = state.history_problem
    if problem and not {one.name for one in newer}.intersection(problem.by):
        return Past(state, gone=problem)
    if not newer:
        return Past(_with_doubt(state, write_id, known))
    state = view.select(known.at(write_id), without=newer)
    if state.base and _top(state.base) == write_id:
        return Past(state)  # all rows are in that base
    newer.sort(key=lambda one: (_top(one), _is_marked(one), one.name))
    base = next((one for one in newer if one.kind is EntryKind.BASE), None)
    is_shown = base is not None and _is_marked(base) and since is not None and _has_any(state, since)
    is_asked = base is not None and not is_shown and (full or not _is_marked(base))
    if base and is_asked and (gone := _gap(state, base, write_id, known, listing, full=full)):
        return Past(state, gone=gone)
    # Above an INSERT OVERWRITE is nothing of what was before it.
    comparable = list(takewhile(_is_marked, newer)) or newer[:1]
    # If all is there that went into the one that begins lowest, nothing is missing that went into the others.
    widest = min(comparable, key=lambda one: (not view.counts(one), one.kind is not EntryKind.BASE, _start(one)))
    comparison = view.comparison(widest, listing.by_child.keys() - {one.name for one in newer}, full=full)
    return Past(replace(state, notes=(*state.notes, OBSOLETE_READ)), comparison=comparison)


def bases_between(
    listing: Listing,
    older: int,
    newer: ValidWriteIds,
    txns: ValidTxns | None = None,
    base_formats: Mapping[str, BaseFormat] | None = None,
) -> tuple[Comparison, ...]:
    """Bases that Hive 4 may have given rows new ids in, between two snapshots of a full-ACID table, the lowest first.

    Names do not tell a REBALANCE from another compaction; that the keys are those of what a base was made from does.

    Args:
        older: the newest write id of the older snapshot.
        newer: what counts in the newer one.
    """
    if not is_full_acid(listing):
        return ()
    view = _View(listing, newer, txns, base_formats)
    verdicts = view.select(newer).verdicts
    found = [
        one
        for one in verdicts
        if one.kind is EntryKind.BASE
        and one.state in (State.CURRENT, State.OBSOLETE)
        and _reaches_above(one, older, newer, full=True)
    ]
    found.sort(key=_base_order)
    first = max((i + 1 for i, one in enumerate(found) if not _is_marked(one)), default=0)  # above the last overwrite
    found, taken = found[first:], {one.name for one in found[first:]}
    others = deque(sorted((one for one in verdicts if one.name not in taken), key=_start))
    comparisons, parts = [], []
    for one in found:
        while others and _start(others[0]) <= _top(one):
            parts.append(others.popleft())
        if one.directory and one.directory.visibility_txn:
            comparisons.append(view.comparison(one, (part.name for part in parts), full=True))
        parts = [one, *(part for part in parts if part.directory and _top(part) > _top(one))]
    return tuple(comparisons)


@dataclass(frozen=True, slots=True)
class _View:
    """A location, of which states of several write ids are selected."""

    listing: Listing
    known: ValidWriteIds
    txns: ValidTxns | None
    base_formats: Mapping[str, BaseFormat] | None

    def select(self, write_ids: ValidWriteIds, without: Iterable[Verdict] = ()) -> AcidState:
        names = frozenset(one.name for one in without)
        return select(self.listing, write_ids, self.txns, self.base_formats, without=names)

    def select_of(self, names: Iterable[str], write_ids: ValidWriteIds) -> AcidState:
        """Return the state of some children of the location."""
        children = self.listing.by_child
        found = with_entries(self.listing, (entry for name in sorted(names) for entry in children[name]))
        return select(found, write_ids, self.txns, self.base_formats)

    def up_to(self, one: Verdict) -> ValidWriteIds:
        """Return what counts when the last write id of a directory is the newest."""
        top = _top(one)
        return replace(self.known, high_watermark=max(top, self.known.high_watermark)).at(top)

    def counts(self, one: Verdict) -> bool:
        """Return whether any reader goes by a directory: not if all its write ids are aborted."""
        return bool(self.select_of([one.name], self.up_to(one)).current_names)

    def comparison(self, one: Verdict, parts: Iterable[str], *, full: bool) -> Comparison:
        """Compare a directory with the children of the location that it was made from."""
        write_ids, names = self.up_to(one), {*parts}
        merged, left = (self.select_of(some, write_ids) for some in ({*names, one.name}, names))
        return Comparison(one.name, write_ids, merged, left, full, _is_marked(one))


def _is_marked(verdict: Verdict) -> bool:
    """Whether a compaction is known to have made it; a base without a mark is taken for an INSERT OVERWRITE's."""
    return verdict.compacted or verdict.kind is not EntryKind.BASE


def _top(verdict: Verdict) -> int:
    assert verdict.directory is not None
    return verdict.directory.max_write_id


def _start(verdict: Verdict) -> int:
    """The first write id in the name of a child of the location; original files come before all."""
    return verdict.directory.min_write_id if verdict.directory else MINL


def _base_order(base: Verdict) -> tuple[int, bool, int, str]:
    """Put the bases in the order in which a reader prefers them (format section 6.2)."""
    return _top(base), _is_marked(base), base.directory.visibility_txn if base.directory else 0, base.name


def _reaches_above(verdict: Verdict, write_id: int, known: ValidWriteIds, *, full: bool) -> bool:
    """Whether a directory holds rows of newer write ids that cannot be told from older ones, or hid the older ones."""
    directory = verdict.directory
    if directory is None or verdict.reason.code in _INVISIBLE or directory.max_write_id <= write_id:
        return False
    if directory.kind is Kind.BASE:
        top = directory.max_write_id
        committed = verdict.compacted or not (known.is_open(top) or known.is_aborted(top))
        return committed and verdict.state is not State.ABORTED
    # Rows of insert-only tables do not say which write id they are of.
    return not full and directory.min_write_id <= write_id


def _has_any(state: AcidState, upto: int) -> bool:
    """Whether a directory is there that holds nothing above a write id."""
    return any(one.directory is not None and one.directory.max_write_id <= upto for one in state.verdicts)


def _gap(
    state: AcidState, newer: Verdict, write_id: int, known: ValidWriteIds, listing: Listing, *, full: bool
) -> Reason | None:
    """Why names do not show that all is there of what a newer base took the place of; None when they do."""
    marked = _is_marked(newer)
    if state.base and marked:
        return None
    deltas = [
        one.directory
        for one in state.verdicts
        if one.directory and one.directory.kind is not Kind.BASE and one.reason.code not in (*_INVISIBLE, Code.LEFT_OUT)
    ]
    ranges = [one.range for one in deltas]
    bases = (_top(one) for one in state.verdicts if one.directory and one.directory.kind is Kind.BASE)
    start = max(0, _top(state.base)) if state.base else 0
    if min([*(low for low, _ in ranges), *(top for top in bases if top > 0)]) > CONVERTED_FROM:
        start = max(start, CONVERTED_FROM)
    # With a base to compare with, what came later tells as well: a delete event that names a row that is gone.
    missing = _missing(ranges, start + 1, _top(newer) if marked else write_id, known)
    # The original files, which have no write ids.
    if state.base or state.originals:
        are_there = marked or bool(state.base)
    else:  # There never were any.
        are_there = not _missing(ranges, 1, 1, known) and (not full or _is_of_hive_3(deltas, listing))
    if missing or not are_there:
        return reason(Code.PAST_NOT_PROVEN, by=(newer.name,), missing=tuple(missing))
    return None


def _with_doubt(state: AcidState, write_id: int, known: ValidWriteIds) -> AcidState:
    """The state, with a note if no directory is left of the first write ids.

    Hive 3's TRUNCATE removes directories and leaves no base as a trace.
    """
    first = min((low for low, _ in _ranges(state)), default=write_id + 1)
    missing = _missing(_ranges(state), 1, min(first - 1, write_id), known)
    if state.base or state.originals or not missing:
        return state
    return replace(state, notes=(*state.notes, reason(Code.PAST_MAY_LACK, missing=tuple(missing))))


def of_one_table(states: Sequence[AcidState], write_id: int, known: ValidWriteIds) -> list[AcidState]:
    """The states of all partitions of a table, with a note if no partition has a directory of some write ids.

    DROP PARTITION, and Hive 3's TRUNCATE, remove directories without a trace. The other partitions tell what a
    partition alone cannot: whose first write ids are others' as a rule.

    Args:
        states: as :func:`look_back` finds them.
    """
    ranges = [one for state in states for one in _ranges(state)]
    start = max((_top(state.base) for state in states if state.base), default=0)
    if any(state.originals for state in states) or min(ranges, default=(0, 0))[0] > CONVERTED_FROM:
        start = max(start, CONVERTED_FROM)
    missing = _missing(ranges, start + 1, min(write_id, max((high for _, high in ranges), default=write_id)), known)
    doubts = (reason(Code.PAST_MAY_LACK, missing=tuple(missing)),) if missing else ()
    others = ([note for note in state.notes if note.code is not Code.PAST_MAY_LACK] for state in states)
    return [replace(state, notes=(*notes, *doubts)) for state, notes in zip(states, others, strict=True)]


def _ranges(state: AcidState) -> list[tuple[int, int]]:
    """The write ids of the directories that are there, whoever reads them."""
    return [one.directory.range for one in state.verdicts if one.directory and one.reason.code not in _INVISIBLE]


def _is_of_hive_3(deltas: Sequence[AcidDirectory], listing: Listing) -> bool:
    """Whether Hive 3 or newer wrote the first write id that is left, in deltas of a full-ACID table."""
    first = min((one.min_write_id for one in deltas), default=0)
    names = {one.name for one in deltas if one.min_write_id == first and not one.visibility_txn}
    for entry in listing.entries:
        directory, _, file = entry.path.partition("/")
        # The marker; or a file without row ids, which LOAD DATA put there.
        if directory in names and (file == ORC_ACID_VERSION or isinstance(parse_file(file), OriginalFile)):
            names.discard(directory)
    return not names


def _missing(ranges: Iterable[tuple[int, int]], low: int, high: int, known: ValidWriteIds) -> list[IdRun]:
    """The write ids low..high that no range holds and that may have been committed."""
    runs = (run for first, last in holes(ranges, low, high) for run in write_id_runs(known, first, last))
    return [run for run in runs if run.status in (IdStatus.COMMITTED, IdStatus.ABOVE)]
