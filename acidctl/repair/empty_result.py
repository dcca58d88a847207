"""Repair of an empty compaction result that replaced directories with rows (rule V43): it moves into the backup."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from acidctl.acid.layout import data_bytes_of
from acidctl.acid.names import Kind, acid_directory
from acidctl.acid.state import State
from acidctl.acid.writeids import IdStatus, holes, write_id_runs
from acidctl.location.snapshot import Snapshot
from acidctl.repair.plan import Fix, RepairKind, Scope, Suspect, unsafe
from acidctl.rows.read.lost_rows import LostRows, find_lost_rows
from acidctl.wording import lost_events, some_of, spans

_UNKNOWN_HINT = "use --force once SHOW COMPACTIONS says that no compaction of it is at work"


def suspects(snapshot: Snapshot, scope: Scope) -> Iterator[Suspect]:
    """Yield every such result; those that it hides move with it."""
    empty = {lost.result.name: lost for lost in find_lost_rows(snapshot)}
    hidden = {
        verdict.name: verdict.reason.by for verdict in snapshot.state.in_state(State.OBSOLETE) if verdict.name in empty
    }
    done = {name for name, by in hidden.items() if set(by) & empty.keys()}  # they move with the result that hides them

    def look(lost: LostRows) -> Fix:
        done.update(lost.result.twins)
        fix = _fix(snapshot, lost, empty, hidden, scope)
        done.update(fix.away)
        return fix

    for lost in empty.values():
        if lost.result.name not in done:
            yield lost.result.name, partial(look, lost)


def _fix(
    snapshot: Snapshot, lost: LostRows, empty: dict[str, LostRows], hidden: Mapping[str, tuple[str, ...]], scope: Scope
) -> Fix:
    name, problem = lost.result.name, lost_events(lost.rows, lost.deletes)
    by_hand = (
        "look at what it replaced with `acidctl dump`, and insert again what is missing; then move out of the table "
        f"{some_of(lost.result.replaced)}"
    )
    if lost.rows is None:
        raise unsafe(problem, by_hand)
    if not lost.result.is_read:
        why = f"{problem}; but {', '.join(hidden.get(name, ()))}, which readers go by, was made without them"
        raise unsafe(why, by_hand)
    names = _moved_away(lost, empty, hidden)
    files = snapshot.listing.files_by_child
    if filled := next((name for name in names if data_bytes_of(files.get(name, ()))), ""):
        why = f"{problem}; but {filled} hides what it replaced as well, and is not empty"
        raise unsafe(why, by_hand)
    txn = lost.result.directory.visibility_txn
    if txn and snapshot.txns is None and not scope.force:
        raise unsafe(f"{problem}; but whether transaction {txn} is committed is not known", _UNKNOWN_HINT)
    entries = [entry for moved in names for entry in snapshot.listing.by_child.get(moved, ())]
    scope.require_dead(entries)
    return Fix(
        RepairKind.EMPTY_RESULT,
        name,
        problem,
        f"move {' and '.join(names)} into the backup: readers see these events again{_unproven(snapshot, lost)}",
        sum(entry.size for entry in entries),
        tuple(entry for entry in entries if not entry.is_dir),
        away=names,
    )


def _moved_away(lost: LostRows, empty: dict[str, LostRows], hidden: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the result, its twins, and every empty result hidden only by these: readers would choose it next."""
    names = dict.fromkeys((lost.result.name, *lost.result.twins))
    for name, by in hidden.items():
        if by and names.keys() >= set(by) and empty[name].rows is not None:
            names |= dict.fromkeys((name, *empty[name].result.twins))
    return tuple(names)


def _unproven(snapshot: Snapshot, lost: LostRows) -> str:
    """Name the write ids that may have been cleaned already; most of them wrote nothing, which names cannot show."""
    top = lost.result.directory.max_write_id
    directories = [directory for directory in map(acid_directory, lost.result.replaced) if directory]
    base = max((directory.max_write_id for directory in directories if directory.kind is Kind.BASE), default=0)
    low = max(base + 1, 1) if lost.result.directory.kind is Kind.BASE else lost.result.directory.min_write_id
    ranges = [directory.range for directory in directories if directory.kind is not Kind.BASE]
    gaps = [run for first, last in holes(ranges, low, top) for run in write_id_runs(snapshot.write_ids, first, last)]
    unseen = [run for run in gaps if run.status is IdStatus.COMMITTED]
    if not unseen:
        return ""
    few = len(unseen) == 1 and unseen[0].first == unseen[0].last
    ids = f"write id{'' if few else 's'} {spans(unseen)}"
    return f"; nothing is here of {ids}: had a cleaning begun, rows that were deleted may be back, too"
