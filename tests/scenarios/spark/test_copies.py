"""Copies of a table in Delta's and Iceberg's formats by Spark, kept up to date: the recipe of the docs as it stands.

There are releases of both for PySpark 4.0, and none for CI's: run by hand, in an environment with `pyspark==4.0.*`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyspark
import pytest
from support.files.acid_files import batch_of, struct, write_deletes, write_delta
from support.paths import REPO
from support.served import served
from support.servers.jars import fetch

from acidctl.orc.types import OrcType

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        not pyspark.__version__.startswith("4.0."), reason="Delta and Iceberg: for PySpark 4.0, by hand"
    ),
]

LAKE = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("lakes")
    with served(lambda: Jars(fetch("lakes40"))) as jars:
        builder = SparkSession.builder.master("local[2]").config("spark.jars", ",".join(map(str, jars.paths)))
        more = {"spark.sql.warehouse.dir": str(folder), "spark.sql.catalog.lake.warehouse": str(folder / "lake")}
        for name, value in (LAKE | more).items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        yield spark
        spark.stop()


class Jars:
    def __init__(self, folder: Path) -> None:
        self.paths = sorted(folder.glob("lib/*.jar"))

    def stop(self) -> None:
        """There is nothing to stop."""


def recipe() -> str:
    """The block of the docs that makes a copy and brings it up to date."""
    page = (REPO / "docs" / "how-to" / "spark.md").read_text("utf-8")
    (block,) = re.findall(r"^```python\n((?:(?!^```).)*MERGE INTO.*?)^```", page, re.MULTILINE | re.DOTALL)
    return str(block)


KIND = struct(id=OrcType("int"), value=OrcType("string"))


def update(table: Path, write_id: int, of: int, places: list[int], *rows: tuple[int, str]) -> None:
    """Some rows of a write id go, and others come."""
    write_deletes(table, write_id, of, places, KIND)
    if rows:
        write_delta(table, write_id, batch_of(KIND, *rows), row=KIND)


@pytest.mark.parametrize("format_", ["iceberg", "delta"])
def test_a_copy_is_made_and_kept_up_to_date_as_the_docs_say(lakes: Any, tmp_path: Path, format_: str) -> None:
    write_delta(tmp_path / "t", 1, batch_of(KIND, *((n, f"first {n}") for n in range(20))), row=KIND)
    update(tmp_path / "t", 2, 1, [3], (3, "second 3"))
    update(tmp_path / "t", 3, 1, [4, 5], (5, "third 5"), (100, "new"))
    update(tmp_path / "t", 4, 3, [0], (5, "fourth 5"), (4, "again 4"))
    update(tmp_path / "t", 5, 1, [6, 7])
    update(tmp_path / "t", 6, 3, [1])
    copy = {"delta": "copy_orders", "iceberg": "lake.sales.orders"}[format_]
    text = recipe().replace("hive:sales.orders", str(tmp_path / "t")).replace("lake.sales.orders", copy)
    text = text.replace('"iceberg"', f'"{format_}"').replace("812", "6").replace("800", "2")
    first, _, later = text.partition("# Later")
    names: dict[str, Any] = {"spark": lakes}
    exec(compile(first, "docs/how-to/spark.md", "exec"), names)
    assert value_of(lakes, copy) == {n: f"first {n}" for n in range(20)} | {3: "second 3"}
    later = later.partition("\n")[2]
    for _ in range(2):  # a batch may come twice
        exec(compile(later, "docs/how-to/spark.md", "exec"), names)
        wanted = {n: f"first {n}" for n in range(20) if n not in (6, 7)}
        assert value_of(lakes, copy) == wanted | {3: "second 3", 4: "again 4", 5: "fourth 5"}


def value_of(spark: Any, table: str) -> dict[int, str]:
    found = spark.table(table).collect()
    assert len({row.id for row in found}) == len(found)
    return {row.id: row.value for row in found}
