"""Run tasks on Spark: its Java, the session, an engine that maps tasks over executors; read and write DataFrames."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from acidctl.spark.frames import pair_changes, read, read_changes

if TYPE_CHECKING:
    from acidctl.spark.writing.frames import delete, insert, merge, update
    from acidctl.spark.writing.sink import sink

__all__ = ["delete", "insert", "merge", "pair_changes", "read", "read_changes", "sink", "update"]


def __getattr__(name: str) -> object:
    # Executors import this package for tasks that need neither the metastore nor thrift.
    if name in __all__:
        module = "sink" if name == "sink" else "frames"
        return getattr(import_module(f"acidctl.spark.writing.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
