"""What acidctl did in a location: its log, and what runs left there of which no line of the log tells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from acidctl.acid.listing import Listing
from acidctl.cleaning.trash import TRASH, trash_runs
from acidctl.errors import AcidctlError
from acidctl.location.change.journal import Run, RunState
from acidctl.location.change.work_log import LogEntry, logged_at, read_log
from acidctl.outcome import Result
from acidctl.repair.backup import BACKUP, backup_runs
from acidctl.storage.port import FileSystem

_LEFT = {RunState.WRITTEN: Result.IN_TRASH.value, RunState.DONE: Result.REPAIRED.value}


def done_in(fs: FileSystem, location: str, top: Listing | None = None) -> list[LogEntry]:
    """What was done there, newest first.

    Args:
        location: absolute.
        top: its own children, where they were listed a moment ago.

    Raises:
        NotFoundError, AccessError, StorageError: it cannot be listed.
    """
    names = {entry.path for entry in (fs.list_dir(location) if top is None else top).entries}
    found = read_log(fs, location) if any(logged_at(name) is not None for name in names) else []
    recorded = {entry.run for entry in found if entry.verb != "compact"}  # which has that of its night
    if TRASH in names:
        with suppress(AcidctlError):  # of what may not be looked into the commands tell that do it
            found += _left("clean", trash_runs(fs, location), recorded)
    if BACKUP in names:
        with suppress(AcidctlError):
            found += _left("repair", backup_runs(fs, location), recorded)
    return sorted(found, key=lambda one: (one.at, one.id), reverse=True)


def _left(verb: str, runs: Iterable[Run], recorded: set[str]) -> Iterator[LogEntry]:
    """Runs that were written down nowhere else: by a version that had no log, or that were interrupted."""
    for run in runs:
        if run.id not in recorded and run.began is not None:
            result, facts = _LEFT.get(run.state, run.state.value), {"entries": len(run.steps), "bytes": run.bytes}
            yield LogEntry(verb, result, run.id, run.began, facts=facts, id=run.id, is_recorded=False)
