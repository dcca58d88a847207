"""Spark: the Java that runs it, the session, the engine that maps tasks over executors; tables as DataFrames."""

from acidctl.spark.frames import pair_changes, read, read_changes

__all__ = ["pair_changes", "read", "read_changes"]
