"""What `acidctl apply` does: plan again what a file planned, and carry out what still holds."""

from __future__ import annotations

from dataclasses import replace

from acidctl.acid.listing import TableType
from acidctl.cleaning.saved import SavedPlan, read_plans, who_may_change
from acidctl.cli.maintain.work.clean import CleaningPrinter, clean_all, cut_to
from acidctl.cli.options.many_locations import Procedure
from acidctl.cli.output.console import note
from acidctl.cli.report.run_report import RunReport
from acidctl.errors import AcidctlError, GoneError, RefusedError
from acidctl.location.lists import SnapshotLists
from acidctl.location.neighbours import Surroundings


def work(
    *,
    plan_file: str,
    dry_run: bool,
    how: str,
    unsafe_retention: bool,
    work: Procedure,
    max_bytes: int | None,
    table_type: TableType | None,
    exit_code: bool,
    lists: SnapshotLists,
    storage: dict[str, str],
    output: str,
    run: RunReport,
) -> int:
    """Carry out the plans of a file as asked; the exit status."""
    saved = read_plans(plan_file)
    if not saved:
        note(f"nothing to clean: {plan_file} holds no plan of a location")
    if not lists.is_told and any(one.has_snapshot for one in saved):
        _trust(plan_file)
    if not (dry_run or unsafe_retention):
        for one in saved:
            one.policy.require_safe()
    work.locking = replace(work.locking, age=min(filter(None, (one.policy.older_than for one in saved)), default=0.0))
    printer = CleaningPrinter(output, run)
    surroundings = Surroundings()
    planned = []
    for one in saved:
        printer.coverage.begin(one.url)

    def failed(one: SavedPlan, error: AcidctlError) -> None:
        if not isinstance(error, GoneError):  # the coverage reports what is gone
            printer.coverage.failed.add(one.url)
        printer.failed(one.url, error)

    for one, found in work.each(saved, lambda one: one.plan(storage, lists, table_type, surroundings), failed):
        printer.coverage.met(one.url)
        if found is None:
            printer.postponed(one.url)
        else:
            planned.append(found)
    if saved:
        printer.looked_through()
    plans = printer.plans(cut_to(planned, max_bytes), dry_run=dry_run)
    if not dry_run:
        clean_all(plans, how, work, printer)
    elif plans:
        return printer.status
    return printer.exit_status(exit_code)


def _trust(plan_file: str) -> None:
    """Say that the snapshot is that of the file.

    Raises:
        RefusedError: others may have written it.
    """
    if why := who_may_change(plan_file):
        raise RefusedError(
            f"will not take from {plan_file} which transactions are committed",
            why,
            "give --write-ids-from or --assume-committed, or let nobody else write to it",
        )
    note(f"what is committed is taken from {plan_file}; --write-ids-from or --assume-committed says it anew")
