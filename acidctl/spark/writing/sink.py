"""Write a stream of Spark to a table: one transaction an epoch, whose number is committed in one step with its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from acidctl.base.deadline import Duration
from acidctl.base.errors import ConflictError
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
            counts its epochs from 0 again, so it needs a new name: if the table has only epoch 0, the first batch is
            taken for it and is not written.
        table, metastore, storage_options, wait: as for :func:`acidctl.spark.insert`.
    """

    newest = NOTHING

    def write(batch: DataFrame, epoch: int) -> None:
        nonlocal newest
        once, before, newest = Once(name, epoch), newest, epoch
        try:
            insert_once(batch, table, once, metastore=metastore, storage_options=storage_options, wait=wait)
        except AlreadyLoaded:  # the query ended between the commit and its own note of it
            client, found = open_table(table, metastore)
            last = loaded_value(client, found, name, storage_options, settle=False)
            if last > epoch or NOTHING < before < epoch:  # a query repeats the epoch at which it begins, and no other
                what = f"the stream {name} is at epoch {last} in {table}, and this query is at {epoch}"
                why = "it would lose rows: another query writes under the same name, or the checkpoint is new"
                raise ConflictError(what, why, "give the query another name, or its old checkpoint") from None

    return write
