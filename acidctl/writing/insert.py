"""INSERT and INSERT OVERWRITE: the rows of any source are added to a table, or replace its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain

import pyarrow as pa

from acidctl.acid.names import unescape
from acidctl.base.errors import UsageProblem
from acidctl.base.nearest import did_you_mean
from acidctl.metastore.client import Metastore
from acidctl.metastore.interface import Operation
from acidctl.metastore.tables import HiveTable, partitions_of_values
from acidctl.writing.rows.conform import RowConformer
from acidctl.writing.rows.files import StagedFile
from acidctl.writing.rows.routes import Routes
from acidctl.writing.rows.sources import RowPart
from acidctl.writing.transaction import Seen, Statement
from acidctl.writing.write import Write


class Insert(Write):
    """One INSERT, or INSERT OVERWRITE.

    An overwrite replaces all rows of a table without partitions, of the partition whose values are given, or else of
    the partitions that get rows.

    Args:
        sources: the rows, in parts whose columns may differ; a reader is a single part.
        partition: values of some or all partition keys; columns of the rows give the others.
        overwrite: the new rows replace all rows of the same locations.

    Raises:
        UsageProblem: the table has no such partition key, or a value in `partition` does not fit the type of its key.
    """

    def __init__(
        self,
        metastore: Metastore,
        table: HiveTable,
        sources: pa.RecordBatchReader | Iterable[RowPart],
        partition: Mapping[str, str] | None = None,
        *,
        overwrite: bool = False,
    ) -> None:
        statement = Statement(Operation.INSERT, replaces=overwrite, is_dynamic=bool(table.partition_keys))
        super().__init__(metastore, table, statement)
        self._sources: Iterable[RowPart] = (
            [RowPart("", sources)] if isinstance(sources, pa.RecordBatchReader) else sources
        )
        fixed = {key.lower(): value for key, value in (partition or {}).items()}
        keys = [column.name for column in table.partition_keys]
        for name in fixed:
            if name not in keys:
                raise UsageProblem(f"the table has no partition key {name}", "", did_you_mean(name, keys))
        self._given, self.routes = set(fixed), Routes(table, self.row, fixed)
        if overwrite and keys and self.routes.only_location is not None:
            self._lock_partition(self.routes.only_location)

    def _lock_partition(self, name: str) -> None:
        """Lock the only partition that the rows go to, if it exists, instead of the table; Hive does the same."""
        values = {key: unescape(value) for key, _, value in (part.partition("=") for part in name.split("/"))}
        if list(partitions_of_values(self.metastore, self.table, [values])):
            self.statement = replace(self.statement, is_dynamic=False, partitions=(name,))

    def known_locations(self) -> Sequence[str]:
        """Return the only location that the rows go to; nothing if they decide."""
        return () if self.routes.only_location is None else (self.routes.only_location,)

    def check(self) -> None:
        """Open the first source, and refuse columns that do not fit.

        Raises:
            UsageProblem: rows lack a partition key, or have a column that the table lacks.
        """
        parts = iter(self._sources)
        if first := next(parts, None):
            self.conformer(first)
            self._sources = chain([first], parts)

    def conformer(self, source: RowPart) -> RowConformer:
        """Check the columns of a source, and return what turns its batches into columns of the table."""
        self._require_keys(source.rows.schema)
        self.constraints.require_columns([name.lower() for name in source.rows.schema.names])
        return self.routes.conformer(source.rows.schema, source, self.constraints.not_null)

    def stage(self, transaction: Seen) -> list[StagedFile]:
        """Write the rows.

        Raises:
            UsageProblem: rows lack a partition key, have one whose value is given, or a column that the table lacks.
        """
        with closing(self.new_rows(transaction)) as rows:
            for source in self._sources:
                conformer = self.conformer(source)
                for batch in source.rows:
                    if batch.num_rows:
                        self.routes.write(conformer.columns(batch), rows)
            if self.statement.replaces and self.routes.only_location is not None:
                rows.ensure([self.routes.only_location])
            return rows.finish()

    def _require_keys(self, schema: pa.Schema) -> None:
        columns = [name.lower() for name in schema.names]
        for name in self._given.intersection(columns):
            why = f"--partition and a column of the rows give {name}"
            raise UsageProblem(f"the partition key {name} is given twice", why, "leave one of them out")
        for name in self.routes.names[len(self.row.names) :]:
            if name not in columns:
                why = "it is a partition key, which decides where a row goes"
                raise UsageProblem(f"the rows have no column {name}", why, "add the column, or give --partition")
