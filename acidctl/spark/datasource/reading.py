"""From a table's plan to Spark's schema, and from stripes to batches of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import types as st
from pyspark.sql.pandas.types import to_arrow_type

from acidctl.errors import NotFoundError
from acidctl.orc.types import OrcType
from acidctl.rows.read.events import open_event_files
from acidctl.rows.scan.columns import ColumnSource, Namespace, ScanColumn
from acidctl.rows.scan.predicate import Predicate
from acidctl.rows.scan.scan import Scan
from acidctl.spark.datasource.spark_types import SparkForm, check_asked, spark_type
from acidctl.spark.datasource.table_plan import LocationSplit, TablePlan

BATCH_BYTES = 8 << 20
BATCH_ROWS = 1 << 16
MIN_ROWS = 64
"""Java takes memory of its own for a batch, beside the executor's heap: none is larger than this."""

_NARROW = ("boolean", "tinyint", "smallint", "int", "date", "bigint", "float", "double")


@dataclass(frozen=True, slots=True)
class Reading:
    """What a task must know of the table: small, picklable.

    Attributes:
        columns: of Spark's schema, in its order.
        schema: the names as Spark's schema spells them, and the Arrow types to deliver.
        row_type: the table's columns.
    """

    columns: tuple[ScanColumn, ...]
    schema: pa.Schema
    row_type: OrcType


def _namespace(table: TablePlan) -> Namespace:
    return Namespace(table.row_type or OrcType("struct"), table.locations[0].partition)


def table_schema(table: TablePlan) -> st.StructType:
    """The schema when the user gives none.

    Raises:
        NotFoundError: no data file tells one; or a column that was asked for is not there.
    """
    if table.row_type is None:
        raise NotFoundError(
            f"no data file in {table.path} tells the columns",
            "the table is empty for this snapshot",
            'give them yourself: spark.read.schema("id int, value string").format("hive_acid")',
        )
    known = _namespace(table)
    columns = known.tops
    if table.options.columns is not None:
        columns = [known.find(name, table.path) for name in table.options.columns]
    if table.options.row_id and not any(column.kind is ColumnSource.ROW_ID and not column.place for column in columns):
        columns = [known.row_id, *columns]
    return st.StructType([st.StructField(column.name, spark_type(column.type)) for column in columns])


def plan_reading(table: TablePlan, schema: st.StructType) -> Reading:
    """How the columns of Spark's schema come about.

    Raises:
        NotFoundError: a column of a schema of the user's own is not there.
        UsageProblem: it has another type.
    """
    if table.row_type is None:
        # There is nothing to read, so whatever the user's schema says is right.
        return Reading((), pa.schema([]), OrcType("struct"))
    known = _namespace(table)
    columns = []
    for field in schema.fields:
        column = known.find(field.name, table.path)
        check_asked(field, spark_type(column.type), table.path)
        columns.append(column)
    # To the letter what Spark expects.
    targets = pa.schema([(field.name, to_arrow_type(field.dataType, timezone="UTC")) for field in schema.fields])
    return Reading(tuple(columns), targets, table.row_type)


def read_split(split: LocationSplit, reading: Reading, condition: Predicate | None) -> Iterator[pa.RecordBatch]:
    """The rows of one share, less those of stripes that cannot meet the condition, on an executor.

    Raises:
        BadDataError: a file cannot be read, or a value has no place in Spark's type.
        NotFoundError: a file has vanished since the table was listed.
    """
    scan = Scan(
        split.snapshot,
        _wanted(reading),
        only=split.only,
        skipping=condition,
        partition=split.partition,
        row_type=reading.row_type,
        sources=open_event_files(split.snapshot, split.snapshot.files()),
    )
    form = SparkForm()
    for batch in scan.batches():
        for rows in _bounded(batch):
            arrays = [
                form.column(rows.column(place), column.type, target.type, target.name)
                for place, (column, target) in enumerate(zip(reading.columns, reading.schema, strict=True))
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=reading.schema)


def _wanted(reading: Reading) -> list[str]:
    """Names for the scan.  Rows of partition columns alone are counted by a narrow column of the files."""
    names = [column.name for column in reading.columns]
    if all(column.kind is ColumnSource.PARTITION for column in reading.columns) and reading.row_type.names:
        kinds = [child.kind for child in reading.row_type.children]
        ranks = [_NARROW.index(kind) if kind in _NARROW else len(_NARROW) for kind in kinds]
        names.append(reading.row_type.names[ranks.index(min(ranks))])
    return names


def _bounded(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Slices that Java can take one by one; nothing is copied."""
    # Of a slice this counts the whole buffers behind it: at worst the pieces are smaller than they could be.
    per_row = max(1, batch.get_total_buffer_size() // max(1, batch.num_rows))
    step = max(MIN_ROWS, min(BATCH_ROWS, BATCH_BYTES // per_row))
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)
