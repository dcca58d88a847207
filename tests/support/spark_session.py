"""One Spark session (and so one JVM) for the whole test session; `spark._jvm` is the door to Hive's own classes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

SHORT_RUN = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
"""Options of a JVM that ends within minutes: its second compiler would take as much time as all else.

The cache of one compiler is 48 MB, which is filled in minutes.
"""

# UTC in the JVM: Hive prints and stores timestamps by the JVM's zone, and the expected rows are zone-free.
_JAVA_OPTIONS = f"{SHORT_RUN} -Duser.timezone=UTC -Dderby.system.durability=test"


def build_session() -> Any:
    """A local session without ports to the outside, UI or Hive metastore."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .appName("acidctl-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.catalogImplementation", "in-memory")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", _JAVA_OPTIONS)
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """The session that every test marked `spark` shares."""
    session = build_session()
    yield session
    session.stop()
