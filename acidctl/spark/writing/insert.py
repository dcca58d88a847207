"""INSERT and INSERT OVERWRITE of rows that other processes write to files, and this one publishes and commits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing

import pyarrow as pa

from acidctl.metastore.client import Metastore
from acidctl.metastore.tables import HiveTable
from acidctl.spark.writing.share import Attempt, InsertTask
from acidctl.storage.hdfs.filesystem import delegated
from acidctl.writing.insert import Insert
from acidctl.writing.rows.files import StagedFile
from acidctl.writing.rows.sources import RowPart
from acidctl.writing.transaction import Seen


class FrameInsert(Insert):
    """One INSERT, or INSERT OVERWRITE; see :class:`acidctl.writing.insert.Insert`.

    Args:
        schema: the columns of the rows.
        run: has every share of the rows written by :func:`acidctl.spark.writing.share.write_share`, and returns for
            each the attempt that counts.
    """

    def __init__(
        self,
        metastore: Metastore,
        table: HiveTable,
        schema: pa.Schema,
        run: Callable[[InsertTask], Iterable[Attempt]],
        partition: Mapping[str, str] | None = None,
        *,
        overwrite: bool = False,
    ) -> None:
        super().__init__(metastore, table, (), partition, overwrite=overwrite)
        self._schema, self._run = schema, run

    def check(self) -> None:
        """Refuse columns that do not fit, by their names or their types.

        Raises:
            UsageProblem: rows lack a partition key, or have a column that the table lacks.
            BadDataError: a column cannot take values of this type.
            RefusedError: partitions by values of a type cannot be written.
        """
        empty = pa.record_batch([pa.array([], field.type) for field in self._schema], schema=self._schema)
        part = RowPart("the DataFrame", pa.RecordBatchReader.from_batches(self._schema, []))
        self.routes.files(self.conformer(part).columns(empty))

    def stage(self, transaction: Seen) -> list[StagedFile]:
        """Have the rows written, and take the files of the attempts that count."""
        fs, room = self.places.room()
        new_files = self.new_files(transaction)
        attempts = self._run(InsertTask(self.routes, self.constraints, new_files, delegated(fs.spec), room))
        paths = [pair for attempt in attempts for pair in attempt.with_paths()]
        self.places.adopt(paths, new_files.of_statement(0)[1])
        if paths or not self.statement.replaces or self.routes.only_location is None:
            return [file for _, file in paths]
        with closing(self.new_rows(transaction)) as rows:
            rows.ensure([self.routes.only_location])
            return rows.finish()
