"""Copies in Iceberg, read by Spark with Iceberg's own library."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.files.acid_files import acid_batch, write_acid, write_deletes
from support.made.random_values import everything, random_array
from support.paths import PYTHONPATH
from support.servers.hdfs_server import ServerUnavailable
from support.servers.jars import fetch
from support.spark.older_pyspark import older_pyspark
from support.spark_session import SHORT_RUN

import acidctl
from acidctl.base.errors import EnvironmentProblem
from acidctl.orc.read.wide_timestamps import widened
from acidctl.orc.types import OrcType, arrow_type, row_of
from acidctl.orc.write.writer_settings import WriterSettings
from acidctl.spark.driver.session_plan import choose_java

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CODE = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[1]")
for name, value in json.loads(sys.argv[1]).items():
    builder = builder.config(name, value)
session = builder.getOrCreate()
for line in sys.stdin:
    target, conditions, statements = json.loads(line)
    frame = session.read.format("iceberg").load(target)
    frame.createOrReplaceTempView("copy")
    found = [[row.asDict(recursive=True) for row in frame.collect()]]
    for condition in conditions:
        found.append(sorted(row["id"] for row in frame.where(condition).select("id").collect()))
    for statement in statements:
        found.append([list(row) for row in session.sql(statement).collect()])
    Path(target, "found.json").write_text(json.dumps([frame.columns, *found], default=str))
    print("done", flush=True)
"""

KINDS = row_of(
    [("id", OrcType("int")), *(pair for pair in everything(unions=False).fields() if pair[0] not in ("e", "z"))]
)
ROWS = 600


def batch_of(seed: int) -> pa.RecordBatch:
    """Rows of every type that Iceberg has, with an id each."""
    rng = random.Random(seed)
    columns = [random_array(kind, ROWS, rng) for kind in KINDS.children[1:]]
    days = KINDS.names.index("day") - 1
    columns[days] = pa.array([rng.randrange(-100_000, 1_000_000) for _ in range(ROWS)], pa.int32()).view(pa.date32())
    ids = pa.array(range(seed * ROWS, (seed + 1) * ROWS), pa.int32())
    return pa.RecordBatch.from_arrays([ids, *columns], names=list(KINDS.names))


def shown(value: Any) -> Any:
    """A value as text that both libraries give; Iceberg cuts nanoseconds."""
    if isinstance(value, dict) and value.keys() == {"seconds", "nanos"}:  # a time of any year
        value = datetime(1970, 1, 1) + timedelta(seconds=value["seconds"], microseconds=value["nanos"] // 1000)
    if isinstance(value, dict):
        return {key: shown(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        pairs = all(isinstance(one, tuple) and len(one) == 2 for one in value) and bool(value)
        return {str(key): shown(one) for key, one in value} if pairs else [shown(one) for one in value]
    if isinstance(value, datetime):
        return str(value)[:26]
    if isinstance(value, bytes | bytearray):
        return str(bytearray(value))
    return value if value is None or isinstance(value, bool | int) else str(value)


def comparable(row: dict[str, Any]) -> dict[str, Any]:
    """A row in the form that both libraries give: CHAR without padding, decimals as numbers."""
    values = {name: shown(value) for name, value in row.items() if name not in ("k", "raw")}
    values["c"] = values["c"] and values["c"].rstrip(" ")
    return values | {name: values[name] and Decimal(values[name]) for name in ("n", "m", "f", "d")}


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Any]]:
    """Return the columns, the rows, and the ids that meet each condition, of the table in a directory."""
    try:
        pyspark, jars = older_pyspark(), fetch("lakehouse4") / "lib"
        java = choose_java(os.environ)
    except (ServerUnavailable, EnvironmentProblem) as reason:
        pytest.skip(str(reason))
    folder = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.jars": ",".join(map(str, sorted(jars.glob("*.jar")))),
        "spark.driver.extraJavaOptions": SHORT_RUN,
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.datetime.java8API.enabled": "true",
    }
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    environ |= {
        "JAVA_HOME": java.home_for_spark(folder),
        "PYTHONPATH": f"{pyspark}{os.pathsep}{PYTHONPATH}",
        "TZ": "UTC",
    }

    line, log = [sys.executable, "-c", CODE, json.dumps(settings)], folder / "spark.log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            line, env=environ, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        )

    def ask(target: Path, *conditions: str, statements: Sequence[str] = ()) -> Any:
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps([str(target), conditions, statements]) + "\n")
        process.stdin.flush()
        assert "done\n" in process.stdout, log.read_text()[-4000:]
        return json.loads((target / "found.json").read_text())

    yield ask
    try:
        process.communicate(timeout=60)
    finally:
        process.kill()


@pytest.mark.parametrize("kind", ["orc", "parquet"])
def test_every_type_and_deletes_and_partitions(kind: str, read: Callable[..., Any], tmp_path: Path) -> None:
    table, target = tmp_path / "t", tmp_path / "copy"
    settings = WriterSettings(stride=1000, bloom_columns=("s", "i8"))
    for seed, part in enumerate(("part=a %3D b", "part=__HIVE_DEFAULT_PARTITION__")):
        events = acid_batch(batch_of(seed), write_id=1)
        path = table / part / "delta_0000001_0000001_0000" / "bucket_00000"
        write_acid(path, events, row=KINDS, settings=settings, calendar=2)
        write_deletes(table / part, 2, 1, range(0, ROWS, 7), row=KINDS)
    acidctl.migrate(table, target, assume_committed=0, format=kind)
    conditions = [
        "i8 > 100",
        "m < 0",
        "c = 'ab'",
        "s = '日本'",
        "i1 = 7",
        "f is null",
        "b",
        "d <= 1e10",
        "part = 'a = b'",
    ]
    done = acidctl.migrate(table, target, assume_committed=0, catch_up=True, prove="spark")
    statement = done.statements.split(";\n\n")[1].rstrip(";\n")
    statements = [statement, statement.replace(" IS DISTINCT FROM ", " IS NOT DISTINCT FROM ")]
    columns, rows, *found, differing, same = read(target, *conditions, statements=statements)
    assert differing == []
    assert len(same) > len(columns)
    expected = acidctl.open_table(table).scan().to_table()
    assert columns == expected.column_names
    ours = sorted((comparable(row) for row in expected.to_pylist()), key=lambda row: row["id"])
    theirs = sorted((comparable(row) for row in rows), key=lambda row: row["id"])
    assert len(ours) == len(theirs)
    for mine, of_spark in zip(ours, theirs, strict=True):
        assert mine == of_spark
    for condition, ids in zip(conditions, found, strict=True):
        wanted = acidctl.open_table(table).scan(["id"], where=condition.replace("c = 'ab'", "c = 'ab   '"))
        assert ids == sorted(wanted.to_table()["id"].to_pylist()), condition


def test_conditions_at_the_bounds_of_parquet_files(read: Callable[..., Any], tmp_path: Path) -> None:
    """Each value is found by itself: also days before 1582-10-15, for which Parquet is chosen, and NaN above all."""
    kinds = {
        "b": "boolean", "i1": "tinyint", "i8": "bigint", "f": "float", "d": "double", "s": "string", "day": "date",
        "t": "timestamp",
    }  # fmt: skip
    row = row_of(
        [
            ("id", OrcType("int")), *((name, OrcType(kind)) for name, kind in kinds.items()),
            ("c", OrcType("char", max_length=5)), ("m", OrcType("decimal", precision=9, scale=2)),
            ("n", OrcType("decimal", precision=38, scale=10)), ("q", row_of([("x", OrcType("int"))])),
        ]
    )  # fmt: skip
    values: dict[str, list[Any]] = {
        "b": [False, True, None, True],
        "i1": [-128, 127, 0, None],
        "i8": [-(1 << 63), (1 << 63) - 1, 0, None],
        "f": [-0.5, 0.0, None, 1.5],
        "d": [float("-inf"), float("nan"), -0.0, 1e300],
        "s": ["", "a" * 40, "日本", "\U0010ffff" * 20],
        "day": [date(1, 1, 1), date(1582, 10, 4), date(1970, 1, 1), date(9999, 12, 31)],
        "t": [datetime(1, 1, 1), datetime(1582, 10, 14, 23, 59, 59, 999999), datetime(1969, 12, 31, 23), None],
        "c": ["", "é", "abcde", None],
        "m": [Decimal("-9999999.99"), Decimal("9999999.99"), Decimal(0), None],
        "n": [Decimal(-(10**27)), Decimal(10**27), Decimal("0.0000000001"), None],
        "q": [{"x": -7}, {"x": 7}, None, {"x": None}],
    }
    for at in range(4):
        events = acid_batch(
            pa.RecordBatch.from_arrays(
                [pa.array([at], pa.int32())]
                + [arrow_array(values[name][at], kind) for name, kind in list(row.fields())[1:]],
                names=list(row.names),
            ),
            at,
            write_id=at + 1,
        )
        write_acid(tmp_path / "t" / f"delta_{at + 1:07}_{at + 1:07}_0000" / "bucket_00000", events, row=row, calendar=2)
    done = acidctl.migrate(tmp_path / "t", tmp_path / "copy", assume_committed=0)
    assert done.format == "parquet"
    wanted = {
        f"{name} = {literal(value)}": [at for at, other in enumerate(column) if other == value]
        for name, column in values.items()
        for value in column
        if value is not None and value == value and name != "q"
    }
    wanted |= {
        "d > 1e301": [1], "d = double('NaN')": [1], "d <= 0.0": [0, 2], "q.x = 7": [1], "q.x < 0": [0],
        "q is null": [2], "day < date'1582-10-15'": [0, 1], "t >= timestamp'1582-10-14 23:59:59.999999'": [1, 2],
        "s > 'b'": [2, 3], "t is null": [3], "b is null": [2],
    }  # fmt: skip
    _, rows, *found = read(tmp_path / "copy", *wanted)
    assert len(rows) == 4
    assert dict(zip(wanted, found, strict=True)) == wanted


def arrow_array(value: Any, kind: OrcType) -> pa.Array:
    made = arrow_type(kind)
    if pa.types.is_timestamp(made) and value is not None:
        return widened(pa.array([value], pa.timestamp("us")))
    return pa.array([value], made)


def literal(value: Any) -> str:
    """A value in Spark's SQL."""
    if isinstance(value, datetime):
        return f"timestamp'{value.isoformat(' ')}'"
    if isinstance(value, date):
        return f"date'{value.isoformat()}'"
    if isinstance(value, float):
        return f"double('{value}')"
    return repr(value) if isinstance(value, str) else str(value)
