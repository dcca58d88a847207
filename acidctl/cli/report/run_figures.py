"""The figures of a run as a value: the source of ``--metrics-file``."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from acidctl.acid.names import is_hidden
from acidctl.acid.state import EntryKind, State
from acidctl.acid.triggers import SMALL_FILE
from acidctl.base import parallel
from acidctl.base.errors import AcidctlError, ExitStatus
from acidctl.base.printable import printable
from acidctl.cli.output.redact import hidden
from acidctl.location.coverage import Looked
from acidctl.location.snapshot import Snapshot, children_of, superseded_since, take_snapshot
from acidctl.outcome import Outcome, Result

GOOD = (ExitStatus.DONE, ExitStatus.NOTHING_TO_DO, ExitStatus.POSTPONED)
"""The exit statuses of a successful run."""

_WORST_FIRST = (
    Result.FAILED, Result.STOPPED, Result.POSTPONED, Result.COMPACTED, Result.CLEANED, Result.PURGED, Result.PLANNED,
    Result.NOTHING_TO_DO, Result.SKIPPED, "not-reached",
)  # fmt: skip
"""The result of a location whose parts have several."""


class Standing(NamedTuple):
    """The directories of a listed location; hidden ones do not count.

    Attributes:
        directories: their numbers by state; `small` is that of the current deltas and delete deltas below
            :data:`SMALL_FILE`.
        oldest_obsolete: seconds since the first obsolete entry was superseded; None if nothing is obsolete.
    """

    directories: dict[str, int]
    oldest_obsolete: float | None


def standing_of(snapshot: Snapshot, now: float | None = None) -> Standing:
    """Return the figures of a listed location.

    Args:
        now: seconds since the epoch.
    """
    now = time.time() if now is None else now
    directories = [
        child
        for child in children_of(snapshot)
        if child.verdict.directory is not None and not is_hidden(child.verdict.name)
    ]
    count = {state.value: sum(child.verdict.state is state for child in directories) for state in State}
    current = [child for child in directories if child.verdict.state is State.CURRENT]
    count["small"] = sum(c.verdict.kind is not EntryKind.BASE and c.amount.bytes < SMALL_FILE for c in current)
    times, obsolete = superseded_since(snapshot), snapshot.state.in_state(State.OBSOLETE)
    since = [times[verdict.name] for verdict in obsolete if verdict.name in times]
    return Standing(count, max(0.0, now - min(since)) if since else None)


@dataclass(slots=True)
class LocationFigures:
    """The result of one location.

    Attributes:
        result: compacted, cleaned, nothing-to-do, postponed, failed...; not-reached if the run ended before.
        standing: the latest figures; None if they are unknown.
        again: lists the location once more, without keeping the first listing.
        is_changed: the location was changed, so that `again` is worth its cost.
    """

    result: str = "not-reached"
    standing: Standing | None = None
    again: Callable[[], Snapshot] | None = None
    is_changed: bool = False

    def look_again(self) -> None:
        """List the location once more."""
        self.standing = None
        try:
            self.standing = standing_of(self.again()) if self.again else None
        except AcidctlError:  # it is gone, or cannot be listed any more: old figures would lie
            return


@dataclass(slots=True)
class RunFigures:
    """A run, filled in while it goes on; it stays empty and costs nothing if it is not wanted.

    Attributes:
        started, ended: seconds since the epoch.
        failures: the number of locations that failed, and of directories that could not be listed.
        has_error: whether there is an error that belongs to no location.
        bytes: the bytes of all locations by use: read, written, removed, restored, purged.
        findings: the number of findings by severity.
        state: what was found of all tables: the names, the values of the labels and the values of more series.
        looked: how many locations were found in the named places; None for a run that walks nothing.
        earlier: the numbers of locations on record, by places.
        accepts_fewer: accept fewer locations than on record, and record the new number.
    """

    command: str
    is_wanted: bool = False
    started: float = field(default_factory=time.time)
    ended: float | None = None
    seconds: float = 0.0
    exit_status: int | None = None
    results: dict[str, LocationFigures] = field(default_factory=dict)
    failures: int = 0
    has_error: bool = False
    bytes: Counter[str] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)
    state: Sequence[tuple[str, tuple[str, ...], float]] = ()
    looked: Looked | None = None
    earlier: dict[str, int] = field(default_factory=dict)
    accepts_fewer: bool = False
    _began: float = field(default_factory=time.monotonic)

    def saw(self, snapshot: Snapshot) -> None:
        """Record a location before anything is done there."""
        if self.is_wanted:
            figures = self._of(snapshot.shown)
            figures.standing = standing_of(snapshot)
            figures.again = partial(take_snapshot, snapshot.fs, snapshot.path, snapshot.write_ids, snapshot.txns)

    def take(self, outcome: Outcome) -> None:
        """Record the outcome of a location."""
        if outcome.error:
            self.failed(outcome.location)
        if not self.is_wanted or (outcome.error and not outcome.part):
            return
        figures, result = self._of(outcome.location), outcome.result.value
        figures.result = min(figures.result, result, key=_WORST_FIRST.index) if outcome.part else result
        if outcome.is_changed:
            figures.is_changed, figures.standing = True, None
        self.bytes.update(outcome.bytes_by_use())
        self.findings.update(outcome.findings_by_severity())

    def failed(self, location: str) -> None:
        """Record that a location failed; an empty location means that something on the way could not be listed."""
        self.failures += 1
        if not location:
            self.has_error = True
        elif self.is_wanted:
            self._of(location).result = "failed"

    def end(self, status: int, error: BaseException | None = None) -> None:
        """End the run; locations that it changed are listed once more, unless it was interrupted."""
        self.ended = time.time()
        self.seconds = time.monotonic() - self._began
        self.exit_status = status
        self.has_error |= isinstance(error, Exception)
        if self.is_wanted and status != ExitStatus.INTERRUPTED:
            changed = [figures for figures in self.results.values() if figures.is_changed and figures.again]
            list(parallel.results(LocationFigures.look_again, changed))

    def looked_before(self, where: str) -> int | None:
        """Return how many locations the last run on record found at certain places; None without a record."""
        return self.earlier.get(printable(hidden(where)))

    @property
    def record(self) -> Looked | None:
        """Return how many locations later runs must find: the larger of this run's number and the recorded one."""
        if self.looked is None:
            return None
        before = self.looked_before(self.looked.where)
        count = self.looked.on_record(before, self.exit_status or 0, is_accepted=self.accepts_fewer)
        return Looked(printable(hidden(self.looked.where)), count)

    @property
    def is_good(self) -> bool:
        """Whether the run was successful."""
        return self.exit_status in GOOD

    def counts(self) -> dict[str, int]:
        """Return the number of locations by result."""
        return dict(Counter(figures.result for figures in self.results.values()))

    @property
    def all_failures(self) -> int:
        """Return the number of failures; an error of the run itself counts if no location failed."""
        return self.failures or int(self.has_error)

    def _of(self, location: str) -> LocationFigures:
        return self.results.setdefault(location, LocationFigures())
