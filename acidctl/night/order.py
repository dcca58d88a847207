"""What comes first in a night, and how its time is shared out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from acidctl.cleaning.apply import How
from acidctl.cleaning.outcomes import PlannedCleaning
from acidctl.cleaning.trash import TrashRun
from acidctl.compaction.request import CompactionRequest, Waiting
from acidctl.deadline import Deadline
from acidctl.location.find import Found
from acidctl.night.policy import Policies, TablePolicy

_SHARE, _MOST_SECONDS = 0.1, 1800.0
"""Of the time that a night has, so much is kept for cleaning and purging, and no more."""

_TASKS_A_CORE, _AT_ONCE = 4, 50
"""So much is compacted together that no core waits, and no more, so that what gains most is done first."""


@dataclass(frozen=True, slots=True)
class NightRequest:
    """What is wanted of a night.

    Attributes:
        compaction: how what is due is compacted.
        policies: what is wanted of each table.
        leftovers: abandoned staging is cleaned, too.
        how: where to what is cleaned goes.
        max_bytes: read at most so much for compactions; None for no bound.
        until: when the night ends.
    """

    compaction: CompactionRequest = field(default_factory=CompactionRequest)
    policies: Policies = field(default_factory=Policies)
    leftovers: bool = False
    how: How = How.TRASH
    max_bytes: int | None = None
    until: Deadline = field(default_factory=Deadline)

    def until_cleaning(self) -> Deadline:
        """When compactions end: cleaning, which gives back space, has its time in every night."""
        left = max(0.0, self.until.at - time.monotonic())
        return Deadline(self.until.at - min(left * _SHARE, _MOST_SECONDS))


@dataclass(frozen=True, slots=True)
class NightPlace:
    """A location, or the directory of a table with partitions, with what is wanted of its table.

    Attributes:
        patterns: of the policies that match, the most specific first.
    """

    found: Found
    policy: TablePolicy
    patterns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Due:
    """A compaction that is due.

    Attributes:
        gain: bytes that every full read saves for each byte that is rewritten once.
        has_waited: it was left for later in a night before, and gains no less now.
    """

    place: NightPlace
    waiting: Waiting
    gain: float
    has_waited: bool = False

    @property
    def rank(self) -> tuple[int, bool, float, str]:
        """For sorting: what the policy puts first, what has waited, what gains most."""
        return -(self.place.policy.priority or 0), not self.has_waited, -self.gain, self.waiting.location


def next_batch(due: Sequence[Due], cores: int) -> Sequence[Due]:
    """What is compacted next, of a list in order."""
    tasks = 0
    for number, one in enumerate(due[:_AT_ONCE]):
        if tasks >= cores * _TASKS_A_CORE:
            return due[:number]
        tasks += one.waiting.tasks
    return due[:_AT_ONCE]


@dataclass(frozen=True, slots=True)
class ToClean:
    """A cleaning that would remove something.

    Attributes:
        is_table: it is the directory of a table with partitions.
        planned: the plan; None where it is made again when its turn comes.
        bytes: that it would free.
        older_than: the retention that decided.
    """

    place: NightPlace
    is_table: bool
    planned: PlannedCleaning | None
    bytes: int
    older_than: float

    @property
    def rank(self) -> tuple[int, str]:
        """For sorting: what frees most bytes."""
        return -self.bytes, self.place.found.shown


@dataclass(frozen=True, slots=True)
class ToPurge:
    """Runs in the trash of a place that have been there for long enough."""

    place: NightPlace
    runs: Sequence[TrashRun]

    @property
    def rank(self) -> tuple[int, str]:
        """For sorting: what frees most bytes."""
        return -sum(run.bytes for run in self.runs), self.place.found.shown
