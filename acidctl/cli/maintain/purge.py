"""`acidctl purge`: delete the trash of earlier cleaning runs for good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from acidctl.cli.maintain.many_locations import Stop, Work, deadline_option, jobs_option, with_tables
from acidctl.cli.options.amounts import DURATION
from acidctl.cli.options.shared import (
    changed_storage_options,
    examples,
    locations_argument,
    lock_options,
    output_option,
    report_options,
    typed_option,
)
from acidctl.cli.output.progress import progress

if TYPE_CHECKING:
    from acidctl.cleaning.trash import TrashRun
    from acidctl.cli.report.run_report import RunReport
    from acidctl.location.find import Found
    from acidctl.location.lock import Locking


@click.command(
    "purge",
    epilog=examples(
        "acidctl purge --dry-run /warehouse/sales.db",
        "acidctl purge --yes orders",
        "acidctl purge --yes --older-than 7d /warehouse/sales.db",
    ),
)
@report_options
@locations_argument()
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be deleted and stop.")
@typed_option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--older-than", type=DURATION, metavar="TIME", help="Only runs that began so long ago: 7d, 24h. Without it all."
)
@lock_options
@deadline_option
@jobs_option
@changed_storage_options
@output_option("table", "json", "jsonl", default="table")
def command(
    locations: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    older_than: float | None,
    locking: Locking,
    deadline: float | None,
    jobs: int,
    storage: dict[str, str],
    output: str,
    run: RunReport,
) -> int:
    """Delete what cleaning runs moved to the trash of every location at or below LOCATION. This cannot be undone."""
    import time

    from acidctl.cli.output.console import human_count, put_line

    work = Work(yes, locking, jobs, Stop.after(deadline))
    printer = _Printer(output, run)
    latest = None if older_than is None else time.time() - older_than
    every = _due(locations, storage, latest, work, printer)
    if output == "table" or dry_run:
        for found, runs in every:
            for one in runs:
                printer.run(found, one, "in-trash")
    if not every and output == "table":
        put_line("the trash is empty" if older_than is None else "the trash holds nothing that old")
    if every and not dry_run:
        count = human_count(sum(len(runs) for _, runs in every), "cleaning run")
        work.confirm(f"{count} would be deleted for good", f"Delete {count} for good?", "nothing was deleted")
        _delete(every, work, printer)
    return printer.failures.worst


_Due = tuple["Found", list["TrashRun"]]


def _due(
    locations: tuple[str, ...], storage: dict[str, str], latest: float | None, work: Work, printer: _Printer
) -> list[_Due]:
    """The runs of every location that began by then; those whose name tells no time only when no time is asked for."""
    from acidctl.cleaning.trash import Phase, damaged, list_runs
    from acidctl.errors import AcidctlError
    from acidctl.location.find import find, once
    from acidctl.location.lists import SnapshotLists
    from acidctl.location.walk import Observer

    every = []
    places = once(find(locations, storage, SnapshotLists(), Observer(printer.failures.add), looks=False))
    # The directory of a table with partitions has a trash of its own: of staging.
    everywhere = (found for found, _ in with_tables(places, locations, storage))
    for found, runs in work.each(everywhere, lambda found: list_runs(found.fs, found.location.path)):
        if isinstance(runs, AcidctlError):
            printer.failures.add(runs, found.shown)
            continue
        for one in runs or ():
            if one.phase is Phase.DAMAGED:  # it stays, and the others go
                printer.failures.add(damaged(found.fs, one), found.shown)
        due = [run for run in runs or () if run.phase is not Phase.DAMAGED]
        due = [run for run in due if latest is None or (run.began is not None and run.began <= latest)]
        if due:
            every.append((found, due))
    return every


def _delete(every: list[_Due], work: Work, printer: _Printer) -> None:
    from acidctl.cleaning.trash import purge
    from acidctl.cli.output.console import human_bytes, human_count, note, put_line
    from acidctl.errors import AcidctlError

    def delete(due: _Due) -> list[TrashRun]:
        (found, runs), done = due, []
        with work.locking.at(found.fs, found.location.path):
            for run in runs:
                if work.stop.is_due():
                    break
                purge(found.fs, [run])
                done.append(run)
                bar.advance()
        return done

    deleted: list[TrashRun] = []
    with progress("deleting", sum(len(runs) for _, runs in every)) as bar:
        for (found, runs), done in work.each(every, delete):
            if isinstance(done, AcidctlError):
                printer.failures.add(done, found.shown)
                continue
            for one in done or ():
                printer.run(found, one, "purged")
                deleted.append(one)
            if left := len(runs) - len(done or ()):
                note(f"{found.shown}: left for later: {human_count(left, 'cleaning run')}")
    if printer.output == "table":
        size = human_bytes(sum(run.bytes for run in deleted))
        put_line(f"{human_count(len(deleted), 'cleaning run')} deleted, {size}")


class _Printer:
    def __init__(self, output: str, run: RunReport) -> None:
        from acidctl.cli.output.console import Records
        from acidctl.cli.report.failures import Failures

        self.output = output
        self._records = Records(output)
        self.failures = Failures(run)
        self._report = run

    def run(self, found: Found, run: TrashRun, result: str) -> None:
        from acidctl.cli.output.console import human_bytes, human_count, put_line

        self._report.add(found.shown, result, removed=run.bytes if result == "purged" else None)
        self._records.put(_record(found, run, result))
        if self.output == "table" and result == "in-trash":
            entries = human_count(len(run.names), "entry", "entries")
            what = f"{entries}, {human_bytes(run.bytes)}" if run.is_complete else _PHASES[run.phase.value]
            put_line(f"{found.fs.display(run.path)}: {what}")


_PHASES = {
    "unfinished": "incomplete: interrupted",
    "restored": "restored; what is left is to be removed",
    "purged": "incomplete: it was being purged",
}


def _record(found: Found, run: TrashRun, result: str) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "location": found.shown,
        "result": result,
        "trashRun": run.id,
        "isComplete": run.is_complete,
        "names": list(run.names),
        "bytes": run.bytes,
    }
