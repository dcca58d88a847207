"""The report of a run as a value: the content of ``--report``, and the source of ``--metrics-file``."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from acidctl import __version__
from acidctl.acid.listing import Ages
from acidctl.acid.names import is_hidden
from acidctl.acid.state import EntryKind, State
from acidctl.acid.triggers import SMALL_FILE
from acidctl.base import parallel
from acidctl.base.errors import AcidctlError, ExitStatus
from acidctl.base.printable import printable
from acidctl.cli.output.console import SCHEMA_VERSION
from acidctl.cli.output.redact import hidden, hidden_in
from acidctl.location.change.own_files import Owner
from acidctl.location.coverage import Looked
from acidctl.location.snapshot import Snapshot, children_of, take_snapshot
from acidctl.outcome import Outcome, Result
from acidctl.wording import iso_time

GOOD = (ExitStatus.DONE, ExitStatus.NOTHING_TO_DO, ExitStatus.POSTPONED)
"""The exit statuses of a successful run."""

_WORST_FIRST = (
    Result.FAILED, Result.STOPPED, Result.POSTPONED, Result.COMPACTED, Result.CLEANED, Result.PURGED, Result.PLANNED,
    Result.NOTHING_TO_DO, Result.SKIPPED, "not-reached",
)  # fmt: skip
"""The result of a location whose parts have several."""


def standing_of(snapshot: Snapshot, now: float | None = None) -> dict[str, Any]:
    """Return the size and the directories of a listed location, in the form of JSON.

    Everything that is not hidden counts. Among `directories`, counts by state, `small` is that of the current deltas
    and delete deltas below :data:`SMALL_FILE`. `oldestObsoleteSeconds` have passed since the first obsolete entry was
    superseded; it is None if nothing is obsolete.

    Args:
        now: seconds since the epoch.
    """
    now = time.time() if now is None else now
    children = [child for child in children_of(snapshot) if not is_hidden(child.verdict.name)]
    directories = [child for child in children if child.verdict.directory is not None]
    count = {state.value: sum(child.verdict.state is state for child in directories) for state in State}
    current = [child for child in directories if child.verdict.state is State.CURRENT]
    count["small"] = sum(c.verdict.kind is not EntryKind.BASE and c.amount.bytes < SMALL_FILE for c in current)
    times = Ages.of(snapshot.listing).times
    since = []
    for verdict in snapshot.state.in_state(State.OBSOLETE):
        written = [when for name in verdict.reason.by or (verdict.name,) if (when := times.get(name)) is not None]
        since += [min(written)] if written else []
    return {
        "files": sum(child.amount.files for child in children),
        "bytes": sum(child.amount.bytes for child in children),
        "directories": count,
        "oldestObsoleteSeconds": round(max(0.0, now - min(since))) if since else None,
    }


@dataclass(slots=True)
class LocationResult:
    """The result of one location.

    Attributes:
        result: compacted, cleaned, nothing-to-do, postponed, failed...; not-reached if the run ended before.
        bytes: amounts by use: read, written, removed, restored, purged.
        facts: further keys of the report.
        before, after: see :func:`standing_of`.
        again: lists the location once more, without keeping the first listing.
        is_changed: the location was changed, so that `again` is worth its cost.
    """

    location: str
    result: str = "not-reached"
    bytes: Counter[str] = field(default_factory=Counter)
    facts: dict[str, Any] = field(default_factory=dict)
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    seconds: float | None = None
    again: Callable[[], Snapshot] | None = None
    is_changed: bool = False

    @property
    def latest(self) -> dict[str, Any] | None:
        """Return the latest figures; None if they are unknown."""
        return self.after if self.is_changed else self.before

    def look_again(self) -> None:
        """List the location once more."""
        try:
            self.after = standing_of(self.again()) if self.again else None
        except AcidctlError as error:
            self.facts["afterUnknown"] = str(error)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            **self.facts,
            "location": self.location,
            "result": self.result,
            "bytes": self.bytes,
            "seconds": None if self.seconds is None else round(self.seconds, 3),
            "before": self.before,
            "after": self.latest,
            "error": self.error,
        }


@dataclass(slots=True)
class RunReport:
    """A run, filled in while it goes on; it stays empty and costs nothing if it is not wanted.

    Attributes:
        arguments: the command line.
        started, ended: seconds since the epoch.
        errors: errors that belong to no location.
        failures: the number of locations that failed, and of directories that could not be listed.
        facts: further keys of the report.
        looked: how many locations were found in the named places; None for a run that walks nothing.
        earlier: the numbers of locations on record, by places.
        accepts_fewer: accept fewer locations than on record, and record the new number.
    """

    command: str
    arguments: Sequence[str] = ()
    is_wanted: bool = False
    started: float = field(default_factory=time.time)
    ended: float | None = None
    seconds: float = 0.0
    exit_status: int | None = None
    errors: list[dict[str, Any]] = field(default_factory=list)
    results: dict[str, LocationResult] = field(default_factory=dict)
    failures: int = 0
    facts: dict[str, Any] = field(default_factory=dict)
    looked: Looked | None = None
    earlier: dict[str, int] = field(default_factory=dict)
    accepts_fewer: bool = False
    _began: float = field(default_factory=time.monotonic)

    def saw(self, snapshot: Snapshot) -> None:
        """Record a location before anything is done there."""
        if self.is_wanted:
            result = self._of(snapshot.shown)
            result.before = standing_of(snapshot)
            result.again = partial(take_snapshot, snapshot.fs, snapshot.path, snapshot.write_ids, snapshot.txns)

    def add(
        self,
        location: str,
        result: str,
        *,
        is_changed: bool = False,
        seconds: float | None = None,
        bytes_by_use: Mapping[str, int] | None = None,
        **facts: Any,
    ) -> None:
        """Record the result of a location.

        Args:
            is_changed: list it once more at the end.
            seconds: the duration of the work, which is added to that of earlier results.
            bytes_by_use: read, written, removed, restored, purged.
        """
        if self.is_wanted:
            record = self._of(location)
            record.result = result
            record.is_changed |= is_changed
            record.seconds = record.seconds if seconds is None else seconds + (record.seconds or 0.0)
            record.bytes.update(bytes_by_use or {})
            record.facts |= facts

    def take(self, outcome: Outcome) -> None:
        """Record the outcome of a location."""
        if outcome.error:
            self.failed(outcome.location, outcome.error)
        if not self.is_wanted or (outcome.error and not outcome.part):
            return
        result = outcome.result.value
        facts = dict(outcome.reported())
        if outcome.part:
            earlier = self._of(outcome.location)
            result = min(earlier.result, result, key=_WORST_FIRST.index)
            facts = {"parts": {**earlier.facts.get("parts", {}), outcome.part: facts}}
        self.add(
            outcome.location,
            result,
            is_changed=outcome.is_changed,
            seconds=outcome.seconds,
            bytes_by_use=outcome.bytes_by_use(),
            **{name: fact for name, fact in facts.items() if name != "result"},
        )

    def failed(self, location: str, error: AcidctlError) -> None:
        """Record that a location failed; an empty location means that something on the way could not be listed."""
        self.failures += 1
        if not location:
            self.errors.append(as_error(error))
        elif self.is_wanted:
            record = self._of(location)
            record.result, record.error = "failed", as_error(error)

    def end(self, status: int, error: BaseException | None = None) -> None:
        """End the run; locations that it changed are listed once more, unless it was interrupted."""
        self.ended = time.time()
        self.seconds = time.monotonic() - self._began
        self.exit_status = status
        if isinstance(error, Exception):
            self.errors.append(as_error(error))
        if self.is_wanted and status != ExitStatus.INTERRUPTED:
            changed = [result for result in self.results.values() if result.is_changed and result.again]
            list(parallel.results(LocationResult.look_again, changed))

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
        return dict(Counter(result.result for result in self.results.values()))

    def bytes(self) -> dict[str, int]:
        """Return the bytes of all locations by use."""
        total: Counter[str] = Counter()
        for result in self.results.values():
            total.update(result.bytes)
        return dict(total)

    def as_json(self) -> dict[str, Any]:
        """Return the content of the file, schema_version 1."""
        is_interrupted = self.exit_status == ExitStatus.INTERRUPTED
        us, record = Owner.this(), self.record
        report: dict[str, Any] = hidden_in(
            {
                "schema_version": SCHEMA_VERSION,
                "acidctl": __version__,
                "command": self.command,
                "arguments": [hidden(argument) for argument in self.arguments],
                "host": us.host,
                "pid": us.pid,
                "user": us.user,
                "started": iso_time(self.started),
                "ended": iso_time(self.ended),
                "seconds": round(self.seconds, 3),
                "exitStatus": self.exit_status,
                "outcome": "interrupted" if is_interrupted else "done" if self.is_good else "failed",
                "lookedAt": self.looked
                and record
                and {"where": record.where, "locations": self.looked.locations, "onRecord": record.locations},
                **self.facts,
                "errors": self.errors,
                "totals": {"locations": self.counts(), "bytes": self.bytes(), "failures": self.all_failures},
                "locations": [result.as_json() for result in self.results.values()],
            }
        )
        return report

    @property
    def all_failures(self) -> int:
        """Return the number of failures; an error of the run itself counts if no location failed."""
        return self.failures or int(bool(self.errors))

    def _of(self, location: str) -> LocationResult:
        return self.results.setdefault(location, LocationResult(location))


def as_error(error: Exception) -> dict[str, Any]:
    """Return the texts, class and code of an error."""
    name = type(error).__name__
    ours = error if isinstance(error, AcidctlError) else AcidctlError(f"{name}: {error}")
    texts = {"what": ours.what, "why": ours.why, "hint": ours.hint}
    return {key: hidden(text) for key, text in texts.items()} | {"class": name, "code": ours.code}
