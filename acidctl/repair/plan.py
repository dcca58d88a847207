"""The plan of a repair: what is wrong in one location and what mends it, as values that can be shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from acidctl.acid.layout import DataFile, data_files_of
from acidctl.acid.listing import Entry
from acidctl.acid.names import AcidDirectory
from acidctl.base.errors import BadDataError, ExitStatus
from acidctl.location.change.journal import RunState
from acidctl.location.snapshot import Snapshot
from acidctl.orc.read.reader import open_orc
from acidctl.orc.tail import Tail
from acidctl.outcome import Details, NextCommand, Outcome, Remark, Result
from acidctl.repair.backup import RepairRun
from acidctl.rows.read.events import ID_COLUMNS, Ids, read_ids
from acidctl.storage.port import FileSystem
from acidctl.wording import human_bytes, human_count

LIVE_SECONDS = 3600
"""A writer that wrote within this time may still be at work: streaming writers commit far more often."""


class RepairKind(StrEnum):
    """The kinds of repair, in the order in which they are planned."""

    EMPTY_RESULT = "empty-result"
    NESTED = "nested"
    FLUSH_LENGTH = "flush-length"
    KEY_INDEX = "key-index"
    VERSION_FILE = "version-file"


@dataclass(frozen=True, slots=True)
class Made:
    """A file that a repair makes: the first bytes of the present file, followed by new ones.

    Attributes:
        path: relative to the location.
        prefix: number of bytes that stay.
        end: the bytes that follow them.
        replaces: whether a file of this path exists.
    """

    path: str
    prefix: int
    end: bytes
    replaces: bool

    @property
    def size(self) -> int:
        """Return the size of the new file in bytes."""
        return self.prefix + len(self.end)


Check = Callable[[FileSystem, str, str], None]
"""Checks a staged file before it is swapped in: (file system, present path, staged path), both absolute."""


@dataclass(frozen=True, slots=True)
class Fix:
    """One problem and its remedy: files are made, then entries move away, then entries are lifted.

    Attributes:
        path: the damaged file or directory, relative to the location.
        bytes: how many are written or moved.
        watched: files that must keep their size and time from planning to the swap.
        made: new files, and files that replace others.
        away: paths that move into the backup.
        lifted: (from, to) for entries that leave the backup to another path; `from` is their path before they moved.
        check: raises VerifyError or BadDataError if the staged file of `path` is wrong.
        is_gap: readers see the location without the directory between two renames.
    """

    kind: RepairKind
    path: str
    problem: str
    remedy: str
    bytes: int
    watched: tuple[Entry, ...]
    made: tuple[Made, ...] = ()
    away: tuple[str, ...] = ()
    lifted: tuple[tuple[str, str], ...] = ()
    check: Check | None = None
    is_gap: bool = False

    def meets(self, other: Fix) -> bool:
        """Return whether both change the same file or directory, or something in it."""
        paths = [f"{path}/" for path in self._changed]
        return any(a.startswith(b) or b.startswith(a) for a in paths for b in (f"{path}/" for path in other._changed))

    @property
    def _changed(self) -> tuple[str, ...]:
        lifted = (path for pair in self.lifted for path in pair)
        return (*(made.path for made in self.made), *self.away, *lifted)


@dataclass(frozen=True, slots=True)
class CannotRepair:
    """A problem that cannot be mended safely; `path` is relative to the location."""

    kind: RepairKind
    path: str
    why: str
    hint: str


Suspect = tuple[str, Callable[[], Fix | None]]
"""A path relative to the location, and a function that returns its fix or raises :class:`BadDataError` if unsafe."""


def unsafe(why: str, hint: str = "") -> BadDataError:
    """Return the error for a problem that cannot be mended safely."""
    return BadDataError("", why, hint)


@dataclass(frozen=True, slots=True)
class Scope:
    """The location that a repair examines, and the time of the examination.

    Attributes:
        now: seconds since the epoch.
        force: treat files that were written just now as finished.
        among: examine only these files; empty for all.
    """

    now: float
    force: bool = False
    among: frozenset[str] = frozenset()

    def require_dead(self, entries: Iterable[Entry], before: str = "") -> None:
        """Raise BadDataError, its reason prefixed by `before`, if a writer of these files may be at work."""
        for entry in () if self.force else entries:
            if entry.modified is None:
                raise unsafe(f"{before}the store does not say when {entry.path} was written last", _LIVE_HINT)
            age = self.now - entry.modified
            if age < LIVE_SECONDS:
                minutes = max(0, int(age // 60))
                why = f"{entry.path} was written {minutes} minutes ago: its writer may be at work"
                raise unsafe(before + why, _LIVE_HINT)


_LIVE_HINT = "wait until nothing was written for an hour, or give --force when the writer is certainly dead"


@dataclass(frozen=True, kw_only=True)
class RepairPlan(Outcome):
    """The fixes for one location, and the problems that cannot be mended; or what became of them.

    Attributes:
        interrupted: earlier repairs that were interrupted, and are finished first.
        run: the run by which the repair can be undone; None before, and if only interrupted repairs were finished.
    """

    snapshot: Snapshot
    scope: Scope
    fixes: tuple[Fix, ...] = ()
    refused: tuple[CannotRepair, ...] = ()
    interrupted: tuple[RepairRun, ...] = ()
    run: RepairRun | None = None

    def __repr__(self) -> str:
        return f"<repair of {self.location}: {len(self.fixes):,} fixes, {len(self.refused):,} refused>"

    @property
    def kinds(self) -> tuple[RepairKind, ...]:
        """Return the kinds of its fixes, each once."""
        return tuple(dict.fromkeys(fix.kind for fix in self.fixes))

    @property
    def bytes(self) -> int:
        """Return how many bytes are written or moved."""
        return sum(fix.bytes for fix in self.fixes)

    @property
    def exit_status(self) -> int:
        """Return REFUSED if a problem stays: a location that stays broken is not a success."""
        return ExitStatus.REFUSED if self.refused else ExitStatus.DONE

    @property
    def heading(self) -> str:
        return "nothing to repair" if self.result is Result.NOTHING_TO_DO else self.result.words

    def line(self) -> str:
        if self.result is Result.NOTHING_TO_DO:
            return f"{self.location}: nothing to repair"
        parts = []
        if self.run:
            count, size = human_count(len(self.run.paths), "repair"), human_bytes(self.run.bytes)
            parts.append(f"{count} done as {self.run.id}, {size}")
        elif self.fixes and self.result is not Result.REPAIRED:
            parts.append(f"{human_count(len(self.fixes), 'repair')}, {human_bytes(self.bytes)}")
        if self.result is Result.REPAIRED:
            parts += [f"{run.id} finished" for run in self.interrupted]
        return f"{self.location}: {'; '.join(parts)}" if parts else ""

    def details(self, *, every: bool) -> Details | None:  # noqa: ARG002 - each is shown before it is confirmed
        if self.result is Result.REPAIRED or not self.fixes:
            return None
        rows = ((fix.path, fix.kind.value, human_bytes(fix.bytes), fix.problem, fix.remedy) for fix in self.fixes)
        return Details(("path", "kind", "size", "problem", "repair"), tuple(rows))

    def remarks(self) -> Iterator[Remark]:
        for run in self.interrupted if self.result is not Result.REPAIRED else ():
            state = "being undone" if run.state is RunState.UNDOING else "interrupted"
            yield Remark(
                f"{self.location}: {run.id} ({', '.join(run.kinds)} of {', '.join(run.paths)}) was {state}: it is "
                "finished first; until then readers see whole files, old or new"
            )
        for item in self.refused:
            text = f"{self.location}: {item.path} cannot be repaired safely ({item.kind}): {item.why}"
            yield Remark(text, is_warning=True)
        yield from (Remark(item.hint) for item in self.refused if item.hint)

    def next_command(self) -> NextCommand | None:
        return NextCommand("undo", ("restore", "--run", self.run.id)) if self.run else None

    def facts(self) -> Mapping[str, Any]:
        """Return the problem and the remedy of each file, or why it cannot be repaired."""
        keys = ("kind", "path", "problem", "remedy", "bytes")
        return {
            "bytes": self.bytes,
            "fixes": [{key: getattr(fix, key) for key in keys} for fix in self.fixes],
            "refused": [
                {"kind": item.kind, "path": item.path, "reason": item.why, "hint": item.hint} for item in self.refused
            ],
            "interrupted": [run.id for run in self.interrupted],
            **({"run": self.run and self.run.id} if self.result is Result.REPAIRED else {}),
        }


def directories(snapshot: Snapshot) -> Iterator[tuple[AcidDirectory, list[Entry]]]:
    """Yield the ACID directories that a reader reads, each with its files."""
    state = snapshot.state
    children = snapshot.listing.files_by_child
    for verdict in (state.base, *state.deltas):
        if verdict and verdict.directory:
            yield verdict.directory, children.get(verdict.name, [])


def native_files(snapshot: Snapshot, scope: Scope) -> Iterator[tuple[DataFile, Entry]]:
    """Yield the ``bucket_N`` files of these directories."""
    for directory, entries in directories(snapshot):
        by_path = {entry.path: entry for entry in entries}
        for file in data_files_of(directory, entries):
            if file.native_name and (not scope.among or file.path in scope.among):
                yield file, by_path[file.path]


def stripe_ids(fs: FileSystem, path: str, tail: Tail) -> Iterator[Ids]:
    """Yield the ids of one stripe after another.

    Raises:
        BadDataError: a stripe cannot be read, or one of its rows lacks an id.
    """
    with open_orc(fs, path, tail.file_length, tail) as orc:
        for stripe in range(orc.stripe_count):
            yield read_ids(orc.read_stripe(stripe, ID_COLUMNS), fs.display(path))
