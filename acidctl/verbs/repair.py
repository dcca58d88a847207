"""Mend what is wrong on disk: show the plan, ask, back up, swap in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from acidctl.base.errors import unexpected
from acidctl.verbs.options import Kind, LockOptions, Options, group, option

if TYPE_CHECKING:
    from acidctl.outcome import Outcome
    from acidctl.repair.plan import RepairPlan
    from acidctl.verbs.events import Events, Question
    from acidctl.verbs.selection import Selection


@dataclass(frozen=True, kw_only=True)
class RepairOptions(Options):
    """The options of `acidctl repair`."""

    only: tuple[str, ...] = option(
        (),
        "--only",
        kind=Kind.LIST,
        choices=("empty-result", "nested", "flush-length", "key-index", "version-file"),
        help="Mend only this kind of problem. Repeatable. Default: all kinds.",
    )
    dry_run: bool = option(False, "-n", "--dry-run", help="Show the plan and stop.")
    force: bool = option(
        False, "--force", typed=True, help="Treat writers and compactions of the last hour as dead or finished."
    )
    offline: bool = option(
        False, "--offline", typed=True, help="Nothing reads the table: a directory may be missing for a moment."
    )
    locks: LockOptions = group(LockOptions)


def repair(selection: Selection, options: RepairOptions, events: Events) -> Iterator[Outcome]:
    """Yield the plan of every location, then, after a yes, the result of each that had something to repair.

    Raises:
        RefusedError: it was not confirmed, or a place may not be changed.
    """
    import time
    from dataclasses import replace

    from acidctl.location.change.own_files import new_run_id
    from acidctl.outcome import Outcome, Result
    from acidctl.repair.apply import apply_repair, plan_repair, require_possible
    from acidctl.repair.plan import RepairKind, Scope

    kinds = [RepairKind(kind) for kind in options.only] or list(RepairKind)
    scope = Scope(time.time(), options.force)
    due: list[RepairPlan] = []
    for found in selection.changeable(events):
        try:
            plan = plan_repair(found.snapshot(), kinds, scope)
            if not options.dry_run:
                require_possible(plan, offline=options.offline)
        except Exception as error:  # noqa: BLE001 - the other locations go on
            problem = unexpected(error, f"while {found.shown} was checked")
            yield Outcome(location=found.shown, result=Result.FAILED, error=problem)
            continue
        due += [plan] if plan.result is Result.PLANNED else []
        yield plan
    if options.dry_run or not due:
        return
    events.confirm(_question(due))
    locking, run_id = options.locks.locking(events.warn), new_run_id()
    for plan in due:
        try:
            yield replace(plan, result=Result.REPAIRED, run=apply_repair(plan, locking, run_id))
        except Exception as error:  # noqa: BLE001 - as above
            problem = unexpected(error, f"while {plan.location} was repaired")
            yield Outcome(location=plan.location, result=Result.FAILED, error=problem)


def _question(due: list[RepairPlan]) -> Question:
    from acidctl.verbs.events import Question
    from acidctl.wording import human_bytes, human_count

    count = human_count(sum(len(plan.fixes) + len(plan.interrupted) for plan in due), "repair")
    what = f"{count}, {human_bytes(sum(plan.bytes for plan in due))}"
    locations = tuple(plan.location for plan in due)
    return Question(f"{what} would be done", f"Repair: {what}?", "nothing was repaired", locations)
