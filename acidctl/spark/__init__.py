"""Run tasks on Spark: its Java, the session, an engine that maps tasks over executors; read tables as DataFrames."""

from acidctl.spark.frames import pair_changes, read, read_changes

__all__ = ["pair_changes", "read", "read_changes"]
