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
from acidctl.outcome import Outcome
from acidctl.wording import iso_time

GOOD = (ExitStatus.DONE, ExitStatus.NOTHING_TO_DO, ExitStatus.POSTPONED)
"""The exit statuses of a successful run."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The size and the directories of a location at one time.

    Attributes:
        files, bytes: totals of everything that is not hidden.
        directories: counts by state; `small` counts the current deltas and delete deltas below :data:`SMALL_FILE`.
        oldest_obsolete: seconds since the first obsolete entry was superseded; None if nothing is obsolete.
    """

    files: int
    bytes: int
    directories: dict[str, int]
    oldest_obsolete: float | None

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        oldest = self.oldest_obsolete
        return {
            "files": self.files,
            "bytes": self.bytes,
            "directories": self.directories,
            "oldestObsoleteSeconds": None if oldest is None else round(oldest),
        }


def standing_of(snapshot: Snapshot, now: float | None = None) -> Standing:
    """Return the size and the directories of a listed location.

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
    files, size = sum(c.amount.files for c in children), sum(c.amount.bytes for c in children)
    return Standing(files, size, count, max(0.0, now - min(since)) if since else None)


@dataclass(slots=True)
class LocationResult:
    """The result of one location.

    Attributes:
        result: compacted, cleaned, nothing-to-do, postponed, failed...; not-reached if the run ended before.
        bytes: amounts by use: read, written, removed, restored.
        facts: further keys of the report.
        again: lists the location once more, without keeping the first listing.
        is_changed: the location was changed, so that `again` is worth its cost.
    """

    location: str
    result: str = "not-reached"
    bytes: dict[str, int] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    before: Standing | None = None
    after: Standing | None = None
    error: dict[str, Any] | None = None
    seconds: float | None = None
    again: Callable[[], Snapshot] | None = None
    is_changed: bool = False

    @property
    def latest(self) -> Standing | None:
        """Return the latest figures; None if they are unknown."""
        return self.after if self.is_changed else self.before


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
            result = self._of(snapshot.fs.display(snapshot.path))
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
            seconds: the duration of the work.
            bytes_by_use: read, written, removed, restored.
        """
        if not self.is_wanted:
            return
        record = self._of(location)
        record.result = result
        record.is_changed |= is_changed
        record.seconds = seconds
        for name, count in (bytes_by_use or {}).items():
            record.bytes[name] = record.bytes.get(name, 0) + count
        record.facts |= facts

    def take(self, outcome: Outcome) -> None:
        """Record the outcome of a location."""
        if outcome.error:
            self.failed(outcome.location, outcome.error)
            return
        self.add(
            outcome.location,
            outcome.result.value,
            is_changed=outcome.is_changed,
            seconds=outcome.seconds,
            bytes_by_use=outcome.bytes_by_use(),
            **outcome.reported(),
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
            list(parallel.results(_look_again, changed))

    def looked_before(self, where: str) -> int | None:
        """Return how many locations the last run on record found at certain places; None without a record."""
        return self.earlier.get(_without_secrets(where))

    @property
    def record(self) -> Looked | None:
        """Return how many locations later runs must find: the larger of this run's number and the recorded one."""
        if self.looked is None:
            return None
        before = self.looked_before(self.looked.where)
        count = self.looked.on_record(before, self.exit_status or 0, is_accepted=self.accepts_fewer)
        return Looked(_without_secrets(self.looked.where), count)

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
        ended = "done" if self.is_good else "failed"
        if self.exit_status == ExitStatus.INTERRUPTED:
            ended = "interrupted"
        us = Owner.this()
        record = {
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
            "outcome": ended,
            "lookedAt": self._looked_at(),
            **self.facts,
            "errors": self.errors,
            "totals": {"locations": self.counts(), "bytes": self.bytes(), "failures": self.all_failures},
            "locations": [_as_json(result) for result in self.results.values()],
        }
        made: dict[str, Any] = hidden_in(record)
        return made

    def _looked_at(self) -> dict[str, Any] | None:
        if not (self.looked and self.record):
            return None
        return {"where": self.record.where, "locations": self.looked.locations, "onRecord": self.record.locations}

    @property
    def all_failures(self) -> int:
        """Return the number of failures; an error of the run itself counts if no location failed."""
        return self.failures or int(bool(self.errors))

    def _of(self, location: str) -> LocationResult:
        return self.results.setdefault(location, LocationResult(location))


def _without_secrets(where: str) -> str:
    return printable(hidden(where))


def as_error(error: Exception) -> dict[str, Any]:
    """Return the texts, class and code of an error."""
    name = type(error).__name__
    ours = error if isinstance(error, AcidctlError) else AcidctlError(f"{name}: {error}")
    texts = {"what": ours.what, "why": ours.why, "hint": ours.hint}
    return {key: hidden(text) for key, text in texts.items()} | {"class": name, "code": ours.code}


def _look_again(result: LocationResult) -> None:
    try:
        result.after = standing_of(result.again()) if result.again else None
    except AcidctlError as error:
        result.facts["afterUnknown"] = str(error)


def _as_json(result: LocationResult) -> dict[str, Any]:
    return {
        "location": result.location,
        "result": result.result,
        "bytes": result.bytes,
        "seconds": None if result.seconds is None else round(result.seconds, 3),
        **result.facts,
        "before": result.before and result.before.as_json(),
        "after": result.latest and result.latest.as_json(),
        "error": result.error,
    }
