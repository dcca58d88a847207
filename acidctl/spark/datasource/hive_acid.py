"""The Spark data source ``hive_acid``: rows of Hive ACID tables as a DataFrame.

    from acidctl.spark.datasource import register

    register(spark)
    orders = spark.read.format("hive_acid").option("rowId", "true").load("/warehouse/sales.db/orders")

The table is listed once, when ``load()`` is called; every action on the DataFrame reads that snapshot.  With a schema
of the user's own (``spark.read.schema(...)``) Spark asks for none, and the table is listed when a query is planned.

Importing this module needs PySpark and nothing else that is heavy: Spark's executors import it as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)

from acidctl.spark.datasource.pruning import install_rule
from acidctl.spark.told import HiveAcidError, explain, told

__all__ = ["HiveAcidDataSource", "HiveAcidError", "explain", "register"]

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from acidctl.rows.scan.predicate import Predicate
    from acidctl.spark.datasource.load_options import ChangeRange
    from acidctl.spark.datasource.reading import Reading
    from acidctl.spark.datasource.table_changes import ChangeReading, ChangesPlanner
    from acidctl.spark.datasource.table_plan import TablePlan


def register(spark: SparkSession) -> None:
    """Make ``spark.read.format("hive_acid")`` known to a session, and ship this package to a cluster's executors.

    On a cluster the executors' Python needs pyarrow, numpy, fsspec and protobuf; acidctl itself comes as a zip file.
    Raises EnvironmentProblem if acidctl runs from something that is not a folder, so it cannot be shipped.
    """
    from acidctl.spark.shipping import own_python, ship_to  # noqa: PLC0415 - only the driver's

    ship_to(spark)
    with own_python(spark):
        _make_known(spark)
    install_rule(spark)


def _make_known(spark: SparkSession) -> None:
    from pyspark.errors import AnalysisException  # noqa: PLC0415 - only the driver's
    from pyspark.sql.udf import _wrap_function  # noqa: PLC0415 - only the driver's

    try:
        spark.dataSource.register(HiveAcidDataSource)
    except AnalysisException as error:
        # Spark says that the source exists if another session of the application has it, and does not find it here.
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise
        jvm: Any = spark.sparkContext._jvm
        source = jvm.org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource
        made = source(_wrap_function(spark.sparkContext, HiveAcidDataSource))
        spark._jsparkSession.sessionState().dataSourceManager().registerDataSource(HiveAcidDataSource.name(), made)


_OFFSET = "write_id"  # the key of an offset in Spark's checkpoints


class HiveAcidDataSource(DataSource):
    """The data source; its options are listed in :mod:`acidctl.spark.datasource.load_options`."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._start = uuid4().hex  # Spark makes one of these for a query, and pickles it for all of its epochs

    @classmethod
    def name(cls) -> str:
        """Return the name for ``format(...)``."""
        return "hive_acid"

    def schema(self) -> StructType:
        """Return the columns: ``ROW__ID`` if wanted, the table's, then the partition columns."""
        with told():
            from acidctl.spark.datasource.reading import table_schema  # noqa: PLC0415 - may be missing: told

            table = self._plan()
            # Spark pickles this object now and hands it to the planner: the snapshot of this moment goes along.
            self._table: TablePlan | None = table
            if table.options.changes is None:
                return table_schema(table)
            from acidctl.spark.datasource.table_changes import changes_schema  # noqa: PLC0415 - only for changes

            return changes_schema(table)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the object that plans and reads."""
        with told():
            from acidctl.spark.datasource.reading import plan_reading  # noqa: PLC0415 - may be missing: told

            table = getattr(self, "_table", None) or self._plan()
            # Spark ships this object to every task, which needs none of the plan.
            self._table = None
            if table.options.changes is None:
                return HiveAcidReader(table, plan_reading(table, schema))
            return HiveAcidChangesReader(*self._changes(table, schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Open a transaction, and return the object that writes and commits."""
        with told():
            from acidctl.spark.datasource.writing import begin  # noqa: PLC0415 - only to write

            return begin(self.options, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        """Return the object that writes the epochs of a stream, a transaction each."""
        with told():
            from acidctl.spark.datasource.writing import stream_writer  # noqa: PLC0415 - only to write

            return stream_writer(self.options, schema, self._start, overwrite=overwrite)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the object that follows the table, write id by write id."""
        with told():
            table = getattr(self, "_table", None) or self._plan()
            self._table = None
            return HiveAcidStreamReader(*self._changes(table, schema, is_stream=True))

    def _plan(self) -> TablePlan:
        from acidctl.spark.datasource.load_options import SourceOptions  # noqa: PLC0415 - only the driver's
        from acidctl.spark.datasource.table_plan import plan_table  # noqa: PLC0415 - only the driver's

        return plan_table(SourceOptions.parse(self.options))

    def _changes(
        self, table: TablePlan, schema: StructType, *, is_stream: bool = False
    ) -> tuple[ChangeRange, ChangesPlanner, ChangeReading]:
        from acidctl.spark.datasource import table_changes  # noqa: PLC0415 - only for changes
        from acidctl.spark.datasource.load_options import SourceOptions  # noqa: PLC0415 - only the driver's

        options = SourceOptions.parse(self.options)  # with the metastore, which the plan of the table has no more
        changes = table_changes.require_stream(options, table) if is_stream else options.changes
        assert changes is not None  # the caller has looked
        return changes, table_changes.ChangesPlanner(options), table_changes.plan_change_reading(table, schema)


class HiveAcidReader(DataSourceReader):
    """Plans on the driver, where `table` stays, and reads on the executors."""

    def __init__(self, table: TablePlan, reading: Reading) -> None:
        self._table: TablePlan | None = table
        self._reading = reading
        self._condition: Predicate | None = reading.condition
        self._load = uuid4().hex

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the plan: each task has its own share of it."""
        return self.__dict__ | {"_table": None}

    @property
    def pushFilters(self) -> Any:  # noqa: N802 - Spark's name
        """Take Spark's filters, if Spark offers them.

        Spark refuses sources that do while ``spark.sql.python.filterPushdown.enabled`` is off, its default, lest the
        user believe that filters are pushed.  This source answers the same with and without: to Spark's check
        (``pushFilters.__func__``) its method looks like that of the base class, which takes no filter.
        """

        def push(filters: list[Any]) -> Iterable[Any]:
            """Remember what can exclude partitions or stripes; Spark applies every filter itself anyway."""
            with told():
                from acidctl.spark.datasource.filters import condition_of  # noqa: PLC0415 - may be missing: told

                self._condition = condition_of(filters, self._reading.named)
            return filters

        push.__func__ = getattr(DataSourceReader, "pushFilters", None)  # type: ignore[attr-defined]  # Spark 4.0: none
        return push

    def partitions(self) -> Sequence[InputPartition]:
        """Return the share of each task, stripes of one or more locations; at least one."""
        with told():
            from acidctl.spark.datasource.table_plan import plan_splits  # noqa: PLC0415 - may be missing: told

            assert self._table is not None  # only a copy in an executor has none
            tasks = plan_splits(self._table, self._condition, self._reading.cost)
            return [InputPartition(task) for task in tasks or [()]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one partition, in Arrow batches of bounded size."""
        with told():
            from acidctl.spark.datasource.reading import read_split  # noqa: PLC0415 - may be missing: told

            for split in partition.value:
                yield from read_split(split, self._reading, self._condition, self._load)


class _ChangesReader:
    """Plans changes on the driver, where `planner` stays, as it knows the metastore, and reads on the executors."""

    def __init__(self, changes: ChangeRange, planner: ChangesPlanner, reading: ChangeReading) -> None:
        self._changes = changes
        self._planner: ChangesPlanner | None = planner
        self._reading = reading

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the planner."""
        return self.__dict__ | {"_planner": None}

    @property
    def _driver(self) -> ChangesPlanner:
        assert self._planner is not None  # only a copy in an executor has none
        return self._planner

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the changes of one partition, in Arrow batches of bounded size."""
        with told():
            from acidctl.spark.datasource.table_changes import read_change_split  # noqa: PLC0415 - may be missing: told

            for split in partition.value:
                yield from read_change_split(split, self._reading)


class HiveAcidChangesReader(_ChangesReader, DataSourceReader):
    """The changes between two write ids."""

    def partitions(self) -> Sequence[InputPartition]:
        """Return one for each share of the changes; at least one, which may be empty."""
        with told():
            splits = self._driver.splits_of(self._reading, self._changes)
            return [InputPartition((split,)) for split in splits] or [InputPartition(())]


class HiveAcidStreamReader(_ChangesReader, DataSourceStreamReader):
    """The changes as they come; the offset is the last write id whose changes were given."""

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return the offset of a new query; an earlier query goes on from its checkpoint."""
        with told():
            newest = self._driver.newest(require_told=True)
            return {_OFFSET: newest if self._changes.after is None else self._changes.after}

    def latestOffset(self) -> dict[str, int]:  # type: ignore[override]  # noqa: N802 - Spark takes both forms
        """Return the last write id whose changes can be read by now."""
        with told():
            newest = self._driver.newest(require_told=True)
            last = self._changes.upto
            return {_OFFSET: newest if last is None else min(newest, last)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Return one for each share of the changes from one offset to the other."""
        with told():
            return [
                InputPartition((split,)) for split in self._driver.splits(self._reading, start[_OFFSET], end[_OFFSET])
            ]
