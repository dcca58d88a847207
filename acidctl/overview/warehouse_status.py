"""The status of many locations: sums over tables and over all, and the worst of each kind by name.

It has no rules of its own: the modules of compaction, cleaning and Hive's queue decide what is due, what can be freed
and what is held back. Only figures are kept of each location.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.triggers import NO_COST, Advice
from acidctl.base.errors import AcidctlError
from acidctl.base.parallel import in_order
from acidctl.cleaning.retention import Policy
from acidctl.location.table_location import TableLocation
from acidctl.overview.location_status import (
    DueCompaction,
    InTheTrash,
    KeptBack,
    LocationStatus,
    Use,
    status_of,
)

if TYPE_CHECKING:  # its dependencies are optional
    from acidctl.hive.ready_entries import Waiting


NAMED = 5
"""The number of each kind that are listed by name."""


@dataclass(frozen=True, slots=True)
class TableStats:
    """The sums over the locations of a table, or over several tables.

    Attributes:
        name: its name in the metastore, or its directory.
        free, soon: bytes, as in :class:`LocationStatus`.
        due: number of due compactions.
    """

    name: str = ""
    locations: int = 0
    uses: Counter[Use] = field(default_factory=Counter)
    reading: Advice = NO_COST
    deltas: int = 0
    free: int = 0
    soon: int = 0
    due: int = 0

    @property
    def bytes(self) -> int:
        """Return all bytes, with the trash."""
        return self.uses.total()

    @classmethod
    def of(cls, status: LocationStatus) -> TableStats:
        """Return the table of a single location."""
        is_due = int(status.due is not None)
        return cls(status.table, 1, status.uses, status.reading, status.deltas, status.free, status.soon, is_due)

    def __add__(self, other: TableStats) -> TableStats:
        return TableStats(
            self.name,
            self.locations + other.locations,
            self.uses + other.uses,
            self.reading + other.reading,
            self.deltas + other.deltas,
            self.free + other.free,
            self.soon + other.soon,
            self.due + other.due,
        )


@dataclass(slots=True)
class WarehouseStatus:
    """The sums over locations.

    Attributes:
        now: when they were checked, seconds since the epoch.
        failed: number of locations that could not be checked.
        due: number of due compactions by kind.
        helped: number of other locations in which a compaction would save reads.
        later, aborted: bytes, as in :class:`LocationStatus`.
        to_clean: number of locations with something to free now.
        kept_back: what cleaning keeps, by reason, with the number of locations.
        unfinished: the first interrupted publications, by location and staging directory.
        refused: the first locations that cannot be compacted or cleaned in their present state, with the error.
        unfinished_count, refused_count: the numbers of all of them.
        trash: of all locations together; `in_trash` counts those with one.
        waiting: locations of a metastore's tables in which something waits for cleaning.
        last_done: when acidctl changed any of them last.
        sources: number of locations by the kind of source that decides which write ids count.
    """

    now: float = field(default_factory=time.time)
    failed: int = 0
    tables: dict[tuple[str, str], TableStats] = field(default_factory=dict)
    due: Counter[CompactionKind] = field(default_factory=Counter)
    helped: int = 0
    later: int = 0
    aborted: int = 0
    to_clean: int = 0
    kept_back: dict[tuple[str, tuple[int, ...]], tuple[KeptBack, int]] = field(default_factory=dict)
    unfinished: list[tuple[str, str]] = field(default_factory=list)
    unfinished_count: int = 0
    refused: list[tuple[str, AcidctlError]] = field(default_factory=list)
    refused_count: int = 0
    trash: InTheTrash = field(default_factory=InTheTrash)
    in_trash: int = 0
    waiting: list[Waiting] = field(default_factory=list)
    last_done: float | None = None
    sources: Counter[str] = field(default_factory=Counter)
    _worst: list[tuple[float, int, DueCompaction]] = field(default_factory=list)
    _hive_names: set[str] = field(default_factory=set)

    @property
    def whole(self) -> TableStats:
        """Return the sum of all tables."""
        return sum_of(self.tables.values())

    @property
    def largest(self) -> list[TableStats]:
        """Return the tables, the largest first."""
        return sorted(self.tables.values(), key=lambda table: (-table.bytes, table.name))

    @property
    def slowest(self) -> list[TableStats]:
        """Return the tables that a compaction would help: the lowest score first, then the largest saving."""
        helped = [table for table in self.tables.values() if table.reading.saved]
        return sorted(helped, key=lambda table: (table.reading.score, -table.reading.saved, table.name))

    @property
    def worst(self) -> list[DueCompaction]:
        """Return the compactions with the largest gain for readers."""
        return [due for _, _, due in sorted(self._worst, key=lambda item: (-item[0], item[2].location))]

    def holds(self, hive_name: str) -> bool:
        """Return whether a location of that table was among them."""
        return hive_name.lower() in self._hive_names

    def add(self, location: LocationStatus) -> None:
        """Count one more location."""
        table = TableStats.of(location)
        self.tables[location.root] = self.tables[location.root] + table if location.root in self.tables else table
        self.sources[location.source] += 1
        self.helped += location.helped
        if location.hive_name:
            self._hive_names.add(location.hive_name.lower())
        if location.due:
            self.due[location.due.kind] += 1
            heapq.heappush(self._worst, (location.due.gain, -self.sources.total(), location.due))
            if len(self._worst) > NAMED:
                heapq.heappop(self._worst)
        self.later += location.later
        self.aborted += location.aborted
        self.to_clean += location.free > 0
        for kept in location.kept_back:
            key = (kept.reason.code, kept.reason.ids)
            before, places = self.kept_back.get(key, (KeptBack(kept.reason, 0, 0), 0))
            entries, size = before.entries + kept.entries, before.bytes + kept.bytes
            self.kept_back[key] = replace(before, entries=entries, bytes=size), places + 1
        self._add_trash(location.trash)
        self.unfinished_count += len(location.unfinished)
        self.unfinished += [(location.location, name) for name in location.unfinished[: NAMED - len(self.unfinished)]]
        self.refused_count += bool(location.refused)
        if location.refused and len(self.refused) < NAMED:
            self.refused.append((location.location, location.refused[0]))
        self.waiting += [location.waiting] if location.waiting else []
        if location.last_done is not None:
            self.last_done = max(location.last_done, self.last_done or 0.0)

    def _add_trash(self, trash: InTheTrash) -> None:
        times = [when for when in (self.trash.oldest, trash.oldest) if when is not None]
        self.trash = InTheTrash(self.trash.runs + trash.runs, self.trash.bytes + trash.bytes, min(times, default=None))
        self.in_trash += trash.runs > 0


def sum_of(tables: Iterable[TableStats]) -> TableStats:
    """Return the sum of several tables."""
    return sum(tables, TableStats())


class Condition(StrEnum):
    """The overall status: nothing to do, pending work, or something that needs attention."""

    FINE = "fine"
    DUE = "due"
    TROUBLE = "trouble"


def overall_condition(status: WarehouseStatus, *, failed: bool, held_up: bool) -> Condition:
    """Return the overall status of all locations.

    Args:
        failed: some locations could not be checked.
        held_up: a metastore shows that something is stuck, or has blocked cleaning for too long.
    """
    if failed or held_up or status.unfinished_count or status.refused_count:
        return Condition.TROUBLE
    return Condition.DUE if status.due or status.whole.free else Condition.FINE


def look_over(
    places: Iterable[TableLocation],
    policy: Policy,
    on_error: Callable[[str, AcidctlError], None],
    on_looked: Callable[[LocationStatus], None] = lambda _: None,
) -> WarehouseStatus:
    """Return the status of all of these locations; each is listed once.

    Args:
        policy: decides what a cleaning may remove.
        on_error: called with each location that cannot be checked.
        on_looked: called with each of the others.
    """
    whole = WarehouseStatus()
    for found, result in statuses(places, policy, whole.now):
        if isinstance(result, AcidctlError):
            whole.failed += 1
            on_error(found.shown, result)
        else:
            whole.add(result)
            on_looked(result)
    return whole


def statuses(
    places: Iterable[TableLocation], policy: Policy, now: float
) -> Iterator[tuple[TableLocation, LocationStatus | AcidctlError]]:
    """Yield each location with its status, or with the error of one that cannot be checked, in their order."""

    def tried(found: TableLocation) -> LocationStatus | AcidctlError:
        try:
            return status_of(found, policy, now)
        except AcidctlError as error:
            return error

    return in_order(places, tried, is_quick=lambda found: found.fs.is_local)
