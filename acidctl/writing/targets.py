"""Find the rows of a table that a statement may change, as its own transaction sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from acidctl.acid.names import partition_name
from acidctl.location.find import find_table
from acidctl.location.snapshot import Snapshot
from acidctl.location.snapshot_resolver import SnapshotResolver, SnapshotSpec
from acidctl.location.table_location import TableLocation
from acidctl.location.warehouse import Warehouse
from acidctl.metastore.client import Metastore
from acidctl.metastore.tables import HiveTable
from acidctl.orc.types import OrcType, row_type_of
from acidctl.rows.past.bloom_filters import with_bloom_filters
from acidctl.rows.read.delete_set import Keys
from acidctl.rows.read.events import EventFile
from acidctl.rows.scan.columns import Namespace, PartitionColumn, ScanColumn, known_of_stripe
from acidctl.rows.scan.condition import parse_condition
from acidctl.rows.scan.partition_values import declared_type
from acidctl.rows.scan.predicate import Path, RowCondition
from acidctl.rows.scan.pruning import ColumnBounds
from acidctl.rows.scan.scan import Scan
from acidctl.rows.scan.table import Table
from acidctl.writing.rows.key_filter import KeyFilter
from acidctl.writing.transaction import Seen


class Target(NamedTuple):
    """The rows of one location.

    Attributes:
        name: the partition's name; empty for an unpartitioned table.
        where: the condition, narrowed to the keys that this location may have.
        batches: the keys of the rows, each with a batch of ROW__ID and the wanted columns; read them before the next
            location.
    """

    name: str
    where: RowCondition | None
    batches: Iterator[tuple[Keys, pa.RecordBatch]]


def target_rows(
    metastore: Metastore,
    table: HiveTable,
    transaction: Seen,
    columns: Sequence[str],
    where: RowCondition | None = None,
    *,
    storage: Mapping[str, str],
) -> Iterator[Target]:
    """Yield each location that may have rows that meet the condition.

    Partitions, and then stripes, are ruled out by their values, statistics and bloom filters. The columns of the
    condition are read first, and others only of stripes where a row meets it.

    Args:
        columns: names of columns to read, partition keys included.
        where: a condition of :func:`condition_of`, or keys; None for all rows.
        storage: options of the stores.

    Raises:
        RefusedError: the files of a location are newer than the metastore.
    """
    for name, location, partition in target_locations(metastore, table, transaction, where, storage=storage):
        yield Target(name, *rows_of(snapshot_of(location), partition, columns, where))


def target_locations(
    metastore: Metastore,
    table: HiveTable,
    transaction: Seen,
    where: RowCondition | None = None,
    *,
    storage: Mapping[str, str],
) -> Iterator[tuple[str, TableLocation, Sequence[PartitionColumn]]]:
    """Yield the partition's name, the location, and its partition columns, where the condition may be met."""
    lists = f"{transaction.write_ids}\ntxns={transaction.txns}"
    resolver = SnapshotResolver(SnapshotSpec.of(lists), Warehouse(metastore))
    url = f"hive:{table.full_name}"
    locations = find_table(url, storage, resolver)
    if not locations:
        return  # a partitioned table without a partition
    readable = Table(url, locations, resolver)
    for location in readable.found:
        partition = readable.partition_of(location)
        if where is None or where.may_match(partial(_bounds, partition)):
            yield "/".join(partition_name(*pair) for pair in location.location.partition), location, partition


def snapshot_of(location: TableLocation) -> Snapshot:
    """Return what the statement sees of a location.

    Raises:
        RefusedError: its files are newer than the metastore.
    """
    snapshot = location.snapshot()
    snapshot.require_agreement()
    return snapshot


def rows_of(
    snapshot: Snapshot,
    partition: Sequence[PartitionColumn],
    columns: Sequence[str],
    where: RowCondition | None,
    only: Mapping[str, Sequence[int]] | None = None,
) -> tuple[RowCondition | None, Iterator[tuple[Keys, pa.RecordBatch]]]:
    """Return the condition, narrowed to the keys that a location may have, and its rows; see :class:`Target`.

    Args:
        only: the numbers of the stripes to read, by the file's path relative to the location; None for all.
    """
    here = where.narrowed(partial(_bounds, partition)) if isinstance(where, KeyFilter) and partition else where
    scan = Scan(snapshot, columns, row_id=True, where=here, partition=partition, only=only, late=True, known=_known)
    return here, ((_keys(batch), batch) for batch in scan.batches() if batch.num_rows)


def condition_of(table: HiveTable, text: str) -> RowCondition:
    """Parse a condition in SQL on the columns of a table, its partition keys included.

    Raises:
        UsageProblem: it cannot be used, has a column that the table lacks, or a value that a version of Hive converts
            in another way.
    """
    row = row_type_of(tuple((column.name, column.type) for column in table.columns))
    keys = [PartitionColumn(key.name, declared_type(key.type), None) for key in table.partition_keys]
    columns = Namespace(row, keys).struct
    condition = parse_condition(text, columns)
    condition.refuse_conversions(columns)
    return condition


def _bounds(partition: Sequence[PartitionColumn], path: Path) -> ColumnBounds | None:
    return next((column.bounds for column in partition if (column.name,) == path), None)


def _known(
    source: EventFile,
    stripe: int,
    columns: Mapping[Path, ScanColumn],
    row_type: OrcType,
    partition: Sequence[PartitionColumn],
) -> Callable[[Path], ColumnBounds | None]:
    by_statistics = known_of_stripe(source, stripe, columns, row_type, partition)
    return with_bloom_filters(by_statistics, source, stripe, columns, row_type)


def _keys(batch: pa.RecordBatch) -> Keys:
    return Keys(*(np.asarray(column, np.int64) for column in batch.column(0).flatten()))
