"""Split the files of locations into the shares of Spark's tasks.

A task gets no more than it needs: the files of its stripes, the delete files whose keys may hit them, and of files
without ids those that come before, for their rows are numbered on from file to file (format section 5).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from acidctl.acid.layout import Role
from acidctl.acid.listing import with_entries
from acidctl.acid.names import FLUSH_LENGTH_SUFFIX
from acidctl.location.snapshot import Snapshot
from acidctl.orc.tail import stripe_length
from acidctl.orc.types import OrcType
from acidctl.rows.read.delete_set import StripeRange
from acidctl.rows.read.events import EventFile
from acidctl.rows.scan.columns import PartitionColumn
from acidctl.storage.hdfs.filesystem import delegated
from acidctl.storage.registry import open_file_system

# Opening a file costs about as much as reading this many bytes.
FILE_COST = 1 << 20

StripeCost = Callable[[int, int], int]
"""Returns the cost of a stripe, in bytes, from its bytes and rows."""

CRUMB = 4
"""This part of a task is too little for a task of its own."""


def bytes_alone(size: int, _: int) -> int:
    """Return the bytes of a stripe as its cost."""
    return size


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A data file as the plan knows it once its tail was read.

    Attributes:
        path: relative to the location.
        counter: of files without ids, what numbers their rows together; None for files with ids.
        max_write_id: 0 for original files.
        stripes: (bytes, rows, keys) of each; None for keys that are not known.
        changes: whether updates or deletes of ACID v1 may be in it.
    """

    path: str
    role: Role
    bucket: int
    counter: tuple[str, int] | None
    max_write_id: int
    row_type: OrcType
    stripes: tuple[tuple[int, int, StripeRange | None], ...]
    changes: bool


@dataclass(frozen=True, slots=True)
class LocationPlan:
    """One location: its snapshot, the partition columns with their values, and its files in read order."""

    snapshot: Snapshot
    partition: tuple[PartitionColumn, ...]
    files: tuple[FileFacts, ...]


@dataclass(frozen=True, slots=True)
class LocationSplit:
    """A task's share of one location: small, picklable.

    Attributes:
        snapshot: trimmed to the files that matter.
        only: stripes by the file's path.
        partition: the partition columns with their values.
    """

    snapshot: Snapshot
    only: dict[str, Sequence[int]]
    partition: tuple[PartitionColumn, ...]


def facts_of(source: EventFile) -> FileFacts:
    """Return the facts of a file whose footer was read."""
    file, stripes = source.file, source.tail.stripes
    # What Hive 2 inserted by an update carries the statistics of its delete file: they say "changes", and lie.
    lies = not source.is_delete and source.may_hold_changes
    ranges = [None] * len(stripes) if lies else source.ranges
    counter = (file.directory.name if file.directory else "", file.bucket) if source.synthetic else None
    return FileFacts(
        file.path,
        file.role,
        file.bucket,
        counter,
        file.directory.max_write_id if file.directory else 0,
        source.row_type,
        tuple(
            (stripe_length(stripe), stripe.numberOfRows, known) for stripe, known in zip(stripes, ranges, strict=True)
        ),
        source.may_hold_changes,
    )


def tasks_of(
    locations: Sequence[LocationPlan],
    wanted: Mapping[int, Callable[[FileFacts, int], bool]],
    target_bytes: int,
    cost: StripeCost = bytes_alone,
) -> list[tuple[LocationSplit, ...]]:
    """Return tasks of about `target_bytes` each.

    Args:
        wanted: by the numbers of the locations that are read, a function that gives their wanted stripes.
    """
    tasks: list[dict[int, dict[str, Sequence[int]]]] = []  # stripes by file by the location's number
    filled = target_bytes
    for number, is_wanted in wanted.items():
        for path, stripes, size in _pieces(locations[number], target_bytes, cost, is_wanted):
            if filled + size > target_bytes:
                tasks.append({})
                filled = 0
            # Pieces of one file never share a task: the first of two has filled it.
            tasks[-1].setdefault(number, {})[path] = stripes
            filled += size
    return [tuple(split_of(locations[number], only) for number, only in task.items()) for task in tasks]


def _pieces(
    location: LocationPlan, target_bytes: int, cost: StripeCost, wanted: Callable[[FileFacts, int], bool]
) -> Iterator[tuple[str, Sequence[int], int]]:
    """Yield (path, numbers of stripes, cost) of the row files by bucket; a small remainder is not cut off."""
    row_files = [file for file in location.files if file.role is not Role.DELETE]
    for file in sorted(row_files, key=lambda file: file.bucket):
        costs = {i: cost(size, rows) for i, (size, rows, _) in enumerate(file.stripes) if wanted(file, i)}
        rest = sum(costs.values())
        piece: list[int] = []
        filled = FILE_COST
        for number, size in costs.items():
            piece.append(number)
            filled += size
            rest -= size
            if not rest or (filled >= target_bytes and rest * CRUMB > target_bytes):
                yield file.path, tuple(piece), filled
                piece, filled = [], FILE_COST


def split_of(location: LocationPlan, only: dict[str, Sequence[int]]) -> LocationSplit:
    """Return the share of a task, with the files that delete its rows, and those that number them.

    Args:
        only: stripes by the file's path.
    """
    snapshot = location.snapshot
    chosen = [file for file in location.files if file.path in only]
    ranges = [file.stripes[number][2] for file in chosen for number in only[file.path]]
    kept = {file.path for file in chosen}
    # What kills rows of these stripes: delete files, and in ACID v1 any file with updates.
    kept |= {
        file.path
        for file in location.files
        if (file.role is Role.DELETE or file.changes) and may_hit([keys for _, _, keys in file.stripes], ranges)
    }
    counters = {file.counter for file in chosen if file.counter}
    kept |= {file.path for file in location.files if file.counter in counters}
    if any(file.role is Role.ORIGINAL for file in chosen):
        # The first file with ids tells how the buckets of original files are numbered (format section 5.1).
        donors = [file.path for file in location.files if not file.counter and any(rows for _, rows, _ in file.stripes)]
        if donors:
            kept.add(donors[0])
        else:  # none that the snapshot sees; one that it does not see tells as well
            kept |= {entry.path for entry in snapshot.listing.entries if "/bucket_" in entry.path}
    return LocationSplit(with_files(snapshot, kept), only, location.partition)


def with_files(snapshot: Snapshot, kept: Container[str]) -> Snapshot:
    """Return a snapshot of these files alone, whose store a task can open without a Kerberos ticket.

    Args:
        kept: paths of files, relative to the location.

    Raises:
        AccessError: there is no ticket here either.
    """
    state = snapshot.state
    entries = [entry for entry in snapshot.listing.entries if entry.path.removesuffix(FLUSH_LENGTH_SUFFIX) in kept]
    tops = {entry.path.partition("/")[0] for entry in entries}
    return replace(
        snapshot,
        fs=snapshot.fs if (sent := delegated(snapshot.fs.spec)) == snapshot.fs.spec else open_file_system(sent),
        listing=with_entries(snapshot.listing, entries),
        state=replace(
            state,
            deltas=tuple(verdict for verdict in state.deltas if verdict.name in tops),
            originals=tuple(entry for entry in state.originals if entry.path in kept),
            verdicts=(),
            notes=(),
        ),
        base_formats={},
    )


def may_hit(killers: Sequence[StripeRange | None], rows: Sequence[StripeRange | None]) -> bool:
    """Return whether the keys of two sides may meet; unknown keys may be any."""
    if not killers or not rows:
        return False
    if any(keys is None for keys in (*killers, *rows)):
        return True
    ranges = [[(keys.original, keys.bucket, keys.row_id) for keys in side if keys] for side in (killers, rows)]
    return any(
        all(x[0] <= y[1] and y[0] <= x[1] for x, y in zip(a, b, strict=True)) for a in ranges[0] for b in ranges[1]
    )
