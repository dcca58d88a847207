"""acidctl: see, dump, compact and clean Apache Hive ACID tables without Hive.

``acidctl.open_table(url)`` reads the rows of a table; ``acidctl.Location(url)`` has the verbs of the command line for a
table or a partition, and ``acidctl.Hive(address)`` those for a metastore. See :mod:`acidctl.rows.scan.table`,
:mod:`acidctl.api` and :mod:`acidctl.verbs.hive.hive`.
"""

from __future__ import annotations

from importlib import import_module

__version__ = "0.1.0"

_LAZY = {
    "CompactOptions": "acidctl.verbs.compact_options",
    "Hive": "acidctl.verbs.hive.hive",
    "Location": "acidctl.api",
    "Table": "acidctl.rows.scan.table",
    "PartitionLocation": "acidctl.rows.scan.table",
    "TableScan": "acidctl.rows.scan.table_scan",
    "create": "acidctl.verbs.writing.writable_table",
    "find": "acidctl.locations",
    "migrate": "acidctl.api",
    "open_table": "acidctl.rows.scan.table",
}
"""Where public names are defined; the stub beside this file declares them."""

__all__ = [
    "CompactOptions",
    "Hive",
    "Location",
    "PartitionLocation",
    "Table",
    "TableScan",
    "__version__",
    "create",
    "find",
    "migrate",
    "open_table",
]


def __getattr__(name: str) -> object:
    # Arrow and all else is imported when the first table is opened: the commands start without it.
    if name in _LAZY:
        try:
            return getattr(import_module(_LAZY[name]), name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] == "thrift":
                raise import_module("acidctl.base.errors").unexpected(error) from error
            raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
