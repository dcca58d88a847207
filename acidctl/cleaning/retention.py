"""How old what is cleaned must be (format section 10).

By :mod:`acidctl.acid.listing` a directory became visible at or shortly after its time; the retention must cover the
difference, which is why it has a floor.
"""

from __future__ import annotations

from dataclasses import dataclass

from acidctl.acid.listing import CLOCKS_SECONDS, LAST_SECONDS
from acidctl.deadline import as_seconds
from acidctl.errors import RefusedError

DEFAULT_SECONDS = 86400.0
FLOOR_SECONDS = 3600.0
"""Below it a running query, or the time between a writer's last file and its commit, may well be longer."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What a cleaning may take.

    Attributes:
        older_than: seconds. An obsolete entry goes when every reader that began within them does without it, that is
            when what supersedes it is as old; aborted ones, and leftovers, when nothing in them changed for as long.
            0 takes everything at once.
        leftovers: abandoned staging directories too.
    """

    older_than: float = DEFAULT_SECONDS
    leftovers: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "older_than", as_seconds(self.older_than, "older_than"))

    def require_safe(self) -> None:
        """Raises RefusedError for a retention below the floor."""
        if self.older_than < FLOOR_SECONDS:
            raise RefusedError(
                "a retention below 1h is not safe",
                "queries that began before the compaction may still read what would be removed",
                "give `unsafe_retention` too when nothing reads or writes the tables",
            )

    def cutoff(self, now: float) -> float:
        """Entries up to this time are old enough."""
        return now - self.older_than if self.older_than > 0 else now + CLOCKS_SECONDS

    def until(self, since: float | None) -> float | None:
        """When what is free to go since a time does go; None for never, as far as a calendar reaches."""
        return None if since is None or since + self.older_than > LAST_SECONDS else since + self.older_than


AT_ONCE = Policy(0)
"""For tables that nothing reads or writes meanwhile."""
