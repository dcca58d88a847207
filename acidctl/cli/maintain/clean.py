"""`acidctl clean`: remove what is obsolete or aborted, after showing the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from acidctl.cli.maintain.many_locations import Stop, Work, unattended_options, with_tables
from acidctl.cli.options.amounts import DURATION
from acidctl.cli.options.places import NEW_FILE
from acidctl.cli.options.shared import (
    changed_storage_options,
    examples,
    exit_code_option,
    locations_argument,
    lock_options,
    output_option,
    report_options,
    snapshot_options,
    table_type_option,
    together,
    typed_option,
)
from acidctl.cli.output.progress import progress

if TYPE_CHECKING:
    from acidctl.cleaning.apply import Cleaned
    from acidctl.cleaning.plan import CleaningPlan, Removal
    from acidctl.cleaning.retention import Policy
    from acidctl.cli.maintain.clean_results import Printer
    from acidctl.cli.report.run_report import RunReport
    from acidctl.location.find import Found
    from acidctl.location.lists import SnapshotLists
    from acidctl.location.lock import Locking

how_options = together(
    typed_option("-y", "--yes", is_flag=True, help="Do not ask."),
    typed_option("--no-trash", is_flag=True, help="Delete at once instead of moving to the location's trash."),
    click.option(
        "--trash",
        type=click.Choice(["location", "hdfs"]),
        default="location",
        show_default=True,
        help="hdfs: move to the user's .Trash instead, from which HDFS deletes by its own times.",
    ),
)


@click.command(
    "clean",
    epilog=examples(
        "acidctl clean --dry-run /warehouse/sales.db",
        "acidctl clean --yes --older-than 36h --leftovers orders",
        "acidctl clean --write-ids 'sales.orders:12:9:9:7' --valid-txns '900:880:880:' orders",
        "acidctl clean --plan monday.json orders && acidctl apply --yes monday.json",
        "acidctl clean --yes --lock-wait 10m --deadline 2h --max-bytes 500g webhdfs://nn:9870/warehouse/sales.db",
        "acidctl clean --yes --no-trash orders",
    ),
)
@report_options
@locations_argument()
@click.option("-n", "--dry-run", is_flag=True, help="Show the plan and stop.")
@how_options
@typed_option("--plan", "plan_file", metavar="FILE", type=NEW_FILE, help="Save the plan for `acidctl apply`, and stop.")
@click.option(
    "--older-than",
    type=DURATION,
    default="24h",
    show_default=True,
    metavar="TIME",
    help="Keep what was superseded, or written, less than this long ago: 24h, 90m, 7d, 0.",
)
@typed_option("--unsafe-retention", is_flag=True, help="Allow --older-than below 1h: nothing reads the tables.")
@click.option("--leftovers", is_flag=True, help="Remove abandoned _tmp_*, _tmp.delta_* and .hive-staging* too.")
@lock_options
@unattended_options
@table_type_option
@exit_code_option
@snapshot_options
@changed_storage_options
@output_option("table", "json", "jsonl", default="table")
def command(
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
    """Remove the obsolete and aborted directories of every location at or below LOCATION.

    They move to a hidden directory of the location, .acidctl-trash, from which `acidctl restore` brings them back and
    `acidctl purge` deletes them for good. What is current, open, or above the high watermark is never touched.

    Queries that are running may still read what is obsolete for new ones. So an entry stays until what supersedes it is
    as old as --older-than, by the newest time in it; that must be longer than the longest query and the
    time that a writer takes from its last file to its commit, together.
    """
    from acidctl.acid.layout import TableType
    from acidctl.cleaning.retention import Policy
    from acidctl.cli.maintain.clean_results import Printer
    from acidctl.cli.options.shared import refuse_unused
    from acidctl.cli.output.console import human_count, note
    from acidctl.cli.output.strangers import Strangers
    from acidctl.cli.report.run_files import refuse_replacing
    from acidctl.location.find import find, once
    from acidctl.location.neighbours import Surroundings

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
        from acidctl.cleaning.saved import write_plans

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
    from acidctl.cleaning.leftovers import query_staging
    from acidctl.cleaning.plan import plan_cleaning
    from acidctl.errors import AcidctlError

    for found, is_table in every:
        if stop.is_due():
            printer.not_begun(found.shown)
            continue
        try:
            snapshot = query_staging(found.fs, found.location.path) if is_table else found.snapshot(lists)
            plan = plan_cleaning(snapshot, policy)
        except AcidctlError as error:
            printer.failed(found.shown, error)
            continue
        if plan.removals or plan.waiting or not is_table:
            yield plan


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
        from acidctl.cleaning.apply import Cleaned
        from acidctl.cli.output.console import human_bytes, human_count
        from acidctl.errors import AcidctlError
        from acidctl.location.own_files import new_run_id

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
                    printer.failed(plan.snapshot.fs.display(plan.snapshot.path), result)
                else:
                    printer.done(plan, result or Cleaned())
        printer.summary()

    def _apply(self, plan: CleaningPlan, on_removed: Callable[[Removal], None]) -> Cleaned:
        from acidctl.cleaning.apply import How, apply_plan

        snapshot = plan.snapshot
        with self.locking.at(snapshot.fs, snapshot.path):
            return apply_plan(
                plan, How(self.how), run_id=self.run_id, should_stop=self.stop.is_due, on_removed=on_removed
            )
