"""Mend what is wrong on disk: show the plan, ask, back up, swap in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from acidctl.base.errors import AcidctlError
from acidctl.verbs.options import Kind, LockOptions, Options, group, option

if TYPE_CHECKING:
    from acidctl.location.table_location import TableLocation
    from acidctl.outcome import Outcome
    from acidctl.verbs.events import Events
    from acidctl.verbs.selection import Selection


@dataclass(frozen=True, kw_only=True)
class RepairOptions(Options):
    """The problems to mend, and how sure the user is that nothing else is at work."""

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

    from acidctl.location.change.own_files import new_run_id
    from acidctl.outcome import Outcome, Result
    from acidctl.repair.apply import require_possible
    from acidctl.repair.plan import RepairKind, Scope
    from acidctl.repair.request import RepairOutcome, carry_out, plan_location
    from acidctl.verbs.events import Question
    from acidctl.wording import human_bytes, human_count

    kinds = [kind for kind in RepairKind if kind.value in options.only] or list(RepairKind)
    now = time.time()
    due: list[RepairOutcome] = []
    for found, below in _places(selection, events, inside):
        try:
            planned = plan_location(found, kinds, Scope(now, below, options.force))
            if not options.dry_run:
                require_possible(planned.plan, offline=options.offline)
        except AcidctlError as error:
            yield Outcome(location=found.shown, result=Result.FAILED, error=error)
            continue
        due += [planned] if planned.has_work else []
        yield planned
    events.looked_through()
    if options.dry_run or not due:
        return
    count = sum(len(planned.plan.fixes) + len(planned.interrupted) for planned in due)
    what = f"{human_count(count, 'repair')}, {human_bytes(sum(planned.plan.bytes for planned in due))}"
    locations = tuple(planned.location for planned in due)
    events.confirm(Question(f"{what} would be done", f"Repair: {what}?", "nothing was repaired", locations))
    locking, run_id = options.locks.locking(events.warn), new_run_id()
    for planned in due:
        try:
            # Several places inside a location are repaired one after the other; all but the first get ids of their own.
            yield carry_out(planned, locking, run_id)
        except AcidctlError as error:
            yield Outcome(location=planned.location, result=Result.FAILED, error=error)


def _places(selection: Selection, events: Events, known_inside: str) -> Iterator[tuple[TableLocation, str]]:
    """Yield each location that may be changed, and the named path inside it; all are checked before the first."""
    from acidctl.location.arguments import at_its_line
    from acidctl.location.evidence import refuse_part_of_others
    from acidctl.location.find import changeable, find, refuse_unusable
    from acidctl.location.other_formats import FormatDetector
    from acidctl.location.snapshot_resolver import SnapshotResolver
    from acidctl.location.table_location import TableLocation
    from acidctl.location.walk import Observer, WalkedLocation
    from acidctl.repair.request import location_of
    from acidctl.storage.options import StorageOptions
    from acidctl.storage.registry import open_location

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
            location, inside = location_of(fs, path)
            refuse_part_of_others(fs.display(location), storage, formats)
            named.append((fs.display(location), inside))
        except AcidctlError as error:
            raise at_its_line(error, text) from error
    refuse_unusable([top for top, _ in named], storage, resolver, selection.table_type, surroundings=formats)
    observer = Observer(lambda error: events.failed("", error), events.coverage)
    seen: set[tuple[str, str, str]] = set()
    for top, inside in named:
        if inside:
            fs, path = open_location(top, storage)
            places = iter([TableLocation(fs, WalkedLocation(path, ""), True, resolver)])
            events.coverage.begin(top)
            events.coverage.met(top)
        else:
            places = find([top], storage, resolver, observer, surroundings=formats)
        for found in changeable(places, selection.table_type, events.skipped):
            key = (found.fs.url, found.location.path, inside)
            if key not in seen:
                seen.add(key)
                yield found, inside
