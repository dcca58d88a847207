"""Spark with Iceberg's own library on a metastore: statements of SQL, and the rows that they give.

with IcebergSql(address, directory) as spark:
    rows = spark.sql("select * from default.t")
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from acidctl.spark.driver.session_plan import choose_java
from support.paths import PYTHONPATH
from support.servers.jars import fetch
from support.spark.older_pyspark import older_pyspark
from support.spark_session import SHORT_RUN

_CODE = """
import json, sys
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[1]")
for name, value in json.loads(sys.argv[1]).items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.sql("use ice.default")
for line in sys.stdin:
    try:
        found = [list(row) for row in spark.sql(json.loads(line)).collect()]
    except Exception as error:
        found = str(error)
    with open(sys.argv[2], "w") as file:
        json.dump(found, file, default=str)
    print("done", flush=True)
"""


class IcebergSql:
    """A session whose catalog is a metastore, by Iceberg's own client of it.

    Args:
        metastore: ``thrift://...``.
        directory: for its warehouse, its answers and its log.

    Raises:
        ServerUnavailable, EnvironmentProblem: it cannot be had.
    """

    def __init__(self, metastore: str, directory: Path) -> None:
        pyspark, jars, java = older_pyspark(), fetch("lakehouse4") / "lib", choose_java(os.environ)
        directory.mkdir(exist_ok=True)
        self._answer, self._log = directory / "answer.json", directory / "spark.log"
        settings = {
            "spark.jars": ",".join(map(str, sorted(jars.glob("*.jar")))),
            "spark.driver.extraJavaOptions": SHORT_RUN,
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.warehouse.dir": str(directory / "warehouse"),
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.ice.type": "hive",
            "spark.sql.catalog.ice.uri": metastore,
            "spark.sql.catalog.ice.cache-enabled": "false",
        }
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
        environ |= {"JAVA_HOME": java.home_for_spark(directory), "PYTHONPATH": f"{pyspark}{os.pathsep}{PYTHONPATH}"}
        line = [sys.executable, "-c", _CODE, json.dumps(settings), str(self._answer)]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                line, env=environ, cwd=directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def sql(self, statement: str) -> Any:
        """The rows of a statement, or what Spark said if it failed."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(statement) + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline(), self._log.read_text()[-3000:]
        return json.loads(self._answer.read_text())
