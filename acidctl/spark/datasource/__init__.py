"""Serve Hive ACID tables to Spark as the data source ``hive_acid``."""

from acidctl.spark.datasource.hive_acid import explain, register

__all__ = ["explain", "register"]
