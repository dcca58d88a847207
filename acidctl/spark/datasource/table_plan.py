"""Plan a load once on the driver: locations, schema, and the pieces that Spark's tasks share.

A task gets no more than it needs: the files of its stripes, the delete files whose keys may hit them, and of files
without ids those that come before, for their rows are numbered on from file to file (format section 5).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from acidctl.acid.layout import Role
from acidctl.acid.listing import with_entries
from acidctl.acid.names import FLUSH_LENGTH_SUFFIX
from acidctl.base import parallel
from acidctl.location.snapshot import Snapshot
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.orc.tail import stripe_length
from acidctl.orc.types import OrcType
from acidctl.rows.convert.matching import table_row_type
from acidctl.rows.read.delete_set import StripeRange
from acidctl.rows.read.events import EventFile, open_event_files
from acidctl.rows.scan.columns import PartitionColumn
from acidctl.rows.scan.partition_values import typed
from acidctl.rows.scan.predicate import Predicate
from acidctl.rows.scan.scan import Scan
from acidctl.rows.scan.table import shared_by, table_at
from acidctl.spark.datasource.filters import partition_bounds
from acidctl.spark.datasource.load_options import SourceOptions
from acidctl.storage.hdfs.filesystem import delegated
from acidctl.storage.registry import open_file_system

# Opening a file costs about as much as reading this many bytes.
FILE_COST = 1 << 20
LOOKED_AT = 512
"""If a location has more files, each task finds out which stripes of its files a condition leaves."""

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
class TablePlan:
    """All that a load reads.

    Attributes:
        options: by which.
        path: as the user knows it.
        locations: in the order of their paths; at least one. Those of a table with many are held as bytes.
        row_type: the table's columns; None when no location has a data file.
    """

    options: SourceOptions
    path: str
    locations: Sequence[LocationPlan]
    row_type: OrcType | None


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


def plan_table(options: SourceOptions) -> TablePlan:
    """List everything once and read the tails of all data files.

    Raises:
        NotFoundError, AccessError, StorageError: the path cannot be listed.
        BadDataError: a file is not ORC or damaged.
        HistoryError: a compaction destroyed what the snapshot needs.
        UsageProblem: the path holds several tables.
    """
    table = table_at(options.path, dict(options.storage), options.resolver)
    snapshots = table.snapshots_at(options.at)
    partitions = [tuple(table.partition_of(location)) for location in table.found]
    if not options.infer_partitions:
        string = OrcType("string")
        partitions = [
            tuple(PartitionColumn(name, string, typed(text, string)) for name, text in location.location.partition)
            for location in table.found
        ]
    types: dict[OrcType, int] = {}  # the last write id of each

    def plans() -> Iterator[LocationPlan]:
        facts = parallel.results(lambda view: tuple(map(facts_of, open_event_files(view, view.files()))), snapshots)
        for view, partition, files in zip(snapshots, partitions, facts, strict=True):
            for file in files:
                if file.role is not Role.DELETE:
                    types[file.row_type] = max(types.get(file.row_type, 0), file.max_write_id)
            yield LocationPlan(view, partition, files)

    locations, declared = table.packed(plans(), lambda plan: shared_by(plan.snapshot)), snapshots[0].declared
    by_age = sorted(types, key=types.__getitem__)
    return TablePlan(
        # Neither settings of a metastore nor its lists go further than here.
        replace(options, resolver=SnapshotResolver()),
        table.path,
        locations,
        table_row_type(declared, by_age) if by_age or declared else None,
    )


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


def plan_splits(
    table: TablePlan, condition: Predicate | None, cost: StripeCost = bytes_alone
) -> list[tuple[LocationSplit, ...]]:
    """Return the tasks, bucket by bucket, of about the same cost; small locations share one.

    Each has about so many bytes of stripes as the options say.

    Args:
        condition: leaves out locations by their partition columns, and stripes by their statistics.
    """
    names = table.row_type.names if table.row_type else ()
    numbers = [
        number
        for number, location in enumerate(table.locations)
        if condition is None or condition.may_match(partition_bounds(location.partition, names).get)
    ]
    wanted = parallel.results(lambda number: _wanted(table.locations[number], condition, table.row_type), numbers)
    return tasks_of(table.locations, dict(zip(numbers, wanted, strict=True)), table.options.target_bytes, cost)


def tasks_of(
    locations: Sequence[LocationPlan],
    wanted: Mapping[int, Callable[[FileFacts, int], bool]],
    target_bytes: int,
    cost: StripeCost = bytes_alone,
) -> list[tuple[LocationSplit, ...]]:
    """Return tasks of about `target_bytes` each.

    Args:
        wanted: by the numbers of the locations that are read, a function that tells their wanted stripes.
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


def _wanted(
    location: LocationPlan, condition: Predicate | None, row_type: OrcType | None
) -> Callable[[FileFacts, int], bool]:
    """Return a function from a file and the number of a stripe to whether it may hold rows that meet a condition."""
    constant = {(column.name,) for column in location.partition}
    files = [file for file in location.snapshot.files() if file.role is not Role.DELETE]
    if condition is None or len(files) > LOOKED_AT or constant.issuperset(condition.paths):
        return lambda _, __: True
    sources = open_event_files(location.snapshot, files)
    scan = Scan(
        location.snapshot, [], skipping=condition, partition=location.partition, row_type=row_type, sources=sources
    )
    stripes = {path: frozenset(numbers) for path, numbers in scan.wanted_stripes().items()}
    return lambda file, number: number in stripes.get(file.path, ())


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
