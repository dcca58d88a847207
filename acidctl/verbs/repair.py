"""Mend what is wrong on disk: show the plan, ask, back up, swap in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from acidctl.base.errors import AcidctlError, NotFoundError, unexpected
from acidctl.verbs.options import Kind, LockOptions, Options, group, option

if TYPE_CHECKING:
    from acidctl.location.table_location import TableLocation
    from acidctl.outcome import Outcome
    from acidctl.repair.plan import RepairPlan
    from acidctl.storage.port import FileSystem
    from acidctl.verbs.events import Events, Question
    from acidctl.verbs.selection import Selection


@dataclass(frozen=True, kw_only=True)
class RepairOptions(Options):
    """The options of `acidctl repair`."""

    only: tuple[str, ...] = option(
        (),
        "--only",
        kind=Kind.LIST,
        choices=("empty-result", "nested", "flush-length", "key-index", "version-file"),
        help="Mend only this kind of problem. Repeatable. Default: all kinds.",
    )
    dry_run: bool = option(False, "-n", "--dry-run", help="Show the plan and stop.")
    force: bool = option(
        False, "--force", typed=True, help="Treat writers and compactions of the last hour as dead or finished."
    )
    offline: bool = option(
        False, "--offline", typed=True, help="Nothing reads the table: a directory may be missing for a moment."
    )
    locks: LockOptions = group(LockOptions)


def repair(selection: Selection, options: RepairOptions, events: Events, *, inside: str = "") -> Iterator[Outcome]:
    """Yield the plan of every location, then, after a yes, the result of each that had something to repair.

    A place may also be a directory of a location, or one file.

    Args:
        inside: examine only this path of the locations that the selection knows.

    Raises:
        RefusedError: it was not confirmed, or a place may not be changed.
    """
    import time
    from dataclasses import replace

    from acidctl.location.change.own_files import new_run_id
    from acidctl.outcome import Outcome, Result
    from acidctl.repair.apply import apply_repair, plan_repair, require_possible
    from acidctl.repair.plan import RepairKind, Scope

    kinds = [RepairKind(kind) for kind in options.only] or list(RepairKind)
    now = time.time()
    due: list[RepairPlan] = []
    for found, below in _places(selection, events, inside):
        try:
            plan = plan_repair(found.snapshot(), kinds, Scope(now, below, options.force))
            if not options.dry_run:
                require_possible(plan, offline=options.offline)
        except Exception as error:  # noqa: BLE001 - the other locations go on
            problem = unexpected(error, f"while {found.shown} was checked")
            yield Outcome(location=found.shown, result=Result.FAILED, error=problem)
            continue
        due += [plan] if plan.result is Result.PLANNED else []
        yield plan
    events.looked_through()
    if options.dry_run or not due:
        return
    events.confirm(_question(due))
    locking, run_id = options.locks.locking(events.warn), new_run_id()
    for plan in due:
        try:
            # Several places inside a location are repaired one after the other; all but the first get ids of their own.
            yield replace(plan, result=Result.REPAIRED, run=apply_repair(plan, locking, run_id))
        except Exception as error:  # noqa: BLE001 - as above
            problem = unexpected(error, f"while {plan.location} was repaired")
            yield Outcome(location=plan.location, result=Result.FAILED, error=problem)


def _question(due: list[RepairPlan]) -> Question:
    from acidctl.verbs.events import Question
    from acidctl.wording import human_bytes, human_count

    count = human_count(sum(len(plan.fixes) + len(plan.interrupted) for plan in due), "repair")
    what = f"{count}, {human_bytes(sum(plan.bytes for plan in due))}"
    locations = tuple(plan.location for plan in due)
    return Question(f"{what} would be done", f"Repair: {what}?", "nothing was repaired", locations)


def _places(selection: Selection, events: Events, known_inside: str) -> Iterator[tuple[TableLocation, str]]:
    """Yield each location that may be changed, and the named path inside it; all are checked before the first."""
    from acidctl.location.arguments import at_its_line
    from acidctl.location.evidence import refuse_part_of_others
    from acidctl.location.find import changeable, find, refuse_unusable
    from acidctl.location.other_formats import FormatDetector
    from acidctl.location.snapshot_resolver import SnapshotResolver
    from acidctl.location.table_location import TableLocation
    from acidctl.location.walk import WalkedLocation
    from acidctl.storage.options import StorageOptions
    from acidctl.storage.registry import open_location
    from acidctl.verbs.selection import observer_of

    if selection.known is not None:
        for found in changeable(iter(selection.known), selection.table_type, events.skipped):
            yield found, known_inside
        return
    formats, storage, resolver = FormatDetector(), selection.storage, SnapshotResolver()
    named = []
    for text in selection.places:
        try:
            # To find the location, a file's parents are examined; changes go through the links of the owner alone.
            fs, path = open_location(text, storage.of(text) if isinstance(storage, StorageOptions) else storage)
            location, inside = _location_of(fs, path)
            refuse_part_of_others(fs.display(location), storage, formats)
            named.append((fs.display(location), inside))
        except AcidctlError as error:
            raise at_its_line(error, text) from error
    refuse_unusable([top for top, _ in named], storage, resolver, selection.table_type, formats=formats)
    seen: set[tuple[str, str, str]] = set()
    for top, inside in named:
        if inside:
            fs, path = open_location(top, storage)
            places = iter([TableLocation(fs, WalkedLocation(path, ""), True, resolver)])
            events.coverage.begin(top)
            events.coverage.met(top)
        else:
            places = find([top], storage, resolver, observer_of(events), formats=formats)
        for found in changeable(places, selection.table_type, events.skipped):
            key = (found.fs.url, found.location.path, inside)
            if key not in seen:
                seen.add(key)
                yield found, inside


def _location_of(fs: FileSystem, path: str) -> tuple[str, str]:
    """Split a path that names a location, a directory of one, or a file, into the location and the path below it.

    Raises:
        NotFoundError: the path is a file outside of any ACID directory.
    """
    from acidctl.acid.names import acid_directory
    from acidctl.storage.port import base_name, parent_of

    is_dir = fs.stat(path).is_dir
    location = path if is_dir else parent_of(path)
    if acid_directory(base_name(location)) is None:
        if is_dir:
            return path, ""
        raise NotFoundError(
            f"cannot repair {fs.display(path)}",
            "it lies in no base, delta or delete delta: it has no ACID metadata of its own",
            "give a table, a partition, or a file in one of its ACID directories",
        )
    while acid_directory(base_name(location)) is not None:
        location = parent_of(location)
    return location, path.removeprefix(location).lstrip("/")
