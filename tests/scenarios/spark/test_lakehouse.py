"""Copies in Delta and Iceberg by Spark, kept up to date by a stream: the recipe of the documentation, word for word."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from support.paths import PYTHONPATH, REPO
from support.servers.hdfs_server import ServerUnavailable
from support.servers.jars import fetch
from support.spark.older_pyspark import VERSION, older_pyspark
from support.spark.source_scenarios import table_with_updates
from support.spark_session import SHORT_RUN

from acidctl.base.errors import EnvironmentProblem
from acidctl.spark.driver.session_plan import choose_java

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CODE = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession

settings, recipe, table, target = sys.argv[1:]
builder = SparkSession.builder.master("local[1]")
for name, value in json.loads(settings).items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
scope = {"spark": spark}
exec(recipe, scope)


def rows(frame):
    return sorted(map(list, frame.select("id", "at").collect()))


def copies():
    return [rows(spark.read.format("delta").load(target + "/delta")), rows(spark.table("ice.sales.orders"))]


from acidctl.spark import read, read_changes
from acidctl.spark.datasource.pruning import why_not_pruned, why_rows
found = {"copies": copies(), "table": rows(read(spark, table, at=5))}
scope["bring_over"](read_changes(spark, table, 1, 5), 0)
found |= {"again": copies(), "version": spark.version, "slow": [why_not_pruned(spark), why_rows(spark)]}
Path(target, "found.json").write_text(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the recipe made of a table's first write id and the four after it."""
    try:
        pyspark, jars = older_pyspark(), fetch("lakehouse4") / "lib"
        java = choose_java(os.environ)
    except (ServerUnavailable, EnvironmentProblem) as reason:
        pytest.skip(str(reason))
    folder = tmp_path_factory.mktemp("lakehouse")
    table = table_with_updates(folder)
    _, _, text = (REPO / "docs/how-to/spark.md").read_text().partition("### In Delta or Iceberg")
    settings, recipe = (text.partition(f"```{kind}\n")[2].partition("```")[0] for kind in ("text", "python"))
    changed = {
        "hive:sales.orders": table, "/copies": str(folder), "/checkpoints": str(folder / "checkpoints"), "800": "1",
        '.load("': '.option("assumeCommitted", "0").load("',
    }  # fmt: skip
    for old, new in changed.items():
        assert old in recipe
        recipe, settings = recipe.replace(old, new), settings.replace(old, new)
    told = dict(line.split() for line in settings.splitlines())
    told |= {
        "spark.jars": ",".join(map(str, sorted(jars.glob("*.jar")))),
        "spark.driver.extraJavaOptions": SHORT_RUN,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.databricks.delta.snapshotPartitions": "1",
    }
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    environ |= {"JAVA_HOME": java.home_for_spark(folder), "PYTHONPATH": f"{pyspark}{os.pathsep}{PYTHONPATH}"}
    line = [sys.executable, "-c", CODE, json.dumps(told), recipe, table, str(folder)]
    done = subprocess.run(line, env=environ, cwd=folder, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads((folder / "found.json").read_text())


def test_both_copies_are_the_table(found: Any) -> None:
    assert found["copies"] == [found["table"]] * 2
    assert [3, 5] in found["table"]
    assert 5 not in dict(found["table"])


def test_a_batch_that_comes_twice_changes_nothing(found: Any) -> None:
    assert found["again"] == found["copies"]


def test_the_oldest_spark_reads_what_is_needed_and_by_columns(found: Any) -> None:
    assert found["version"] == VERSION
    assert found["slow"] == [None, None]
