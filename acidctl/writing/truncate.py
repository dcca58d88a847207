"""TRUNCATE: a base without rows replaces all rows of a table, or of some partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing

from acidctl.acid.names import partition_name
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import LostTransaction
from acidctl.metastore.interface import Operation
from acidctl.metastore.tables import BATCH, HiveTable, find_partitions
from acidctl.writing.rows.files import StagedFile
from acidctl.writing.transaction import Seen, Statement
from acidctl.writing.write import Write


class Truncate(Write):
    """One TRUNCATE.

    The partitions that `partition` means are locked, else the table.

    Args:
        partition: values of some or all partition keys; None for all partitions.

    Raises:
        NotFoundError: the table lacks a partition key that was given, or has no partition with these values.
    """

    def __init__(self, metastore: Metastore, table: HiveTable, partition: Mapping[str, str] | None = None) -> None:
        self._partition = partition
        named = _names_of(metastore, table, partition) if partition else ()
        locked = named if len(named) <= BATCH else ()  # a lock of the table is simpler then
        is_dynamic = bool(table.partition_keys) and not locked
        super().__init__(metastore, table, Statement(Operation.DELETE, True, is_dynamic, locked))

    def stage(self, transaction: Seen) -> list[StagedFile]:
        """Write a base with one file without rows to each location; Hive 4's own empty marker is unreadable to Hive 3.

        Raises:
            NotFoundError: the table lacks a partition key that was given, or has no partition with these values.
        """
        names: Sequence[str] = [""]
        if self.table.partition_keys or self._partition:
            names = _names_of(self.metastore, self.table, self._partition)
        locked = self.statement.partitions
        if locked and (others := set(names).difference(locked)):
            what = f"the partition {min(others)} of {self.table.full_name} is new"
            raise LostTransaction(what, "it was made before the lock was taken", "run it again")
        with closing(self.new_rows(transaction)) as rows:
            rows.ensure(names)
            return rows.finish()


def _names_of(metastore: Metastore, table: HiveTable, partition: Mapping[str, str] | None) -> tuple[str, ...]:
    partitions = find_partitions(metastore, table, partition)
    return tuple("/".join(partition_name(*pair) for pair in each.values) for each in partitions)
