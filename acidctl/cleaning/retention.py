"""How old things are, and how the location looked at an earlier moment (format section 10).

The time of a child of a location is that of the newest entry in it, the child itself included: a directory appears by
a rename, which changes no time of its own, or by the commit of what was written in place. So it became visible at or
shortly after that time; the retention must cover the difference, which is why it has a floor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from acidctl.acid.doubts import without
from acidctl.acid.listing import Listing
from acidctl.acid.names import is_hidden
from acidctl.errors import RefusedError, UsageProblem

DEFAULT_SECONDS = 86400.0
FLOOR_SECONDS = 3600.0
"""Below it a running query, or the time between a writer's last file and its commit, may well be longer."""

CLOCKS_SECONDS = 300.0
"""A time further ahead of our clock than this is not believed."""


_LAST = datetime.max.replace(tzinfo=UTC).timestamp() - 86400


def utc(seconds: float) -> str:
    """``2026-11-21 22:24 UTC``: the minute that had begun."""
    return _utc(seconds // 60)


@lru_cache(maxsize=1 << 12)
def _utc(minute: float) -> str:
    return f"{datetime.fromtimestamp(minute * 60, UTC):%Y-%m-%d %H:%M} UTC"


def may_go(until: float | None) -> str:
    """The end of a sentence on what waits."""
    return (
        "never to go by this --older-than" if until is None else f"may go after {utc(until + 59.999)}"
    )  # never before


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
        if not self.older_than >= 0:  # nor anything that is no number
            raise UsageProblem(f"not a retention: {self.older_than} seconds", "", "give 0 or more")

    def require_safe(self) -> None:
        """Raises RefusedError for a retention below the floor."""
        if self.older_than < FLOOR_SECONDS:
            raise RefusedError(
                "--older-than is below 1h",
                "queries that began before the compaction may still read what would be removed",
                "give --unsafe-retention too when nothing reads or writes the tables",
            )

    def cutoff(self, now: float) -> float:
        """Entries up to this time are old enough."""
        return now - self.older_than if self.older_than > 0 else now + CLOCKS_SECONDS

    def until(self, since: float | None) -> float | None:
        """When what is free to go since a time does go; None for never, as far as a calendar reaches."""
        return None if since is None or since + self.older_than > _LAST else since + self.older_than


AT_ONCE = Policy(0)
"""For tables that nothing reads or writes meanwhile."""


@dataclass(frozen=True, slots=True)
class Ages:
    """When the children of a location were last written.

    Attributes:
        times: seconds since the epoch by name; None where the store gives none.
    """

    listing: Listing
    times: Mapping[str, float | None]

    @classmethod
    def of(cls, listing: Listing) -> Ages:
        """Those of a listing."""
        times: dict[str, float | None] = {}
        for path, _, modified, is_dir in listing.entries:
            name = path.partition("/")[0]
            if modified is not None:
                # What a damaged file system says, no calendar has.
                time = modified if 0.0 <= modified <= _LAST else min(max(modified, 0.0), _LAST)
                known = times.get(name, -math.inf)
                times[name] = None if known is None else max(known, time)
            elif not is_dir:
                times[name] = None
            else:  # object stores have no directories, so no times of them
                times.setdefault(name, -math.inf)
        return cls(listing, {name: None if time == -math.inf else time for name, time in times.items()})

    def is_old(self, name: str, moment: float, *, unknown: bool = False) -> bool:
        """Whether a child was there at a moment; `unknown` is the answer where the store gives no time."""
        time = self.times.get(name)
        return unknown if time is None else time <= moment

    def young_at(self, moment: float, *, unknown: bool = False) -> frozenset[str]:
        """The visible children that came, or changed, after a moment."""
        return frozenset(
            name
            for name, time in self.times.items()
            if (not unknown if time is None else time > moment) and not is_hidden(name)
        )

    def listing_without(self, young: frozenset[str]) -> Listing:
        """The location before they came. Whatever was removed since is missing, of course."""
        return without(self.listing, young) if young else self.listing
