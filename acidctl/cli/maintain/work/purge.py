"""What `acidctl purge` does: find the runs in every trash, ask, and delete them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from acidctl.cleaning.outcomes import InTrash, in_trash
from acidctl.cleaning.trash import TrashRun, trash_runs
from acidctl.cleaning.undo import delete
from acidctl.cli.options.many_locations import Procedure, to_be_typed
from acidctl.cli.output.console import human_bytes, note, put_line
from acidctl.cli.output.progress import progress
from acidctl.cli.report.outcomes import Outcomes
from acidctl.cli.report.run_report import RunReport
from acidctl.errors import NotFoundError, UsageProblem
from acidctl.location.change.journal import unusable
from acidctl.location.find import Found, find, once, refuse_unusable, with_tables
from acidctl.location.lists import SnapshotLists
from acidctl.outcome import Outcome, Result
from acidctl.wording import human_count, some_of


def work(
    *,
    locations: tuple[str, ...],
    dry_run: bool,
    run_id: str | None,
    older_than: float | None,
    work: Procedure,
    storage: dict[str, str],
    output: str,
    run: RunReport,
) -> int:
    """Purge as asked; the exit status."""
    printer = PurgePrinter(output, run, _text_of, trash_counts)
    work.locking = replace(work.locking, age=older_than or 0.0)
    latest = None if older_than is None else time.time() - older_than
    if run_id == "":
        raise UsageProblem("--run names no run", "its value is empty", "see `acidctl restore --list` for ids")
    every = _due(locations, storage, run_id, latest, work, printer)
    printer.looked_through()
    if run_id is not None and (every or printer.is_whole):
        every = _only(every, run_id, " ".join(locations))
    for found, runs in every:
        for one in runs:
            printer.put(in_trash(found.fs, one), is_last=dry_run)
    printer.tell(sum(len(runs) for _, runs in every))
    if not every and printer.is_table:
        put_line("the trash is empty" if older_than is None else "the trash holds nothing that old")
    if every and not dry_run:
        count = human_count(sum(len(runs) for _, runs in every), "cleaning run")
        is_for_good = older_than is None and run_id is None
        severe = to_be_typed((found.shown for found, _ in every), is_for_good=is_for_good)
        question = f"Delete {count} for good?"
        work.confirm(f"{count} would be deleted for good", question, "nothing was deleted", severe=severe)
        _delete(every, work, printer)
    return printer.status


_Due = tuple["Found", list["TrashRun"]]


def _only(every: Sequence[_Due], run_id: str, given: str) -> list[_Due]:
    """Keep only one run.

    Args:
        run_id: the whole id, or a unique beginning of it.

    Raises:
        NotFoundError: no trash holds it.
        UsageProblem: several ids begin with it.
    """
    ids = sorted({run.id for _, runs in every for run in runs if run.id.startswith(run_id)})
    if not ids:
        raise NotFoundError(f"no such run in the trash of {given}", "", "see `acidctl restore --list`")
    if len(ids) > 1 and run_id not in ids:
        raise UsageProblem(f"{len(ids)} runs begin with {run_id}", some_of(ids), "give the whole id of one")
    wanted = run_id if run_id in ids else ids[0]
    chosen = ((found, [run for run in runs if run.id == wanted]) for found, runs in every)
    return [(found, runs) for found, runs in chosen if runs]


def _due(
    locations: tuple[str, ...],
    storage: dict[str, str],
    run_id: str | None,
    latest: float | None,
    work: Procedure,
    printer: Outcomes,
) -> list[_Due]:
    """The runs of every location that began by `latest`; runs without a time in their name only if that is None.

    Args:
        run_id: the beginning of their ids; None for all.
    """
    every = []
    refuse_unusable(locations, storage, SnapshotLists(), surroundings=None)
    places = once(find(locations, storage, SnapshotLists(), printer.observer, looks=False))
    # The directory of a table with partitions has a trash of its own: of staging.
    everywhere = (found for found, _ in with_tables(places, locations, storage))
    for found, runs in work.each(everywhere, lambda found: trash_runs(found.fs, found.location.path), printer.lost):
        wanted = [run for run in runs or () if run.id.startswith(run_id or "")]
        for one in wanted:
            if one.problem:  # it stays, and the others go
                printer.failed(found.shown, unusable(found.fs, one))
        due = [run for run in wanted if not run.problem]
        due = [run for run in due if latest is None or run.is_before(latest)]
        if due:
            every.append((found, due))
    return every


def _delete(every: list[_Due], work: Procedure, printer: Outcomes) -> None:
    gone: list[InTrash] = []
    with progress("deleting", sum(len(runs) for _, runs in every)) as bar:

        def purge(due: _Due) -> list[InTrash]:
            return delete(due[0].fs, due[1], work.locking, work.stop.is_due, bar.advance)

        for (found, runs), done in work.each(every, purge, lambda due, error: printer.lost(due[0], error)):
            for one in done or ():
                printer.put(one)
            gone += done or ()
            if left := len(runs) - len(done or ()):
                note(f"{found.shown}: left for later: {human_count(left, 'cleaning run')}")
    if printer.is_table:
        size = human_bytes(sum(one.run.bytes for one in gone))
        put_line(f"{human_count(len(gone), 'cleaning run')} deleted, {size}")


class PurgePrinter(Outcomes):
    """Outcomes of purges."""

    def kind_of(self, outcome: Outcome) -> str:
        return "to delete for good" if outcome.result is Result.IN_TRASH else super().kind_of(outcome)


def trash_counts(outcome: Outcome) -> dict[str, int]:
    """Cleaning runs in the trash, entries of them, and bytes."""
    if not isinstance(outcome, InTrash):
        return {}
    return {"runs": 1, "entries": len(outcome.run.names), "bytes": outcome.run.bytes}


def _text_of(outcome: Outcome) -> str:
    if not isinstance(outcome, InTrash) or outcome.result is Result.PURGED:
        return ""
    run = outcome.run
    entries = human_count(len(run.names), "entry", "entries")
    what = f"{entries}, {human_bytes(run.bytes)}" if run.is_complete else _PHASES[run.state]
    return f"{outcome.shown}: {what}"


_PHASES = {
    "staged": "incomplete: interrupted",
    "restored": "restored; what is left is to be removed",
    "purged": "incomplete: it was being purged",
}
