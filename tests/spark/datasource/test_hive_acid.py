"""The Spark data source: what it plans (no Java needed), what Spark reads through it, alone and on a cluster."""

from __future__ import annotations

import datetime
import json
import os
import pickle
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from support.engines.written_by_hive import HIVE23
from support.judge.txns import Txns
from support.paths import PYTHONPATH
from support.spark.cluster import standalone_cluster
from support.spark.source_tables import BIG_DELETES, BIG_ROWS, CITIES, PARTITIONS, write_all
from support.tables import snapshot_of

from acidctl.acid.writeids import ValidWriteIds
from acidctl.base.errors import NotFoundError, StatementConflict, StorageError, UsageProblem
from acidctl.orc.read.wide_timestamps import WideTimestamp
from acidctl.orc.types import OrcType
from acidctl.rows.scan.scan import Scan

pytest.importorskip("pyspark.sql.datasource", reason="PySpark older than 4.0")

from pyspark.sql import datasource as api

from acidctl.spark.datasource.hive_acid import HiveAcidDataSource, HiveAcidError, explain
from acidctl.spark.datasource.load_options import SourceOptions

CODE = "from support.spark import source_scenarios; source_scenarios.main()"
NAMES = ("alltypes_random", "original_files", "update_chain", "streaming_batch")


def hive_cases(names: tuple[str, ...]) -> list[tuple[str, str, str]]:
    """(table, name, write ids) of tables that Hive wrote, under each of their lists."""
    cases = []
    for name in names:
        lists = json.loads((HIVE23 / name / "scenario.json").read_text())["txnlists"]
        cases += [(str(HIVE23 / name / "table"), name, Txns.of_scenario(text).write_ids()) for text in lists]
    return cases


ALL_CASES = hive_cases(tuple(sorted(path.name for path in HIVE23.iterdir() if path.is_dir())))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables."""
    path = tmp_path_factory.mktemp("source")
    write_all(path)
    (path / "cases").write_bytes(pickle.dumps(hive_cases(NAMES)[::4]))
    return path


# --- without Java --------------------------------------------------------------------------------------------------


def load(path: Path | str, filters: tuple[Any, ...] = (), **options: str) -> tuple[Any, list[pa.RecordBatch]]:
    """Partitions and batches, with every value pickled as Spark pickles it."""
    source = HiveAcidDataSource({"path": str(path), **{name.lower(): value for name, value in options.items()}})
    schema = source.schema()
    assert not isinstance(schema, str)
    source = pickle.loads(pickle.dumps(source))
    reader: Any = source.reader(schema)
    assert list(reader.pushFilters(list(filters))) == list(filters)  # Spark applies all of them itself
    shipped = pickle.dumps((source, reader))
    assert len(shipped) < 10_000  # it goes to every task
    partitions = pickle.loads(pickle.dumps(reader.partitions()))
    reader = pickle.loads(shipped)[1]
    return partitions, [batch for partition in partitions for batch in reader.read(partition)]


def stripes_read(partitions: Any) -> int:
    return sum(len(stripes) for one in partitions for work in one.value for stripes in work.only.values())


def expected(table: Path | str, write_ids: ValidWriteIds | None = None) -> list[dict[str, Any]]:
    """acidctl's own rows in the forms that Python gets from Spark."""
    scan = Scan(snapshot_of(table, write_ids), row_id=True)
    rows = []
    for batch in scan.batches():
        columns = [
            [python_form(value, kind) for value in values(column)]
            for column, kind in zip(batch.columns, scan.output_type.children, strict=True)
        ]
        rows += [dict(zip(batch.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]
    return rows


def values(column: pa.Array) -> list[Any]:
    """Python values; timestamps cut to the microseconds that Python and Spark have."""
    if isinstance(column.type, WideTimestamp):
        ticks = [v and v["seconds"] * 1_000_000 + v["nanos"] // 1000 for v in column.storage.to_pylist()]
    elif pa.types.is_timestamp(column.type):
        ticks = [None if value is None else value // 1000 for value in column.cast(pa.int64()).to_pylist()]
    else:
        return list(column.to_pylist())
    epoch = datetime.datetime(1970, 1, 1)
    return [None if tick is None else epoch + datetime.timedelta(microseconds=tick) for tick in ticks]


def python_form(value: Any, kind: OrcType) -> Any:
    """A value of Arrow's in Spark's form; of a union the value alone."""
    if value is None:
        return None
    if kind.kind == "char":
        return value.ljust(kind.max_length)
    if kind.kind == "map":
        return dict(value)
    return value


def without_tags(row: dict[str, Any]) -> dict[str, Any]:
    """A row of Spark's with the value of a union in its place."""
    return {
        name: value[f"field{value['tag']}"] if isinstance(value, dict) and "tag" in value else value
        for name, value in row.items()
    }


def by_id(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: tuple(row["ROW__ID"].values()))


@pytest.mark.sampled(7)
@pytest.mark.parametrize(("table", "name", "write_ids"), ALL_CASES)
@pytest.mark.parametrize("target", ["1", "1g"])
def test_partitions_make_the_whole(table: str, name: str, write_ids: str, target: str) -> None:
    _, batches = load(
        table, rowId="true", snapshot=write_ids.replace("default.t", Path(table).name), targetBytes=target
    )
    wanted = by_id(expected(table, ValidWriteIds.parse(write_ids)))
    found = [without_tags(row) for batch in batches for row in batch.to_pylist()]
    for row in found:
        row |= {name: dict(value) for name, value in row.items() if name == "mp" and value is not None}
    assert by_id(found) == wanted


def test_a_big_bucket_is_shared(folder: Path) -> None:
    partitions, batches = load(folder / "big", targetBytes="200k")
    assert len(partitions) >= 3
    paths = Counter(path for one in partitions for work in one.value for path in work.only)
    assert max(paths.values()) >= 2  # one file, several tasks
    assert sum(batch.num_rows for batch in batches) == BIG_ROWS - BIG_DELETES
    assert max(batch.num_rows for batch in batches) <= 1 << 16
    assert all(len(pickle.dumps(one)) < 3000 for one in partitions)


def test_a_task_gets_only_delete_files_that_may_hit() -> None:
    partitions, _ = load(HIVE23 / "many_deltas" / "table", targetBytes="1")
    listed = [[entry.path for entry in one.value[0].snapshot.listing.entries] for one in partitions]
    assert max(sum(path.startswith("delete_delta") for path in paths) for paths in listed) <= 2
    assert all(sum(path.startswith("delta") for path in paths) == 1 for paths in listed)


def test_statistics_leave_stripes_out(folder: Path) -> None:
    wanted = api.EqualTo(("id",), 7)
    partitions, batches = load(folder / "big", (wanted,), targetBytes="200k")
    assert stripes_read(partitions) == 1 < stripes_read(load(folder / "big", targetBytes="200k")[0]) / 2
    assert sum(batch.num_rows for batch in batches) < BIG_ROWS / 2
    assert sum(pc.sum(pc.equal(batch.column("id"), 7)).as_py() for batch in batches) == 1


def test_a_task_without_a_stripe_reads_nothing(folder: Path) -> None:
    assert load(folder / "big", (api.LessThan(("id",), 0),))[1] == []


@pytest.mark.parametrize(
    ("text", "names"),
    [("a,b", ("a", "b")), (" a , `x,y` ", ("a", "x,y")), ("`a``b`", ("a`b",)), ("x y", ("x y",))],
)
def test_columns_are_split_at_commas(text: str, names: tuple[str, ...]) -> None:
    assert SourceOptions.parse({"path": "p", "columns": text}).columns == names


@pytest.mark.parametrize(
    ("name", "value"),
    [("targetBytes", "0"), ("targetBytes", "x"), ("at", "-1"), ("at", "1.5"), ("rowId", "1"), ("columns", ""),
     ("columns", "a,,b"), ("partitionTypes", "no"), ("paths", "[]"), ("foo", "")],
)  # fmt: skip
def test_option_with_a_bad_value_is_refused(name: str, value: str) -> None:
    with pytest.raises(UsageProblem):
        SourceOptions.parse({"path": "p", name: value})


def test_errors_can_be_explained_whatever_is_around_them() -> None:
    with pytest.raises(HiveAcidError) as caught:
        HiveAcidDataSource({"path": "/no/such\npath"}).schema()
    found = explain(
        RuntimeError(f"Py4J\nTraceback\nacidctl.spark.datasource.hive_acid.HiveAcidError: {caught.value}\n\tat java")
    )
    assert isinstance(found, NotFoundError)
    assert "/no/such" in found.what
    assert found.hint
    assert explain(ValueError("x")) is None
    assert type(explain(RuntimeError("HiveAcidError: [statement-conflict] a lock"))) is StatementConflict
    assert type(explain(RuntimeError("HiveAcidError: [storage] a disk"))) is StorageError


def test_push_down_looks_absent_to_the_check_of_spark(folder: Path) -> None:
    source = HiveAcidDataSource({"path": str(folder / "big")})
    schema = source.schema()
    assert not isinstance(schema, str)
    reader: Any = source.reader(schema)
    assert reader.pushFilters.__func__ is api.DataSourceReader.pushFilters


# --- with Spark ----------------------------------------------------------------------------------------------------


def play(master: str, folder: Path, environ: dict[str, str], timeout: float, *scenarios: str) -> dict[str, Any]:
    target = folder / f"outcomes-{scenarios[0]}"
    run = subprocess.run(
        [sys.executable, "-c", CODE, master, str(folder), str(target), *scenarios],
        check=False,
        env=environ | {"PYTHONPATH": PYTHONPATH},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    return dict(pickle.loads(target.read_bytes()))


def clean_environ() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_", "PYTHON"))}


@pytest.fixture(scope="module")
def outcome(folder: Path) -> dict[str, Any]:
    """What one local session found."""
    scenarios = ("written_by_hive", "sql", "odd", "snapshots", "errors", "changes")
    return play("local[2]", folder, clean_environ(), 900, *scenarios)


@pytest.fixture(scope="module")
def cluster_outcome(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What a driver found on two workers."""
    environ = clean_environ()
    with standalone_cluster(tmp_path_factory.mktemp("cluster"), environ=environ) as cluster:
        yield play(cluster.master, folder, environ, 600, "on_cluster")


def check_sql(found: dict[str, Any], folder: Path) -> None:
    table = pa.Table.from_batches(list(Scan(snapshot_of(folder / "big")).batches()))
    assert found["count"] == table.num_rows == BIG_ROWS - BIG_DELETES
    assert found["partitions"] >= 3
    groups = table.group_by("city").aggregate([("id", "count"), ("id", "sum")]).to_pylist()
    assert {row["city"]: (row["n"], row["s"]) for row in found["by city"]} == {
        row["city"]: (row["id_count"], row["id_sum"]) for row in groups
    }
    high = table.filter(pc.field("score") > 100)
    counted = Counter(high["city"].to_pylist())
    least = {row["city"]: row["id_min"] for row in high.group_by("city").aggregate([("id", "min")]).to_pylist()}
    assert {row["land"]: (row["n"], row["least"]) for row in found["join"]} == {
        land: (counted[city], least[city]) for city, land in CITIES if city in counted
    }
    assert found["nothing but a constant"] == 3
    assert found["one column"] == pc.sum(table["id"]).as_py()
    assert found["columns"] == ["day", "id"]


@pytest.mark.spark
def test_spark_reads_what_acidctl_reads(outcome: dict[str, Any]) -> None:
    check_cases(outcome, hive_cases(NAMES)[::4])


@pytest.mark.slow
@pytest.mark.spark
def test_spark_reads_every_case_as_acidctl_does(tmp_path: Path) -> None:
    (tmp_path / "cases").write_bytes(pickle.dumps(hive_cases(NAMES)))
    check_cases(play("local[2]", tmp_path, clean_environ(), 900, "written_by_hive"), hive_cases(NAMES))


def check_cases(outcome: dict[str, Any], cases: list[tuple[str, str, str]]) -> None:
    for table, name, write_ids in cases:
        _, rows = outcome["written_by_hive"][name, write_ids]
        wanted = by_id(expected(table, ValidWriteIds.parse(write_ids)))
        assert by_id([without_tags(row) for row in rows]) == wanted, f"{name} under {write_ids}"


@pytest.mark.spark
def test_every_type_of_hive_has_its_type_of_spark(outcome: dict[str, Any]) -> None:
    schema = next(value[0] for (name, _), value in outcome["written_by_hive"].items() if name == "alltypes_random")
    assert schema == (
        "struct<ROW__ID:struct<writeid:bigint,bucketid:int,rowid:bigint>,t1:tinyint,t2:smallint,t3:int,t4:bigint,"
        "f:float,d:double,b:boolean,s:string,c:string,vc:string,dt:date,ts:timestamp_ntz,de:decimal(10,2),"
        "de2:decimal(38,10),bin:binary,li:array<int>,mp:map<string,bigint>,"
        "st:struct<x:int,y:string,z:array<struct<k:int,v:string>>>,"
        "un:struct<tag:tinyint,field0:int,field1:string,field2:double>>"
    )


@pytest.mark.spark
def test_sql_over_the_source_gives_the_rows(outcome: dict[str, Any], folder: Path) -> None:
    check_sql(outcome["sql"], folder)


def changed(made: Any, after: int, upto: int) -> Counter[Any]:
    """What the written past says: (write id, change, id, value) of each change."""
    rows: Counter[Any] = Counter()
    for write_id in range(after + 1, upto + 1):
        before, now = made.rows_at(write_id - 1), made.rows_at(write_id)
        rows.update((write_id, "delete", *row.values()) for key, row in before.items() if key not in now)
        rows.update((write_id, "insert", *row.values()) for key, row in now.items() if key not in before)
    return rows


@pytest.mark.spark
def test_changes_by_sql_are_those_of_the_written_past(outcome: dict[str, Any]) -> None:
    found = outcome["changes"]
    wanted = changed(found["made"], 1, 4)
    assert Counter((r["_write_id"], r["_change"], r["id"], r["value"]) for r in found["rows"]) == wanted
    assert found["schema"] == "struct<_change:string,_write_id:bigint,id:int,value:string>"
    assert {(r["w"], r["c"]): r["n"] for r in found["sql"]} == Counter(key[:2] for key in wanted.elements())
    assert found["count"] == wanted.total()
    assert Counter(r["id"] for r in found["filtered"]) == Counter(k[2] for k in wanted.elements() if k[1] == "delete")
    assert found["at once"] == found["by name"] == len(found["made"].rows_at(1))


@pytest.mark.spark
def test_changes_with_a_key_have_what_was_and_what_is(outcome: dict[str, Any]) -> None:
    found = sorted(outcome["changes"]["keyed"], key=lambda row: row["_write_id"])
    assert [tuple(row.values()) for row in found] == [
        ("update", 2, {"id": 3, "at": 1}, {"id": 3, "at": 2}),
        ("delete", 3, {"id": 5, "at": 1}, None),
        ("insert", 4, None, {"id": 11, "at": 4}),
        ("update", 5, {"id": 3, "at": 2}, {"id": 3, "at": 5}),
    ]


@pytest.mark.spark
def test_a_copy_is_kept_as_the_documentation_says(outcome: dict[str, Any]) -> None:
    copy, table = outcome["changes"]["copied"]
    assert copy == table == sorted([*((i, 1) for i in (1, 2, 4, 6, 7, 8, 9, 10)), (3, 5), (11, 4)])


@pytest.mark.spark
def test_a_stream_that_stops_and_goes_on_gives_every_change_once(outcome: dict[str, Any]) -> None:
    found = outcome["changes"]
    rows = [row for _, batch in found["batches"] for row in batch]
    told = Counter((r["_write_id"], r["_change"], r["id"], r["value"]) for r in rows)
    assert told == changed(found["made"], 0, found["made"].last)
    assert len([batch for _, batch in found["batches"] if batch]) == 2, "one before and one after the pause"
    assert found["no start"][:2] == (
        "UsageProblem",
        "a stream of hive_acid gives changes, and it is not said from where on",
    )


@pytest.mark.slow
@pytest.mark.spark
def test_filters_never_change_the_rows(folder: Path) -> None:
    found = play("local[2]", folder, clean_environ(), 900, "filters")["filters"]
    for (table, text, _), (rows, _) in found.items():
        assert rows == found[table, text, "false"][0], text
    assert found["big", "id IN (1, 2, 400000, 12345)", "true"][0] == [1, 2, 12345]
    assert found["parts", "land = 'a/b c=d%'", "true"] == ([1, 2], 1)
    assert found["parts", "land IS NULL", "true"] == ([5], 1)
    assert found["parts", "land <> 'x'", "true"] == ([1, 2, 4], 2)
    assert found["parts", "year IN (2019, 2021)", "true"] == ([3, 5], 2)
    assert found["parts", "`day` = DATE '2020-02-29'", "true"] == ([1, 2], 1)


@pytest.mark.spark
def test_partition_columns_are_typed_and_unescaped(outcome: dict[str, Any]) -> None:
    schema, rows = outcome["odd"]["parts"]
    assert schema == "struct<n:int,land:string,year:bigint,day:date>"
    lands = {"a%2Fb c%3Dd%25": "a/b c=d%", "__HIVE_DEFAULT_PARTITION__": None}
    wanted = {
        n: lands.get(land.removeprefix("land="), land.removeprefix("land="))
        for land, _, _, ns in PARTITIONS
        for n in ns
    }
    assert {row["n"]: row["land"] for row in rows} == wanted
    assert {row["n"]: row["year"] for row in rows} == {1: 2020, 2: 2020, 3: 2021, 4: 2020, 5: 2019}
    assert {row["n"]: str(row["day"]) for row in rows if row["n"] in (1, 5)} == {1: "2020-02-29", 5: "None"}
    assert outcome["odd"]["as text"] == "struct<n:int,land:string,year:string,day:string>"
    only = Counter((row["land"], row["year"]) for row in outcome["odd"]["partition columns"])
    assert only == {("a/b c=d%", 2020): 2, ("x", 2021): 1, ("ünder", 2020): 1, (None, 2019): 1}


@pytest.mark.spark
def test_odd_names_and_empty_tables_are_read(outcome: dict[str, Any]) -> None:
    odd = outcome["odd"]
    columns, rows, count = odd["names"]
    assert columns == ["a.b", "row", "x y", "ROW ID"]
    assert rows == [
        {"a.b": 1, "row": "one", "x y": {"p.q": 5, "r s": "deep"}, "ROW ID": "`"},
        {"a.b": 2, "row": None, "x y": None, "ROW ID": "ä"},
    ]
    assert count == 2
    assert odd["field"] == [{"row": "one", "x y.r s": "deep"}, {"row": None, "x y.r s": None}]
    assert odd["empty"] == (0, ["a", "b"], 1)
    assert odd["all deleted"] == (0, ["a"])
    assert odd["wider"] == 1
    assert odd["text"] == [{"line": "a,b"}, {"line": "1,2"}]


@pytest.mark.spark
def test_rows_of_older_schemas_have_null_for_newer_columns(outcome: dict[str, Any]) -> None:
    schema, rows = outcome["odd"]["grown"]
    assert schema.endswith(",a:bigint,b:string,c:array<int>>")
    assert [tuple(row.values())[1:] for row in by_id(rows)] == [
        (1, None, None), (3, None, None), (4, "four", None), (1 << 40, None, [1]),
    ]  # fmt: skip
    assert sorted(row["b"] or "" for row in outcome["odd"]["grown, new only"]) == ["", "", "", "four"]


@pytest.mark.spark
def test_timestamps_of_any_year_are_read(outcome: dict[str, Any]) -> None:
    assert outcome["odd"]["times type"] == "struct<id:int,t:timestamp_ntz,i:timestamp>"
    assert {row["id"]: row["t"] for row in outcome["odd"]["times"]} == {
        0: "2024-02-29 12:00:00.123456",
        1: "1969-12-31 12:00:00.999999",
        2: None,
        10: "9999-12-31 23:59:59.123456",
        11: "0001-01-01 00:00:00",
    }


@pytest.mark.spark
def test_a_data_frame_keeps_its_snapshot(outcome: dict[str, Any]) -> None:
    found = outcome["snapshots"]
    assert (found["before"], found["after"], found["new load"], found["at"]) == (1, 1, 2, 1)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("name", "kind", "what", "hint"),
    [
        ("no such path", "NotFoundError", r"/nowhere", "check the spelling"),
        ("not a table", "UsageProblem", r"base_0000001 is a directory of a location", "give the location"),
        ("two tables", "UsageProblem", r"db holds 2 tables", "give the path of one table"),
        ("no data", "NotFoundError", r"no data file in .*/empty tells the columns", r"spark\.read\.schema"),
        ("no path", "UsageProblem", r"no path and no table is given", "load"),
        ("bad option", "UsageProblem", r"option rowId cannot be 'maybe'", "true or false"),
        ("unknown option", "UsageProblem", r"no option 'snapshots'", "snapshot"),
        ("bad list", "UsageProblem", r"not a list of Hive's: 'nonsense'", "hive.txn.valid.writeids"),
        ("no column", "NotFoundError", r"no column 'idd'", "did you mean id"),
        ("no column in schema", "NotFoundError", r"no column 'idd'", "did you mean id"),
        ("wrong type", "UsageProblem", r"column id of .* cannot be read as string", "cast in SQL"),
        ("history", "HistoryError", r"the rows at write id 1 are gone", "oldest write id that can still be read is 5"),
        ("vanished", "NotFoundError", r"vanishing/delta_0000001_0000001_0000/bucket_00000", ""),
        ("damaged", "BadDataError", r"damaged/delta_0000001_0000001_0000/bucket_00000", "damaged"),
    ],
)
def test_errors_are_told_with_kind_and_hint(
    outcome: dict[str, Any], name: str, kind: str, what: str, hint: str
) -> None:
    found = outcome["errors"][name]
    assert isinstance(found, tuple), found
    assert found[0] == kind
    assert re.search(what, found[1])
    assert re.search(hint, found[3])
    assert found[4] < 2500  # Spark's text around it: a few frames, no wall


@pytest.mark.spark
def test_errors_of_spark_are_not_ours(outcome: dict[str, Any]) -> None:
    assert outcome["errors"]["spark's own"] is None


@pytest.mark.slow
@pytest.mark.spark
def test_sql_on_a_cluster_gives_the_rows_on_every_executor(cluster_outcome: dict[str, Any], folder: Path) -> None:
    found = cluster_outcome["on_cluster"]
    check_sql(found, folder)
    assert len({place for place, _ in found["executors"]}) == 2
    assert all(re.search(r"acidctl-[0-9a-f]{12}\.zip/acidctl/", code) for _, code in found["executors"])
    assert found["handed over"] == (True, None)
