"""What a repair would do to one location: values that can be shown, and refused, before anything is done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from acidctl.acid.layout import DataFile, data_files_of
from acidctl.acid.listing import Entry
from acidctl.acid.names import AcidDirectory
from acidctl.errors import BadDataError
from acidctl.location.snapshot import Snapshot
from acidctl.storage.port import FileSystem

LIVE_SECONDS = 3600
"""Who has written within this time may be writing still: streaming writers commit far more often."""


class RepairKind(StrEnum):
    """The repairs."""

    EMPTY_RESULT = "empty-result"
    KEY_INDEX = "key-index"
    FLUSH_LENGTH = "flush-length"
    NESTED = "nested"
    VERSION_FILE = "version-file"


@dataclass(frozen=True, slots=True)
class Made:
    """A file as it is to be: the first bytes of the present one, and an end of its own.

    Attributes:
        path: relative to the location.
        prefix: bytes of the present file that stay; 0 where there is none.
        end: what follows them.
        replaces: a file of this path is there.
    """

    path: str
    prefix: int
    end: bytes
    replaces: bool

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.prefix + len(self.end)


Check = Callable[[FileSystem, str, str], None]
"""Reads what is about to be shown once more: (file system, path as it is, path as staged), both absolute."""


@dataclass(frozen=True, slots=True)
class Fix:
    """One thing that is wrong, and what mends it: files are made, then entries go away, then entries are lifted.

    Attributes:
        path: relative to the location: the file or directory that is wrong.
        problem: what is wrong with it.
        remedy: what is done about it.
        bytes: of what is written or moved.
        watched: files of which size and time must be as they were when this was planned.
        made: files that take the place of others, or are new.
        away: what goes into the backup.
        lifted: (from, to): what comes back from the backup elsewhere; `from` as if it had not gone there.
        check: raises VerifyError or BadDataError when what is staged of `path` is not what was meant.
        is_gap: between two renames readers see the location without the directory.
    """

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


@dataclass(frozen=True, slots=True)
class CannotRepair:
    """Something that is wrong, and cannot be mended safely.

    Attributes:
        path: relative to the location.
    """

    path: str
    why: str
    hint: str


Suspect = tuple[str, Callable[[], Fix | None]]
"""Where something may be wrong, relative to the location, and the look that finds what mends it, or raises
:class:`BadDataError` where nothing does so safely.
"""


def unsafe(why: str, hint: str = "") -> BadDataError:
    """Return the error of something that cannot be mended safely."""
    return BadDataError("", why, hint)


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """What one repair does to one location."""

    snapshot: Snapshot
    kind: RepairKind
    fixes: tuple[Fix, ...]
    refused: tuple[CannotRepair, ...]

    def __repr__(self) -> str:
        where = self.snapshot.fs.display(self.snapshot.path)
        return f"<repair {self.kind} of {where}: {len(self.fixes):,} fixes, {len(self.refused):,} refused>"

    @property
    def bytes(self) -> int:
        """Of what is written or moved."""
        return sum(fix.bytes for fix in self.fixes)

    def only(self, paths: Iterable[str]) -> RepairPlan:
        """The same with the fixes of some paths."""
        wanted = set(paths)
        return RepairPlan(self.snapshot, self.kind, tuple(f for f in self.fixes if f.path in wanted), self.refused)


def plan_of(snapshot: Snapshot, kind: RepairKind, suspects: Iterable[Suspect]) -> RepairPlan:
    """Look at all suspects of a location."""
    fixes, refused = [], []
    for path, look in suspects:
        try:
            if fix := look():
                fixes.append(fix)
        except BadDataError as error:
            refused.append(CannotRepair(path, error.why or error.what, error.hint))
    return RepairPlan(snapshot, kind, tuple(fixes), tuple(refused))


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a repair looks.

    Attributes:
        path: relative to the location: a directory or a file of it; empty for all that a reader of the location reads.
        now: seconds since the epoch.
        force: what was written just now counts as finished.
        among: only these files are looked into; empty for all.
    """

    now: float
    path: str = ""
    force: bool = False
    among: frozenset[str] = frozenset()

    def covers(self, path: str) -> bool:
        """Whether a path, relative to the location, lies in it."""
        return not self.path or path == self.path or path.startswith(f"{self.path}/")

    def require_dead(self, entries: Iterable[Entry], before: str = "") -> None:
        """Raises BadDataError where somebody may still be writing these files; `before` begins its words."""
        for entry in () if self.force else entries:
            if entry.modified is None:
                raise unsafe(f"{before}the store does not say when {entry.path} was written last", _LIVE_HINT)
            age = self.now - entry.modified
            if age < LIVE_SECONDS:
                minutes = max(0, int(age // 60))
                why = f"{entry.path} was written {minutes} minutes ago: its writer may be at work"
                raise unsafe(before + why, _LIVE_HINT)


_LIVE_HINT = "wait until nothing was written for an hour, or give `force` when the writer is certainly dead"


def directories(snapshot: Snapshot, scope: Scope) -> Iterator[tuple[AcidDirectory, list[Entry]]]:
    """The ACID directories that a repair looks at, with the files below them.

    Those that a reader of the snapshot reads; of the others only one that was asked for by its path.
    """
    state = snapshot.state
    children = snapshot.listing.files_by_child
    current = {verdict.name for verdict in (state.base, *state.deltas) if verdict}
    asked = scope.path.partition("/")[0]
    for verdict in state.verdicts:
        if verdict.directory and (verdict.name == asked if asked else verdict.name in current):
            yield verdict.directory, children.get(verdict.name, [])


def native_files(snapshot: Snapshot, scope: Scope) -> Iterator[tuple[DataFile, Entry]]:
    """The ``bucket_N`` files of these directories."""
    for directory, entries in directories(snapshot, scope):
        by_path = {entry.path: entry for entry in entries}
        for file in data_files_of(directory, entries):
            covered = scope.covers(file.path) or (file.flush_length_path and scope.covers(file.flush_length_path))
            if file.native_name and covered and (not scope.among or file.path in scope.among):
                yield file, by_path[file.path]
