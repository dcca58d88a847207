"""What may be removed from a location, in the order that is safe to interrupt (format section 10)."""

from __future__ import annotations

from dataclasses import dataclass

from acidctl.acid.doubts import doubtful, half_finished, only_by_doubt, unmarked_bases, without
from acidctl.acid.layout import files_by_child
from acidctl.acid.listing import Entry
from acidctl.acid.names import OriginalFile, is_visible_path, parse_file
from acidctl.acid.state import AcidState, EntryKind, Reason, State, Verdict, select
from acidctl.errors import RefusedError
from acidctl.storage.publication import refuse_half_published
from acidctl.storage.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Removal:
    """One child of the location that is to go.

    Attributes:
        bytes, files: of everything below it.
    """

    name: str
    kind: EntryKind
    state: State
    reason: Reason
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class CleaningPlan:
    """What one location's cleaning removes; a value that can be printed.

    Attributes:
        removals: in the order of removal.
        kept_back: entries that are obsolete, but only if something is true that a listing cannot tell; with the reason.
    """

    snapshot: Snapshot
    removals: tuple[Removal, ...]
    kept_back: tuple[tuple[str, str], ...] = ()

    @property
    def bytes(self) -> int:
        return sum(removal.bytes for removal in self.removals)

    @property
    def files(self) -> int:
        return sum(removal.files for removal in self.removals)


def plan_cleaning(snapshot: Snapshot) -> CleaningPlan:
    """Plan one location: obsolete and aborted directories, and originals that a base holds.

    What is obsolete only because of a directory that may not be finished (format section 10, and
    :mod:`acidctl.acid.doubts`) is kept back, and so is what only one half of a minor compaction hides.

    Raises:
        HistoryError: the snapshot cannot be read, so nothing may be removed.
        RefusedError: a compaction was interrupted while it was published, or the plan would change what the snapshot
            reads (it proves itself before it is returned).
    """
    state = snapshot.state
    state.require_history()
    refuse_half_published(snapshot)
    children = files_by_child(snapshot.listing)
    kept_back = _kept_back(snapshot, children)
    removals = [
        Removal(
            verdict.name,
            verdict.kind,
            verdict.state,
            verdict.reason,
            len(children.get(verdict.name, ())),
            sum(entry.size for entry in children.get(verdict.name, ())),
        )
        for verdict in sorted(state.verdicts, key=_removal_order)
        if verdict.state in (State.OBSOLETE, State.ABORTED) and verdict.name not in kept_back
    ]
    _prove(snapshot, {removal.name for removal in removals})
    return CleaningPlan(snapshot, tuple(removals), tuple(sorted(kept_back.items())))


def _kept_back(snapshot: Snapshot, children: dict[str, list[Entry]]) -> dict[str, str]:
    """Names that stay although the state calls them obsolete, with the reason."""
    state, listing = snapshot.state, snapshot.listing
    doubts = doubtful(listing, state, snapshot.write_ids, snapshot.txns)
    why = "; ".join(f"{name}: {reason}" for name, reason in doubts.items()) or "only _v directories supersede it"
    kept = dict.fromkeys(only_by_doubt(listing, state, snapshot.write_ids, snapshot.txns, snapshot.base_formats), why)
    for name, wide in half_finished(state).items():
        kept[name] = f"{wide} hides it but has no twin of its kind: a minor compaction may be half-finished"
    for name in unmarked_bases(listing, state):
        kept[name] = "it may be a compaction of Hive 2, which marked none: its rows may be nowhere else"
    for verdict in state.in_state(State.OBSOLETE):
        if verdict.kind is not EntryKind.ORIGINAL:
            continue
        odd = next((e.path for e in children.get(verdict.name, ()) if not _is_original_name(e.path)), None)
        if odd is not None:
            kept[verdict.name] = f"{odd} is no name that Hive gives to a data file"
    return kept


def _is_original_name(path: str) -> bool:
    return not is_visible_path(path) or isinstance(parse_file(path.rpartition("/")[2]), OriginalFile)


def _removal_order(verdict: Verdict) -> tuple[int, int, int, bool, str]:
    """Aborted deltas, obsolete deltas, obsolete bases, originals last.

    Of a range the insert delta goes before its delete delta: were the wide directory lost half-way, deleted rows
    would otherwise come back.
    """
    ranks = {EntryKind.DELTA: 1, EntryKind.DELETE_DELTA: 1, EntryKind.BASE: 2, EntryKind.ORIGINAL: 3}
    rank = 0 if verdict.state is State.ABORTED else ranks.get(verdict.kind, 3)
    directory = verdict.directory
    low, high = (directory.min_write_id, directory.max_write_id) if directory else (0, 0)
    return (rank, low, high, verdict.kind is EntryKind.DELETE_DELTA, verdict.name)


def _prove(snapshot: Snapshot, names: set[str]) -> None:
    """The location without the planned entries must read exactly the same.

    Raises:
        RefusedError: it would not; a bug or a layout that nobody foresaw.
    """
    after = select(without(snapshot.listing, names), snapshot.write_ids, snapshot.txns, snapshot.base_formats)
    if _what_is_read(after) != _what_is_read(snapshot.state):
        raise RefusedError(
            f"cleaning {snapshot.fs.display(snapshot.path)} would change what readers see",
            "the state without the planned directories is another one",
            "please report the listing of this location",
        )


def _what_is_read(state: AcidState) -> tuple[object, ...]:
    return (
        state.base and state.base.name,
        [verdict.name for verdict in state.deltas],
        state.originals,
        {verdict.name for verdict in state.in_state(State.IGNORED)},
        state.history_problem is None,
    )
