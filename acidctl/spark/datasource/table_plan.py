"""Plan a load once on the driver: locations, schema, and the pieces that Spark's tasks share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from acidctl.acid.layout import Role
from acidctl.base import parallel
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.orc.types import OrcType
from acidctl.rows.convert.matching import table_row_type
from acidctl.rows.read.events import open_event_files
from acidctl.rows.scan.columns import PartitionColumn
from acidctl.rows.scan.partition_values import typed
from acidctl.rows.scan.predicate import Predicate
from acidctl.rows.scan.scan import Scan
from acidctl.rows.scan.table import shared_by, table_at
from acidctl.rows.scan.table_scan import Summary
from acidctl.spark.datasource.filters import partition_bounds
from acidctl.spark.datasource.load_options import SourceOptions
from acidctl.spark.splits import FileFacts, LocationPlan, LocationSplit, StripeCost, bytes_alone, facts_of, tasks_of

LOOKED_AT = 512
"""If a location has more files, each task finds out which stripes of its files a condition leaves."""


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


def plan_table(options: SourceOptions) -> TablePlan:
    """List everything once and read the tails of all data files.

    Raises:
        NotFoundError, AccessError, StorageError: the path cannot be listed.
        BadDataError: a file is not ORC or damaged, or is text beside files of other formats without a metastore.
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
    summary = Summary()

    def plans() -> Iterator[LocationPlan]:
        opened = parallel.results(lambda view: open_event_files(view, view.files()), snapshots)
        for view, partition, sources in zip(snapshots, partitions, opened, strict=True):
            summary.add(view, sources, is_wanted=False)
            yield LocationPlan(view, partition, tuple(map(facts_of, sources)))

    locations, declared = table.packed(plans(), lambda plan: shared_by(plan.snapshot)), snapshots[0].declared
    if problem := summary.stray_text:
        raise problem
    by_age = summary.types()
    return TablePlan(
        # Neither settings of a metastore nor its lists go further than here.
        replace(options, resolver=SnapshotResolver()),
        table.path,
        locations,
        table_row_type(declared, by_age) if by_age or declared else None,
    )


def plan_splits(
    table: TablePlan, condition: Predicate | None, cost: StripeCost = bytes_alone
) -> list[tuple[LocationSplit, ...]]:
    """Return the tasks, bucket by bucket, of about the same cost; small locations share one.

    Each has about as many bytes of stripes as the options say.

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
