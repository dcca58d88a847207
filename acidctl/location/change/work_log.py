"""The log of a location: one line of JSON for each finished operation; the newest are kept.

The lines are in one hidden file of the location, ``.acidctl-log-<time>-<id>.jsonl``, which no listing shows. The file
is never changed: to add a line, all lines are written to a new file, and the files that were read are removed, which
works the same on every store. Two writers at the same time leave two files, each without the other's line; the next
writer merges them.

The log is for people, and nothing depends on it. Anyone who may write into a table may plant one: reading is bounded,
and the content of a line is only shown as text.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from acidctl.acid.listing import LAST_SECONDS, Listing
from acidctl.base.errors import AcidctlError, NotFoundError, StorageError
from acidctl.location.change.journal import Run
from acidctl.location.change.own_files import Owner, foreign, new_run_id, write_checked
from acidctl.location.walk import LOG, LOG_SUFFIX, is_log
from acidctl.storage.port import FileSystem, join

MOST_LINES, MOST_LOG_BYTES = 200, 128 << 10
"""The limits of the log."""

_MOST_FILES = 8
"""There are at most two, unless they were planted."""

_END = b"\n"
"""An empty line at the end: a file without it is being written, or was torn."""

_TORN_SECONDS = 3600.0

_MOST_LINE, _MOST_TEXT, _MOST_FACTS, _MOST_NAMES = 16 << 10, 300, 24, 20
_VERSION = 1

_COUNTS = "transactions", "inserted", "bytes"
"""The facts that are added up over the steps of one operation."""

_TEXTS = {
    "id": "id", "verb": "verb", "result": "result", "run": "run", "user": "user", "host": "host",
    "version": "acidctl", "source": "source",
}  # fmt: skip
"""The JSON keys of attributes."""

Fact = str | int | float | bool | list[str] | None


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A finished operation.

    Attributes:
        verb: the command: compact, clean, restore...
        result: the outcome for the location.
        run: the id of the run in the trash or the backup, which several locations may share; for a compaction the id of
            its nightly run; else its own.
        at: when it ended, seconds since the epoch.
        user, host: as the writer gives them.
        version: the version of acidctl.
        source: what decided which write ids were committed; empty if nothing depended on that.
        facts: further results by their key in JSON.
        id: of the line.
        owner: of the file, if the store knows it; the user in a line can be forged.
    """

    verb: str
    result: str
    run: str = ""
    at: float = 0.0
    user: str = ""
    host: str = ""
    version: str = ""
    source: str = ""
    facts: Mapping[str, Fact] = field(default_factory=dict)
    id: str = ""
    owner: str = ""

    def line(self) -> str:
        """Return the line: ASCII, without the owner, which the store knows."""
        texts = {key: getattr(self, name) for name, key in _TEXTS.items()}
        record = {"version": _VERSION, "at": self.at, **texts, "facts": _facts(self.facts)}
        line = json.dumps(record)
        return line if len(line) <= _MOST_LINE else json.dumps({**record, "facts": {}})

    def after(self, before: LogEntry) -> LogEntry:
        """Return this step of an operation with the counts of the steps before it, and their first write id."""
        counts = {key: (before.number(key) or 0) + (self.number(key) or 0) for key in _COUNTS}
        first = {} if (number := before.number("minWriteId")) is None else {"minWriteId": number}
        return replace(self, facts={**before.facts, **self.facts, **counts, **first})

    def number(self, key: str) -> int | None:
        """Return a count among the facts; None if the value is not a count, since anyone may have written it."""
        value = self.facts.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None

    @classmethod
    def of(cls, line: str, owner: str = "") -> LogEntry | None:
        """Parse a line; return None for anything that acidctl never writes."""
        try:
            record = json.loads(line)
            if record["version"] != _VERSION:
                return None
            at = float(record["at"])
            if not (math.isfinite(at) and 0 <= at <= LAST_SECONDS):
                return None
            texts = {name: record[key][:_MOST_TEXT] for name, key in _TEXTS.items()}
            if not all(isinstance(text, str) for text in texts.values()):
                return None
            return cls(at=at, owner=owner, facts=_facts(record["facts"]), **texts)
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
            return None


def _facts(record: Any) -> dict[str, Fact]:
    facts: dict[str, Fact] = {}
    for name, value in list(record.items())[:_MOST_FACTS]:
        key = name[:_MOST_TEXT]
        if isinstance(value, str):
            facts[key] = value[:_MOST_TEXT]
        elif isinstance(value, list) and all(isinstance(item, str) for item in value):
            facts[key] = [item[:_MOST_TEXT] for item in value[:_MOST_NAMES]]
        elif isinstance(value, int | float) and math.isfinite(value) and abs(value) < 1 << 63:
            facts[key] = value
    return facts


def of_night(night: str) -> dict[str, Fact]:
    """Return the fact that links an operation to its nightly run; nothing for the empty id."""
    return {"night": night} if night else {}


def log_done(
    fs: FileSystem,
    location: str,
    entry: LogEntry,
    tell: Callable[[str], None] | None = None,
) -> None:
    """Log an operation that has ended; a failure to log it does not fail the operation.

    Args:
        location: absolute.
        entry: who, where and the version are added. If it has an id, it is a step of an operation that goes on, and
            takes the place of the line with this id: see :meth:`LogEntry.after`.
        tell: called with a sentence if the log cannot be written.
    """
    log_all(fs, location, [signed(entry)], tell)


def signed(entry: LogEntry) -> LogEntry:
    """Return an operation with its end, user, host and version set; a step of a longer operation keeps its id."""
    from acidctl import __version__  # noqa: PLC0415 - of the package that this is a part of

    us, new_id = Owner.this(), new_run_id()
    return replace(
        entry,
        id=entry.id or new_id,
        at=time.time(),
        user=us.user,
        host=us.host,
        version=__version__,
        run=entry.run or new_id,
    )


def log_all(
    fs: FileSystem, location: str, entries: Sequence[LogEntry], tell: Callable[[str], None] | None = None
) -> None:
    """Log signed operations, the oldest first, with one change of the log; otherwise like :func:`log_done`."""
    try:
        if entries:
            _add(fs, location, entries)
    except AcidctlError as error:
        if tell:
            tell(f"{fs.display(location)}: the {entries[-1].verb} is not in the log: {error}")


def _add(fs: FileSystem, location: str, entries: Sequence[LogEntry]) -> None:
    new_name = f"{LOG}{new_run_id()}{LOG_SUFFIX}"
    before = _log_files(fs, location)
    if before:  # this user replaces no file of others
        access = fs.access_below(location)
        before = {name: owner for name, owner in before.items() if not foreign(access.get(name))}
    merged, whole = _merged(fs, location, before)
    known = {entry.id: entry for entry in reversed(merged)}
    entries = [entry.after(old) if (old := known.pop(entry.id, None)) else entry for entry in entries]
    lines = [entry.line() for entry in [*known.values(), *entries]]
    data = _END
    for line in reversed(lines[-MOST_LINES:]):
        more = line.encode("ascii") + b"\n"
        if data != _END and len(data) + len(more) > MOST_LOG_BYTES:
            break
        data = more + data
    try:
        write_checked(fs, join(location, new_name), data)
    except StorageError:
        # Another writer may have merged it into its own file before it was read again.
        now = _log_files(fs, location)
        if new_name in now or not now.keys() - before.keys():
            raise
        return
    for name in whole:
        with suppress(NotFoundError):
            fs.remove_tree(join(location, name))


def read_log(fs: FileSystem, location: str, top: Listing | None = None) -> list[LogEntry]:
    """Return the operations in a location, newest first; unusable lines are ignored.

    Args:
        top: its own children, if they were just listed.

    Raises:
        NotFoundError, AccessError, StorageError: the location cannot be listed.
    """
    if top and not any(logged_at(entry.path) is not None for entry in top.entries):
        return []
    return _merged(fs, location, _log_files(fs, location))[0]


def _log_files(fs: FileSystem, location: str) -> dict[str, str]:
    """Return the newest log files, each with its owner, if the store knows it."""
    names = [e.path for e in fs.list_dir(location).entries if not e.is_dir and logged_at(e.path) is not None]
    if not names:
        return {}
    access = fs.access_below(location)
    files = (name for name in sorted(names) if not ((info := access.get(name)) and info.is_link))
    return {name: info.owner if (info := access.get(name)) else "" for name in list(files)[-_MOST_FILES:]}


def _merged(fs: FileSystem, location: str, files: Mapping[str, str]) -> tuple[list[LogEntry], list[str]]:
    """Return the entries of files, newest first, and the names of the complete files, which may be removed."""
    by_id: dict[tuple[str, str], LogEntry] = {}
    whole: list[str] = []
    for name, owner in files.items():
        with suppress(AcidctlError):  # it is gone, not readable, or not a file
            data = fs.read_bytes(join(location, name), 0, 2 * MOST_LOG_BYTES)
            for line in data.decode("utf-8", "replace").split("\n")[: 2 * MOST_LINES]:
                if entry := LogEntry.of(line, owner):
                    known = by_id.setdefault((owner, entry.id), entry)
                    if known.at < entry.at:  # a later step of the same operation
                        by_id[owner, entry.id] = entry
            if data.endswith(b"\n" + _END) or (logged_at(name) or 0.0) < time.time() - _TORN_SECONDS:
                whole.append(name)
    return sorted(by_id.values(), key=lambda entry: (entry.at, entry.id), reverse=True), whole


def logged_at(name: str) -> float | None:
    """Return when the newest operation of a log ended, by the name of its file; None for other names."""
    return Run("", name[len(LOG) : -len(LOG_SUFFIX)]).began if is_log(name) else None
