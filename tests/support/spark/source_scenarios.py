"""The driver of test_hive_acid.py: Spark sessions that read tables, in a process of their own.

Arguments: a master, a folder with the tables to read, a file for the outcomes, the names of the scenarios.
"""

from __future__ import annotations

import pickle
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.orc.types import OrcType
from acidctl.spark import read, read_changes
from acidctl.spark.datasource import explain, register
from acidctl.spark.datasource.pruning import why_rows
from acidctl.spark.driver.session import start_session
from acidctl.spark.driver.session_plan import SparkOptions
from support.compacting import run_compaction
from support.files.acid_files import struct, write_deletes, write_delta
from support.made.random_tables import make_table, write
from support.paths import REPO
from support.spark.executors import WHERE

INT = OrcType("int")
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def load(spark: Any, path: Path | str, schema: str | None = None, **options: str) -> Any:
    """A DataFrame."""
    reader = spark.read.format("hive_acid").options(**options)
    return (reader.schema(schema) if schema else reader).load(str(path))


def plain(rows: list[Any]) -> list[Any]:
    """Rows as dictionaries, nested ones too."""
    return [row.asDict(recursive=True) for row in rows]


def failing(action: Callable[[], Any]) -> Any:
    """Class, three lines, and the length of Spark's own text."""
    try:
        action()
    except Exception as error:  # noqa: BLE001 - the scenario reports it
        found = explain(error)
        return None if found is None else (type(found).__name__, found.what, found.why, found.hint, len(str(error)))
    return "nothing raised"


def written_by_hive(spark: Any, folder: Path) -> Any:
    """Every case under every list: schema and rows, a partition of Spark's for every stripe."""
    outcomes = {}
    for case, name, write_ids in pickle.loads((folder / "cases").read_bytes()):
        found = load(
            spark, case, rowId="true", snapshot=write_ids.replace("default.t", Path(case).name), targetBytes="1"
        )
        outcomes[name, write_ids] = (found.schema.simpleString(), plain(found.collect()))
    return outcomes


def sql(spark: Any, folder: Path) -> Any:
    """SQL over a table of some size and a partitioned one."""
    big = load(spark, folder / "big", targetBytes="200k")
    big.createOrReplaceTempView("big")
    load(spark, folder / "cities").createOrReplaceTempView("cities")
    return {
        "partitions": big.rdd.getNumPartitions(),
        "by city": plain(
            spark.sql("SELECT city, count(*) AS n, sum(id) AS s FROM big GROUP BY city ORDER BY city").collect()
        ),
        "join": plain(
            spark.sql(
                "SELECT c.`land.code` AS land, count(*) AS n, min(b.id) AS least FROM big b "
                "JOIN cities c ON b.city = c.`the city` WHERE b.score > 100 GROUP BY 1 ORDER BY 1"
            ).collect()
        ),
        "count": spark.sql("SELECT count(*) AS n FROM big").collect()[0].n,
        "nothing but a constant": spark.sql("SELECT 1 FROM big LIMIT 3").count(),
        "one column": load(spark, folder / "big", "id bigint").agg({"id": "sum"}).collect()[0][0],
        "columns": load(spark, folder / "big", columns="day,ID").columns,
    }


CONDITIONS = (
    "id IN (1, 2, 400000, 12345)", "id > 390000", "NOT (id < 399990)", "city IS NULL", "day = DATE '2015-06-01'",
    "amount > 99999.00", "score > 150", "updated < TIMESTAMP_NTZ '2014-06-01 00:00:00'", "id IN (NULL, 3)",
)  # fmt: skip
PARTITION_CONDITIONS = (
    "land = 'a/b c=d%'", "land IS NULL", "land <> 'x'", "year IN (2019, 2021)", "`day` = DATE '2020-02-29'",
    "year = 2020 AND n > 1", "land <=> NULL",
)  # fmt: skip


def filters(spark: Any, folder: Path) -> Any:
    """Rows and partitions of Spark's, with filters pushed down and without."""
    outcomes: dict[Any, Any] = {}
    for table, key, texts in (("big", "id", CONDITIONS), ("parts", "n", PARTITION_CONDITIONS)):
        found = load(spark, folder / table, targetBytes="200k")
        for pushed in ("false", "true"):
            spark.conf.set(PUSHDOWN, pushed)
            for text in texts:
                chosen = found.where(text).select(key)
                partitions = chosen.rdd.getNumPartitions() if table == "parts" and pushed == "true" else None
                outcomes[table, text, pushed] = sorted(row[0] for row in chosen.collect()), partitions
    spark.conf.set(PUSHDOWN, "false")
    return outcomes


def odd(spark: Any, folder: Path) -> Any:
    """Partition values, odd names, empty tables, tables whose columns grew."""
    parts = load(spark, folder / "parts")
    names = load(spark, folder / "names")
    empty = load(spark, folder / "empty", "a int, b map<string,array<int>>")
    grown = load(spark, folder / "grown", targetBytes="1", rowId="true")
    return {
        "parts": (parts.schema.simpleString(), plain(parts.collect())),
        "as text": load(spark, folder / "parts", partitionTypes="string").schema.simpleString(),
        "names": (names.columns, plain(names.collect()), names.select("`a.b`", "row", "`x y`.`p.q`").count()),
        "empty": (empty.count(), empty.columns, empty.rdd.getNumPartitions()),
        "all deleted": (load(spark, folder / "deleted").count(), load(spark, folder / "deleted").columns),
        "grown": (grown.schema.simpleString(), plain(grown.collect())),
        "grown, new only": plain(load(spark, folder / "grown", "b string", targetBytes="1").collect()),
        "text": plain(load(spark, folder / "text").collect()),
        "partition columns": plain(load(spark, folder / "parts", "land string, year bigint").collect()),
        "field": plain(load(spark, folder / "names", columns="ROW,x y.r s").collect()),
        "times": plain(load(spark, folder / "times", targetBytes="1").selectExpr("id", "string(t) AS t").collect()),
        "times type": load(spark, folder / "times").schema.simpleString(),
        "wider": load(spark, folder / "names", "`a.b` bigint").collect()[0][0],
    }


def snapshots(spark: Any, folder: Path) -> Any:
    """A DataFrame keeps the snapshot of its load."""
    table = folder / "moving"
    found = load(spark, table)
    before = found.count()
    hidden = table.parent / "delta_0000002_0000002_0000"
    hidden.rename(table / hidden.name)
    return {
        "before": before,
        "after": found.count(),
        "new load": load(spark, table).count(),
        "at": load(spark, table, at="1").count(),
    }


def errors(spark: Any, folder: Path) -> Any:
    """What goes wrong is told in acidctl's words."""
    vanishing = load(spark, folder / "vanishing")
    (folder / "vanishing" / "delta_0000001_0000001_0000" / "bucket_00000").unlink()
    return {
        "no such path": failing(lambda: load(spark, folder / "nowhere")),
        "not a table": failing(lambda: load(spark, folder / "big" / "base_0000001")),
        "two tables": failing(lambda: load(spark, folder / "db")),
        "no data": failing(lambda: load(spark, folder / "empty")),
        "no path": failing(lambda: spark.read.format("hive_acid").load()),
        "bad option": failing(lambda: load(spark, folder / "big", rowid="maybe")),
        "unknown option": failing(lambda: load(spark, folder / "big", snapshots="5")),
        "bad list": failing(lambda: load(spark, folder / "big", snapshot="nonsense")),
        "no column": failing(lambda: load(spark, folder / "big", columns="idd")),
        "no column in schema": failing(lambda: load(spark, folder / "big", "idd bigint").count()),
        "wrong type": failing(lambda: load(spark, folder / "big", "id string").count()),
        "history": failing(lambda: load(spark, folder / "compacted", at="1")),
        "vanished": failing(vanishing.count),
        "damaged": failing(lambda: load(spark, folder / "damaged").collect()),
        "spark's own": failing(lambda: spark.sql("SELECT raise_error('x')").collect()),
    }


def table_with_updates(folder: Path) -> str:
    """Ten rows; 3 is updated by the write ids 2 and 5, 5 is deleted by 3, and 11 comes with 4."""
    table = folder / "with updates"
    if not table.exists():
        numbers, deletes = {1: range(1, 11), 2: (3,), 4: (11,), 5: (3,)}, {2: (1, 2), 3: (1, 4), 5: (2, 0)}
        for write_id, ids in numbers.items():
            columns = {"id": pa.array(ids, pa.int32()), "at": pa.array([write_id] * len(ids), pa.int32())}
            write_delta(table, write_id, pa.RecordBatch.from_pydict(columns), row=struct(id=INT, at=INT))
        for write_id, (original, row_id) in deletes.items():
            write_deletes(table, write_id, original, [row_id], row=struct(id=INT, at=INT))
    return str(table)


def _copied(spark: Any, folder: Path) -> Any:
    """What the recipe of the documentation makes of a copy, and the table itself."""
    text = (REPO / "docs/how-to/spark.md").read_text().partition("## Keep a copy")[2]
    code = text.partition("```python\n")[2].partition("```")[0]
    table = table_with_updates(folder)
    for old, new in (("hive:sales.orders", table), ("/copies", str(folder / "copies")), ("800", "1"), ("812", "5")):
        assert old in code
        code = code.replace(old, new)
    exec(code, {"spark": spark})
    copy = spark.read.parquet(str(folder / "copies/orders-5"))
    return sorted(map(tuple, copy.collect())), sorted(map(tuple, read(spark, table, at=5).collect()))


def _by_name(spark: Any, path: str) -> int:
    spark.sql(f"CREATE TEMPORARY VIEW named USING hive_acid OPTIONS (path '{path}', at '1')")
    return int(spark.sql("SELECT count(*) AS n FROM named").collect()[0].n)


def changes(spark: Any, folder: Path) -> Any:
    """Changes by SQL, and a stream that stops and goes on while rows change and compactions come by."""
    made, choice = make_table(folder / "changing", 7, 0), random.Random(7)
    for kind in ("insert", "insert", "update", "delete"):
        write(made, choice, kind)
    path = str(made.path)
    found = read_changes(spark, path, 1)
    found.createOrReplaceTempView("changes")
    outcome = {
        "rows": plain(found.collect()),
        "schema": found.schema.simpleString(),
        "sql": plain(
            spark.sql("SELECT _write_id AS w, _change AS c, count(*) AS n FROM changes GROUP BY 1, 2").collect()
        ),
        "count": spark.sql("SELECT count(*) AS n FROM changes").collect()[0].n,
        "filtered": plain(spark.sql("SELECT id FROM changes WHERE _change = 'delete' AND id >= 0").collect()),
        "keyed": plain(read_changes(spark, table_with_updates(folder), 1, 5, key=["id"]).collect()),
        "copied": _copied(spark, folder),
        "at once": read(spark, path, at=1).count(),
        "by name": _by_name(spark, path),
    }
    batches: list[Any] = []

    def follow() -> None:
        stream = spark.readStream.format("hive_acid").options(changesFrom="0", assumeCommitted="0").load(path)
        writer = stream.writeStream.foreachBatch(lambda batch, number: batches.append((number, plain(batch.collect()))))
        query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
        query.awaitTermination()

    follow()
    follow()
    for kind in ("update", "major", "insert", "minor", "delete"):
        if kind in ("minor", "major"):
            run_compaction(made.path, CompactionKind(kind))
        else:
            write(made, choice, kind)
    follow()
    outcome["no start"] = failing(
        lambda: spark.readStream.format("hive_acid").load(path).writeStream.format("noop").start().awaitTermination()
    )
    return outcome | {"made": made, "batches": batches}


def on_cluster(spark: Any, folder: Path) -> Any:
    """SQL on a cluster, and where its executors work and have acidctl from."""
    outcome = sql(spark, folder)
    facts = spark.sparkContext.parallelize([WHERE] * 8, 8).map(eval).collect()
    plan = load(spark, folder / "big")._jdf.queryExecution().executedPlan().toString()
    handed = ("ColumnarToRow" in plan, why_rows(spark))
    return outcome | {"executors": sorted(set(facts)), "handed over": handed}


SCENARIOS = (written_by_hive, sql, filters, odd, snapshots, errors, changes, on_cluster)


def main() -> None:
    """Play the scenarios that are named."""
    master, folder, target, *names = sys.argv[1:]
    conf = [("spark.sql.catalogImplementation", "in-memory"), ("spark.sql.shuffle.partitions", "2")]
    if not master.startswith("local"):
        conf += [("spark.executor.memory", "512m"), ("spark.executor.cores", "1")]
    outcomes: dict[str, Any] = {}
    with start_session(SparkOptions(master=master, conf=tuple(conf), start_timeout=120)) as session:
        from pyspark.sql import SparkSession

        spark = SparkSession(session.context)
        register(spark)
        for scenario in (one for one in SCENARIOS if one.__name__ in names):
            began = time.monotonic()
            outcomes[scenario.__name__] = scenario(spark, Path(folder))
            outcomes[f"{scenario.__name__} seconds"] = time.monotonic() - began
            Path(target).write_bytes(pickle.dumps(outcomes))
