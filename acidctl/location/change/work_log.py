"""What acidctl has done in a location: one line of JSON for each operation that ended, the newest of them kept.

They lie in one hidden file of the location, ``.acidctl-log-<time>-<id>.jsonl``, which no look at a location shows. It
is never written to: who adds a line writes all lines to a new file and removes those that it has read, which is the
same on every store. Two at once leave two files, each with what the other has not; whoever comes next makes one of
them.

It is for people, and nothing rests on it. Whoever may write into a table may plant one: what is read is bounded, and
what a line says is text.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from acidctl.acid.listing import LAST_SECONDS, Listing
from acidctl.errors import AcidctlError, NotFoundError, StorageError
from acidctl.location.change.journal import Run
from acidctl.location.change.own_files import foreign, new_run_id, write_checked
from acidctl.location.change.owner import Owner
from acidctl.location.walk import LOG, LOG_SUFFIX, is_log
from acidctl.storage.port import FileSystem, join

MOST_LINES, MOST_LOG_BYTES = 200, 128 << 10
"""So much is kept."""

_MOST_FILES = 8
"""There are two at most, unless somebody plants them."""

_END = b"\n"
"""An empty line: a file without it is being written, or was torn."""

_TORN_SECONDS = 3600.0

_MOST_LINE, _MOST_TEXT, _MOST_FACTS, _MOST_NAMES = 16 << 10, 300, 24, 20
_VERSION = 1

_TEXTS = {
    "id": "id", "verb": "verb", "result": "result", "run": "run", "user": "user", "host": "host",
    "version": "acidctl", "source": "source",
}  # fmt: skip
"""Attributes, and what they are called in a line."""

Fact = str | int | float | bool | list[str] | None


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An operation that has ended.

    Attributes:
        verb: as it is typed: compact, clean, restore...
        result: what became of the location.
        run: the id of the run in the trash or the backup, which one of several locations shares; of a compaction that
            of the night that it was a part of; of others its own.
        at: when it ended, seconds since the epoch.
        user, host: who did it, and where, as it says itself.
        version: of acidctl.
        source: who said what was committed; empty where nothing rested on that.
        facts: what else there is to say, by its key in JSON.
        id: of the line.
        owner: of the file where the store knows that; who writes a line may call himself anything.
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
        """As the log has it: ASCII, without the owner, which the store knows."""
        texts = {key: getattr(self, name) for name, key in _TEXTS.items()}
        said = {"version": _VERSION, "at": self.at, **texts, "facts": _facts(self.facts)}
        line = json.dumps(said)
        return line if len(line) <= _MOST_LINE else json.dumps({**said, "facts": {}})

    def number(self, key: str) -> int | None:
        """A count among the facts; None for what is none, whoever wrote it."""
        value = self.facts.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None

    @classmethod
    def of(cls, line: str, owner: str = "") -> LogEntry | None:
        """Of a line; None for what acidctl writes never."""
        try:
            said = json.loads(line)
            if said["version"] != _VERSION:
                return None
            at = float(said["at"])
            if not (math.isfinite(at) and 0 <= at <= LAST_SECONDS):
                return None
            texts = {name: said[key][:_MOST_TEXT] for name, key in _TEXTS.items()}
            if not all(isinstance(text, str) for text in texts.values()):
                return None
            return cls(at=at, owner=owner, facts=_facts(said["facts"]), **texts)
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
            return None


def _cut_short(value: Fact) -> Fact:
    if isinstance(value, list):
        return [name[:_MOST_TEXT] for name in value[:_MOST_NAMES]]
    return value[:_MOST_TEXT] if isinstance(value, str) else value


def _facts(said: Any) -> dict[str, Fact]:
    found: dict[str, Fact] = {}
    for name, value in list(said.items())[:_MOST_FACTS]:
        is_number = isinstance(value, int | float) and math.isfinite(value) and abs(value) < 1 << 63
        is_names = isinstance(value, list) and all(isinstance(one, str) for one in value)
        if is_number or is_names or isinstance(value, str):
            found[name[:_MOST_TEXT]] = _cut_short(value)
    return found


def of_night(night: str) -> dict[str, Fact]:
    """What the facts of an operation say of the night that it was a part of; nothing for the empty id."""
    return {"night": night} if night else {}


def log_done(
    fs: FileSystem,
    location: str,
    entry: LogEntry,
    tell: Callable[[str], None] | None = None,
) -> None:
    """Write down an operation that has ended; it has, whether this succeeds or not.

    Args:
        location: absolute.
        entry: what is not known yet of who, where and with which version is added.
        tell: called with a sentence where it cannot be written.
    """
    log_all(fs, location, [signed(entry)], tell)


def signed(entry: LogEntry) -> LogEntry:
    """Add to an operation that it has ended now, who did it, where, and with which version."""
    from acidctl import __version__  # noqa: PLC0415 - of the package that this is a part of

    us, new_id = Owner.this(), new_run_id()
    return replace(
        entry, id=new_id, at=time.time(), user=us.user, host=us.host, version=__version__, run=entry.run or new_id
    )


def log_all(
    fs: FileSystem, location: str, entries: Sequence[LogEntry], tell: Callable[[str], None] | None = None
) -> None:
    """Write down signed operations, the oldest first, by one change of the log; otherwise as :func:`log_done`."""
    try:
        if entries:
            _add(fs, location, entries)
    except AcidctlError as error:
        if tell:
            tell(f"{fs.display(location)}: the {entries[-1].verb} is not in the log: {error}")


def _add(fs: FileSystem, location: str, entries: Sequence[LogEntry]) -> None:
    new_id = entries[-1].id
    before = _own_files(fs, location)
    merged, whole = _merged(fs, location, before)
    lines = [one.line() for one in [*reversed(merged), *entries]]
    data = _END
    for line in reversed(lines[-MOST_LINES:]):
        more = line.encode("ascii") + b"\n"
        if data != _END and len(data) + len(more) > MOST_LOG_BYTES:
            break
        data = more + data
    try:
        write_checked(fs, join(location, f"{LOG}{new_id}{LOG_SUFFIX}"), data)
    except StorageError:
        # Others may have found it, and made it a part of their own, before it was read again.
        now = _log_files(fs, location)
        if f"{LOG}{new_id}{LOG_SUFFIX}" in now or not now.keys() - before.keys():
            raise
        return
    for name in whole:
        with suppress(NotFoundError):
            fs.remove_tree(join(location, name))


def read_log(fs: FileSystem, location: str, top: Listing | None = None) -> list[LogEntry]:
    """What was done in a location, newest first; what cannot be used is passed over.

    Args:
        top: its own children, if they were listed a moment ago.

    Raises:
        NotFoundError, AccessError, StorageError: the location cannot be listed.
    """
    if top and not any(logged_at(entry.path) is not None for entry in top.entries):
        return []
    return _merged(fs, location, _log_files(fs, location))[0]


def _log_files(fs: FileSystem, location: str) -> dict[str, str]:
    """The newest of the files, each with its owner, where the store knows that."""
    names = [one.path for one in fs.list_dir(location).entries if not one.is_dir and logged_at(one.path) is not None]
    if not names:
        return {}
    access = fs.access_below(location)
    files = (name for name in sorted(names) if not ((one := access.get(name)) and one.is_link))
    return {name: one.owner if (one := access.get(name)) else "" for name in list(files)[-_MOST_FILES:]}


def _own_files(fs: FileSystem, location: str) -> dict[str, str]:
    """Those that are ours to replace."""
    files = _log_files(fs, location)
    access = fs.access_below(location) if files else {}
    return {name: owner for name, owner in files.items() if not foreign(access.get(name))}


def _merged(fs: FileSystem, location: str, files: Mapping[str, str]) -> tuple[list[LogEntry], list[str]]:
    """What files hold, newest first; and which of them may go when that stands elsewhere: not what is being written."""
    found: dict[tuple[str, str], LogEntry] = {}
    whole: list[str] = []
    for name, owner in files.items():
        with suppress(AcidctlError):  # gone meanwhile, closed, or no file at all: the others tell what they know
            data = fs.read_bytes(join(location, name), 0, 2 * MOST_LOG_BYTES)
            for entry in _entries(data, owner):
                found.setdefault((owner, entry.id), entry)
            if data.endswith(b"\n" + _END) or (logged_at(name) or 0.0) < time.time() - _TORN_SECONDS:
                whole.append(name)
    return sorted(found.values(), key=lambda one: (one.at, one.id), reverse=True), whole


def _entries(data: bytes, owner: str) -> Iterable[LogEntry]:
    for line in data.decode("utf-8", "replace").split("\n")[: 2 * MOST_LINES]:
        if entry := LogEntry.of(line, owner):
            yield entry


def logged_at(name: str) -> float | None:
    """When the newest operation of a log ended, by the name of its file; None where it is none."""
    return Run("", name[len(LOG) : -len(LOG_SUFFIX)]).began if is_log(name) else None
