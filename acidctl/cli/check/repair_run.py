"""The work of `acidctl repair`: plan, show, ask and repair; undo, and delete backups."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from acidctl.acid.listing import TableType
from acidctl.base.errors import AcidctlError, ExitStatus
from acidctl.cli.options.shared import refuse_unused
from acidctl.cli.output.console import Records, console, note, put_line, warn
from acidctl.cli.output.screen import FittedTable, Row, ScreenColumn
from acidctl.cli.report.outcomes import Outcomes, RunReporter
from acidctl.cli.report.run_report import RunReport
from acidctl.cli.report.verb_screen import confirm
from acidctl.location.arguments import at_its_line
from acidctl.location.change.journal import RunState
from acidctl.location.change.lock import Locking
from acidctl.location.evidence import Evidence, refuse_part_of_others
from acidctl.location.find import changeable, find, refuse_unusable
from acidctl.location.other_formats import FormatDetector
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.location.table_location import TableLocation
from acidctl.location.walk import WalkedLocation
from acidctl.outcome import Outcome, Result
from acidctl.repair.apply import SETTLED, forget, require_possible, undo_last
from acidctl.repair.backup import RepairRun, backup_runs
from acidctl.repair.plan import RepairKind, Scope
from acidctl.repair.request import BackedUp, RepairOutcome, carry_out, location_of, plan_location
from acidctl.storage.registry import StorageOptions, open_location
from acidctl.wording import human_bytes, human_count


def work(
    kind: str,
    *,
    locations: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    storage: StorageOptions,
    output: str,
    run: RunReport,
    locking: Locking,
    table_type: TableType | None,
    force: bool = False,
    offline: bool = False,
) -> int:
    """Plan the repairs, show them, ask, and carry them out; return the exit status."""
    printer = RepairPrinter(output, run)
    planned = list(_plans(RepairKind(kind), _places(locations, storage, table_type, printer), printer, force=force))
    printer.looked_through()
    printer.tell_strangers()
    due = [repair for repair in planned if repair.has_work]
    for repair in planned:
        printer.planned(repair, is_last=dry_run or not repair.has_work)
    if due and not dry_run:
        for repair in due:
            require_possible(repair.plan, offline=offline)
        _confirm(due, yes)
        for repair in due:
            try:
                printer.done(carry_out(repair, locking))
            except AcidctlError as error:
                printer.failed(repair.location, error)
    # A location that stays broken is not a success.
    is_refused = any(repair.plan.refused for repair in planned) and printer.status in (0, ExitStatus.NOT_LOOKED_AT)
    return ExitStatus.REFUSED if is_refused else printer.status


def _plans(
    kind: RepairKind, places: Iterator[tuple[TableLocation, str]], printer: RepairPrinter, *, force: bool
) -> Iterator[RepairOutcome]:
    now = time.time()
    seen: set[tuple[str, str, str]] = set()
    for found, inside in places:
        key = (found.fs.url, found.location.path, inside)
        if key in seen:
            continue
        seen.add(key)
        try:
            planned = plan_location(found, kind, Scope(now, inside, force))
        except AcidctlError as error:
            printer.failed(found.shown, error)
        else:
            printer.run.saw(planned.plan.snapshot)
            yield planned


def _places(
    locations: tuple[str, ...], storage: StorageOptions, said: TableType | None, printer: RepairPrinter
) -> Iterator[tuple[TableLocation, str]]:
    """Yield each location that may be changed, and the named path inside of it."""
    surroundings = FormatDetector()
    named = []
    for text in locations:  # all are checked before any is changed
        try:
            fs, path = open_location(text, storage.of(text))
            location, inside = location_of(fs, path)
            refuse_part_of_others(fs.display(location), storage, surroundings)
            named.append((fs.display(location), inside))
        except AcidctlError as error:
            raise at_its_line(error, text) from error
    refuse_unusable([top for top, _ in named], storage, SnapshotResolver(), said, surroundings=surroundings)
    for top, inside in named:
        places = find([top], storage, SnapshotResolver(), printer.observer, surroundings=surroundings)
        if inside:
            fs, path = open_location(top, storage)
            places = iter([TableLocation(fs, WalkedLocation(path, ""), True, SnapshotResolver())])
            printer.coverage.begin(top)
            printer.coverage.met(top)
        for found in changeable(places, said, printer.skipped):
            yield found, inside


def _confirm(due: Sequence[RepairOutcome], yes: bool) -> None:
    count = sum(len(repair.plan.fixes) + len(repair.left) for repair in due)
    what = f"{human_count(count, 'repair')}, {human_bytes(sum(repair.plan.bytes for repair in due))}"
    confirm(f"{what} would be repaired", f"Repair: {what}?", "nothing was repaired", yes=yes)


def undo_one(
    *,
    location: str,
    list_only: bool,
    run_id: str | None,
    locking: Locking,
    storage: dict[str, str],
    output: str,
    run: RunReport,
) -> None:
    """Do `acidctl repair undo`."""
    if list_only:
        refuse_unused("--list", "run_id", "lock", "lock_wait", "break_lock")
    fs, path = open_location(location, storage)
    fs.list_dir(path)
    shown = fs.display(path)
    if list_only:
        _list_runs(shown, backup_runs(fs, path), output)
        return
    printer = Outcomes(output, run, _text_of)
    done = undo_last(fs, path, run_id, locking, _tell_steps)
    printer.put(BackedUp(location=shown, result=Result.UNDONE, run=done))


def _list_runs(shown: str, runs: Sequence[RepairRun], output: str) -> None:
    records = Records(output)
    if not runs:
        note("no repairs")
    for run in runs:
        record = BackedUp(location=shown, result=Result.PLANNED, run=run).record()
        records.put({**record, "result": run.state.value})
        if output == "table":
            what = f"{run.kind}  {human_bytes(run.bytes)}  {' '.join(run.paths)}" if run.kind else "changed nothing"
            put_line(f"{run.id}  {run.state}  {what}")


def _tell_steps(run: RepairRun) -> None:
    for step in reversed(run.told):
        note(f"taking back: {step}")


def forget_all(
    *, locations: tuple[str, ...], dry_run: bool, yes: bool, locking: Locking, storage: dict[str, str], run: RunReport
) -> int:
    """Do `acidctl repair forget`, and return the exit status."""
    visits = RunReporter(run)
    refuse_unusable(locations, storage, SnapshotResolver(), surroundings=None)
    every: dict[tuple[str, str], tuple[TableLocation, list[RepairRun]]] = {}
    for found in find(locations, storage, SnapshotResolver(), visits.observer, looks=False):
        try:
            if runs := backup_runs(found.fs, found.location.path):
                every[found.fs.url, found.location.path] = found, runs
        except AcidctlError as error:
            visits.failed(found.shown, error)
    visits.looked_through()
    going = [backup for _, runs in every.values() for backup in runs if backup.state in SETTLED]
    for found, runs in every.values():
        for backup in runs:
            what = f"{backup.kind}, {human_bytes(backup.bytes)}" if backup.kind else "what an interrupted run left"
            kept = "" if backup.state in SETTLED else f", {backup.state}: it stays"
            put_line(f"{found.fs.display(backup.path)}: {what}{kept}")
    if not going:
        put_line("there are no backups")
    if not going or dry_run:
        return visits.status
    count = human_count(len(going), "backup")
    confirm(f"{count} would be deleted", f"Delete {count} for good?", "nothing was deleted", yes=yes)
    forgotten = 0
    for found, _ in every.values():
        try:
            gone = forget(found.fs, found.location.path, locking)
        except AcidctlError as error:
            visits.failed(found.shown, error)
            continue
        forgotten += len(gone)
        removed = {"removed": sum(backup.bytes for backup in gone)}
        run.add(found.shown, "forgotten", bytes_by_use=removed, runs=len(gone))
    put_line(f"{human_count(forgotten, 'backup')} deleted")
    return visits.status


# --- output ---


class RepairPrinter(Outcomes):
    """Prints plans of repairs and their results; failed and skipped locations are not results of their own."""

    def __init__(self, output: str, run: RunReport) -> None:
        super().__init__(output, run, _text_of)

    def failed(self, location: str, error: AcidctlError) -> None:
        RunReporter.failed(self, location, error)

    def skipped(self, found: TableLocation, evidence: Evidence) -> None:
        super().skipped(found, evidence)
        self.run.add(found.shown, Result.SKIPPED, reason=evidence.text)

    def planned(self, repair: RepairOutcome, *, is_last: bool) -> None:
        """Print what is wrong, what will be done, and what cannot be repaired."""
        location, plan = repair.location, repair.plan
        for run in repair.left:
            what = "being undone" if run.state is RunState.UNDOING else "interrupted"
            note(
                f"{location}: {run.id} ({run.kind} of {', '.join(run.paths)}) was {what}: it is finished first; "
                "until then readers see whole files, old or new"
            )
            for step in run.told:
                note(f"its step: {step}")
        self.put(repair, is_last=is_last)
        if self.is_table and plan.fixes:
            rows = tuple(Row((fix.path, human_bytes(fix.bytes), fix.problem), fix.remedy) for fix in plan.fixes)
            columns = (ScreenColumn("what"), ScreenColumn("size", right=True), ScreenColumn("problem"))
            FittedTable(columns, "repair", rows).print(console())
        for refused in plan.refused:
            warn(f"{location}: {refused.path} cannot be repaired safely: {refused.why}")
        for hint in dict.fromkeys(refused.hint for refused in plan.refused if refused.hint):
            note(hint)

    def done(self, repair: RepairOutcome) -> None:
        """Print the result of a plan that was carried out."""
        if self.is_table:
            for run in repair.left:
                put_line(f"{repair.location}: {run.id} finished")
        self.put(repair)
        if self.is_table and repair.run:
            note(f"undo: acidctl repair undo {repair.location}")


def _text_of(outcome: Outcome) -> str:
    if isinstance(outcome, BackedUp):
        run = outcome.run
        return f"{outcome.location}: {run.id} undone: {run.kind} of {' '.join(run.paths)}"
    if outcome.result is Result.NOTHING_TO_DO:
        return f"{outcome.location}: nothing to repair"
    if not isinstance(outcome, RepairOutcome):
        return ""
    if outcome.result is Result.REPAIRED:
        if not outcome.run:
            return ""
        count = human_count(len(outcome.run.paths), "repair")
        return f"{outcome.location}: {count} done as {outcome.run.id}, {human_bytes(outcome.run.bytes)}"
    if not outcome.plan.fixes:
        return ""
    plan = outcome.plan
    count = human_count(len(plan.fixes), "repair")
    return f"{outcome.location}: {count} of {plan.kind}, {human_bytes(plan.bytes)}"
