"""Where a location stands, in numbers that can be watched over time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from acidctl.acid.advice import SMALL_FILE
from acidctl.acid.listing import Ages
from acidctl.acid.names import is_hidden
from acidctl.acid.state import EntryKind, State
from acidctl.location.snapshot import take_snapshot

if TYPE_CHECKING:
    from acidctl.location.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Standing:
    """One location at one time.

    Attributes:
        files, bytes: of everything that is not hidden.
        directories: by state; `small` ones, deltas and delete deltas below :data:`SMALL_FILE`, are among the current.
        oldest_obsolete: seconds since the first of the obsolete entries was superseded; None without one.
    """

    files: int
    bytes: int
    directories: dict[str, int]
    oldest_obsolete: float | None

    def as_json(self) -> dict[str, Any]:
        """Its place in the report."""
        oldest = self.oldest_obsolete
        return {
            "files": self.files,
            "bytes": self.bytes,
            "directories": self.directories,
            "oldestObsoleteSeconds": None if oldest is None else round(oldest),
        }


def standing_of(snapshot: Snapshot, now: float | None = None) -> Standing:
    """Where a listed location stands.

    Args:
        now: seconds since the epoch.
    """
    now = time.time() if now is None else now
    sizes: dict[str, int] = {}
    files = 0
    for entry in snapshot.listing.entries:
        name = entry.path.partition("/")[0]
        if not entry.is_dir and not is_hidden(name):
            sizes[name] = sizes.get(name, 0) + entry.size
            files += 1
    directories = [verdict for verdict in snapshot.state.verdicts if verdict.directory is not None]
    count = {state.value: sum(verdict.state is state for verdict in directories) for state in State}
    count["small"] = sum(
        verdict.state is State.CURRENT
        and verdict.kind is not EntryKind.BASE
        and sizes.get(verdict.name, 0) < SMALL_FILE
        for verdict in directories
    )
    times = Ages.of(snapshot.listing).times
    since = []
    for verdict in snapshot.state.in_state(State.OBSOLETE):
        known = [when for name in verdict.reason.by or (verdict.name,) if (when := times.get(name)) is not None]
        since += [min(known)] if known else []
    return Standing(files, sum(sizes.values()), count, max(0.0, now - min(since)) if since else None)


@dataclass(frozen=True, slots=True)
class Seen:
    """A location that can be looked at again, without its listing: (fs, path, write ids, transactions)."""

    where: tuple[Any, ...]

    @classmethod
    def of(cls, snapshot: Snapshot) -> Seen:
        """What is needed of a snapshot."""
        return cls((snapshot.fs, snapshot.path, snapshot.write_ids, snapshot.txns))

    def again(self) -> Standing:
        """List it anew; errors as for :func:`acidctl.location.snapshot.take_snapshot`."""
        return standing_of(take_snapshot(*self.where))
