"""A program on YARN that counts tables of a secured HDFS through the Spark source, one of them over WebHDFS.

Arguments: their URLs, and settings of Spark.  Prints the numbers of rows.
"""

from __future__ import annotations

import json
import sys

from acidctl.spark.datasource import register
from acidctl.spark.driver.session import start_session
from acidctl.spark.driver.session_plan import SparkOptions


def main() -> None:
    """Count."""
    urls = [one for one in sys.argv[1:] if "://" in one and not one.startswith("spark.")]
    conf = [tuple(one.split("=", 1)) for one in sys.argv[1:] if one.startswith("spark.")]
    with start_session(SparkOptions(master="yarn", conf=tuple((key, value) for key, value in conf))) as session:
        from pyspark.sql import SparkSession

        spark = SparkSession(session.context)
        register(spark)
        counts = [spark.read.format("hive_acid").load(url).count() for url in urls]
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
