"""The driver of test_share_on_cluster.py: rows of one cluster, whose tasks die and dawdle, in a process of its own."""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import acidctl.spark
from acidctl.spark.datasource import register
from acidctl.spark.driver.session import start_session
from acidctl.spark.driver.session_plan import SparkOptions
from support.metastore.fake_hive import FakeHive
from support.metastore.writable import files_of, rows_of, writable

ROWS = 4000
CONF = (
    ("spark.executor.memory", "512m"), ("spark.executor.cores", "1"), ("spark.sql.catalogImplementation", "in-memory"),
    ("spark.speculation", "true"), ("spark.speculation.interval", "100ms"), ("spark.speculation.quantile", "0.2"),
    ("spark.speculation.multiplier", "1.1"), ("spark.speculation.minTaskRuntime", "1s"),
)  # fmt: skip


def awkward(mark: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return a function of tasks: the first attempt at one dies, the first at another goes on after a second has."""

    def function(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context
        number, attempts = context.partitionId(), Path(f"{mark}-{context.partitionId()}")
        with attempts.open("a") as log:
            log.write(f"{context.taskAttemptId()}\n")
        is_first = len(attempts.read_text().splitlines()) == 1
        yield from batches
        if number == 1 and is_first:
            os._exit(1)
        for _ in range(600 if number == 2 and is_first else 0):
            if len(attempts.read_text().splitlines()) > 1:
                break
            time.sleep(0.1)

    return function


def main() -> None:
    """Arguments: the master, an empty folder, a file for the outcomes."""
    master, folder, target = sys.argv[1:]
    outcomes: dict[str, Any] = {}
    options = SparkOptions(master=master, conf=CONF, start_timeout=120)
    with FakeHive(4, remembers=True) as hive, start_session(options) as session:
        from pyspark.sql import SparkSession

        spark = SparkSession(session.context)
        register(spark)
        for name in ("insert", "save"):
            path = Path(folder, name)
            writable(hive, path, "a int, b string")
            hive.write_ids.pop("db.t", None)
            rows = spark.range(ROWS, numPartitions=4).selectExpr("int(id) AS a", "concat('n', id) AS b")
            rows = rows.mapInArrow(awkward(f"{folder}/{name}-attempts"), "a int, b string")
            if name == "insert":
                acidctl.spark.insert(rows, "hive:db.t", metastore=hive.address)
            else:
                saved = rows.write.format("hive_acid").mode("append").option("metastore", hive.address)
                saved.save("hive:db.t")
            attempts = [Path(f"{folder}/{name}-attempts-{n}").read_text().splitlines() for n in range(4)]
            outcomes[name] = {
                "rows": rows_of(hive),
                "files": files_of(path),
                "attempts": [len(one) for one in attempts],
            }
    Path(target).write_bytes(pickle.dumps(outcomes))
