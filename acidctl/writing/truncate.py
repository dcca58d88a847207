"""TRUNCATE: a base without rows replaces all rows of a table, or of some partitions."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

from acidctl.acid.names import partition_name
from acidctl.metastore.client import Metastore
from acidctl.metastore.interface import Operation
from acidctl.metastore.tables import HiveTable, find_partitions
from acidctl.writing.rows.files import StagedFile
from acidctl.writing.transaction import Seen, Statement
from acidctl.writing.write import Write


class Truncate(Write):
    """One TRUNCATE.

    Args:
        partition: values of some or all partition keys; None for all partitions.
    """

    def __init__(self, metastore: Metastore, table: HiveTable, partition: Mapping[str, str] | None = None) -> None:
        is_dynamic = bool(table.partition_keys)
        super().__init__(metastore, table, Statement(Operation.DELETE, replaces=True, is_dynamic=is_dynamic))
        self._partition = partition

    def stage(self, transaction: Seen) -> list[StagedFile]:
        """Write a base with one file without rows to each location; Hive 4's own empty marker is unreadable to Hive 3.

        Raises:
            NotFoundError: the table lacks a partition key that was given, or has no partition with these values.
        """
        with closing(self.new_rows(transaction)) as rows:
            rows.ensure(self._names())
            return rows.finish()

    def _names(self) -> list[str]:
        if not self.table.partition_keys and not self._partition:
            return [""]
        partitions = find_partitions(self.metastore, self.table, self._partition)
        return ["/".join(partition_name(*pair) for pair in partition.values) for partition in partitions]
