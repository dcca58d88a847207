"""`acidctl apply`: carry out plans that `acidctl clean --plan` saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from acidctl.cli.clean import CleaningWork, how_options, way, within
from acidctl.cli.clean_work import Stop, unattended_options
from acidctl.cli.options import (
    FILE,
    changed_storage_options,
    examples,
    exit_code_option,
    lock_options,
    output_option,
    report_options,
)

if TYPE_CHECKING:
    from acidctl.cli.run_report import RunReport
    from acidctl.storage.lock import Locking


@click.command(
    "apply",
    epilog=examples(
        "acidctl apply --dry-run monday.json",
        "acidctl apply --yes monday.json",
        "acidctl apply --yes --lock --trash hdfs --storage-option user=hive monday.json",
    ),
)
@report_options
@click.argument("plan_file", metavar="FILE", type=FILE)
@click.option("-n", "--dry-run", is_flag=True, help="Show the plans that still hold and stop.")
@how_options
@click.option(
    "--unsafe-retention", is_flag=True, help="Apply a plan of --older-than below 1h: nothing reads the tables."
)
@lock_options
@unattended_options
@exit_code_option
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
    exit_code: bool,
    storage: dict[str, str],
    output: str,
    run: RunReport,
) -> int:
    """Carry out the cleaning that FILE plans, in every location that is still as it was.

    Each is listed again; one in which anything visible came, went or changed since is refused, and the others are gone
    on with. FILE holds no credentials: give the options of the storage here again.
    """
    from acidctl.cleaning.saved import read_plans
    from acidctl.cli.clean_results import Printer
    from acidctl.cli.output import note
    from acidctl.errors import AcidctlError

    saved = read_plans(plan_file)
    if not saved:
        note(f"nothing to clean: {plan_file} holds no plan of a location")
    if not (dry_run or unsafe_retention):
        for one in saved:
            one.policy.require_safe()
    work = CleaningWork(yes, locking, jobs, Stop.after(deadline), way(no_trash, trash))
    printer = Printer(output, run)
    plans = []
    for one, result in work.each(saved, lambda one: one.plan(storage)):
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
