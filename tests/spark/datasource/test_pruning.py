"""Column pruning in Spark: plans read what they use and nothing else, and give the rows that they give without it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from support.engines.written_by_hive import HIVE23
from support.files.acid_files import batch_of, insert, struct, write_acid, write_deletes, write_delta
from support.made.where_model import ADDED, TYPES, Row, condition, random_table

from acidctl.orc.types import OrcType
from acidctl.storage.local.filesystem import LocalFileSystem

pytest.importorskip("pyspark.sql.datasource", reason="PySpark older than 4.0")

from pyspark.sql import functions
from pyspark.sql import types as st

from acidctl.spark.datasource import pruning, register
from acidctl.spark.datasource.hive_acid import HiveAcidDataSource
from acidctl.spark.datasource.reading import ENOUGH_ROWS, joined_batches

EXCLUDED = "spark.sql.optimizer.excludedRules"
SETTINGS = (
    ("spark.sql.adaptive.enabled", "false"),
    ("spark.sql.codegen.wholeStage", "false"),
    ("spark.sql.optimizer.nestedSchemaPruning.enabled", "false"),
    ("spark.sql.python.filterPushdown.enabled", "true"),
    ("spark.sql.execution.arrow.maxRecordsPerBatch", "7"),
    ("spark.sql.autoBroadcastJoinThreshold", "-1"),
    ("spark.sql.planChangeValidation", "true"),
)
PLAIN = [name for name, kind in (TYPES | ADDED).items() if not kind.startswith("struct")]
EXACT = [name for name in PLAIN if name not in ("f", "d")]
QUERIES = 16


# --- without Java --------------------------------------------------------------------------------------------------


def read(table: Path, *fields: tuple[str, st.DataType, dict[str, Any]], **options: str) -> list[dict[str, Any]]:
    """The rows for a schema with the notes of the rule."""
    schema = st.StructType([st.StructField(name, kind, True, {"acidctl": note}) for name, kind, note in fields])
    source = HiveAcidDataSource({"path": str(table), **options})
    source.schema()
    reader: Any = source.reader(schema)
    return [row for one in reader.partitions() for batch in reader.read(one) for row in batch.to_pylist()]


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all reads."""
    sizes: list[int] = []
    real = LocalFileSystem.read_bytes

    def counted(self: LocalFileSystem, *args: Any) -> bytes:
        data = real(self, *args)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(LocalFileSystem, "read_bytes", counted)
    monkeypatch.setattr(LocalFileSystem, "local_path", lambda self, path: None)
    return sizes


def wide_table(table: Path) -> None:
    luck = random.Random("wide")
    rows = [tuple(luck.randbytes(20).hex() for _ in range(20)) for _ in range(3000)]
    kind = struct(**{f"c{n}": OrcType("string") for n in range(20)})
    write_acid(
        table / "delta_0000001_0000001_0000" / "bucket_00000",
        *(insert(1, place, row) for place, row in enumerate(rows)),
        row=kind,
    )


def test_one_column_and_a_count_fetch_few_bytes(tmp_path: Path, fetched: list[int]) -> None:
    wide_table(tmp_path)
    text, number = st.StringType(), st.LongType()
    sizes = []
    for fields in (
        [(f"c{n}", text, {}) for n in range(20)],
        [("c7", text, {})],
        [("_row", st.BooleanType(), {"is": "row"})],
        [("_count", number, {"is": "count"})],
    ):
        fetched.clear()
        rows = read(tmp_path, *fields)
        assert len(rows) == 3000 or rows == [{"_count": 3000}]
        sizes.append(sum(fetched))
    assert sizes[1] < sizes[0] / 10
    assert sizes[2] == sizes[3] < sizes[1] / 2  # tails


def test_tasks_that_read_less_of_a_stripe_get_more_stripes(tmp_path: Path) -> None:
    kind, luck = struct(**{f"c{n}": OrcType("string") for n in range(8)}), random.Random("tasks")
    stripes = [[tuple(luck.randbytes(20).hex() for _ in range(8)) for _ in range(300)] for _ in range(24)]
    write_delta(tmp_path, 1, *(batch_of(kind, *rows) for rows in stripes), row=kind)
    fields = [st.StructField(name, st.StringType()) for name in kind.names]
    count = st.StructField("_count", st.LongType(), True, {"acidctl": {"is": "count"}})
    tasks = []
    for chosen in (fields, fields[:2], fields[:1], [count]):
        source = HiveAcidDataSource({"path": str(tmp_path), "targetbytes": str((1 << 20) + 60_000)})
        tasks.append(len(source.reader(st.StructType(chosen)).partitions()))
    assert tasks[0] > 2 * tasks[1] >= 2 * tasks[2] >= 2 * tasks[3], tasks


def test_tasks_share_what_a_condition_leaves(tmp_path: Path) -> None:
    kind = struct(a=OrcType("int"), b=OrcType("string"))
    for write_id in range(1, 5):
        stripes = [[(write_id * 100 + number, "x" * 50)] * 500 for number in range(6)]
        write_delta(
            tmp_path / "t" / f"p={write_id % 2}", write_id, *(batch_of(kind, *one) for one in stripes), row=kind
        )

    def stripes_of(low: int, high: int) -> list[int]:
        kind = {"column": "a", "type": "integer"}
        where = [{"op": ">=", "values": [str(low)], **kind}, {"op": "<", "values": [str(high)], **kind}]
        source = HiveAcidDataSource({"path": str(tmp_path / "t"), "targetbytes": "1"})
        source.schema()
        note = {"acidctl": {"where": where}}
        reader: Any = source.reader(st.StructType([st.StructField("a", st.IntegerType(), True, note)]))
        tasks = [
            [number for one in task.value for n in one.only.values() for number in n] for task in reader.partitions()
        ]
        rows = [row["a"] for task in reader.partitions() for batch in reader.read(task) for row in batch.to_pylist()]
        assert set(rows) == {w * 100 + n for w in range(1, 5) for n in range(6) if low <= w * 100 + n < high}
        return sorted(number for task in tasks for number in task)

    assert stripes_of(0, 1000) == sorted([*range(6)] * 4)
    assert stripes_of(102, 104) == [2, 3]
    assert stripes_of(205, 301) == [0, 5]
    assert stripes_of(700, 800) == []


@pytest.mark.parametrize("sizes", [[], [1] * 3000, [5000] * 3, [700] * 30, [1, 9000, 2, 2]])
def test_small_batches_are_joined_after_the_first(sizes: list[int]) -> None:
    firsts = list(accumulate(sizes, initial=0))
    made = [
        pa.RecordBatch.from_pydict({"a": range(first, first + size)})
        for first, size in zip(firsts[:-1], sizes, strict=True)
    ]
    found = list(joined_batches(iter(made)))
    assert [value for batch in found for value in batch["a"].to_pylist()] == list(range(sum(sizes)))
    assert [batch.num_rows for batch in found[:1]] == sizes[:1]
    assert all(size in sizes or size < 2 * ENOUGH_ROWS for size in (batch.num_rows for batch in found))
    assert len(found) <= 12 + sum(sizes) // ENOUGH_ROWS


def test_wide_batches_are_left_alone() -> None:
    made = [pa.RecordBatch.from_pydict({"a": ["x" * (1 << 18)]}) for _ in range(4)]
    assert [batch.num_rows for batch in joined_batches(iter(made))] == [1] * 4


def test_a_count_leaves_out_deleted_rows(tmp_path: Path) -> None:
    write_acid(tmp_path / "delta_0000001_0000001_0000" / "bucket_00000", *(insert(1, n) for n in range(9)))
    write_deletes(tmp_path, 2, 1, [3, 4])
    write_deletes(tmp_path, 3, 1, [5])
    count = "_count", st.LongType(), {"is": "count"}
    assert read(tmp_path, count) == [{"_count": 6}]
    assert read(tmp_path, count, at="2") == [{"_count": 7}]
    assert len(read(tmp_path, ("_row", st.BooleanType(), {"is": "row"}), at="2")) == 7


def test_a_condition_is_on_the_data_column_that_hides_a_partition_column(tmp_path: Path) -> None:
    write_acid(tmp_path / "t" / "a=7" / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (3, "x")))
    for value, rows in (("3", [{"a": 3}]), ("7", [])):
        where = {"op": "=", "column": "a", "type": "integer", "values": [value]}
        assert read(tmp_path / "t", ("a", st.IntegerType(), {"where": [where]})) == rows


def test_a_condition_of_which_a_part_is_unknown_leaves_nothing_out(tmp_path: Path) -> None:
    write_acid(tmp_path / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (3, "x")))
    missed, unknown = ({"op": "=", "column": name, "type": "integer", "values": ["9"]} for name in ("a", "gone"))
    both = {"op": "and", "parts": [{**missed, "values": ["3"]}, unknown]}
    for where, rows in (
        (missed, []),
        ({"op": "or", "parts": [missed, unknown]}, [{"a": 3}]),
        ({"op": "not", "parts": [both]}, [{"a": 3}]),
    ):
        assert read(tmp_path, ("a", st.IntegerType(), {"where": [where]})) == rows


def test_a_session_without_java_keeps_every_plan() -> None:
    assert "no attribute" in str(pruning.install_rule(SimpleNamespace()))
    assert "no attribute" in str(pruning.why_not_pruned(SimpleNamespace()))


# --- with Spark ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def session(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The session that all tests share, with the source, the rule, and tables under two names each: acid_x, flat_x."""
    register(spark)
    folder = tmp_path_factory.mktemp("pruning")
    luck = random.Random("pruning")
    for part, land in enumerate(("x", "__HIVE_DEFAULT_PARTITION__")):
        table = folder / "parts" / f"land={land}" / f"year={2020 + part}"
        rows, _ = random_table(luck, table)
        write_deletes(table, 3, 1 + part, [0, 7, *range(60, 80)])
    session = SimpleNamespace(spark=spark, folder=folder, rows=rows)
    both(session, "t", folder / "parts", targetBytes="1100k")
    both(session, "ids", folder / "parts", rowId="true")
    return session


def both(session: Any, name: str, table: Path, **options: str) -> None:
    """Views of one table: through the source, and of a flat copy that was made without the rule."""
    acid = session.spark.read.format("hive_acid").options(**options).load(str(table))
    copy = str(session.folder / f"flat-{name}")
    with settings(session.spark, (EXCLUDED, pruning.RULE)):
        assert "reads" not in plan_of(acid.selectExpr("i"))
        acid.write.parquet(copy)
    acid.createOrReplaceTempView(f"acid_{name}")
    session.spark.read.parquet(copy).createOrReplaceTempView(f"flat_{name}")


class settings:  # noqa: N801 - used like a function
    """Settings of a session, for a while."""

    def __init__(self, spark: Any, *pairs: tuple[str, str]) -> None:
        self.spark, self.pairs = spark, pairs

    def __enter__(self) -> None:
        for name, value in self.pairs:
            self.spark.conf.set(name, value)

    def __exit__(self, *args: object) -> None:
        for name, _ in self.pairs:
            self.spark.conf.unset(name)


def sql(session: Any, text: str, kind: str) -> Any:
    return session.spark.sql(re.sub(r"@(\w+)", rf"{kind}_\1", text))


def rows_of(frame: Any) -> list[str]:
    return sorted(map(repr, frame.collect()))


def plan_of(frame: Any) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT * FROM @t", r"reads 18 of 18 columns"),
        ("SELECT i FROM @t", r"reads 1 of 18 columns RuntimeFilters"),
        ("SELECT count(*) FROM @t", r"reads 0 of 18 columns, counts rows"),
        ("SELECT count(1) + 1, count('x') FROM @t HAVING count(*) > 2", r"reads 0 of 18 columns, counts rows"),
        ("SELECT count(*) FROM @t GROUP BY land", r"reads 1 of 18 columns R"),
        ("SELECT count(*), max(1) FROM @t", r"reads 0 of 18 columns R"),
        ("SELECT count(DISTINCT 1) FROM @t", r"reads 0 of 18 columns R"),
        ("SELECT count(*) FILTER (WHERE i > 3) FROM @t", r"reads 1 of 18 columns R"),
        ("SELECT st.x FROM @t", r"hive_acid\[st\.x#\d+\].* reads 1 of 18 columns"),
        ("SELECT st.x, st FROM @t", r"hive_acid\[st#\d+\].* reads 1 of 18 columns"),
        ("SELECT count(*) FROM @t WHERE st.y = 'w1' AND b > 3", r"reads 2 of 18 columns, leaves out by .*b#\d+L > 3"),
        ("SELECT i FROM @t WHERE land IN ('x', 'y')", r"leaves out by land#\d+ IN \(x,y\)"),
        ("SELECT i FROM @t WHERE rand() < 0.5 AND i = 5", r"reads 1 of 18 columns R"),
        ("SELECT 1 FROM @t LIMIT 3", r"hive_acid\[_row#\d+\].* reads 0 of 18 columns"),
        ("SELECT ROW__ID.rowid FROM @ids", r"hive_acid\[ROW__ID\.rowid#\d+L\].* reads 1 of 19 columns"),
    ],
)
def test_a_plan_says_what_it_reads(session: Any, text: str, said: str) -> None:
    assert re.search(said, plan_of(sql(session, text, "acid"))), plan_of(sql(session, text, "acid"))
    if "rand" not in text and "LIMIT" not in text:
        assert rows_of(sql(session, text, "acid")) == rows_of(sql(session, text, "flat"))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.i, b.s FROM @t a JOIN @t b ON a.b = b.b AND a.land <=> b.land WHERE a.i > 10",
        "SELECT a.*, b.i FROM @t a LEFT JOIN (SELECT i, min(dt) m FROM @t GROUP BY i) b ON a.i = b.i AND a.dt = b.m",
        "SELECT i FROM @t UNION ALL SELECT t FROM @t UNION ALL SELECT count(*) FROM @t",
        "SELECT i, (SELECT max(b) FROM @t) FROM @t WHERE i IN (SELECT t FROM @t WHERE ok)",
        "SELECT i FROM @t a WHERE NOT EXISTS (SELECT 1 FROM @t b WHERE b.t = a.i AND b.land = 'x')",
        "SELECT i, row_number() OVER (PARTITION BY land ORDER BY i, b, s, v, c, dt, ts, de) FROM @t",
        "WITH w AS (SELECT i, st.x x FROM @t WHERE dt > DATE '1970-02-01') SELECT * FROM w a JOIN w b ON a.i = b.x",
        "SELECT land, year, grouping(year), count(*), sum(de) FROM @t GROUP BY ROLLUP(land, year)",
        "SELECT land, year FROM @t WHERE year = 2021",
        "SELECT count(*) FROM @t WHERE land IS NULL",
        "SELECT count(*) FROM (SELECT * FROM @t WHERE year = 2020 LIMIT 100)",
        "SELECT x FROM @t LATERAL VIEW explode(array(i, t)) AS x",
        "SELECT * FROM (SELECT ok, st.x FROM @t) PIVOT (sum(x) FOR ok IN (true, false))",
        "SELECT count(*) FROM @t a CROSS JOIN (SELECT 1 FROM @t LIMIT 2)",
        "SELECT st.x, count(*) FROM @t WHERE st.y IS NOT NULL OR st.x > 5 GROUP BY st.x",
        "SELECT ROW__ID.writeid, ROW__ID.bucketid & 1, count(*), max(ROW__ID) FROM @ids GROUP BY 1, 2",
        "SELECT ROW__ID, i FROM @ids WHERE ROW__ID.rowid < 50 ORDER BY ROW__ID LIMIT 20",
        "SELECT i, i, i AS j FROM @t DISTRIBUTE BY b",
        "SELECT count(*), count(i), count(DISTINCT t), any_value(land) IS NULL FROM @t WHERE false",
        "SELECT i FROM @t TABLESAMPLE (100 PERCENT) WHERE NOT ok",
        "SELECT de FROM @t WHERE i NOT IN (1, 5, NULL) OR de BETWEEN 1.5 AND 20 OR c = 'w1    ' OR s LIKE 'w%'",
    ],
)
def test_a_query_gives_the_rows_of_a_flat_copy(session: Any, text: str) -> None:
    assert rows_of(sql(session, text, "acid")) == rows_of(sql(session, text, "flat"))


def random_query(luck: random.Random, rows: list[Row]) -> str:
    """A query over the table `t`, whose result depends on nothing but the rows."""
    types = {name: kind for name, kind in (TYPES | ADDED).items() if not kind.startswith("struct")}

    def where() -> str:
        return condition(luck, types, rows, 2).sql.replace("==", "=")

    def some(names: list[str], least: int = 1) -> list[str]:
        return luck.sample(names, luck.randint(least, 3))

    chosen, keys = some([*PLAIN, "st", "land", "year"]), some([*EXACT, "land"])
    made: list[Callable[[], str]] = [
        lambda: f"SELECT {', '.join(chosen)} FROM @t WHERE {where()}",
        lambda: f"SELECT count(*) FROM @t WHERE {where()}",
        lambda: f"SELECT {', '.join(keys)}, count(*), max(st.y), sum(big) FROM @t GROUP BY {', '.join(keys)}",
        lambda: f"SELECT DISTINCT {', '.join(keys)} FROM @t WHERE {where()} OR {where()}",
        lambda: f"SELECT {', '.join(keys)} FROM @t ORDER BY {', '.join(keys)} LIMIT {luck.randint(1, 30)}",
        lambda: f"SELECT a.{keys[0]}, b.st.x FROM @t a JOIN @t b ON a.i = b.i AND a.b = b.b WHERE a.{where_of_one()}",
        lambda: f"SELECT {keys[0]} FROM @t WHERE {where()} INTERSECT SELECT {keys[0]} FROM @t WHERE {where()}",
        lambda: f"SELECT s.{keys[0]} FROM (SELECT *, i + 1 AS more FROM @t WHERE {where()}) s WHERE s.more > 3",
    ]

    def where_of_one() -> str:
        return f"{luck.choice(EXACT)} IS NOT NULL"

    return luck.choice(made)()


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(QUERIES))
def test_random_queries_give_the_rows_of_a_flat_copy(session: Any, seed: int) -> None:
    luck = random.Random(f"query {seed}")
    text = random_query(luck, session.rows)
    with settings(session.spark, *luck.sample(SETTINGS, luck.randint(0, 3)), ("spark.sql.ansi.enabled", "false")):
        assert rows_of(sql(session, text, "acid")) == rows_of(sql(session, text, "flat")), text


@pytest.mark.slow
@pytest.mark.spark
def test_frames_built_in_python_are_pruned_too(session: Any) -> None:
    acid, flat = session.spark.table("acid_t"), session.spark.table("flat_t")
    for one in (acid, flat):
        one.select("i", "land").cache()  # a plan like it, later, reads from memory
    found = [
        (
            frame.count(),
            frame.select("i").count(),
            rows_of(frame.select("i", "land").where("i > 5")),
            rows_of(frame.alias("x").join(frame.alias("y"), "i").select("x.b", "y.b").where("x.ok")),
            rows_of(frame.toDF(*(f"c{n}" for n in range(len(frame.columns)))).select("c2", "c0")),
            rows_of(frame.withColumn("i", frame.i + 1).drop("s").select("i", "st.x")),
            frame.rdd.map(lambda row: row.i or 0).sum(),
        )
        for frame in (acid, flat)
    ]
    session.spark.catalog.clearCache()
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    "options", [{}, {"rowId": "true"}, {"at": "2"}, {"columns": "st.x,i,LAND"}, {"partitionTypes": "string"}]
)
def test_options_mean_the_same_with_the_rule(session: Any, options: dict[str, str]) -> None:
    frame = session.spark.read.format("hive_acid").options(**options).load(str(session.folder / "parts"))
    first, last = (f"`{name}`" for name in (frame.columns[0], frame.columns[-1]))
    chosen = [
        frame,
        frame.selectExpr(last),
        frame.where(f"{last} IS NOT NULL").selectExpr(first),
        frame.selectExpr("count(*)"),
    ]
    with_rule = [rows_of(one.selectExpr("*")) for one in chosen]
    with settings(session.spark, (EXCLUDED, pruning.RULE)):
        assert with_rule == [rows_of(one.selectExpr("*")) for one in chosen]


@pytest.mark.slow
@pytest.mark.spark
def test_a_schema_of_the_users_own_is_pruned(session: Any) -> None:
    read = session.spark.read.format("hive_acid")
    frame = read.schema("I bigint, st struct<x:int,y:string>, late bigint").load(str(session.folder / "parts"))
    wanted = session.spark.table("flat_t")
    assert rows_of(frame.selectExpr("st.x")) == rows_of(wanted.selectExpr("st.x"))
    assert frame.count() == wanted.count()
    assert "reads 1 of 3 columns" in plan_of(frame.where("I = 7").selectExpr("i"))
    nothing = read.schema("a int").load(str(session.folder / "empty"))
    (session.folder / "empty").mkdir(exist_ok=True)
    assert (nothing.count(), nothing.selectExpr("1").collect()) == (0, [])


@pytest.mark.slow
@pytest.mark.spark
def test_fields_are_found_whatever_their_names(session: Any) -> None:
    inner = OrcType("struct", children=(OrcType("int"), OrcType("int")), names=("x.y", "z"))
    deep = OrcType("struct", children=(inner,), names=("in",))
    rows = [({"in": {"x.y": 3, "z": 4}},), (None,), ({"in": None},)]
    write_acid(
        session.folder / "odd" / "delta_0000001_0000001_0000" / "bucket_00000",
        *(insert(1, place, row) for place, row in enumerate(rows)),
        row=struct(s=deep),
    )
    frame = session.spark.read.format("hive_acid").load(str(session.folder / "odd"))
    assert rows_of(frame.selectExpr("s.in.z")) == ["Row(z=4)", "Row(z=None)", "Row(z=None)"]
    assert rows_of(frame.selectExpr("s.in.`x.y` AS v")) == ["Row(v=3)", "Row(v=None)", "Row(v=None)"]
    assert rows_of(frame.selectExpr("s.in", "s.in.z").where("in IS NOT NULL")) == ["Row(in=Row(x.y=3, z=4), z=4)"]


@pytest.mark.slow
@pytest.mark.spark
def test_columns_of_all_types_that_hive_wrote_are_the_same_alone(session: Any) -> None:
    frame = session.spark.read.format("hive_acid").load(str(HIVE23 / "alltypes_random" / "table"))
    rows = frame.collect()
    fields = ["st.x", "st.z", "st.z.k", "un.tag", "un.field1", "un", "mp", "li", "bin", "ts"]
    found = frame.groupBy().agg(*(functions.collect_list(functions.struct(name)) for name in fields)).collect()[0]
    assert len(rows) == len(found[0])
    for name, column in zip(fields, found, strict=True):
        path = name.split(".")
        assert sorted(repr(one[0]) for one in column) == sorted(repr(inside(row, path)) for row in rows), name
        alone = frame.selectExpr(f"{name} AS found").collect()
        assert sorted(repr(one.found) for one in alone) == sorted(repr(one[0]) for one in column), name


def inside(value: Any, path: list[str]) -> Any:
    for name in path:
        if isinstance(value, list):
            value = [inside(one, [name]) for one in value]
        elif value is not None:
            value = value[name]
    return value


@pytest.mark.slow
@pytest.mark.spark
def test_the_rule_is_put_in_once_beside_those_of_others(session: Any) -> None:
    experimental = session.spark._jsparkSession.experimental()
    rules = experimental.extraOptimizations()
    register(session.spark)
    assert pruning.install_rule(session.spark) is None
    assert pruning.why_not_pruned(session.spark) is None
    assert experimental.extraOptimizations().size() == rules.size()


@pytest.fixture
def without_rules(session: Any) -> Iterator[Any]:
    experimental = session.spark._jsparkSession.experimental()
    rules = experimental.extraOptimizations()
    setter = getattr(experimental, "extraOptimizations_$eq")
    setter(rules.take(0))
    yield session.spark
    setter(rules)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    ("what", "instead", "why"),
    [("productElementName(i)", "noSuchMethod(i)", "noSuchMethod"), ('"outputSchema"', '"schema"', "its own schema")],
)
def test_where_the_rule_cannot_work_plans_stay_and_the_state_says_why(
    without_rules: Any, session: Any, monkeypatch: pytest.MonkeyPatch, what: str, instead: str, why: str
) -> None:
    # A package of its own: py4j would call the methods of the first class of a name with objects of the second.
    source = (Path(pruning.__file__).parent / "Pruning.java").read_text().replace(what, instead)
    source = source.replace("package acidctl;", "package broken;")
    usual = pruning.java_source
    monkeypatch.setattr(pruning, "java_source", lambda name: source if name == "Pruning.java" else usual(name))
    monkeypatch.setattr(pruning, "RULE", "broken.Pruning")
    register(without_rules)
    frame = session.spark.sql("SELECT i FROM acid_t")
    assert "reads" not in plan_of(frame)
    assert "(Python)" in plan_of(frame)
    assert frame.count() == session.spark.table("flat_t").count()
    assert why in str(pruning.why_not_pruned(without_rules))
