"""The retention of a cleaning: how old an entry must be before it may be removed (format section 10).

A directory becomes visible at or shortly after its time (see :mod:`acidctl.acid.listing`); the retention must cover the
difference, so it has a floor.
"""

from __future__ import annotations

from dataclasses import dataclass

from acidctl.acid.listing import CLOCKS_SECONDS, LAST_SECONDS
from acidctl.acid.reasons import Reason
from acidctl.base.deadline import as_seconds
from acidctl.base.errors import RefusedError

DEFAULT_SECONDS = 86400.0
FLOOR_SECONDS = 3600.0
"""A query, or the time between a writer's last file and its commit, may well be longer than a lower retention."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The policy of a cleaning.

    Attributes:
        older_than: seconds. An obsolete entry may go if what supersedes it has this age, so that no reader that began
            within this time needs the entry; aborted entries and leftovers if they did not change for this long.
            0 takes everything at once.
        leftovers: also take abandoned staging directories.
    """

    older_than: float = DEFAULT_SECONDS
    leftovers: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "older_than", as_seconds(self.older_than, "older_than"))

    def require_safe(self) -> None:
        """Raise RefusedError for a retention below the floor."""
        if self.older_than < FLOOR_SECONDS:
            raise RefusedError(
                "a retention below 1h is not safe",
                "queries that began before the compaction may still read what would be removed",
                "give --unsafe-retention too when nothing reads or writes the tables",
            )

    def cutoff(self, now: float) -> float:
        """Return the time up to which entries are old enough."""
        return now - self.older_than if self.older_than > 0 else now + CLOCKS_SECONDS

    def until(self, since: float | None) -> float | None:
        """Return when an entry released at `since` may go; None if that is beyond the calendar."""
        return None if since is None or since + self.older_than > LAST_SECONDS else since + self.older_than


AT_ONCE = Policy(0)
"""Takes everything at once: for tables that are not read or written meanwhile."""


@dataclass(frozen=True, slots=True)
class LaterEntry:
    """An entry that a later cleaning may remove.

    Attributes:
        since: when it became obsolete, or was last written, in seconds since the epoch; None if the store has no times.
        until: when it may be removed; None if that is not known.
    """

    name: str
    since: float | None
    until: float | None
    reason: Reason
