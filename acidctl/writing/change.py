"""DELETE and UPDATE in a full-ACID table: a delete event for each matching row, and for UPDATE its new version."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pyarrow as pa

from acidctl.acid.names import Kind, format_directory
from acidctl.metastore.client import Metastore
from acidctl.metastore.interface import Operation
from acidctl.metastore.tables import HiveTable
from acidctl.rows.read import bucket_numbers
from acidctl.rows.read.delete_set import Keys
from acidctl.writing.rows.assignments import Assignments, parse_assignments
from acidctl.writing.rows.conform import fitted
from acidctl.writing.rows.deleted_keys import DeletedKeys
from acidctl.writing.rows.files import StagedFile, StagedRows, write_deletes
from acidctl.writing.rows.key_filter import KeyFilter
from acidctl.writing.targets import condition_of, target_rows
from acidctl.writing.transaction import Seen, Statement
from acidctl.writing.write import Write


class Change(Write):
    """A DELETE, or an UPDATE: a delete event and a new row for each row that meets the condition.

    Args:
        where: a condition in SQL, as `acidctl cat --where` takes it, or the keys of rows; None for all rows.
        assignments: ``name = 'x', n = n + 1``, whose expressions see the old values; None to delete.
    """

    def __init__(
        self, metastore: Metastore, table: HiveTable, where: str | KeyFilter | None, assignments: str | None = None
    ) -> None:
        operation = Operation.DELETE if assignments is None else Operation.UPDATE
        super().__init__(metastore, table, Statement(operation, is_dynamic=bool(table.partition_keys)))
        self._where = condition_of(table, where) if isinstance(where, str) else where  # before a transaction is opened
        self._new: Assignments | None = None
        if assignments is not None:
            fixed = {column.name: "it is a partition column" for column in table.partition_keys}
            fixed |= dict.fromkeys(table.bucket_columns, "the table is bucketed by it")
            self._new = parse_assignments(assignments, self.row, fixed)

    def stage(self, transaction: Seen) -> list[StagedFile]:
        write_id = transaction.write_id
        deletes = format_directory(Kind.DELETE_DELTA, write_id, write_id, 0)
        columns = [] if self._new is None else list(self.row.names)
        files: list[StagedFile] = []
        self.updated = 0
        with closing(self.new_rows(transaction)) as rows:
            targets = target_rows(self.metastore, self.table, transaction, columns, self._where, storage=self.storage)
            for name, _, batches in targets:
                gone = DeletedKeys()
                for keys, batch in batches:
                    gone.add(keys)
                    self._write_new(name, batch, keys, rows)
                if gone:
                    files += write_deletes(self.places.stage, name, deletes, gone, row=self.row, write_id=write_id)
                    files += rows.finish()  # otherwise files of all partitions would be open together
        return files

    def _write_new(self, name: str, batch: pa.RecordBatch, keys: Keys, rows: StagedRows) -> None:
        if self._new is None:
            return
        self.updated += len(batch)
        old = batch.select(list(self.row.names))
        values = self._new.values(old)
        columns = []
        for column, kind, before in zip(self.row.names, self.row.children, old.columns, strict=True):
            columns.append(fitted(column, values[column], kind, len(before)) if column in values else before)
        self.constraints.require_values(self.row.names, columns)
        struct = pa.StructArray.from_arrays(columns, names=list(self.row.names))
        numbers = bucket_numbers.numbers(keys.bucket)  # bucket columns do not change, so a row stays in its bucket
        for number in np.unique(numbers):
            rows.write(name, int(number), struct.filter(pa.array(numbers == number)))
