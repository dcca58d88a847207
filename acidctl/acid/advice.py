"""What a location costs its readers, and what a compaction would save: figures of one listing, no file opened.

A reader pays for every directory that it lists and every file that it opens, and it holds the keys of the deletes while
it reads rows.  To compare locations all of it is counted in bytes:

* a file costs :data:`OPEN_BYTES` beyond its own, as Spark's planner counts (``spark.sql.files.openCostInBytes``), and
  so does a directory; one directory, and one file per bucket, no compaction can save;
* delete events are read again for every file of rows: the readers of different files do not share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acidctl.acid.layout import DataFile, Role, current_files
from acidctl.acid.listing import Listing
from acidctl.acid.names import Kind
from acidctl.acid.state import AcidState
from acidctl.acid.triggers import CompactionKind

OPEN_BYTES = 4 << 20
SMALL_FILE = 16_000_000
"""Data files of fewer bytes are small: Hive's ``hive.merge.smallfiles.avgsize``."""


@dataclass(frozen=True, slots=True)
class Advice:
    """One location.

    Attributes:
        directories: that a reader lists; the original files count as one.
        files: data files that it opens.
        small_files: those of them of fewer bytes than :data:`SMALL_FILE`.
        bytes: of all of them.
        delete_files: paths of those that hold delete events, relative to the location.
        delete_bytes: of these.
        cost: bytes that a full read costs beyond what no compaction can save.
        kind: the compaction that saves most for every byte it rewrites; None when none saves anything.
        rewritten: bytes that it reads and writes.
        saved: of the cost.
    """

    directories: int
    files: int
    small_files: int
    bytes: int
    delete_files: tuple[str, ...]
    delete_bytes: int
    cost: int
    kind: CompactionKind | None
    rewritten: int
    saved: int

    @property
    def gain(self) -> float:
        """Bytes saved at every full read for each byte that is rewritten once."""
        return self.saved / self.rewritten if self.rewritten else 0.0


def advise(listing: Listing, state: AcidState) -> Advice:
    """The figures of one location that can be read: its state has no history problem."""
    files = current_files(state, listing)
    buckets = len({file.bucket for file in files if file.role is not Role.DELETE})
    cost = _cost(files, buckets)
    major = cost, _bytes(files)
    deltas = [file for file in files if file.directory and file.directory.kind is not Kind.BASE]
    minor = cost - _cost(_merged(files, deltas), buckets), _bytes(deltas)
    # Of two that gain the same the major one leaves no deletes to hold.
    kind, (saved, rewritten) = max(
        ((CompactionKind.MINOR, minor), (CompactionKind.MAJOR, major)),
        key=lambda choice: (choice[1][0] / max(1, choice[1][1]), choice[0] is CompactionKind.MAJOR),
    )
    deletes = [file for file in files if file.role is Role.DELETE]
    return Advice(
        directories=_directories(files),
        files=len(files),
        small_files=sum(file.size < SMALL_FILE for file in files),
        bytes=_bytes(files),
        delete_files=tuple(file.path for file in deletes),
        delete_bytes=_bytes(deletes),
        cost=cost,
        kind=kind if saved > 0 else None,
        rewritten=rewritten if saved > 0 else 0,
        saved=max(0, saved),
    )


def _merged(files: Sequence[DataFile], deltas: Sequence[DataFile]) -> list[DataFile]:
    """The files after a minor compaction: one delta and one delete delta, of a file for each bucket."""
    merged: dict[tuple[Role, int], DataFile] = {}
    directories = {file.role: file.directory for file in deltas}
    for file in deltas:
        first = merged.get((file.role, file.bucket))
        size = file.size + (first.size if first else 0)
        merged[file.role, file.bucket] = DataFile(file.path, size, file.role, directories[file.role], file.bucket, True)
    gone = set(map(id, deltas))
    return [file for file in files if id(file) not in gone] + list(merged.values())


def _cost(files: Sequence[DataFile], buckets: int) -> int:
    rows = sum(file.role is not Role.DELETE for file in files)
    opened = max(0, _directories(files) - 1) + max(0, len(files) - buckets)
    return opened * OPEN_BYTES + rows * _bytes([file for file in files if file.role is Role.DELETE])


def _directories(files: Sequence[DataFile]) -> int:
    return len({file.directory.name if file.directory else "" for file in files})


def _bytes(files: Sequence[DataFile]) -> int:
    return sum(file.size for file in files)
