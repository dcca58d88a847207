"""`acidctl apply`: carry out plans that `acidctl clean --plan` saved."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from acidctl.cli.maintain.clean import CleaningWork, how_options, way, within
from acidctl.cli.maintain.many_locations import Stop, unattended_options
from acidctl.cli.options.places import FILE
from acidctl.cli.options.shared import (
    changed_storage_options,
    examples,
    exit_code_option,
    lock_options,
    output_option,
    report_options,
    snapshot_options,
    table_type_option,
    typed_option,
)

if TYPE_CHECKING:
    from acidctl.cli.report.run_report import RunReport
    from acidctl.location.lists import SnapshotLists
    from acidctl.location.lock import Locking


@click.command(
    "apply",
    epilog=examples(
        "acidctl apply --dry-run monday.json",
        "acidctl apply --yes monday.json",
        "acidctl apply --yes --trash hdfs --storage-option user=hive monday.json",
    ),
)
@report_options
@click.argument("plan_file", metavar="FILE", type=FILE)
@click.option("-n", "--dry-run", is_flag=True, help="Show the plans that still hold and stop.")
@how_options
@typed_option(
    "--unsafe-retention", is_flag=True, help="Apply a plan of --older-than below 1h: nothing reads the tables."
)
@lock_options
@unattended_options
@table_type_option
@exit_code_option
@snapshot_options
@changed_storage_options
@output_option("table", "json", "jsonl", default="table")
def command(
    plan_file: str,
    dry_run: bool,
    yes: bool,
    no_trash: bool,
    trash: str,
    unsafe_retention: bool,
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
    """Carry out the cleaning that FILE plans, in every location that is still as it was.

    Each is listed again; one in which anything visible came, went or changed since is refused, and the others are gone
    on with. FILE holds no credentials: give the options of the storage here again.

    What is committed is best said here anew, by --write-ids-from or --assume-committed; without, it is what FILE says,
    if nobody but you and root can have written that.
    """
    from acidctl.acid.layout import TableType
    from acidctl.cleaning.saved import read_plans
    from acidctl.cli.maintain.clean_results import Printer
    from acidctl.cli.output.console import note
    from acidctl.errors import AcidctlError
    from acidctl.location.neighbours import Surroundings

    saved = read_plans(plan_file)
    if not saved:
        note(f"nothing to clean: {plan_file} holds no plan of a location")
    if not lists.is_told and any(one.has_snapshot for one in saved):
        _trust(plan_file)
    said = TableType(table_type) if table_type else None
    if not (dry_run or unsafe_retention):
        for one in saved:
            one.policy.require_safe()
    locking = replace(locking, age=min(filter(None, (one.policy.older_than for one in saved)), default=0.0))
    work = CleaningWork(yes, locking, jobs, Stop.after(deadline), way(no_trash, trash))
    printer = Printer(output, run)
    surroundings = Surroundings()
    plans = []
    for one, result in work.each(saved, lambda one: one.plan(storage, lists, said, surroundings)):
        if isinstance(result, AcidctlError):
            printer.failed(one.url, result)
        elif result is None:
            printer.not_begun(one.url)
        else:
            plans.append(result)
    plans = printer.plans(within(plans, max_bytes), dry_run=dry_run)
    if not dry_run:
        work.carry_out(plans, printer)
    elif plans:
        return printer.status
    return printer.exit_status(exit_code)


def _trust(plan_file: str) -> None:
    """Say that the snapshot is that of the file.

    Raises:
        RefusedError: others may have written it.
    """
    from acidctl.cleaning.saved import who_may_change
    from acidctl.cli.output.console import note
    from acidctl.errors import RefusedError

    if why := who_may_change(plan_file):
        raise RefusedError(
            f"will not take from {plan_file} which transactions are committed",
            why,
            "give --write-ids-from or --assume-committed, or let nobody else write to it",
        )
    note(f"what is committed is taken from {plan_file}; --write-ids-from or --assume-committed says it anew")
