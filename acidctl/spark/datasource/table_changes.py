"""Plan and read changes of a table for Spark, and decide how far a stream may go.

Every row has the columns of the table and two more: what happened to it, and the write id that did it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import types as st

from acidctl.acid.layout import Role
from acidctl.acid.names import MAXL, acid_directory
from acidctl.acid.writeids import ValidWriteIds
from acidctl.base import parallel
from acidctl.base.errors import HistoryError, RefusedError, UsageProblem
from acidctl.location.snapshot import Snapshot
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.location.table_location import TableLocation
from acidctl.orc.types import OrcType
from acidctl.rows.past.changes import EventSpan, SingleStep, changes_of, plan_changes
from acidctl.rows.past.diff import NEW
from acidctl.rows.read.events import open_event_files
from acidctl.rows.read.past_snapshot import seen_at
from acidctl.rows.scan.columns import PartitionColumn
from acidctl.rows.scan.partition_values import typed
from acidctl.rows.scan.table import Table, table_at
from acidctl.spark.datasource.load_options import ChangeRange, SourceOptions
from acidctl.spark.datasource.reading import Reading, bounded, delivered, plan_reading, table_schema
from acidctl.spark.datasource.spark_types import SparkForm
from acidctl.spark.datasource.table_plan import TablePlan
from acidctl.spark.splits import FileFacts, LocationPlan, LocationSplit, facts_of, may_hit, tasks_of, with_files
from acidctl.wording import text_of

CHANGE, WRITE_ID = "_change", "_write_id"
"""The columns that come first; Delta calls theirs ``_change_type`` and ``_commit_version``."""

INSERT, DELETE = "insert", "delete"


@dataclass(frozen=True, slots=True)
class ChangeReading:
    """The part of a plan that every task needs: small, picklable.

    Attributes:
        rows: how the table's columns are read.
        schema: all of Spark's columns.
        partition: the types of the partition columns by name.
    """

    rows: Reading
    schema: pa.Schema
    partition: tuple[tuple[str, OrcType], ...]


@dataclass(frozen=True, slots=True)
class ChangeSplit:
    """A task's share of one location: stripes for one pass over events, or the difference of two snapshots.

    Attributes:
        after: the write id before the first change of the pass.
        before: the earlier snapshot of the difference; else None.
    """

    split: LocationSplit
    after: int
    before: Snapshot | None


def changes_schema(table: TablePlan) -> st.StructType:
    """Return the two columns, and those of the table.

    Raises:
        UsageProblem: the table has columns of these names.
        NotFoundError: as :func:`acidctl.spark.datasource.reading.table_schema`.
    """
    own = table_schema(table)
    for name in own.names:
        if name.lower() in (CHANGE, WRITE_ID):
            why = f"it has a column {name} of its own, where changes have theirs"
            hint = "name the other columns by the option columns"
            raise UsageProblem(f"changes of {table.path} cannot be told", why, hint)
    first = [st.StructField(CHANGE, st.StringType()), st.StructField(WRITE_ID, st.LongType())]
    return st.StructType([*first, *own.fields])


def plan_change_reading(table: TablePlan, schema: st.StructType) -> ChangeReading:
    """Plan where each column of Spark's schema comes from; errors as of
    :func:`acidctl.spark.datasource.reading.plan_reading`.
    """
    rows = plan_reading(table, schema, _is_ours)
    targets = {field.name: field for field in rows.schema}
    ours = {CHANGE: pa.field(CHANGE, pa.string()), WRITE_ID: pa.field(WRITE_ID, pa.int64())}
    all_fields = [ours.get(field.name.lower()) or targets.get(field.name) for field in schema.fields]
    named = [field.with_name(name) for field, name in zip(all_fields, schema.names, strict=True) if field is not None]
    partition = tuple((column.name, column.type) for column in table.locations[0].partition)
    return ChangeReading(rows, pa.schema(named), partition)


def _is_ours(name: str) -> bool:
    return name.lower() in (CHANGE, WRITE_ID)


def require_stream(options: SourceOptions, table: TablePlan) -> ChangeRange:
    """Return the changes that a stream is to follow.

    Raises:
        UsageProblem: no option says where the stream begins, or which write ids are committed as time goes by.
        NotFoundError: no file has the columns yet.
    """
    if options.changes is None:
        hint = 'give .option("changesFrom", "newest"), or the write id after which it begins'
        raise UsageProblem("a stream of hive_acid gives changes, and it is not said from where on", "", hint)
    spec = options.resolver.spec
    if spec.has_write_ids or not (options.resolver.warehouse or spec.assumption):
        why = "a list of write ids is that of one moment" if spec.has_write_ids else "nothing on disk tells it"
        hint = 'name the metastore, or give .option("assumeCommitted", "1h") if all that is older was committed'
        raise UsageProblem(f"a stream of {table.path} must be told which write ids are committed", why, hint)
    if table.row_type is None:
        table_schema(table)  # raises
    return options.changes


# --- on the driver ----------------------------------------------------------------------------------------------------


class ChangesPlanner:
    """Finds a table for every question again, with the present lists of its metastore, by the options of the load."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._resolver: SnapshotResolver | None = None

    def _table(self) -> Table:
        options = self._options
        self._resolver = options.resolver if self._resolver is None else self._resolver.refreshed()
        return table_at(options.path, dict(options.storage), self._resolver)

    def newest(self, *, require_told: bool = False) -> int:
        """Return the newest write id up to which nothing can change any more: the one below the first that is open.

        Args:
            require_told: for a stream, which goes on from there: a metastore or an option must say what is committed.

        Raises:
            RefusedError: the metastore does not know the table.
            NotFoundError, AccessError, StorageError: the table cannot be found or listed.
        """
        table = self._table()
        first = table.found[0]
        if require_told and first.resolver.asks_metastore and first.hive is None and (note := first.resolve().note):
            what = f"a stream of {table.path} must be told which write ids are committed"
            hint = 'give .option("assumeCommitted", "1h") if all that is older was committed'
            raise RefusedError(what, text_of(note), hint)
        newest, limit = _ends(table)
        return min(newest, limit)

    def splits_of(self, reading: ChangeReading, changes: ChangeRange) -> list[ChangeSplit]:
        """Return the tasks of a load, by one look at the table.

        Raises:
            UsageProblem: changes up to there are not complete yet.
            HistoryError, NotFoundError, AccessError, StorageError, BadDataError: as for :meth:`splits`.
        """
        table = self._table()
        newest, limit = _ends(table)
        if changes.upto is not None and changes.upto > limit:
            what = f"changes of {table.path} cannot be told up to write id {changes.upto}"
            raise UsageProblem(what, f"{limit + 1} is open, or not there yet", f"changesTo may be {limit} by now")
        last = min(newest, limit) if changes.upto is None else changes.upto
        return self._splits(table, reading, last if changes.after is None else changes.after, last)

    def splits(self, reading: ChangeReading, after: int, last: int) -> list[ChangeSplit]:
        """Return the tasks for the changes of the write ids after..last.

        Raises:
            HistoryError: a compaction removed the events.
            NotFoundError, AccessError, StorageError, BadDataError: the table cannot be found or listed, or a file read.
        """
        return [] if after >= last else self._splits(self._table(), reading, after, last)

    def _splits(self, table: Table, reading: ChangeReading, after: int, last: int) -> list[ChangeSplit]:
        if after >= last:
            return []
        target_bytes = self._options.target_bytes

        def plan(location: TableLocation) -> list[ChangeSplit]:
            here = location.refresh_if_stale()
            try:
                spans = plan_changes(lambda at: seen_at(here, at, since=after), after, last)
            except HistoryError as error:
                newest = min(_ends(table))
                what = f"changes of {table.path} above write id {after} cannot be told any more"
                way_out = f"read its rows again with at={newest}, and go on with changesFrom={newest}"
                why = f"{error.what}: {error.why}"
                raise HistoryError(what, why, f"{way_out}; a stream needs a new checkpoint") from error
            partition = tuple(
                PartitionColumn(name, kind, typed(text, kind, name))
                for (_, text), (name, kind) in zip(location.location.partition, reading.partition, strict=True)
            )
            return [split for span in spans for split in _splits(span, partition, target_bytes)]

        return [split for splits in parallel.results(plan, table.found) for split in splits]


def _ends(table: Table) -> tuple[int, int]:
    """Return the newest write id of a table, and the last one before what may still change."""
    first = table.found[0]
    if first.resolver.asks_metastore and first.resolver.warehouse and first.hive:
        settled = _settled(first.resolver.warehouse.lists(first.hive)[0])
        return settled, settled
    ends = list(parallel.results(_end_of, table.found))
    return max(newest for newest, _ in ends), min(limit for _, limit in ends)


def _settled(ids: ValidWriteIds) -> int:
    return min([ids.high_watermark, *(write_id - 1 for write_id in ids.open[:1])])


def _end_of(location: TableLocation) -> tuple[int, int]:
    """Return the newest write id of a location on disk, and the last one before what may still change there."""
    counted = location.resolve()
    directories = [directory for directory in map(acid_directory, location.look.listing.by_child) if directory]
    newest = max([0, *(directory.max_write_id for directory in directories)])
    if counted.assumed and counted.assumed.of_write_ids and not counted.assumed.undecided:
        return newest, MAXL  # its list ends with what is there
    return newest, _settled(counted.write_ids or ValidWriteIds())


def _splits(
    span: EventSpan | SingleStep, partition: tuple[PartitionColumn, ...], target_bytes: int
) -> Iterator[ChangeSplit]:
    snapshot = span.snapshot
    if isinstance(span, SingleStep):
        before = with_files(span.before, {file.path for file in span.before.files()})
        whole = with_files(snapshot, {file.path for file in snapshot.files()})
        yield ChangeSplit(LocationSplit(whole, {}, partition), 0, before)
        return
    files = tuple(map(facts_of, span.sources))
    deletes = [file for file in files if file.role is Role.DELETE and file.max_write_id > span.after]
    ranges = [keys for file in deletes for _, _, keys in file.stripes]
    killers = [keys for keys in ranges if keys is None or keys.current[1] > span.after]

    def wanted(file: FileFacts, number: int) -> bool:
        known = file.stripes[number][2]
        return known is None or known.current[1] > span.after or may_hit(killers, [known])

    location = LocationPlan(snapshot, partition, files)
    for (split,) in tasks_of([location], {0: wanted}, target_bytes):
        yield ChangeSplit(split, span.after, None)


# --- on the executors -------------------------------------------------------------------------------------------------


def read_change_split(split: ChangeSplit, reading: ChangeReading) -> Iterator[pa.RecordBatch]:
    """Yield the changes of one share, less those of stripes that cannot meet the condition.

    Raises:
        BadDataError: a file cannot be read, or a value has no place in Spark's type.
        HistoryError: rows cannot be told apart.
        NotFoundError: a file has vanished since the table was listed.
    """
    rows = reading.rows
    names = [column.name for column in rows.columns if column is not None]
    of = split.split
    # Where no column of the table is wanted, rows are counted by their ids.
    options = {"row_id": not names, "row_type": rows.row_type, "skipping": rows.condition}
    span: EventSpan | SingleStep
    if split.before is None:
        span = EventSpan(of.snapshot, split.after, open_event_files(of.snapshot, of.snapshot.files()))
        options["only"] = of.only
    else:
        span = SingleStep(split.before, of.snapshot)
    change_batches = changes_of(span, names, partition=of.partition, **options)
    form = SparkForm()
    total = 0
    for changes in change_batches:
        start = 0
        if rows.counts:
            total += changes.rows.num_rows
            continue
        for batch in bounded(changes.rows):
            end = start + batch.num_rows
            ours = {
                CHANGE: pa.repeat(pa.scalar(INSERT if changes.change == NEW else DELETE), batch.num_rows),
                WRITE_ID: pa.array(changes.write_ids[start:end]),
            }
            theirs = iter(delivered(form, batch, rows))
            arrays = [ours[name.lower()] if _is_ours(name) else next(theirs) for name in reading.schema.names]
            yield pa.RecordBatch.from_arrays(arrays, schema=reading.schema)
            start = end
    if rows.counts:
        yield pa.RecordBatch.from_arrays([pa.array([total], pa.int64())], schema=reading.schema)
