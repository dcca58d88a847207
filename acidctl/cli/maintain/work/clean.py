"""What `acidctl clean` does: plan every location, show and ask, and remove; `apply` carries out with the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from acidctl.acid.layout import TableType
from acidctl.cleaning.apply import How
from acidctl.cleaning.outcomes import Cleaned
from acidctl.cleaning.plan import CleaningPlan, Removal
from acidctl.cleaning.request import RefusedCleaning, carry_out, plan_location
from acidctl.cleaning.retention import Policy
from acidctl.cli.maintain.work.clean_results import Printer
from acidctl.cli.options.many_locations import TIME_IS_UP, Stop, Work, with_tables
from acidctl.cli.options.shared import refuse_unused
from acidctl.cli.output.console import human_bytes, human_count, note
from acidctl.cli.output.progress import progress
from acidctl.cli.output.strangers import Strangers
from acidctl.cli.report.run_files import refuse_replacing
from acidctl.errors import AcidctlError
from acidctl.location.find import Found, find, once
from acidctl.location.lists import SnapshotLists
from acidctl.location.neighbours import Surroundings
from acidctl.location.own_files import new_run_id

if TYPE_CHECKING:
    from acidctl.cli.report.run_report import RunReport
    from acidctl.location.lock import Locking


def work(
    *,
    locations: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    no_trash: bool,
    trash: str,
    plan_file: str | None,
    older_than: float,
    unsafe_retention: bool,
    leftovers: bool,
    locking: Locking,
    max_bytes: int | None,
    deadline: float | None,
    jobs: int,
    table_type: str | None,
    exit_code: bool,
    lists: SnapshotLists,
    storage: dict[str, str],
    output: str,
    run: RunReport,
) -> int:
    """Clean as asked; the exit status."""
    if plan_file is not None:
        how = ("no_trash", "trash", "dry_run", "jobs", "lock", "lock_wait", "break_lock")  # asked for by `apply`
        refuse_unused("--plan", *how)
        refuse_replacing(Path(plan_file), "plan")
    policy = Policy(older_than, leftovers)
    if not (dry_run or unsafe_retention):
        policy.require_safe()
    locking = replace(locking, age=policy.older_than)
    work = CleaningWork(yes, locking, jobs, Stop.after(deadline), way(no_trash, trash))
    printer = Printer(output, run, locations)
    strangers = Strangers(lambda error: printer.failed("", error), printer.skipped)
    places = once(find(locations, storage, lists, strangers.observer, surroundings=Surroundings()))
    known = strangers.changeable(places, TableType(table_type) if table_type else None)
    every = with_tables(known, locations, storage) if leftovers else ((found, False) for found in known)
    planned = within(_plans(every, lists, policy, work.stop, printer), max_bytes)
    plans = printer.plans(planned, dry_run=dry_run or plan_file is not None)
    strangers.tell()
    if plan_file is not None:
        from acidctl.cleaning.saved import write_plans  # noqa: PLC0415 - only for --plan

        write_plans(plan_file, plans)
        note(f"saved {human_count(len(plans), 'plan')}: acidctl apply {plan_file}")
    elif not dry_run:
        work.carry_out(plans, printer)
    if (dry_run or plan_file is not None) and plans:
        return printer.status
    return printer.exit_status(exit_code)


def way(no_trash: bool, trash: str) -> str:
    """Where to what is removed goes: trash, hdfs or delete."""
    if no_trash and trash == "hdfs":
        raise click.UsageError("--no-trash deletes at once: leave out --trash hdfs.")
    return "delete" if no_trash else "hdfs" if trash == "hdfs" else "trash"


def within(plans: Iterable[CleaningPlan], budget: int | None) -> Iterator[CleaningPlan]:
    """The plans, each cut to what the earlier ones leave of a budget of bytes; None for no bound."""
    for plan in plans:
        if budget is None:
            yield plan
            continue
        cut = plan.within(budget)
        budget -= cut.bytes
        yield cut


def _plans(
    every: Iterable[tuple[Found, bool]],
    lists: SnapshotLists,
    policy: Policy,
    stop: Stop,
    printer: Printer,
) -> Iterator[CleaningPlan]:
    """The plans of all locations that have one, as they are made: by one thread, since nothing is waited for.

    Args:
        every: places, and whether each is a table's directory with its partitions in it.
    """
    for found, is_table in every:
        if stop.is_due():
            printer.postponed(found.shown, TIME_IS_UP)
            continue
        answer = plan_location(found, lists, policy, is_table=is_table)
        if isinstance(answer, RefusedCleaning):
            printer.put(answer)
        elif answer.plan.removals or answer.plan.waiting or not is_table:
            yield answer.plan


@dataclass(slots=True)
class CleaningWork(Work):
    """How plans are carried out, the same for all locations.

    Attributes:
        how: trash, hdfs or delete.
        run_id: in the trash of every location, so that `acidctl restore` finds what was cleaned together.
    """

    how: str = "trash"
    run_id: str = ""

    def carry_out(self, plans: Sequence[CleaningPlan], printer: Printer) -> None:
        """Ask, and do it."""
        self.run_id = new_run_id()
        if plans:
            count = human_count(sum(len(plan.removals) for plan in plans), "entry", "entries")
            size = human_bytes(sum(plan.bytes for plan in plans))
            verbs = {"trash": "Move to the trash", "hdfs": "Move to the trash of HDFS", "delete": "Delete for good"}
            question = f"{verbs[self.how]}: {count}, {size}?"
            self.confirm(f"{count} ({size}) would be removed", question, "nothing was removed")
        with progress("cleaning", sum(len(plan.removals) for plan in plans)) as bar:
            for plan, result in self.each(plans, lambda plan: self._apply(plan, lambda _: bar.advance())):
                if isinstance(result, AcidctlError):
                    printer.failed(plan.shown, result)
                else:
                    printer.done(result or Cleaned.after(plan))
        printer.summary()

    def _apply(self, plan: CleaningPlan, on_removed: Callable[[Removal], None]) -> Cleaned:
        how, stop = How(self.how), self.stop.is_due
        return carry_out(plan, how, self.locking, run_id=self.run_id, should_stop=stop, on_removed=on_removed)
