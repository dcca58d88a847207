"""acidctl: see, dump, compact and clean Apache Hive ACID tables without Hive.

``acidctl.open_table(url)`` reads one from Python; see :mod:`acidctl.rows.scan.table`.
"""

from __future__ import annotations

from importlib import import_module

__version__ = "0.1.0"

_LAZY = ("Table", "TableLocation", "TableScan", "open_table")
"""Names of acidctl.rows.scan.table; the stub beside this file declares them."""

__all__ = ["Table", "TableLocation", "TableScan", "__version__", "open_table"]


def __getattr__(name: str) -> object:
    # Arrow and all else is imported when the first table is opened: the commands start without it.
    if name in _LAZY:
        return getattr(import_module("acidctl.rows.scan.table"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
