"""The table that rows of Spark are written to, and the Arrow types of these rows."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any

import pyarrow as pa

from acidctl.base.errors import UsageProblem
from acidctl.location.arguments import HIVE, HiveName, is_hive_name, open_metastore
from acidctl.metastore.client import Metastore
from acidctl.metastore.tables import HiveTable, get_table
from acidctl.writing.once import Once
from acidctl.writing.write import Written, log_written

Address = str | Mapping[str, str] | None
"""The address of a metastore, or its settings by name; None for that of ``hive-site.xml``."""


def open_table(table: str, metastore: Address) -> tuple[Metastore, HiveTable]:
    """Return the client of a metastore, and a table in it.

    Raises:
        NotFoundError: the table does not exist.
        UsageProblem: `table` is not the name of one table, or no metastore is configured.
    """
    name = HiveName.parse(table) if isinstance(table, str) and is_hive_name(table) else None
    if name is None or name.is_pattern or name.partition:
        raise UsageProblem(f"{table} is not one table of a metastore", "", f"write {HIVE}db.table")
    client = open_metastore(metastore)
    if client is None:
        raise UsageProblem("no metastore is given", "rows are written under its transactions", "give its address")
    return client, get_table(client, name.database, name.table)


def log_by_spark(
    verb: str, table: HiveTable, written: Written, storage: Mapping[str, str] | None, once: Once | None = None
) -> None:
    """Log a committed statement; the epochs of one query share a line.

    Args:
        storage: options of the stores.
        once: the epoch of a stream.
    """
    query = once.owner or once.name if once else ""
    log_written("stream" if once else verb, table, written, storage, stream=query, engine="spark")


def arrow_schema(schema: Any) -> pa.Schema:
    """Return the Arrow types in which tasks get the columns of a schema of Spark."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - PySpark

    more: dict[str, Any] = {"timezone": "UTC"}
    if "timezone" not in signature(to_arrow_schema).parameters:  # older versions take UTC by themselves
        more = {}
    return to_arrow_schema(schema, **more)
