"""Look at locations without changing anything: the status of each, and of all of them together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from acidctl.acid.layout import data_files_of, original_files
from acidctl.acid.state import EntryKind
from acidctl.base.errors import AcidctlError, unexpected
from acidctl.base.parallel import in_order
from acidctl.cleaning.retention import Policy
from acidctl.location.arguments import is_hive_name
from acidctl.location.evidence import Evidence
from acidctl.location.resolved import resolve
from acidctl.location.snapshot import Snapshot
from acidctl.location.table_location import TableLocation
from acidctl.overview.location_status import DAY_SECONDS, LocationStatus, pending_of, status_of
from acidctl.verbs.events import Events
from acidctl.verbs.selection import Selection

if TYPE_CHECKING:  # the first needs packages that are installed only for a metastore
    from acidctl.hive.blocking import QueueView
    from acidctl.overview.warehouse_status import Condition, WarehouseStatus


@dataclass(frozen=True, kw_only=True)
class InspectOptions:
    """Options of :func:`inspect`.

    Attributes:
        older_than: the retention that a cleaning would have, in seconds.
        rows: count the rows of each entry, from the footers of its files.
        unknown: look at locations that are not known to be transactional; without it, only at those that were named
            and hold a file with a name that Hive gives.
        partial: look at what can be listed of a location in which a directory may not be listed.
        without_readers: look at a location though the metastore does not say who reads it: nothing of it is free then.
    """

    older_than: float = DAY_SECONDS
    rows: bool = False
    unknown: bool = True
    partial: bool = False
    without_readers: bool = False


@dataclass(frozen=True, slots=True)
class Inspected:
    """A location that was looked at.

    Attributes:
        snapshot: the state that a reader sees, from which the status was made; it holds the whole listing.
        rows: the number of rows by entry, as far as they were counted; empty if that was not asked for.
        closed: the errors of directories that may not be listed, and of a metastore that does not say who reads it.
        damaged: the errors of files whose rows could not be counted.
    """

    status: LocationStatus
    snapshot: Snapshot
    rows: Mapping[str, int] = field(default_factory=dict)
    closed: tuple[AcidctlError, ...] = ()
    damaged: tuple[AcidctlError, ...] = ()


def inspect(
    selection: Selection,
    options: InspectOptions,
    events: Events,
    now: float | None = None,
    choose: Callable[[Iterator[TableLocation]], Iterator[TableLocation]] = iter,
) -> Iterator[tuple[TableLocation, Inspected | AcidctlError]]:
    """Yield each location, in the order in which they are found, or the error of one that cannot be looked at.

    Args:
        events: takes the errors of directories above locations, and what is left out.
        now: seconds since the epoch, by which ages are counted; by default the present time.
        choose: returns those of the locations that are looked at.
    """
    policy, moment = Policy(options.older_than), time.time() if now is None else now

    def look(found: TableLocation) -> Inspected | Evidence | AcidctlError:
        try:
            if not options.unknown:
                with found.unless_dropped():
                    is_left_alone = not found.is_given or found.holds_strangers_alone
                    evidence = found.evidence if is_left_alone else None
                if evidence and not evidence.may_change:
                    return evidence
            return _inspected(found, options, policy, moment)
        except Exception as error:  # noqa: BLE001 - the other locations go on
            return unexpected(error, f"while {found.shown} was looked at")

    places = choose(selection.readable(events))
    for found, result in in_order(places, look, is_quick=lambda found: found.fs.is_local):
        if isinstance(result, Evidence):
            events.skipped(found, result)
        elif (
            options.unknown
            or isinstance(result, AcidctlError)
            or found.holds_something
            or not found.is_given  # else the walk's coverage reports it
        ):
            yield found, result


def _inspected(found: TableLocation, options: InspectOptions, policy: Policy, now: float) -> Inspected:
    closed: list[AcidctlError] = []
    damaged: list[AcidctlError] = []
    if options.partial:
        below: dict[str, AcidctlError] = {}
        found = found.as_far_as_listed(below)
        closed += below.values()
    unknown_readers: list[AcidctlError] = []
    skip = unknown_readers.append if options.without_readers else None
    location = resolve(found, reader=True, compactor=True, evidence=True, on_unknown_readers=skip)
    closed += unknown_readers
    snapshot = location.for_reader()
    name = "" if found.root else found.hive_name
    pending = pending_of(location, None if unknown_readers else policy, now)
    status = status_of(location, pending, now, name, is_free_known=not unknown_readers)
    rows = _row_counts(snapshot, damaged.append) if options.rows else {}
    return Inspected(status, snapshot, rows, tuple(closed), tuple(damaged))


def _row_counts(snapshot: Snapshot, on_error: Callable[[AcidctlError], None]) -> dict[str, int]:
    """Return the rows of each entry with data, from the footers of its data files.

    An entry with a text file, which has no footer, or with a damaged file is left out.
    """
    from acidctl.rows.foreign.format import footer_rows

    counts: dict[str, int] = {}
    full, children = snapshot.listing.is_full_acid, snapshot.listing.files_by_child
    for verdict in snapshot.state.verdicts:
        entries, rows = children.get(verdict.name, ()), list[int | None]()
        if verdict.directory:
            files = data_files_of(verdict.directory, entries, snapshot.table_type)
        elif verdict.kind is EntryKind.ORIGINAL:
            files = original_files(entries)
        else:
            continue
        for file in files:
            try:
                rows.append(footer_rows(snapshot, file, full=full))
            except AcidctlError as error:
                on_error(error)
                rows.append(None)
        if None not in rows:
            counts[verdict.name] = sum(filter(None, rows))
    return counts


class Overview(NamedTuple):
    """The status of all locations at some places.

    Attributes:
        queue: what waits in a metastore, and what holds it back; None without a metastore.
        older_than: the retention in seconds.
    """

    where: tuple[str, ...]
    status: WarehouseStatus
    queue: QueueView | None
    condition: Condition
    older_than: float


def inspect_all(
    selection: Selection,
    older_than: float,
    events: Events,
    on_record: Callable[[str], int | None] = lambda _: None,
) -> Overview:
    """Look at all locations that are known to be transactional or were named, and ask the metastore what waits there.

    Args:
        older_than: the retention that a cleaning would have, in seconds.
        on_record: returns how many locations the last run found at the same places.
    """
    from acidctl.overview.warehouse_status import WarehouseStatus

    whole = WarehouseStatus()
    options = InspectOptions(older_than=older_than, unknown=False)
    with events.progress("looking at locations", 0) as bar:
        for found, result in inspect(selection, options, events, whole.now):
            if isinstance(result, AcidctlError):
                whole.failed += 1
                events.failed(found.shown, result)
            else:
                whole.add(result.status)
                bar.advance()
    events.looked_through(on_record)
    queue = _queue_seen(selection, whole, events)
    is_trouble = not events.is_whole or bool(queue and (queue.stuck or queue.overdue(older_than)))
    return Overview(selection.places, whole, queue, whole.condition(is_trouble=is_trouble), older_than)


def _queue_seen(selection: Selection, whole: WarehouseStatus, events: Events) -> QueueView | None:
    """Return the metastore's view of these places; None without a metastore, or if it fails, which is reported."""
    if selection.resolver.warehouse is None:
        return None
    from acidctl.hive.blocking import find_held_back_or_stuck

    try:
        names = [name for name in selection.places if is_hive_name(name)]
        return find_held_back_or_stuck(selection.resolver.warehouse, whole.waiting, whole.holds, names)
    except AcidctlError as error:  # what was found on disk is shown nevertheless
        events.failed("", error)
        return None
