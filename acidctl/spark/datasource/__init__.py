"""The data source ``hive_acid`` for Spark: rows of Hive ACID tables as a DataFrame."""

from acidctl.spark.datasource.hive_acid import explain, register

__all__ = ["explain", "register"]
