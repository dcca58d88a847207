"""The status of many locations: sums over tables and over all, and the worst of each kind by name.

It has no rules of its own: the status of each location says what is due, what can be freed and what is held back. Only
figures are kept of each location.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.reasons import Reason
from acidctl.overview.location_status import Figures, LocationStatus
from acidctl.wording import text_of, time_of

if TYPE_CHECKING:  # its dependencies are optional
    from acidctl.hive.waiting import Waiting

NAMED = 5
"""The number of each kind that are listed by name."""


class Condition(StrEnum):
    """The overall status: nothing to do, pending work, or something that needs attention."""

    FINE = "fine"
    DUE = "due"
    TROUBLE = "trouble"


@dataclass(slots=True)
class KeptBack:
    """Count the entries that readers do not need and cleaning keeps, for one reason.

    Attributes:
        since: when the first of them was superseded, in seconds since the epoch; None if unknown.
    """

    reason: Reason
    locations: int = 0
    entries: int = 0
    bytes: int = 0
    since: float | None = None


@dataclass(slots=True)
class WarehouseStatus:
    """The sums over locations.

    Attributes:
        now: when they were checked, seconds since the epoch.
        failed: number of locations that could not be checked.
        whole: the figures of all of them.
        tables: the name and the figures of each table, by its store and directory.
        to_clean: number of locations with something to free now.
        kept_back: what cleaning keeps, by reason.
        unfinished: the first locations with publications that were interrupted.
        refused: the first locations that cannot be compacted or cleaned in their present state.
        unfinished_count, refused_count: the numbers of all of them.
        disagreeing: number of locations with files that are newer than the metastore.
        trash_runs, oldest_run: the number of cleanings in the trash of locations, and when the first of them began.
        in_trash: number of locations with a trash.
        waiting: locations of a metastore's tables in which something waits for cleaning.
        last_done: when acidctl changed any of them last.
        sources: number of locations by the kind of source that decides which write ids count.
    """

    now: float = field(default_factory=time.time)
    failed: int = 0
    whole: Figures = field(default_factory=Figures)
    tables: dict[tuple[str, str], tuple[str, Figures]] = field(default_factory=dict)
    to_clean: int = 0
    kept_back: dict[tuple[str, tuple[int, ...]], KeptBack] = field(default_factory=dict)
    unfinished: list[LocationStatus] = field(default_factory=list)
    unfinished_count: int = 0
    refused: list[LocationStatus] = field(default_factory=list)
    refused_count: int = 0
    disagreeing: int = 0
    trash_runs: int = 0
    oldest_run: float | None = None
    in_trash: int = 0
    waiting: list[Waiting] = field(default_factory=list)
    last_done: float | None = None
    sources: Counter[str] = field(default_factory=Counter)
    _worst: list[tuple[float, int, LocationStatus]] = field(default_factory=list)
    _names: set[str] = field(default_factory=set)

    @property
    def largest(self) -> list[tuple[str, Figures]]:
        """Return the tables, the largest first."""
        return sorted(self.tables.values(), key=lambda table: (-table[1].uses.total(), table[0]))

    @property
    def slowest(self) -> list[tuple[str, Figures]]:
        """Return the tables that a compaction would help: the lowest score first, then the largest saving."""
        helped = [table for table in self.tables.values() if table[1].reading.saved]
        return sorted(helped, key=lambda table: (table[1].reading.score, -table[1].reading.saved, table[0]))

    @property
    def worst(self) -> list[LocationStatus]:
        """Return the locations with the due compactions that gain most for readers."""
        return [status for _, _, status in sorted(self._worst, key=lambda item: (-item[0], item[2].shown))]

    def holds(self, hive_name: str) -> bool:
        """Return whether a location of that table was among them."""
        return hive_name.lower() in self._names

    def condition(self, *, is_trouble: bool) -> Condition:
        """Return the overall status.

        Args:
            is_trouble: some locations could not be checked, or a metastore shows that something is stuck, or has
                blocked cleaning for too long.
        """
        if is_trouble or self.unfinished_count or self.refused_count:
            return Condition.TROUBLE
        return Condition.DUE if self.whole.due or self.whole.free.now else Condition.FINE

    def add(self, status: LocationStatus) -> None:
        """Count one more location."""
        figures = status.figures
        name, before = self.tables.get(status.root, (status.table, Figures()))
        self.tables[status.root] = name, before + figures
        self.whole += figures
        self.sources[status.source.kind] += 1
        self._names.add(status.table.lower())
        if status.compaction.kind:
            heapq.heappush(self._worst, (figures.reading.gain, -self.whole.locations, status))
            if len(self._worst) > NAMED:
                heapq.heappop(self._worst)
        self.to_clean += figures.free.now > 0
        seen: set[tuple[str, tuple[int, ...]]] = set()
        for why, size, since in status.kept_back:
            key = (why.code, why.ids)
            kept = self.kept_back.setdefault(key, KeptBack(why))
            kept.locations += key not in seen
            kept.entries += 1
            kept.bytes += size
            kept.since = min((when for when in (kept.since, since) if when is not None), default=None)
            seen.add(key)
        began = [self.oldest_run, *(run.began for run in status.trash_runs)]
        self.oldest_run = min((when for when in began if when is not None), default=None)
        self.trash_runs += len(status.trash_runs)
        self.in_trash += bool(status.trash_runs)
        self.unfinished_count += len(status.unfinished)
        self.refused_count += bool(status.refused)
        self.disagreeing += bool(status.ahead)
        for first, has_some in ((self.unfinished, status.unfinished), (self.refused, status.refused)):
            if has_some and len(first) < NAMED:
                first.append(status)
        self.waiting += [status.waiting] if status.waiting else []
        if status.last_done is not None:
            self.last_done = max(status.last_done, self.last_done or 0.0)

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        whole = self.whole.record()
        kept_back = sorted(self.kept_back.values(), key=lambda kept: -kept.bytes)
        staging = [(status, name) for status in self.unfinished for name in status.unfinished]
        return {
            "tables": len(self.tables),
            "locations": whole["locations"],
            "bytes": whole["bytes"],
            "compaction": {
                "due": whole["due"],
                **{kind.value: self.whole.due[kind] for kind in CompactionKind},
                "helped": whole["helped"],
                "worst": list(map(_due_record, self.worst)),
            },
            "cleaning": {
                "locations": self.to_clean,
                **{name: whole[name] for name in ("freeBytes", "soonBytes", "laterBytes", "abortedBytes")},
                "keptBack": [
                    {"code": kept.reason.code, "reason": text_of(kept.reason), "locations": kept.locations,
                     "entries": kept.entries, "bytes": kept.bytes}
                    for kept in kept_back[:NAMED]
                ],
            },
            "trash": {
                "locations": self.in_trash, "runs": self.trash_runs, "bytes": whole["trashBytes"],
                "oldest": time_of(self.oldest_run),
            },
            "unfinished": {
                "count": self.unfinished_count,
                "first": [{**_named(status), "staging": name} for status, name in staging[:NAMED]],
            },
            "refused": {
                "locations": self.refused_count,
                "first": [
                    {**_named(status), "code": why.code, "what": why.what, "why": why.why, "hint": why.hint}
                    for status in self.refused
                    for why in status.refused[:1]
                ],
            },
            "lastDone": time_of(self.last_done),
        }  # fmt: skip


def _due_record(status: LocationStatus) -> dict[str, Any]:
    due, gain = status.compaction, round(status.figures.reading.gain, 4)
    return {
        **_named(status), "kind": due.kind, "gain": gain, "reason": text_of(due.reason), "reasonCode": due.reason.code,
    }  # fmt: skip


def _named(status: LocationStatus) -> dict[str, str | None]:
    return {"location": status.location, "name": status.name or None}
