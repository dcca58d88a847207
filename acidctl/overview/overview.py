"""Many locations at one look: sums, and the worst of each kind by name.

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
from acidctl.cleaning.retention import Policy
from acidctl.errors import AcidctlError
from acidctl.location.find import Found
from acidctl.location.lists import SnapshotLists
from acidctl.overview.place import DueCompaction, InTheTrash, KeptBack, LocationNeeds, needs_of

if TYPE_CHECKING:  # what these need is there only where a metastore is used
    from acidctl.hive.waiting import Waiting

R = TypeVar("R")

NAMED = 5
"""So many of each kind are named."""

_THREADS = 8


@dataclass(slots=True)
class Overview:
    """Sums over locations.

    Attributes:
        locations, bytes: how many, and of all that is in them but their trash.
        due: how many compactions are, by kind.
        free, soon, later, aborted: bytes, as of :class:`LocationNeeds`.
        to_clean: locations of which something can go now.
        kept_back: what cleaning keeps, by reason, with the number of locations.
        unfinished: publications that were interrupted half-way, the first by location and staging directory.
        refused: the first locations that cannot be compacted or cleaned as they are, with the error.
        unfinished_count, refused_count: of all of them.
        trash: of all locations together; `in_trash` have one.
        waiting: locations of tables of a metastore of which something waits for cleaning.
        last_done: when acidctl changed any of them last.
    """

    locations: int = 0
    bytes: int = 0
    due: Counter[CompactionKind] = field(default_factory=Counter)
    free: int = 0
    soon: int = 0
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
    _worst: list[tuple[float, int, DueCompaction]] = field(default_factory=list)
    _roots: set[tuple[str, str]] = field(default_factory=set)
    _hive_names: set[str] = field(default_factory=set)

    @property
    def tables(self) -> int:
        """How many tables the locations are of."""
        return len(self._roots)

    @property
    def worst(self) -> list[DueCompaction]:
        """The compactions of which readers gain most."""
        return [one for _, _, one in sorted(self._worst, key=lambda held: (-held[0], held[2].location))]

    def holds(self, hive_name: str) -> bool:
        """Whether a location of that table was among them."""
        return hive_name.lower() in self._hive_names

    def add(self, one: LocationNeeds) -> None:
        """One more location."""
        self.locations += 1
        self.bytes += one.bytes
        self._roots.add(one.root)
        if one.hive_name:
            self._hive_names.add(one.hive_name.lower())
        if one.due:
            self.due[one.due.kind] += 1
            heapq.heappush(self._worst, (one.due.gain, -self.locations, one.due))
            if len(self._worst) > NAMED:
                heapq.heappop(self._worst)
        self.free, self.soon, self.later = self.free + one.free, self.soon + one.soon, self.later + one.later
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


class Condition(StrEnum):
    """What tables are in, in a word: there is nothing to do, there is work, or something needs attention."""

    FINE = "fine"
    DUE = "due"
    TROUBLE = "trouble"


def overall_condition(overview: Overview, *, failed: bool, held_up: bool) -> Condition:
    """The verdict on all that was looked over.

    Args:
        failed: not everything could be looked at.
        held_up: a metastore says that something is stuck, or holds back cleaning for too long.
    """
    if failed or held_up or overview.unfinished_count or overview.refused_count:
        return Condition.TROUBLE
    return Condition.DUE if overview.due or overview.free else Condition.FINE


def look_over(
    places: Iterable[Found],
    lists: SnapshotLists,
    policy: Policy,
    on_error: Callable[[str, AcidctlError], None],
    on_looked: Callable[[LocationNeeds], None] = lambda _: None,
) -> Overview:
    """What all of these locations need; each is listed once.

    Args:
        on_error: told of a location that cannot be looked at.
        on_looked: told of each of the others.
    """
    overview, now = Overview(), time.time()
    for needs in looked_at_each(places, lambda found: needs_of(found, lists, policy, now), on_error):
        overview.add(needs)
        on_looked(needs)
    return overview


def looked_at_each(
    places: Iterable[Found], look: Callable[[Found], R], on_error: Callable[[str, AcidctlError], None]
) -> Iterator[R]:
    """What is seen at each place, in their order.

    Args:
        on_error: told of a place, as it is shown, that cannot be looked at.
    """

    def tried(found: Found) -> R | AcidctlError:
        try:
            return look(found)
        except AcidctlError as error:
            return error

    for shown, seen in _in_threads(places, tried):
        if isinstance(seen, AcidctlError):
            on_error(shown, seen)
        else:
            yield seen


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
