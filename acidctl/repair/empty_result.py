"""A compaction's result that holds nothing while what it replaced holds rows (rule V43): it goes, and they are back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acidctl.acid.empty_results import twins_of
from acidctl.acid.layout import data_bytes_of
from acidctl.acid.names import Kind, acid_directory
from acidctl.acid.state import State
from acidctl.acid.writeids import IdStatus, holes, write_id_runs
from acidctl.errors import BadDataError
from acidctl.location.snapshot import Snapshot
from acidctl.repair.plan import LIVE_HINT, CannotRepair, Fix, Scope
from acidctl.rows.read.lost_rows import LostRows, find_lost_rows
from acidctl.wording import lost_events, spans

_BY_HAND = "look at what it replaced with `dump()`, and insert the rows again"


def plan_empty_result(snapshot: Snapshot, scope: Scope) -> Iterator[Fix | CannotRepair]:
    """Every such result that readers go by, or that another compaction went by."""
    done: set[str] = set()
    for lost in find_lost_rows(snapshot):
        name = lost.result.name
        twins = [twin.name for twin in twins_of(lost.result, snapshot.state)]
        if scope.covers(name) and done.isdisjoint(twins):
            done.add(name)
            try:
                yield _fix(snapshot, lost, twins, scope)
            except BadDataError as error:
                yield CannotRepair.of(name, error)


def _fix(snapshot: Snapshot, lost: LostRows, twins: Sequence[str], scope: Scope) -> Fix:
    """Raises BadDataError when it cannot go safely."""
    name, problem = lost.result.name, lost_events(lost.result.name, lost.events)
    if lost.events is None:
        raise BadDataError("", problem, "see `validate()`")
    if not lost.result.is_read:
        by = next(one.reason.by for one in snapshot.state.in_state(State.OBSOLETE) if one.name == name)
        why = f"{problem}; but {', '.join(by)}, which readers go by, was made without them"
        raise BadDataError("", why, _BY_HAND)
    files = snapshot.listing.files_by_child
    if filled := next((twin for twin in twins if data_bytes_of(files.get(twin, ()))), ""):
        why = f"{problem}; but {filled} hides what it replaced as well, and is not empty"
        raise BadDataError("", why, _BY_HAND)
    names = (name, *twins)
    entries = [entry for one in names for entry in snapshot.listing.by_child.get(one, ())]
    if live := scope.may_be_live(entries):
        raise BadDataError("", live, LIVE_HINT)
    return Fix(
        name,
        problem,
        f"move {' and '.join(names)} into the backup: readers see these events again{_unproven(snapshot, lost)}",
        sum(entry.size for entry in entries),
        tuple(entry for entry in entries if not entry.is_dir),
        away=names,
    )


def _unproven(snapshot: Snapshot, lost: LostRows) -> str:
    """Which write ids may have been cleaned already: most wrote nothing here, and names do not tell."""
    top = lost.result.directory.max_write_id
    directories = [one for one in map(acid_directory, lost.result.replaced) if one]
    low = max((one.max_write_id for one in directories if one.kind is Kind.BASE), default=0)
    ranges = [one.range for one in directories if one.kind is not Kind.BASE]
    low = max(low + 1, min((first for first, _ in ranges), default=top))
    gaps = [run for first, last in holes(ranges, low, top) for run in write_id_runs(snapshot.write_ids, first, last)]
    unseen = [run for run in gaps if run.status is IdStatus.COMMITTED]
    if not unseen:
        return ""
    ids = spans(unseen)
    return f"; nothing is here of write ids {ids}: had a cleaning begun, rows that were deleted may be back, too"
