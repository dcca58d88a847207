"""What a run did, as a value: the file of ``--report``, and what ``--metrics-file`` is made from."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from acidctl import __version__
from acidctl.acid.listing import Ages
from acidctl.acid.names import is_hidden
from acidctl.acid.state import EntryKind, State
from acidctl.acid.triggers import SMALL_FILE
from acidctl.cli.output.console import SCHEMA_VERSION
from acidctl.cli.output.redact import hidden, hidden_in
from acidctl.errors import AcidctlError, ExitStatus
from acidctl.location.change.owner import Owner
from acidctl.location.coverage import Looked
from acidctl.location.snapshot import Snapshot, children_of, take_snapshot
from acidctl.outcome import Outcome
from acidctl.printable import printable
from acidctl.wording import iso_time

GOOD = (ExitStatus.DONE, ExitStatus.NOTHING_TO_DO, ExitStatus.POSTPONED)
"""Exit statuses of a run that did what it could."""
_LISTINGS = 8
"""Locations that are listed at a time, once more, at the end."""


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
    children = [child for child in children_of(snapshot) if not is_hidden(child.verdict.name)]
    directories = [child for child in children if child.verdict.directory is not None]
    count = {state.value: sum(child.verdict.state is state for child in directories) for state in State}
    current = [child for child in directories if child.verdict.state is State.CURRENT]
    count["small"] = sum(c.verdict.kind is not EntryKind.BASE and c.amount.bytes < SMALL_FILE for c in current)
    times = Ages.of(snapshot.listing).times
    since = []
    for verdict in snapshot.state.in_state(State.OBSOLETE):
        known = [when for name in verdict.reason.by or (verdict.name,) if (when := times.get(name)) is not None]
        since += [min(known)] if known else []
    files, size = sum(c.amount.files for c in children), sum(c.amount.bytes for c in children)
    return Standing(files, size, count, max(0.0, now - min(since)) if since else None)


@dataclass(slots=True)
class LocationResult:
    """What became of one location.

    Attributes:
        result: compacted, cleaned, nothing-to-do, postponed, failed...; not-reached when the run ended before.
        bytes: by what was done with them: read, written, removed, restored.
        facts: what else there is to say, by name.
        again: lists it once more, without keeping the first listing.
        is_changed: it is worth while.
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
        """How it stands now; None where that is not known."""
        return self.after if self.is_changed else self.before


@dataclass(slots=True)
class RunReport:
    """A run, filled in while it goes on.  Where nobody asked for it, it stays empty and costs nothing.

    Attributes:
        arguments: what was typed, without secrets.
        started, ended: seconds since the epoch.
        errors: of no location.
        failures: locations that failed, and what could not be listed.
        facts: what else there is to say of the run, by name.
        looked: how many locations were found in the named places; None for a run that walks nothing.
        earlier: the numbers on record, by places.
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
        """A location, before anything is done there."""
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
        """What became of a location.

        Args:
            is_changed: it is listed once more at the end.
            seconds: of work.
            bytes_by_use: read, written, removed, restored.
        """
        if not self.is_wanted:
            return
        found = self._of(location)
        found.result = result
        found.is_changed |= is_changed
        found.seconds = seconds
        for name, count in (bytes_by_use or {}).items():
            found.bytes[name] = found.bytes.get(name, 0) + count
        found.facts |= facts

    def take(self, outcome: Outcome) -> None:
        """What became of a location, as its outcome says."""
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
        """A location failed; without one, the way to some."""
        self.failures += 1
        if not location:
            self.errors.append(as_error(error))
        elif self.is_wanted:
            found = self._of(location)
            found.result, found.error = "failed", as_error(error)

    def end(self, status: int, error: BaseException | None = None) -> None:
        """The run has ended; what it changed is listed once more, unless it was interrupted."""
        self.ended = time.time()
        self.seconds = time.monotonic() - self._began
        self.exit_status = status
        if isinstance(error, Exception):
            self.errors.append(as_error(error))
        if self.is_wanted and status != ExitStatus.INTERRUPTED:
            changed = [result for result in self.results.values() if result.is_changed and result.again]
            if changed:
                with ThreadPoolExecutor(min(_LISTINGS, len(changed))) as pool:
                    list(pool.map(_look_again, changed))

    def looked_before(self, where: str) -> int | None:
        """How many locations the last run on record found at certain places; None without one."""
        return self.earlier.get(_label(where))

    @property
    def record(self) -> Looked | None:
        """How many locations later runs must find at each place: the larger of this run's number and the old one."""
        if self.looked is None:
            return None
        before = self.looked_before(self.looked.where)
        count = self.looked.on_record(before, self.exit_status or 0, is_accepted=self.accepts_fewer)
        return Looked(_label(self.looked.where), count)

    @property
    def is_good(self) -> bool:
        """Whether it did what it was to do."""
        return self.exit_status in GOOD

    def counts(self) -> dict[str, int]:
        """Locations by result."""
        return dict(Counter(result.result for result in self.results.values()))

    def bytes(self) -> dict[str, int]:
        """Bytes of all locations, by what was done with them."""
        found: dict[str, int] = {}
        for result in self.results.values():
            for name, count in result.bytes.items():
                found[name] = found.get(name, 0) + count
        return found

    def as_json(self) -> dict[str, Any]:
        """The file's content, schema_version 1."""
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
        """Failed locations; the run itself counts when nothing else tells that it failed."""
        return self.failures or int(bool(self.errors))

    def _of(self, location: str) -> LocationResult:
        return self.results.setdefault(location, LocationResult(location))


def _label(where: str) -> str:
    """Names of places, without secrets or terminal control characters."""
    return printable(hidden(where))


def as_error(error: Exception) -> dict[str, Any]:
    """An error's lines, and what it is."""
    name = type(error).__name__
    known = error if isinstance(error, AcidctlError) else AcidctlError(f"{name}: {error}")
    texts = {"what": known.what, "why": known.why, "hint": known.hint}
    return {key: hidden(text) for key, text in texts.items()} | {"class": name, "code": known.code}


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
