"""Where a location stands, in numbers that can be watched over time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from acidctl.acid.advice import SMALL_FILE
from acidctl.acid.listing import Ages
from acidctl.acid.names import is_hidden
from acidctl.acid.state import EntryKind, State
from acidctl.location.snapshot import Snapshot, take_snapshot

if TYPE_CHECKING:
    from acidctl.acid.writeids import ValidTxns, ValidWriteIds
    from acidctl.storage.port import FileSystem


@dataclass(frozen=True, slots=True)
class Figures:
    """One location at one time.

    Attributes:
        files, bytes: of everything that is not hidden.
        current, obsolete, aborted, ignored: directories by their state.
        small: deltas and delete deltas, of the current ones, below :data:`SMALL_FILE`.
        oldest_obsolete: seconds since the first of the obsolete entries was superseded; None without one.
    """

    files: int
    bytes: int
    current: int
    obsolete: int
    aborted: int
    ignored: int
    small: int
    oldest_obsolete: float | None

    @property
    def directories(self) -> dict[str, int]:
        """By state; small ones are among the current ones."""
        names = ("current", "obsolete", "aborted", "ignored", "small")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class Seen:
    """A location that can be looked at again, without its listing."""

    fs: FileSystem
    path: str
    write_ids: ValidWriteIds
    txns: ValidTxns | None

    @classmethod
    def of(cls, snapshot: Snapshot) -> Seen:
        """What is needed of a snapshot."""
        return cls(snapshot.fs, snapshot.path, snapshot.write_ids, snapshot.txns)

    def again(self) -> Figures:
        """List it anew; errors as for :func:`acidctl.location.snapshot.take_snapshot`."""
        return figures_of(take_snapshot(self.fs, self.path, self.write_ids, self.txns))


def figures_of(snapshot: Snapshot, now: float | None = None) -> Figures:
    """The figures of a listed location.

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
    count = {state: sum(verdict.state is state for verdict in directories) for state in State}
    small = sum(
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
    return Figures(
        files,
        sum(sizes.values()),
        count[State.CURRENT],
        count[State.OBSOLETE],
        count[State.ABORTED],
        count[State.IGNORED],
        small,
        max(0.0, now - min(since)) if since else None,
    )
