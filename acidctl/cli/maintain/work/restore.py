"""What `acidctl restore` does and says: find the runs in every trash, choose, ask, and move them back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from acidctl.cleaning.outcomes import InTrash, Restored, in_trash
from acidctl.cleaning.trash import TRASH, TrashRun, trash_runs
from acidctl.cleaning.undo import USABLE, bring_back, newest
from acidctl.cli.maintain.work.clean import MOST_NOTES, NAMES_SHOWN
from acidctl.cli.maintain.work.purge import trash_counts
from acidctl.cli.options.many_locations import Procedure, to_be_typed
from acidctl.cli.options.shared import refuse_unused
from acidctl.cli.output.console import human_bytes, note, put_text, warn
from acidctl.cli.output.progress import progress
from acidctl.cli.report.log_text import what
from acidctl.cli.report.outcomes import Outcomes
from acidctl.cli.report.run_report import RunReport
from acidctl.errors import NotFoundError
from acidctl.location.change.work_log import LogEntry, read_log
from acidctl.location.find import Found, find, once, refuse_unusable, with_tables
from acidctl.location.lists import SnapshotLists
from acidctl.location.walk import WalkedLocation
from acidctl.outcome import Outcome, Result
from acidctl.storage.registry import open_location
from acidctl.wording import human_count, some_of


def work(
    *,
    locations: tuple[str, ...],
    list_only: bool,
    run_id: str | None,
    dry_run: bool,
    work: Procedure,
    storage: dict[str, str],
    output: str,
    run: RunReport,
) -> int:
    """Restore as asked; the exit status."""
    if list_only:
        refuse_unused("--list", "run_id", "dry_run", "yes", "jobs", "deadline", "lock", "lock_wait", "break_lock")
    printer = RestorePrinter(output, run)
    if not list_only:
        refuse_unusable(locations, storage, SnapshotLists(), surroundings=None)
    every = _runs(locations, storage, work, printer)
    if every or list_only:
        printer.looked_through()
    is_one = len(every) == 1 and every[0][0].is_given
    if list_only:
        _list_runs(every, printer, is_one=is_one)
        return printer.status
    try:
        due = _chosen(every, run_id, " ".join(locations), printer)
    except NotFoundError as error:
        if run_id is None or not (compacted := _compacted(_places(locations, storage, printer), run_id, work)):
            raise
        raise NotFoundError(error.what, f"that run {_said(compacted)}", error.hint) from error
    printer.is_alone = len(due) == 1
    if dry_run or not is_one:
        for found, one in due:
            printer.put(in_trash(found.fs, one, Result.PLANNED), is_last=dry_run)
    printer.tell(len(due))
    if dry_run or not due:
        return printer.status
    if len(due) > 1 or not due[0][0].is_given:
        count, size = human_count(len(due), "location"), human_bytes(sum(one.bytes for _, one in due))
        severe = to_be_typed(found.shown for found, _ in due)
        question = f"Restore: {count}, {size}?"
        work.confirm(f"{count} ({size}) would be restored", question, "nothing was restored", severe=severe)
    _restore(due, work, printer)
    if printer.is_table and (compacted := _compacted((found for found, _ in due), due[0][1].id, work)):
        note(f"that run {_said(compacted)}")
    return printer.status


_Trash = tuple[Found, list[TrashRun]]
"""A location with the runs in its trash, oldest first."""
_Due = list[tuple[Found, TrashRun]]


def _runs(
    locations: tuple[str, ...], storage: dict[str, str], work: Procedure, printer: RestorePrinter
) -> list[_Trash]:
    """Every place that has a trash."""
    every = []
    places = once(_places(locations, storage, printer))
    for found, runs in work.each(places, lambda found: trash_runs(found.fs, found.location.path), printer.lost):
        if runs is None:
            printer.postponed(found.shown)
        elif runs:
            every.append((found, runs))
    return every


def _places(locations: tuple[str, ...], storage: dict[str, str], printer: RestorePrinter) -> Iterator[Found]:
    """What was named first, whatever it is; then the locations below it, and the directories of their tables."""
    for text in locations:
        fs, path = open_location(text, storage)
        yield Found(fs, WalkedLocation(path, ""), is_given=True)
    below = find(locations, storage, SnapshotLists(), printer.observer, looks=False)
    for found, _ in with_tables(below, locations, storage):
        yield found


def _compacted(places: Iterable[Found], run_id: str, work: Procedure) -> list[tuple[Found, LogEntry]]:
    """What a night compacted, by the logs of its locations; a restore undoes its cleaning alone."""
    read = work.each(once(places), lambda found: read_log(found.fs, found.location.path), lambda *_: None)
    return [
        (found, entry)
        for found, entries in read
        for entry in entries or ()
        if entry.verb == "compact" and "night" in entry.facts and entry.run.startswith(run_id)
    ]


def _said(compacted: Sequence[tuple[Found, LogEntry]]) -> str:
    found, entry = compacted[0]
    more = f" and {human_count(len(compacted) - 1, 'more location')}" if len(compacted) > 1 else ""
    how = what(replace(entry, facts={name: fact for name, fact in entry.facts.items() if name != "night"}))
    return f"compacted {found.shown}{more} ({how or entry.result}), which stays as it is: readers see the same rows"


def _chosen(every: Sequence[_Trash], run_id: str | None, given: str, printer: RestorePrinter) -> _Due:
    """One run of each location: the newest that matches.

    Nothing was moved by a run without a manifest: those are passed over, as long as there is another.

    Raises:
        NotFoundError: there is none at all.
    """
    if not every and not printer.is_whole:
        return []
    if not every:
        why = "there is no trash at or below it, or it was purged"
        raise NotFoundError(f"nothing to restore in {given}", why, "acidctl purge and --no-trash leave nothing behind")
    last = max((run.id for _, runs in every for run in runs if run.state in USABLE), default="")
    due, passed_over, others = [], [], 0
    for found, runs in every:
        matching = [run for run in runs if run.id.startswith(last if run_id is None else run_id)]
        chosen = newest(matching)
        broken = [run for run in (runs if chosen and run_id is None else matching) if run.state not in USABLE]
        if chosen:
            due.append((found, chosen))
            broken = [run for run in broken if run.id > chosen.id]
        elif not matching:
            others += any(run.state in USABLE for run in runs)
        passed_over += [(found, run) for run in broken[-1:]]
    if not due and passed_over:
        return passed_over[-1:]  # which says why it cannot be restored
    if not due:
        raise NotFoundError(f"no such run in the trash of {given}", "", "see `acidctl restore --list`")
    for found, run in passed_over[:MOST_NOTES]:
        note(f"{found.shown}: passed over {run.id}: it was interrupted, nothing can be restored from it")
    if others:
        count = human_count(others, "location holds", "locations hold")
        note(f"{count} other runs: --list shows them, --run ID restores one")
    return due


def _restore(due: _Due, work: Procedure, printer: RestorePrinter) -> None:
    with progress("restoring", len(due)) as bar:
        for (found, _), done in work.each(
            due,
            lambda one: bring_back(one[0].fs, one[1], work.locking),
            lambda one, error: printer.lost(one[0], error),
        ):
            bar.advance()
            if done is None:
                printer.postponed(found.shown)
            else:
                printer.done(done)
    if len(due) > 1:
        printer.summary(len(due))


# --- what it says ---

_PHASES = {
    "staged": "incomplete: interrupted, nothing can be restored from it",
    "restored": "restored already",
    "purged": "incomplete: it was being purged, nothing can be restored from it",
}


def _phase(run: TrashRun) -> str:
    return f"cannot be used: {run.problem}" if run.problem else _PHASES[run.state]


def _list_runs(every: Sequence[_Trash], printer: RestorePrinter, *, is_one: bool) -> None:
    """Print the runs of one location by their entries, those of several by their ids."""
    if not every:
        note("the trash is empty")
    together: dict[str, list[TrashRun]] = {}
    for found, its_runs in every:
        for run in its_runs:
            together.setdefault(run.id, []).append(run)
            if not printer.is_table:
                printer.put(in_trash(found.fs, run))
    if not printer.is_table:
        return
    for run_id, runs in sorted(together.items()):
        whole = [run for run in runs if run.is_complete]
        count = human_count(sum(len(run.names) for run in whole), "entry", "entries")
        what = f"{count}  {human_bytes(sum(run.bytes for run in whole))}"
        if is_one:
            names = " ".join(whole[0].names) if whole else ""
            put_text(f"{run_id}  {what}  {names}" if whole else f"{run_id or TRASH}  {_phase(runs[0])}")
            continue
        rest = f"  ({len(runs) - len(whole)} incomplete or damaged)" if len(whole) < len(runs) else ""
        put_text(f"{run_id or TRASH}  {human_count(len(runs), 'location')}  {what}{rest}")


class RestorePrinter(Outcomes):
    """What is restored, location by location.

    Attributes:
        is_alone: there is one location.
    """

    def __init__(self, output: str, run: RunReport) -> None:
        super().__init__(output, run, self._text, trash_counts)
        self.is_alone = False
        self._restored: list[Restored] = []
        self._changed = 0

    def done(self, outcome: Restored) -> None:
        """A run is back."""
        self._restored.append(outcome)
        self.put(outcome)
        if outcome.not_compared:
            why = outcome.not_compared
            warn(f"{outcome.location}: its state could not be compared with the one before: {why}")
        changes = outcome.changes
        self._changed += bool(changes)
        if not self.is_table:
            return
        if changes == () and self.is_alone:
            note("the state is the one before that cleaning")
        elif changes and self._changed <= MOST_NOTES:
            where = "" if self.is_alone else f"{outcome.location}: "
            note(f"{where}otherwise than before that cleaning: {'; '.join(changes)}")

    def summary(self, locations: int) -> None:
        """What became of all locations together."""
        self.tell()
        if self._changed:
            count = human_count(self._changed, "location differs", "locations differ")
            note(f"{count} from the state before that cleaning: others wrote there meanwhile")
        size = human_bytes(sum(one.run.bytes for one in self._restored))
        self.sum_up(locations, f"{len(self._restored)} restored, {size}")

    def kind_of(self, outcome: Outcome) -> str:
        return {Result.PLANNED: "to restore", Result.RESTORED: "restored"}.get(outcome.result, super().kind_of(outcome))

    def _text(self, outcome: Outcome) -> str:
        if isinstance(outcome, Restored):
            names = " ".join(outcome.names) if self.is_alone else some_of(outcome.names, NAMES_SHOWN)
            done = f"{len(outcome.names)} restored: {names}"
            return f"{outcome.location}: {done if outcome.names else f'{outcome.run.id} was restored already'}"
        if not isinstance(outcome, InTrash):
            return ""
        run = outcome.run
        count = f"{human_count(len(run.names), 'entry', 'entries')}, {human_bytes(run.bytes)}"
        what = f"{count}: {some_of(run.names, NAMES_SHOWN)}" if run.is_complete else _phase(run)
        return f"{outcome.location}: {run.id}: {what}"
