"""Turn a table's plan into Spark's schema, and stripes into batches of that schema."""

from __future__ import annotations

import inspect
import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import types as st
from pyspark.sql.pandas.types import to_arrow_type

from acidctl.base.errors import NotFoundError
from acidctl.location.snapshot import Snapshot
from acidctl.orc.types import OrcType, arrow_type
from acidctl.rows.read.delete_set import DeleteSet
from acidctl.rows.read.events import EventFile, open_event_files
from acidctl.rows.read.visibility import load_deletes
from acidctl.rows.scan.columns import ColumnSource, Namespace, ScanColumn
from acidctl.rows.scan.predicate import Predicate
from acidctl.rows.scan.scan import Scan
from acidctl.spark.datasource.filters import noted_condition
from acidctl.spark.datasource.spark_types import SparkForm, check_asked, spark_type
from acidctl.spark.datasource.table_plan import TablePlan
from acidctl.spark.splits import LocationSplit

NOTE = "acidctl"
"""The key of a field's metadata with the notes of the rule of :mod:`acidctl.spark.datasource.pruning`."""

BATCH_BYTES = 8 << 20
BATCH_ROWS = 1 << 16
ENOUGH_ROWS, ENOUGH_BYTES = 1 << 12, 1 << 18
MIN_ROWS = 64
"""Java takes memory of its own for a batch, beside the executor's heap: none is larger than this."""

MOST_PARTS = 16
"""A task has at most this many times the stripes of a task that reads all columns."""

MOST_BYTES, MOST_SETS = 64 << 20, 64
"""Limits on the sets that are kept besides the last one, since a session may live for days."""

_Key = tuple[str, bool, tuple[str, ...]]
_held: OrderedDict[_Key, DeleteSet] = OrderedDict()
"""Deletes that this process has read: tasks of one process come one after the other, and those of a bucket mostly name
the same delete files.  Spark gives the next task to a process that has ended one (``spark.python.worker.reuse``)."""

_IN_UTC: dict[str, Any] = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_type).parameters else {}
"""PySpark 4.0 has no other zone for instants."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The part of a plan that every task needs: small, picklable.

    Attributes:
        columns: the columns of Spark's schema, in its order; None for a column whose values nobody looks at.
        schema: the names as Spark's schema spells them, and the Arrow types to deliver.
        row_type: the table's columns.
        counts: whether only the number of rows is wanted, as the one column.
        condition: from the notes: stripes without a row that meets it are left out.
    """

    columns: tuple[ScanColumn | None, ...]
    schema: pa.Schema
    row_type: OrcType
    counts: bool = False
    condition: Predicate | None = None

    @property
    def named(self) -> dict[str, ScanColumn]:
        """Return the columns by the names that Spark's filters use."""
        named = zip(self.schema.names, self.columns, strict=False)
        return {name: column for name, column in named if column is not None}

    def cost(self, size: int, rows: int) -> int:
        """Return the cost of a stripe: the bytes of its columns, if all were alike, and a byte for each value."""
        read = {column.place[:1] for column in self.columns if column and column.kind is not ColumnSource.PARTITION}
        parts = max(1, len(self.row_type.names) // len(read)) if read else MOST_PARTS
        return size // min(MOST_PARTS, parts) + rows * len(read)


def _namespace(table: TablePlan) -> Namespace:
    return Namespace(table.row_type or OrcType("struct"), table.locations[0].partition)


def table_schema(table: TablePlan) -> st.StructType:
    """Return the schema when the user gives none.

    Raises NotFoundError if no data file shows one, or a column that was asked for is not there.
    """
    if table.row_type is None:
        hint = 'give them yourself: spark.read.schema("id int, value string").format("hive_acid")'
        what = f"no data file in {table.path} tells the columns"
        raise NotFoundError(what, "the table is empty for this snapshot", hint)
    known = _namespace(table)
    columns = known.tops
    if table.options.columns is not None:
        columns = [known.find(name, table.path) for name in table.options.columns]
    if table.options.row_id and not any(column.kind is ColumnSource.ROW_ID and not column.place for column in columns):
        columns = [known.row_id, *columns]
    return st.StructType([st.StructField(column.name, spark_type(column.type)) for column in columns])


def plan_reading(
    table: TablePlan, schema: st.StructType, is_elsewhere: Callable[[str], bool] = lambda _: False
) -> Reading:
    """Plan where each column of Spark's schema comes from.

    Args:
        is_elsewhere: returns whether the column of a name comes from elsewhere, so that only its notes count.

    Raises:
        NotFoundError: a column of the user's schema does not exist.
        UsageProblem: it has another type.
    """
    if table.row_type is None:
        # There is nothing to read, so whatever the user's schema says is right.
        return Reading((), pa.schema([]), OrcType("struct"))
    known = _namespace(table)
    columns: list[ScanColumn | None] = []
    all_notes = [(field.metadata or {}).get(NOTE, {}) for field in schema.fields]
    for whole in (note["all"] for note in all_notes if "all" in note):
        for field in st.StructType.fromJson(json.loads(whole)):
            if not is_elsewhere(field.name):
                _column(known, field, {}, table.path)
    own = [(f, note) for f, note in zip(schema.fields, all_notes, strict=True) if not is_elsewhere(f.name)]
    for field, note in own:
        columns.append(None if "is" in note else _column(known, field, note, table.path))
    # To the letter what Spark expects.
    targets = pa.schema([(field.name, to_arrow_type(field.dataType, **_IN_UTC)) for field, _ in own])
    counts = any(note.get("is") == "count" for note in all_notes)
    reading = Reading(tuple(columns), targets, table.row_type, counts=counts)
    where = [part for note in all_notes for part in note.get("where", ())]
    return replace(reading, condition=noted_condition(where, reading.named)) if where else reading


def _column(known: Namespace, field: st.StructField, note: Mapping[str, Any], path: str) -> ScanColumn:
    column = known.find_path(note["path"]) if "path" in note else known.find(field.name, path)
    check_asked(field, spark_type(column.type), path)
    return column


def read_split(
    split: LocationSplit, reading: Reading, condition: Predicate | None, load: str
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one share, less those of stripes that cannot meet the condition, on an executor.

    Args:
        load: the unique name of the load.

    Raises:
        BadDataError: a file cannot be read, or a value has no place in Spark's type.
        NotFoundError: a file has vanished since the table was listed.
    """
    columns = [column for column in reading.columns if column is not None]
    sources = open_event_files(split.snapshot, split.snapshot.files())
    scan = Scan(
        split.snapshot,
        # Partition columns have their places in each location; the others are what they are, whatever their names.
        [column.name if column.kind is ColumnSource.PARTITION else column for column in columns],
        only=split.only,
        skipping=condition,
        partition=split.partition,
        row_type=reading.row_type,
        sources=sources,
        deletes=lambda: deletes_of(load, split.snapshot, sources),
    )
    if reading.counts:
        yield pa.RecordBatch.from_arrays([pa.array([scan.count()], pa.int64())], schema=reading.schema)
    elif any(column.kind is not ColumnSource.PARTITION for column in scan.columns):
        yield from _rows(scan, reading)
    else:
        yield from _alike(scan, reading, split)


def _rows(scan: Scan, reading: Reading) -> Iterator[pa.RecordBatch]:
    form = SparkForm()
    yield from joined_batches(
        pa.RecordBatch.from_arrays(delivered(form, rows, reading), schema=reading.schema)
        for batch in scan.batches()
        for rows in bounded(batch)
    )


def joined_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in fewer batches, where these are small: each takes Spark the time of a thousand rows.

    Batches grow from the first on, so that a reader of few rows gets these soon.
    """
    waiting: list[pa.RecordBatch] = []
    rows, size, enough = 0, 0, 1
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= enough or size >= ENOUGH_BYTES:
            yield waiting[0] if len(waiting) == 1 else pa.concat_batches(waiting)
            waiting, rows, size, enough = [], 0, 0, min(2 * max(rows, enough), ENOUGH_ROWS)
    if waiting:
        yield waiting[0] if len(waiting) == 1 else pa.concat_batches(waiting)


def delivered(form: SparkForm, rows: pa.RecordBatch, reading: Reading) -> list[pa.Array]:
    """Return the columns that Spark wants, from those that were read.

    Raises BadDataError if a value has no place in Spark's type.
    """
    read = iter(rows.columns)
    return [
        pa.nulls(rows.num_rows, target.type)
        if column is None
        else form.column(next(read), column.type, target.type, target.name)
        for column, target in zip(reading.columns, reading.schema, strict=True)
    ]


def _alike(scan: Scan, reading: Reading, split: LocationSplit) -> Iterator[pa.RecordBatch]:
    """Yield rows without columns of the files: they are counted, and all have the values of the partition."""
    form, own = SparkForm(), iter(scan.columns)
    arrays = [pa.nulls(BATCH_ROWS)]  # counts the rows where there is no column at all
    for wanted, target in zip(reading.columns, reading.schema, strict=True):
        if wanted is None:
            arrays.append(pa.nulls(BATCH_ROWS, target.type))
        else:
            column = next(own)
            value = pa.array([split.partition[column.place[0]].value], arrow_type(column.type))
            arrays.append(pa.repeat(form.column(value, column.type, target.type, target.name)[0], BATCH_ROWS))
    whole = pa.RecordBatch.from_arrays(arrays, names=["", *reading.schema.names])
    # By place: names may be there twice.
    whole = whole.select(list(range(1, len(arrays))))
    for rows in scan.counts():
        for start in range(0, rows, BATCH_ROWS):
            yield whole.slice(0, min(BATCH_ROWS, rows - start))


def bounded(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield slices that Java can take one by one, without copying."""
    # Of a slice this counts the whole buffers behind it: at worst the pieces are smaller than they could be.
    per_row = max(1, batch.get_total_buffer_size() // max(1, batch.num_rows))
    step = max(MIN_ROWS, min(BATCH_ROWS, BATCH_BYTES // per_row))
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


def deletes_of(load: str, snapshot: Snapshot, sources: Sequence[EventFile]) -> DeleteSet:
    """Return the deletes of a task's share, from an earlier task of the same load, or read now.

    Args:
        load: the unique name of the load, within which a path means one file.
        snapshot: the snapshot of the share.
        sources: its files; those that delete nothing do not count.

    Raises:
        BadDataError, NotFoundError: a file cannot be read.
    """
    killers = [source for source in sources if source.is_delete or source.may_hold_changes]
    if not killers:
        return load_deletes((), snapshot.write_ids)
    # With their stores: partitions may lie on several, at the same paths.
    moved = any(source.may_hold_moved for source in sources)
    key = load, moved, tuple(sorted(source.shown for source in killers))
    deletes = _held.pop(key, None)
    if deletes is None:
        deletes = load_deletes(killers, snapshot.write_ids, rows=sources)
    _held[key] = deletes
    others = sum(held.nbytes for held in _held.values()) - deletes.nbytes
    while others > MOST_BYTES or len(_held) > MOST_SETS:
        others -= _held.popitem(last=False)[1].nbytes
    return deletes
