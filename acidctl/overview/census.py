"""A warehouse table by table: its bytes by what they are for, its cost to readers, and what was written and compacted.

As the overview, it holds no rule of its own, and keeps figures only.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from acidctl.acid.names import Kind
from acidctl.acid.triggers import NO_COST, Advice, advise
from acidctl.cleaning.retention import Policy
from acidctl.cleaning.trash import TRASH
from acidctl.errors import AcidctlError
from acidctl.location.change.work_log import LogEntry, logged_at, read_log
from acidctl.location.contents import Child, children_of
from acidctl.location.find import Found
from acidctl.location.lists import SnapshotLists
from acidctl.location.snapshot import Snapshot
from acidctl.overview.lanes import Lanes, lanes_of
from acidctl.overview.overview import Overview, looked_at_each
from acidctl.overview.place import LocationNeeds, needs_of

T = TypeVar("T", bound=Any)

DAYS = 30
"""So far back writes and compactions are told day by day."""

DAY_SECONDS = 86400

NEWEST = 12
"""So many compactions are named."""

COSTLIEST = 3
"""Of so many locations the lanes are kept."""


class Use(StrEnum):
    """What bytes are for."""

    CURRENT = "current"
    OBSOLETE = "obsolete"
    ABORTED = "aborted"
    IGNORED = "ignored"
    TRASH = "trash"


@dataclass(frozen=True, slots=True)
class LocationFigures:
    """What is kept of a location while others are looked at.

    Attributes:
        table: what its table is called: by the metastore, or its directory.
        deltas: current deltas and delete deltas.
        written: deltas and delete deltas that are there and that no compaction made, by the day of their newest file,
            counted from the epoch in UTC.
        compactions: those of the last :data:`DAYS` that its log tells.
        source: the kind of who says what counts there.
        lanes: makes them.
    """

    table: str
    needs: LocationNeeds
    uses: Mapping[Use, int]
    advice: Advice
    deltas: int
    written: Mapping[int, int]
    compactions: tuple[LogEntry, ...]
    source: str
    lanes: Callable[[], Lanes]


@dataclass(slots=True)
class TableFigures:
    """A table: the sums over its locations.

    Attributes:
        name: as the metastore calls it, or its directory.
    """

    name: str
    locations: int = 0
    uses: Counter[Use] = field(default_factory=Counter)
    advice: Advice = NO_COST
    deltas: int = 0
    free: int = 0
    soon: int = 0
    due: int = 0

    @property
    def bytes(self) -> int:
        """Of all of it."""
        return self.uses.total()

    def add(self, one: LocationFigures) -> None:
        """One more location."""
        self.take(TableFigures(
            "", 1, Counter(one.uses), one.advice, one.deltas, one.needs.free, one.needs.soon, int(bool(one.needs.due))
        ))  # fmt: skip

    def take(self, other: TableFigures) -> None:
        """Another table as a part of this one."""
        self.locations += other.locations
        self.uses += other.uses
        self.advice = self.advice + other.advice
        self.deltas += other.deltas
        self.free, self.soon, self.due = self.free + other.free, self.soon + other.soon, self.due + other.due


@dataclass(slots=True)
class Census:
    """A warehouse.

    Attributes:
        now: when it was looked at, seconds since the epoch.
        failed: locations that could not be looked at.
        compactions: how many there were in the last :data:`DAYS`; `newest` are named.
        read, made: bytes that they read, and that they wrote.
        sources: locations by who says what counts there.
    """

    now: float
    overview: Overview = field(default_factory=Overview)
    tables: dict[tuple[str, str], TableFigures] = field(default_factory=dict)
    written: Counter[int] = field(default_factory=Counter)
    failed: int = 0
    compactions: int = 0
    read: int = 0
    made: int = 0
    sources: Counter[str] = field(default_factory=Counter)
    _newest: list[tuple[float, str, str, LogEntry]] = field(default_factory=list)
    _costliest: list[tuple[int, str, Callable[[], Lanes]]] = field(default_factory=list)

    @property
    def whole(self) -> TableFigures:
        """All of it."""
        return whole_of(self.tables.values())

    @property
    def largest(self) -> list[TableFigures]:
        """The tables, those of the most bytes first."""
        return sorted(self.tables.values(), key=lambda table: (-table.bytes, table.name))

    @property
    def worst(self) -> list[TableFigures]:
        """Those that a compaction would help, the lowest score first; of equal ones that of which it saves most."""
        helped = [table for table in self.tables.values() if table.advice.saved]
        return sorted(helped, key=lambda table: (table.advice.score, -table.advice.saved, table.name))

    @property
    def newest(self) -> list[tuple[str, LogEntry]]:
        """Locations with their compactions, the latest first."""
        return [(location, entry) for _, _, location, entry in sorted(self._newest, reverse=True, key=lambda x: x[:3])]

    @property
    def costliest(self) -> list[tuple[str, Lanes]]:
        """The lanes of locations that cost their readers most."""
        return [(location, lanes()) for _, location, lanes in sorted(self._costliest, key=lambda x: (-x[0], x[1]))]

    def days(self) -> list[tuple[float, int]]:
        """The beginning of each day, and what was written on it that is still there; the oldest first."""
        today = int(self.now // DAY_SECONDS)
        return [(day * float(DAY_SECONDS), self.written[day]) for day in range(today - DAYS + 1, today + 1)]

    def add(self, one: LocationFigures) -> None:
        """One more location."""
        needs = one.needs
        self.overview.add(needs)
        self.tables.setdefault(needs.root, TableFigures(one.table)).add(one)
        self.written.update(one.written)
        self.sources[one.source] += 1
        for entry in one.compactions:
            self.compactions += 1
            self.read += entry.number("inputBytes") or 0
            self.made += entry.number("bytes") or 0
            _keep(self._newest, (entry.at, entry.id, needs.location, entry), NEWEST)
        if one.advice.saved:
            _keep(self._costliest, (one.advice.saved, needs.location, one.lanes), COSTLIEST)


def _keep(held: list[T], one: T, most: int) -> None:
    """The largest of them."""
    heapq.heappush(held, one)
    if len(held) > most:
        heapq.heappop(held)


def whole_of(tables: Iterable[TableFigures]) -> TableFigures:
    """Several tables as one."""
    whole = TableFigures("")
    for table in tables:
        whole.take(table)
    return whole


def take_census(
    places: Iterable[Found],
    lists: SnapshotLists,
    policy: Policy,
    on_error: Callable[[str, AcidctlError], None],
    on_looked: Callable[[LocationNeeds], None] = lambda _: None,
) -> Census:
    """Look at all of these locations, each by one listing, and at the logs of those that have one.

    Args:
        on_error: told of a location that cannot be looked at.
        on_looked: told of each of the others.
    """
    found = Census(time.time())

    def failed(shown: str, error: AcidctlError) -> None:
        found.failed += 1
        on_error(shown, error)

    for figures in looked_at_each(places, lambda place: figures_at(place, lists, policy, found.now), failed):
        found.add(figures)
        on_looked(figures.needs)
    return found


def figures_at(found: Found, lists: SnapshotLists, policy: Policy, now: float) -> LocationFigures:
    """The figures of a location.

    Args:
        policy: what a cleaning may take.
        now: seconds since the epoch.

    Raises:
        AcidctlError: it cannot be listed, or its snapshot cannot be told.
    """
    found, lists = found.settled(lists)
    needs = needs_of(found, lists, policy, now)
    snapshot = found.snapshot(lists, settled=False)
    children = children_of(snapshot)
    return LocationFigures(
        needs.hive_name or found.fs.display(needs.root[1]),
        needs,
        _uses(children),
        NO_COST if snapshot.state.history_problem else advise(snapshot.listing, snapshot.state),
        len(snapshot.state.deltas),
        _written(children, now),
        _compactions(found, snapshot, now - DAYS * DAY_SECONDS),
        snapshot.source.kind,
        lambda: lanes_of(snapshot),
    )


def _uses(children: Iterable[Child]) -> Mapping[Use, int]:
    uses: Counter[Use] = Counter()
    for child in children:
        verdict = child.verdict
        uses[Use.TRASH if verdict.name == TRASH else Use(verdict.state.value)] += child.amount.bytes
    return uses


def _written(children: Iterable[Child], now: float) -> Mapping[int, int]:
    days: Counter[int] = Counter()
    for child in children:
        directory, modified = child.verdict.directory, child.amount.modified
        is_delta = directory is not None and directory.kind is not Kind.BASE and not child.verdict.compacted
        if is_delta and modified is not None and now - DAYS * DAY_SECONDS <= modified <= now:
            days[int(modified // DAY_SECONDS)] += 1
    return days


def _compactions(found: Found, snapshot: Snapshot, since: float) -> tuple[LogEntry, ...]:
    newest = logged_at(found.look.log)
    if newest is None or newest < since:
        return ()
    with suppress(AcidctlError):  # it is no part of the data
        log = read_log(snapshot.fs, snapshot.path)
        return tuple(one for one in log if one.verb == "compact" and one.result == "compacted" and one.at >= since)
    return ()
