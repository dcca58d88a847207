"""Write a stream of Spark to a table: one transaction an epoch, whose number is committed in one step with its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from acidctl.base.deadline import Duration
from acidctl.base.errors import ConflictError
from acidctl.metastore.client import Metastore
from acidctl.metastore.tables import HiveTable
from acidctl.spark.writing.frames import insert_once
from acidctl.spark.writing.target import Address, open_table
from acidctl.writing.once import NOTHING, AlreadyLoaded, Once, loaded_value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def sink(
    table: str,
    *,
    name: str,
    metastore: Address = None,
    storage_options: Mapping[str, str] | None = None,
    wait: Duration = 600.0,
) -> Callable[[DataFrame, int], None]:
    """Return a function for ``foreachBatch`` that inserts every epoch of a stream into a table, and none twice.

    orders.writeStream.foreachBatch(sink("hive:sales.orders", name="orders")).option("checkpointLocation", ...)

    Args:
        name: the name of the stream in the table, for one query and its checkpoint. A query with a new checkpoint
            counts its epochs from 0 again, so it needs a new name: with the old one it ends with an error.
        table, metastore, storage_options, wait: as for :func:`acidctl.spark.insert`.
    """

    newest = NOTHING

    def write(batch: DataFrame, epoch: int) -> None:
        nonlocal newest
        once, before, newest = Once(name, epoch, owner=_query(batch)), newest, epoch
        try:
            insert_once(batch, table, once, metastore=metastore, storage_options=storage_options, wait=wait)
        except AlreadyLoaded:  # the query ended between the commit and its own note of it
            is_first = not NOTHING < before < epoch  # a query repeats the epoch at which it begins, and no other
            require_last(*open_table(table, metastore), once, storage_options, is_first=is_first)

    return write


def require_last(
    metastore: Metastore,
    table: HiveTable,
    once: Once,
    storage_options: Mapping[str, str] | None,
    *,
    is_first: bool = True,
) -> None:
    """Refuse to pass over an epoch that is loaded, unless it is the last one, and the first that this query writes.

    Raises:
        ConflictError: a later epoch is loaded, or the query has written one before.
    """
    last = loaded_value(metastore, table, once.name, storage_options, settle=False)
    if last > once.value or not is_first:
        what = f"the stream {once.name} is at epoch {last} in {table.full_name}, and this query is at {once.value}"
        why = "it would lose rows: another query writes under the same name, or the checkpoint is new"
        raise ConflictError(what, why, "give the query another name, or its old checkpoint")


def _query(batch: DataFrame) -> str:
    """Return the id of the query that a batch is of, which its checkpoint keeps; empty where Spark does not say it."""
    try:
        return batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId") or ""
    except Exception:  # noqa: BLE001 - Spark Connect has no such properties, and says so in several ways
        return ""
