"""The Spark source against Spark's own reader of flat ORC files with the same rows, query by query in one run.

    python tests/bench/bench_spark.py [--rows N] [--rounds N] [--only TEXT]

Each figure is the median of the rounds, in seconds as a user waits, after one that does not count. `floor` is a Python
source that gives no row: what Spark takes to plan in Python and to start one task. `unpruned` is the same query without
the rule of `acidctl.spark.datasource.pruning`, as Spark treats every other source in Python; it is taken once.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader
from support.made.big_tables import ROW, BigOptions, write_big

from acidctl.acid import bucket as codec
from acidctl.demo.walkthrough import write_directory
from acidctl.location.snapshot import take_snapshot
from acidctl.orc.types import OrcType, row_of
from acidctl.orc.write.writer_settings import WriterSettings
from acidctl.rows.read.delete_set import Keys
from acidctl.rows.read.events import Ids, with_ids
from acidctl.rows.scan.scan import Scan
from acidctl.spark.datasource import pruning, register
from acidctl.storage.registry import open_location

STRIPES = 100
"""About so many a table, so that a filter can leave out 99 of 100."""
COLUMNS = 200
RULES = "spark.sql.optimizer.excludedRules"


def write_acid(table: Path, row: OrcType, batches: Iterable[pa.RecordBatch], rows: int) -> None:
    """A base of two buckets, with about STRIPES stripes."""
    fs, path = open_location(str(table))
    size = sum(16 if child.kind == "string" else 8 for child in row.children)
    settings = replace(WriterSettings.for_base("zlib"), stripe_size=max(1 << 16, rows * size // STRIPES))
    left = iter(batches)

    def with_keys(number: int) -> Iterator[pa.RecordBatch]:
        made = 0
        for batch in left:
            count = batch.num_rows
            own = np.full(count, codec.encode(number, 0), np.int64)
            keys = Keys(np.ones(count, np.int64), own, np.arange(made, made + count, dtype=np.int64))
            made += count
            yield with_ids(Ids(np.zeros(count, np.int64), keys, keys.original), batch.to_struct_array())
            if made >= rows // 2 and not number:
                return

    write_directory(fs, f"{path}/base_0000001", {number: with_keys(number) for number in range(2)}, row, settings)


def narrow(folder: Path, rows: int) -> Iterator[pa.RecordBatch]:
    """The rows of a big table."""
    fs, path = open_location(str(folder))
    write_big(fs, path, BigOptions(rows=rows, write_ids=1, deletes=0, base=True))
    for batch in Scan(take_snapshot(fs, path)).batches():
        for start in range(0, batch.num_rows, 4096):
            yield batch.slice(start, 4096)


def wide(rows: int) -> Iterator[pa.RecordBatch]:
    """Numbers."""
    luck, step = np.random.default_rng(0), 4096
    for at in range(0, rows, step):
        columns = [pa.array(luck.normal(size=min(step, rows - at)).round(3)) for _ in range(COLUMNS)]
        yield pa.RecordBatch.from_arrays(columns, names=[f"c{n}" for n in range(COLUMNS)])


class Floor(DataSource):
    """A source without a row."""

    @classmethod
    def name(cls) -> str:
        """For ``format(...)``."""
        return "floor"

    def schema(self) -> str:
        """Of no row."""
        return "id bigint"

    def reader(self, schema: Any) -> DataSourceReader:
        """One task that reads nothing."""

        class NoWork(DataSourceReader):
            def read(self, partition: Any) -> Iterator[Any]:
                return iter(())

        return NoWork()


def seconds(spark: Any, text: str, rounds: int) -> float:
    """Until all rows of a query have been made; they go nowhere."""
    found = []
    for _ in range(rounds + 1):
        started = time.perf_counter()
        spark.sql(text).write.format("noop").mode("overwrite").save()
        found.append(time.perf_counter() - started)
    return statistics.median(found[1:])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="queries whose names hold this text")
    given = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR").getOrCreate()
    register(spark)
    spark.dataSource.register(Floor)
    spark.read.format("floor").load().createOrReplaceTempView("floor")
    floor = seconds(spark, "SELECT * FROM floor", given.rounds)
    with tempfile.TemporaryDirectory(prefix="acidctl-bench-") as name:
        folder, few = Path(name), max(10_000, given.rows // 50)
        write_acid(folder / "acid_t", ROW, narrow(folder / "made", given.rows), given.rows)
        write_acid(folder / "acid_w", row_of((f"c{n}", OrcType("double")) for n in range(COLUMNS)), wide(few), few)
        fs, path = open_location(str(folder / "acid_d"))
        write_big(fs, path, BigOptions(rows=given.rows, write_ids=1, deletes=given.rows // 10, base=True))
        for one, target in (("t", "128m"), ("w", "128m"), ("d", "1")):
            reader = spark.read.format("hive_acid").option("targetBytes", target)
            reader.load(str(folder / f"acid_{one}")).createOrReplaceTempView(f"acid_{one}")
            flat = str(folder / f"flat_{one}")
            spark.table(f"acid_{one}").write.option("compression", "zlib").orc(flat)
            spark.read.orc(flat).createOrReplaceTempView(f"flat_{one}")
        queries = {
            "all columns": "SELECT * FROM @t",
            "one of 7 columns": "SELECT score FROM @t",
            "sum of one column": "SELECT sum(score) FROM @t",
            "count(*)": "SELECT count(*) FROM @t",
            "99 of 100 stripes left out": f"SELECT * FROM @t WHERE id < {given.rows // STRIPES // 2}",
            "one of 200 columns": "SELECT c100 FROM @w",
            "a tenth is deleted, a task a stripe": "SELECT * FROM @d",
        }
        print(f"{given.rows:,} rows, and {few:,} of {COLUMNS} columns; floor {floor:.2f} s")
        print("| query | acid s | flat s | acid/flat | unpruned s |\n|---|---:|---:|---:|---:|")
        for label, text in queries.items():
            if given.only not in label:
                continue
            acid, flat_seconds = (
                seconds(spark, text.replace("@", f"{kind}_"), given.rounds) for kind in ("acid", "flat")
            )
            spark.conf.set(RULES, pruning.RULE)
            unpruned = seconds(spark, text.replace("@", "acid_"), 1)
            spark.conf.unset(RULES)
            print(
                f"| {label} | {acid:.2f} | {flat_seconds:.2f} | {acid / flat_seconds:.1f} | {unpruned:.2f} |",
                flush=True,
            )
    spark.stop()


if __name__ == "__main__":
    main()
