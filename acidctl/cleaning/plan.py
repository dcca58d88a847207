"""What may be removed from a location, in the order that is safe to interrupt (format section 10)."""

from __future__ import annotations

from dataclasses import dataclass

from acidctl.acid.layout import files_by_child
from acidctl.acid.listing import Listing
from acidctl.acid.state import AcidState, EntryKind, Reason, State, Verdict, select
from acidctl.errors import RefusedError
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
        kept_back: entries that are obsolete only if unknown transactions are committed, with the reason.
    """

    snapshot: Snapshot
    removals: tuple[Removal, ...]
    kept_back: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        return sum(removal.bytes for removal in self.removals)

    @property
    def files(self) -> int:
        return sum(removal.files for removal in self.removals)


def plan_cleaning(snapshot: Snapshot) -> CleaningPlan:
    """Plan one location: obsolete and aborted directories, and originals that a base holds.

    Without a transaction list nobody knows whether the compaction behind a ``_v`` directory is committed, so such a
    directory shadows nothing here (section 10): what only it supersedes is kept back.

    Raises:
        HistoryError: the snapshot cannot be read, so nothing may be removed.
        RefusedError: the plan would change what the snapshot reads (it proves itself before it is returned).
    """
    state = snapshot.state
    state.require_history()
    removable = {v.name: v for v in state.verdicts if v.state in (State.OBSOLETE, State.ABORTED)}
    kept_back: tuple[str, ...] = ()
    if snapshot.txns is None:
        kept_back = tuple(sorted(_only_by_visibility(snapshot, removable)))
        removable = {name: verdict for name, verdict in removable.items() if name not in kept_back}
    children = files_by_child(snapshot.listing)
    removals = [
        Removal(
            verdict.name,
            verdict.kind,
            verdict.state,
            verdict.reason,
            len(children.get(verdict.name, ())),
            sum(entry.size for entry in children.get(verdict.name, ())),
        )
        for verdict in sorted(removable.values(), key=_removal_order)
    ]
    _prove(snapshot, {removal.name for removal in removals})
    return CleaningPlan(snapshot, tuple(removals), kept_back)


def _only_by_visibility(snapshot: Snapshot, removable: dict[str, Verdict]) -> set[str]:
    """Names that are current or undecided when every ``_v`` directory is left out of the location."""
    doubtful = {v.name for v in snapshot.state.verdicts if v.directory and v.directory.visibility_txn}
    if not doubtful:
        return set()
    without = _without(snapshot.listing, doubtful)
    state = select(without, snapshot.write_ids, None, snapshot.base_formats)
    still = {v.name for v in state.verdicts if v.state in (State.OBSOLETE, State.ABORTED)}
    return set(removable) - still


def _without(listing: Listing, names: set[str]) -> Listing:
    return Listing(
        listing.location, tuple(entry for entry in listing.entries if entry.path.partition("/")[0] not in names)
    )


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
    after = select(_without(snapshot.listing, names), snapshot.write_ids, snapshot.txns, snapshot.base_formats)
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
