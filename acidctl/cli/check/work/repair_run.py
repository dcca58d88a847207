"""What the commands of `acidctl repair` have in common: where to look, what to show, whom to ask."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from acidctl.acid.layout import TableType
from acidctl.acid.names import AcidDirectory, AcidNameError, parse_directory
from acidctl.cli.options.many_locations import Work
from acidctl.cli.options.shared import refuse_unused
from acidctl.cli.output.console import Records, console, human_bytes, human_count, note, put_line, warn
from acidctl.cli.output.screen import Column, FittedTable, Row
from acidctl.cli.output.strangers import Strangers
from acidctl.cli.report.failures import Failures
from acidctl.errors import AcidctlError, ExitStatus, NotFoundError
from acidctl.location.evidence import refuse_part_of_others
from acidctl.location.find import Found as Place
from acidctl.location.find import find
from acidctl.location.journal import State
from acidctl.location.lists import SnapshotLists
from acidctl.location.lock import Locking
from acidctl.location.neighbours import Surroundings
from acidctl.location.walk import Location, Observer
from acidctl.repair.apply import (
    SETTLED,
    apply_repair,
    forget,
    plan_repair,
    require_offline,
    require_renames,
    undo_last,
    unfinished,
)
from acidctl.repair.backup import RepairRun, list_runs
from acidctl.repair.plan import Kind, RepairPlan, Scope
from acidctl.storage.port import FileSystem, base_name, parent_of
from acidctl.storage.registry import open_location

if TYPE_CHECKING:
    from acidctl.cli.report.run_report import RunReport
    from acidctl.storage.options import StorageOptions


@dataclass(frozen=True, slots=True)
class Options:
    """What the user gave."""

    locations: tuple[str, ...]
    dry_run: bool
    yes: bool
    exit_code: bool
    storage: StorageOptions
    output: str
    run: RunReport
    records: Records
    locking: Locking
    table_type: str | None = None
    force: bool = False
    offline: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """A location with what is to be done there.

    Attributes:
        left: repairs that were interrupted; they are finished first.
    """

    plan: RepairPlan
    scope: Scope
    left: tuple[RepairRun, ...]

    @property
    def fs(self) -> FileSystem:
        return self.plan.snapshot.fs

    @property
    def path(self) -> str:
        return self.plan.snapshot.path

    @property
    def shown(self) -> str:
        return self.fs.display(self.path)

    @property
    def has_work(self) -> bool:
        return bool(self.plan.fixes or self.left)


def repair(kind: str, **asked: Any) -> int:
    """Plan, show, ask, do; the exit status."""
    options = Options(**asked, records=Records(asked["output"]))
    failures = Failures(options.run)
    found = list(_plans(Kind(kind), options, failures))
    work = [one for one in found if one.has_work]
    for one in found:
        _show(one, options)
    if work and not options.dry_run:
        for one in work:
            require_offline(one.plan, offline=options.offline)
        for one in work:
            require_renames(one.fs, one.path)
        _confirm(work, options.yes)
        for one in work:
            _apply(one, options, failures)
    # What is broken and stays broken is no success.
    refused = ExitStatus.REFUSED if any(one.plan.refused for one in found) else 0
    status = max(failures.worst, refused)
    return ExitStatus.NOTHING_TO_DO if options.exit_code and not work and not status else status


def _plans(kind: Kind, options: Options, failures: Failures) -> Iterator[Found]:
    now = time.time()
    seen: set[tuple[str, str, str]] = set()
    strangers = Strangers(failures.add, lambda found, why: options.run.add(found.shown, "skipped", reason=why.text))
    said = TableType(options.table_type) if options.table_type else None
    for place, inside in _places(options, strangers, said, failures):
        fs, path = place.fs, place.location.path
        if (fs.url, path, inside) in seen:
            continue
        seen.add((fs.url, path, inside))
        scope = Scope(now, inside, options.force)
        try:
            snapshot = place.snapshot(SnapshotLists())
            options.run.saw(snapshot)
            plan, left = plan_repair(snapshot, kind, scope), tuple(unfinished(fs, path))
            begun = {path for run in left if run.state is State.INTERRUPTED for path in run.paths}
            refused = tuple(one for one in plan.refused if one.path not in begun)  # those are finished first
            yield Found(replace(plan, refused=refused), scope, left)
        except AcidctlError as error:
            failures.add(error, fs.display(path))
    strangers.tell()


def _places(
    options: Options, strangers: Strangers, said: TableType | None, failures: Failures
) -> Iterator[tuple[Place, str]]:
    """(location, path inside it): a user may also name a directory of a location, or a file."""
    surroundings = Surroundings()
    for text in options.locations:
        try:
            fs, path = open_location(text, options.storage.of(text))
            location, inside = _location_of(fs, path)
            top = fs.display(location)
            places = find([top], options.storage, SnapshotLists(), strangers.observer, surroundings=surroundings)
            if inside:
                refuse_part_of_others(top, options.storage, surroundings)
                places = iter([Place(open_location(top, options.storage)[0], Location(location, ""), True)])
            for found in strangers.changeable(places, said):
                yield found, inside
        except AcidctlError as error:
            if len(options.locations) == 1:
                raise
            failures.add(error)


def _location_of(fs: FileSystem, path: str) -> tuple[str, str]:
    """The location, and what is named of it."""
    is_dir = fs.stat(path).is_dir
    top = path if is_dir else parent_of(path)
    if _acid_directory(top) is None:
        if not is_dir:
            raise NotFoundError(
                f"cannot repair {fs.display(path)}",
                "it lies in no base, delta or delete delta: it has no ACID metadata of its own",
                "give a table, a partition, or a file in one of its ACID directories",
            )
        return path, ""
    while _acid_directory(parent_of(top)) is not None:
        top = parent_of(top)
    location = parent_of(top)
    return location, path.removeprefix(location).lstrip("/")


def _acid_directory(path: str) -> AcidDirectory | None:
    try:
        return parse_directory(base_name(path))
    except AcidNameError:
        return None


def _show(one: Found, options: Options) -> None:
    plan = one.plan
    for left in one.left:
        what = "being undone" if left.state is State.UNDOING else "interrupted"
        note(
            f"{one.shown}: {left.id} ({left.kind} of {', '.join(left.paths)}) was {what}: it is finished first; "
            "until then readers see whole files, old or new"
        )
        for step in left.told:
            note(f"its step: {step}")
    is_last = options.dry_run or not one.has_work
    result = "planned" if one.has_work else "refused" if plan.refused else "nothing-to-do"
    if is_last:
        options.run.add(one.shown, result, **_counts(one))
    if options.output != "table":
        if is_last:
            options.records.put(_record(one, result))
    elif plan.fixes:
        size = human_bytes(plan.bytes)
        put_line(f"{one.shown}: {human_count(len(plan.fixes), 'repair')} of {plan.kind}, {size}")
        rows = tuple(Row((fix.path, human_bytes(fix.bytes), fix.problem), fix.remedy) for fix in plan.fixes)
        columns = (Column("what"), Column("size", right=True), Column("problem"))
        FittedTable(columns, "repair", rows).print(console())
    elif not one.left and not plan.refused:
        put_line(f"{one.shown}: nothing to repair")
    for refused in plan.refused:
        warn(f"{one.shown}: {refused.path} cannot be repaired safely: {refused.why}")
    for hint in dict.fromkeys(refused.hint for refused in plan.refused if refused.hint):
        note(hint)


def _counts(one: Found) -> dict[str, Any]:
    return {"fixes": len(one.plan.fixes), "refused": len(one.plan.refused), "interrupted": len(one.left)}


def _record(one: Found, result: str) -> dict[str, Any]:
    plan = one.plan
    return {
        "schema_version": 1,
        "location": one.shown,
        "repair": plan.kind.value,
        "result": result,
        "bytes": plan.bytes,
        "fixes": [
            {"path": fix.path, "problem": fix.problem, "remedy": fix.remedy, "bytes": fix.bytes} for fix in plan.fixes
        ],
        "refused": [{"path": r.path, "reason": r.why, "hint": r.hint} for r in plan.refused],
        "interrupted": [left.id for left in one.left],
    }


def _confirm(work: Sequence[Found], yes: bool) -> None:
    count = sum(len(one.plan.fixes) + len(one.left) for one in work)
    what = f"{human_count(count, 'repair')}, {human_bytes(sum(one.plan.bytes for one in work))}"
    Work(yes).confirm(f"{what} would be repaired", f"Repair: {what}?", "nothing was repaired")


def _apply(one: Found, options: Options, failures: Failures) -> None:
    try:
        done = apply_repair(one.plan, one.scope, options.locking)
    except AcidctlError as error:
        failures.add(error, one.shown)
        return
    written = done.bytes if done else None
    options.run.add(
        one.shown, "repaired", is_changed=True, written=written, run=done.id if done else None, **_counts(one)
    )
    if options.output != "table":
        options.records.put({**_record(one, "repaired"), "run": done.id if done else None})
        return
    for left in one.left:
        put_line(f"{one.shown}: {left.id} finished")
    if done:
        count = human_count(len(done.paths), "repair")
        put_line(f"{one.shown}: {count} done as {done.id}, {human_bytes(done.bytes)}")
        note(f"undo: acidctl repair undo {one.shown}   free the space: acidctl repair forget {one.shown}")


def undo_one(
    location: str,
    list_only: bool,
    run_id: str | None,
    locking: Locking,
    storage: dict[str, str],
    output: str,
    run: RunReport,
) -> None:
    """`acidctl repair undo`."""
    if list_only:
        refuse_unused("--list", "run_id", "lock", "lock_wait", "break_lock")
    records = Records(output)
    fs, path = open_location(location, storage)
    fs.list_dir(path)
    if list_only:
        runs = list_runs(fs, path)
        if not runs:
            note("no repairs")
        for one in runs:
            records.put(_run_record(fs, one, one.state.value))
            if output == "table":
                what = f"{one.kind}  {human_bytes(one.bytes)}  {' '.join(one.paths)}" if one.kind else "changed nothing"
                put_line(f"{one.id}  {one.state}  {what}")
        return
    done = undo_last(fs, path, run_id, locking, _tell_steps)
    run.add(fs.display(path), "undone", restored=done.bytes, run=done.id)
    records.put(_run_record(fs, done, "undone"))
    if output == "table":
        put_line(f"{fs.display(path)}: {done.id} undone: {done.kind} of {' '.join(done.paths)}")


def _tell_steps(run: RepairRun) -> None:
    """What was done, and is taken back now, last step first."""
    for step in reversed(run.told):
        note(f"taking back: {step}")


def _run_record(fs: FileSystem, one: RepairRun, result: str) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "location": fs.display(one.location),
        "result": result,
        "run": one.id,
        "repair": one.kind,
        "paths": list(one.paths),
        "bytes": one.bytes,
    }


def forget_all(
    locations: tuple[str, ...], dry_run: bool, yes: bool, locking: Locking, storage: dict[str, str], run: RunReport
) -> int:
    """`acidctl repair forget`."""
    failures = Failures(run)
    found: dict[tuple[str, str], tuple[FileSystem, list[RepairRun]]] = {}
    for one in find(locations, storage, SnapshotLists(), Observer(failures.add), looks=False):
        try:
            if runs := list_runs(one.fs, one.location.path):
                found[one.fs.url, one.location.path] = one.fs, runs
        except AcidctlError as error:
            failures.add(error, one.shown)
    going = [run for _, runs in found.values() for run in runs if run.state in SETTLED]
    for fs, runs in found.values():
        for each in runs:
            what = f"{each.kind}, {human_bytes(each.bytes)}" if each.kind else "what an interrupted run left"
            kept = "" if each.state in SETTLED else f", {each.state}: it stays"
            put_line(f"{fs.display(each.path)}: {what}{kept}")
    if not going:
        put_line("there are no backups")
    if not going or dry_run:
        return failures.worst
    count = human_count(len(going), "backup")
    Work(yes).confirm(f"{count} would be deleted", f"Delete {count} for good?", "nothing was deleted")
    forgotten = 0
    for (_, path), (fs, _) in found.items():
        try:
            gone = forget(fs, path, locking)
        except AcidctlError as error:
            failures.add(error, fs.display(path))
            continue
        forgotten += len(gone)
        run.add(fs.display(path), "forgotten", removed=sum(one.bytes for one in gone), runs=len(gone))
    put_line(f"{human_count(forgotten, 'backup')} deleted")
    return failures.worst
