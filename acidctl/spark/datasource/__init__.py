"""Serve Hive ACID tables to Spark as the data source ``hive_acid``."""

import pyspark

from acidctl.base.errors import EnvironmentProblem

try:
    from acidctl.spark.datasource.hive_acid import explain, register
except ModuleNotFoundError as error:
    if error.name != "pyspark.sql.datasource":
        raise
    why = f"this is PySpark {pyspark.__version__}, and Spark has sources in Python since 4.0"
    hint = "Install it with: pip install 'pyspark>=4'; commands and acidctl.spark.insert run on Spark 3.5"
    raise EnvironmentProblem("the data source hive_acid cannot be used", why, hint) from error

__all__ = ["explain", "register"]
