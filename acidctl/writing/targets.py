"""Find the rows of a table that a statement may change, as its own transaction sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from acidctl.acid.names import partition_name
from acidctl.location.find import find_table
from acidctl.location.snapshot_resolver import SnapshotResolver, SnapshotSpec
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
    lists = f"{transaction.write_ids}\ntxns={transaction.txns}"
    resolver = SnapshotResolver(SnapshotSpec.of(lists), Warehouse(metastore))
    url = f"hive:{table.full_name}"
    locations = find_table(url, storage, resolver)
    if not locations:
        return  # a partitioned table without a partition
    readable = Table(url, locations, resolver)
    for location in readable.found:
        partition = readable.partition_of(location)
        bounds = partial(_bounds, partition)
        if where is not None and not where.may_match(bounds):
            continue
        here = where.narrowed(bounds) if isinstance(where, KeyFilter) and partition else where
        snapshot = location.snapshot()
        snapshot.require_agreement()
        name = "/".join(partition_name(key, value) for key, value in location.location.partition)
        scan = Scan(snapshot, columns, row_id=True, where=here, partition=partition, late=True, known=_known)
        batches = ((_keys(batch), batch) for batch in scan.batches() if batch.num_rows)
        yield Target(name, here, batches)


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
