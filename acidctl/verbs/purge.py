"""Delete the trash of cleanings and the backups of repairs permanently."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from acidctl.base.deadline import Deadline
from acidctl.base.errors import AcidctlError, NotFoundError, UsageProblem
from acidctl.base.parallel import each
from acidctl.location.change.journal import unusable
from acidctl.location.table_location import TableLocation
from acidctl.outcome import Outcome, Result
from acidctl.verbs.events import Events, Question
from acidctl.verbs.maintain_options import PurgeOptions
from acidctl.verbs.policy import Policies
from acidctl.verbs.restore import KeptRun, is_unfinished, kept, kept_runs, purge_runs
from acidctl.verbs.selection import Selection
from acidctl.wording import human_count, some_of

Due = tuple[TableLocation, list[KeptRun]]


def purge(
    selection: Selection, options: PurgeOptions, events: Events, *, policies: Policies | None = None, run_id: str = ""
) -> Iterator[Outcome]:
    """Yield the runs that are due, then, after a yes, each again as it was deleted.

    Args:
        policies: the policies of some tables, which say how long their runs are kept.
        run_id: the id of the nightly run that this is a part of, which was confirmed; its own cleanings stay.

    Raises:
        NotFoundError: no location keeps the run that was asked for.
        UsageProblem: several ids begin with it.
        RefusedError: it was not confirmed.
    """
    if options.run_id == "":
        raise UsageProblem("--run names no run", "its value is empty", "see `acidctl restore --list` for ids")
    stop = Deadline.after(options.work.deadline)
    every: list[Due] = []
    is_whole = True
    for found, runs in each(selection.trashes(events, changes=True), kept_runs, options.work.jobs, stop):
        for error in _errors(found, runs, options.run_id or ""):
            is_whole = False
            yield Outcome(location=found.shown, result=Result.FAILED, error=error)
        age = _age(found, options, policies)
        due, stay = _due(runs, options.run_id or "", None if age is None else time.time() - age, keep=run_id)
        for run in stay:
            is_whole = False  # one of them may be the run that was asked for
            events.note(f"{found.shown}: {run.id} stays: `acidctl repair` finishes it, `acidctl restore` undoes it")
        every += [(found, due)] if due else []
    if not run_id:
        events.looked_through()
    if options.run_id is not None and (every or (is_whole and events.is_whole)):
        every = _only(every, options.run_id, selection.shown)
    for found, due in every:
        for run in due:
            yield kept(found.fs, run, Result.PLANNED)
    if options.dry_run or not every:
        return
    count = human_count(sum(len(due) for _, due in every), "run")
    places = tuple(found.shown for found, _ in every)
    is_for_good = options.older_than is None and options.run_id is None
    what = f"{count} would be deleted permanently"
    if not run_id:
        events.confirm(Question(what, f"Delete {count} permanently?", "nothing was deleted", places, is_for_good))
    yield from _deleted(every, options, stop, events, policies=policies, run_id=run_id)


def _deleted(
    every: Sequence[Due],
    options: PurgeOptions,
    stop: Deadline,
    events: Events,
    *,
    policies: Policies | None,
    run_id: str,
) -> Iterator[Outcome]:
    """Delete the runs, and yield each that is gone."""
    with events.progress("deleting", sum(len(due) for _, due in every)) as bar:

        def delete_runs(one: Due) -> list[Outcome]:
            locking = options.locks.locking(events.warn, _age(one[0], options, policies) or 0.0)
            return purge_runs(one[0].fs, one[1], locking, lambda: stop.is_over, bar.advance, night=run_id)

        for (found, due), gone in each(every, delete_runs, options.work.jobs, stop):
            if isinstance(gone, AcidctlError):
                yield Outcome(location=found.shown, result=Result.FAILED, error=gone)
                continue
            yield from gone or ()
            left = len(due) - sum(outcome.result is Result.PURGED for outcome in gone or ())
            if left and not any(outcome.error for outcome in gone or ()):
                events.note(f"{found.shown}: left for later: {human_count(left, 'run')}")


def _age(found: TableLocation, options: PurgeOptions, policies: Policies | None) -> float | None:
    """Return the seconds for which the runs of a location are kept: by its policy, else by the options."""
    kept_for = policies.of(found.location.table, found.location.partition)[0].purge_older_than if policies else None
    return options.older_than if kept_for is None else kept_for


def _errors(found: TableLocation, runs: list[KeptRun] | AcidctlError | None, beginning: str) -> list[AcidctlError]:
    """Return why the runs of a location cannot be listed, or why some of them cannot be used: they stay."""
    if isinstance(runs, AcidctlError):
        return [runs]
    return [unusable(found.fs, run) for run in runs or () if run.problem and run.id.startswith(beginning)]


def _due(
    runs: list[KeptRun] | AcidctlError | None, beginning: str, latest: float | None, *, keep: str
) -> tuple[list[KeptRun], list[KeptRun]]:
    """Return the usable runs with an id that begins so, except `keep`, that began by `latest`; and those that stay.

    Without `latest`, runs without a time are included. Interrupted repairs stay.
    """
    due: list[KeptRun] = []
    stay: list[KeptRun] = []
    for run in runs if isinstance(runs, list) else ():
        is_old = latest is None or run.is_before(latest)
        if not run.problem and run.id.startswith(beginning) and run.id != keep and is_old:
            (stay if is_unfinished(run) else due).append(run)
    return due, stay


def _only(every: Sequence[Due], run_id: str, given: str) -> list[Due]:
    """Keep one run alone: the one with this id, or the only one whose id begins so."""
    ids = sorted({run.id for _, runs in every for run in runs if run.id.startswith(run_id)})
    if not ids:
        raise NotFoundError(f"no such run in {given}", "", "see `acidctl restore --list`")
    if len(ids) > 1 and run_id not in ids:
        raise UsageProblem(f"{len(ids)} runs begin with {run_id}", some_of(ids), "give the whole id of one")
    wanted = run_id if run_id in ids else ids[0]
    chosen = ((found, [run for run in runs if run.id == wanted]) for found, runs in every)
    return [(found, runs) for found, runs in chosen if runs]
