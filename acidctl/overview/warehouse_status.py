"""The status of many locations: sums over tables and over all, and the worst of each kind by name.

It holds no rule of its own. What is due, what may go and what is held back is decided where compactions, cleanings and
Hive's queue are; of each location only figures are kept.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.triggers import NO_COST, Advice
from acidctl.cleaning.retention import Policy
from acidctl.errors import AcidctlError
from acidctl.location.find import Found
from acidctl.location.lists import SnapshotLists
from acidctl.overview.location_status import (
    DueCompaction,
    InTheTrash,
    KeptBack,
    LocationStatus,
    Use,
    status_of,
)

if TYPE_CHECKING:  # what these need is there only where a metastore is used
    from acidctl.hive.waiting import Waiting

R = TypeVar("R")

NAMED = 5
"""So many of each kind are named."""

_THREADS = 8


@dataclass(frozen=True, slots=True)
class TableStats:
    """The sums over the locations of a table, or over several tables.

    Attributes:
        name: what the metastore calls it, or its directory.
        free, soon: bytes, as in :class:`LocationStatus`.
        due: how many compactions are due.
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
        """All bytes, with the trash."""
        return self.uses.total()

    @classmethod
    def of(cls, one: LocationStatus) -> TableStats:
        """Return the table of a single location."""
        return cls(one.table, 1, one.uses, one.reading, one.deltas, one.free, one.soon, int(one.due is not None))

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
        now: when they were looked at, seconds since the epoch.
        failed: how many locations could not be looked at.
        due: how many compactions are due, by kind.
        helped: in how many other locations a compaction would save reads.
        later, aborted: bytes, as in :class:`LocationStatus`.
        to_clean: locations of which something can go now.
        kept_back: what cleaning keeps, by reason, with the number of locations.
        unfinished: publications that were interrupted half-way, the first by location and staging directory.
        refused: the first locations that cannot be compacted or cleaned as they are, with the error.
        unfinished_count, refused_count: of all of them.
        trash: of all locations together; `in_trash` have one.
        waiting: locations of tables of a metastore of which something waits for cleaning.
        last_done: when acidctl changed any of them last.
        sources: locations by the kind of what says which write ids count there.
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
        """All tables as one."""
        return sum_of(self.tables.values())

    @property
    def largest(self) -> list[TableStats]:
        """The tables, the largest first."""
        return sorted(self.tables.values(), key=lambda table: (-table.bytes, table.name))

    @property
    def slowest(self) -> list[TableStats]:
        """The tables that a compaction would help, the lowest score first, then the one of which it saves most."""
        helped = [table for table in self.tables.values() if table.reading.saved]
        return sorted(helped, key=lambda table: (table.reading.score, -table.reading.saved, table.name))

    @property
    def worst(self) -> list[DueCompaction]:
        """The compactions of which readers gain most."""
        return [one for _, _, one in sorted(self._worst, key=lambda held: (-held[0], held[2].location))]

    def holds(self, hive_name: str) -> bool:
        """Whether a location of that table was among them."""
        return hive_name.lower() in self._hive_names

    def add(self, one: LocationStatus) -> None:
        """Count one more location."""
        table = TableStats.of(one)
        self.tables[one.root] = self.tables[one.root] + table if one.root in self.tables else table
        self.sources[one.source] += 1
        self.helped += one.helped
        if one.hive_name:
            self._hive_names.add(one.hive_name.lower())
        if one.due:
            self.due[one.due.kind] += 1
            heapq.heappush(self._worst, (one.due.gain, -self.sources.total(), one.due))
            if len(self._worst) > NAMED:
                heapq.heappop(self._worst)
        self.later += one.later
        self.aborted += one.aborted
        self.to_clean += one.free > 0
        for kept in one.kept_back:
            key = (kept.reason.code, kept.reason.ids)
            before, places = self.kept_back.get(key, (KeptBack(kept.reason, 0, 0), 0))
            entries, size = before.entries + kept.entries, before.bytes + kept.bytes
            self.kept_back[key] = replace(before, entries=entries, bytes=size), places + 1
        self._add_trash(one.trash)
        self.unfinished_count += len(one.unfinished)
        self.unfinished += [(one.location, name) for name in one.unfinished[: NAMED - len(self.unfinished)]]
        self.refused_count += bool(one.refused)
        if one.refused and len(self.refused) < NAMED:
            self.refused.append((one.location, one.refused[0]))
        self.waiting += [one.waiting] if one.waiting else []
        if one.last_done is not None:
            self.last_done = max(one.last_done, self.last_done or 0.0)

    def _add_trash(self, one: InTheTrash) -> None:
        known = [when for when in (self.trash.oldest, one.oldest) if when is not None]
        self.trash = InTheTrash(self.trash.runs + one.runs, self.trash.bytes + one.bytes, min(known, default=None))
        self.in_trash += one.runs > 0


def sum_of(tables: Iterable[TableStats]) -> TableStats:
    """Return several tables as one."""
    return sum(tables, TableStats())


class Condition(StrEnum):
    """What tables are in, in a word: there is nothing to do, there is work, or something needs attention."""

    FINE = "fine"
    DUE = "due"
    TROUBLE = "trouble"


def overall_condition(status: WarehouseStatus, *, failed: bool, held_up: bool) -> Condition:
    """The verdict on all that was looked over.

    Args:
        failed: not everything could be looked at.
        held_up: a metastore says that something is stuck, or holds back cleaning for too long.
    """
    if failed or held_up or status.unfinished_count or status.refused_count:
        return Condition.TROUBLE
    return Condition.DUE if status.due or status.whole.free else Condition.FINE


def look_over(
    places: Iterable[Found],
    lists: SnapshotLists,
    policy: Policy,
    on_error: Callable[[str, AcidctlError], None],
    on_looked: Callable[[LocationStatus], None] = lambda _: None,
) -> WarehouseStatus:
    """Return the status of all of these locations; each is listed once.

    Args:
        policy: what a cleaning may take.
        on_error: called with a location that cannot be looked at.
        on_looked: called with each of the others.
    """
    whole = WarehouseStatus()

    def tried(found: Found) -> LocationStatus | AcidctlError:
        try:
            return status_of(found, lists, policy, whole.now)
        except AcidctlError as error:
            return error

    for shown, seen in _in_threads(places, tried):
        if isinstance(seen, AcidctlError):
            whole.failed += 1
            on_error(shown, seen)
        else:
            whole.add(seen)
            on_looked(seen)
    return whole


def _in_threads(places: Iterable[Found], look: Callable[[Found], R]) -> Iterator[tuple[str, R]]:
    """Each place, as it is shown, with what was seen there, in their order.

    Stores make one wait, but for the local disk: there threads would only be in each other's way.
    """
    with ThreadPoolExecutor(_THREADS, "acidctl-look") as pool:
        waiting: deque[tuple[str, Future[R]]] = deque()
        try:
            for found in places:
                if found.fs.is_local and not waiting:
                    yield found.shown, look(found)
                    continue
                waiting.append((found.shown, pool.submit(look, found)))
                if len(waiting) > 2 * _THREADS:
                    shown, future = waiting.popleft()
                    yield shown, future.result()
            for shown, future in waiting:
                yield shown, future.result()
        finally:
            for _, future in waiting:
                future.cancel()
