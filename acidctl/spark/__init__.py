"""Run tasks on Spark: its Java, the session, an engine that maps tasks over executors; read and write DataFrames."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from acidctl.spark.frames import pair_changes, read, read_changes

if TYPE_CHECKING:
    from acidctl.spark.writing.frames import delete, insert, merge, update

__all__ = ["delete", "insert", "merge", "pair_changes", "read", "read_changes", "update"]


def __getattr__(name: str) -> object:
    # Executors import this package for tasks that need neither the metastore nor thrift.
    if name in __all__:
        return getattr(import_module("acidctl.spark.writing.frames"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
