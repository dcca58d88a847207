"""acidctl: see, dump, compact and clean Apache Hive ACID tables without Hive.

``acidctl.open_table(url)`` reads the rows of a table; ``acidctl.Location(url)`` has the verbs of the command line for a
table or a partition. See :mod:`acidctl.rows.scan.table` and :mod:`acidctl.api`.
"""

from __future__ import annotations

from importlib import import_module

__version__ = "0.1.0"

_LAZY = {
    "CompactionRequest": "acidctl.compaction.request",
    "Location": "acidctl.api",
    "Table": "acidctl.rows.scan.table",
    "TableLocation": "acidctl.rows.scan.table",
    "TableScan": "acidctl.rows.scan.table",
    "find_locations": "acidctl.api",
    "open_table": "acidctl.rows.scan.table",
}
"""Where public names are defined; the stub beside this file declares them."""

__all__ = [
    "CompactionRequest",
    "Location",
    "Table",
    "TableLocation",
    "TableScan",
    "__version__",
    "find_locations",
    "open_table",
]


def __getattr__(name: str) -> object:
    # Arrow and all else is imported when the first table is opened: the commands start without it.
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
