"""The safe order of a cleaning, from what is asked for to what became of it; nothing here prints or asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from acidctl.cleaning.apply import How, apply_plan, never
from acidctl.cleaning.leftovers import query_staging
from acidctl.cleaning.outcomes import Cleaned, PlannedCleaning
from acidctl.cleaning.plan import CleaningPlan, Removal, plan_cleaning
from acidctl.cleaning.retention import Policy
from acidctl.errors import AcidctlError
from acidctl.location.change.lock import Locking
from acidctl.location.change.work_log import LogEntry, log_done, of_night
from acidctl.location.find import Found
from acidctl.location.lists import SnapshotLists
from acidctl.outcome import Outcome, Result


@dataclass(frozen=True, kw_only=True)
class RefusedCleaning(Outcome):
    """A location that cannot be cleaned, or cannot be seen."""

    error: AcidctlError
    result: Result = Result.FAILED


def plan_location(
    found: Found, lists: SnapshotLists, policy: Policy, *, is_table: bool = False, is_table_checked: bool = True
) -> PlannedCleaning | RefusedCleaning:
    """What may be removed from one location, by a snapshot that is taken now.

    Args:
        lists: what was said of the snapshot.
        is_table: it is the directory of a table with its partitions in it, where only staging of queries lies.
        is_table_checked: ask whether its table is still the one that the lists are of; who does not, asks for many at
            once by :func:`unless_changed`, before anything is done.
    """
    try:
        snapshot = query_staging(found.fs, found.location.path) if is_table else found.snapshot(lists, readers=True)
        snapshot.require_agreement()
        plan = plan_cleaning(snapshot, policy)
        if plan.removals and is_table_checked:
            lists.require_same(found.hive)
        return PlannedCleaning.of(plan)
    except AcidctlError as error:
        return RefusedCleaning(location=found.shown, error=error)


def unless_changed(
    answers: Sequence[tuple[Found, PlannedCleaning | RefusedCleaning]], lists: SnapshotLists
) -> list[PlannedCleaning | RefusedCleaning]:
    """The answers, but a refusal for each whose table was dropped and created again, or moved, since the lists were
    taken and that has something to remove.
    """
    tables = [found.hive if _removes(answer) else None for found, answer in answers]
    return [
        RefusedCleaning(location=answer.location, error=error) if error else answer
        for (_, answer), error in zip(answers, lists.changed(tables), strict=True)
    ]


def _removes(answer: PlannedCleaning | RefusedCleaning) -> bool:
    return isinstance(answer, PlannedCleaning) and bool(answer.plan.removals)


def carry_out(
    plan: CleaningPlan,
    how: How,
    locking: Locking,
    *,
    run_id: str = "",
    night: str = "",
    should_stop: Callable[[], bool] = never,
    on_removed: Callable[[Removal], None] | None = None,
) -> Cleaned:
    """Carry a plan out under the lock of its location; for other arguments and errors see
    :func:`acidctl.cleaning.apply.apply_plan`.

    Args:
        night: the id of the night that it is a part of; empty without one.
    """
    snapshot = plan.snapshot
    with locking.at(snapshot.fs, snapshot.path):
        cleaned = apply_plan(plan, how, run_id=run_id, should_stop=should_stop, on_removed=on_removed)
        if cleaned.is_changed:
            log_done(snapshot.fs, snapshot.path, _entry(cleaned, how, night), locking.tell)
        return cleaned


def _entry(cleaned: Cleaned, how: How, night: str) -> LogEntry:
    facts = {
        "to": how.value,
        "entries": len(cleaned.removed),
        "names": [one.name for one in cleaned.removed],
        "bytes": cleaned.bytes,
        "left": len(cleaned.left),
        **of_night(night),
    }
    source = cleaned.plan.snapshot.source.kind
    return LogEntry("clean", cleaned.result.value, cleaned.run.id if cleaned.run else "", source=source, facts=facts)
