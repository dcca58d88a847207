"""A table that is created: what the metastore is asked for, and what is refused before it is asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.command_line import Result
from support.files.acid_files import inserts, write_acid
from support.metastore.fake_hive import FakeHive

import acidctl
from acidctl.base.errors import AcidctlError, ConflictError, ExitStatus, NotFoundError, RefusedError, UsageProblem
from acidctl.metastore import interface as wire
from acidctl.verbs.writing.create import TableCreated
from acidctl.verbs.writing.writable_table import WritableTable

Run = Callable[..., Result]


@pytest.fixture(params=[3, 4], ids=["hive-3", "hive-4"])
def hive(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FakeHive]:
    place = f"file:{tmp_path}"
    with FakeHive(request.param, config={"hive.stats.autogather": "false"}, remembers=True) as fake:
        fake.databases["db"] = wire.Database("db", place, managed_location=place if request.param == 4 else None)
        yield fake


@pytest.fixture
def table(hive: FakeHive) -> WritableTable:
    return acidctl.Hive(hive.address).table("db.t")


@pytest.fixture
def run(hive: FakeHive, acidctl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    return lambda *words: acidctl("create", "hive:db.T", *words, f"--metastore={hive.address}")


def described(created: TableCreated) -> tuple[Any, ...]:
    made = created.table
    columns = [(one.name, one.type) for one in (*made.columns, *made.partition_keys)]
    return columns, made.buckets, made.bucket_columns, made.stored_as.format


def test_rows_can_be_written_to_it_at_once(table: WritableTable, hive: FakeHive, tmp_path: Path) -> None:
    columns = "Id BIGINT, `a b` char(3), price decimal"
    made = table.create(columns, partitioned_by="day date", clustered_by="ID", buckets=2)
    types = [("id", "bigint"), ("a b", "char(3)"), ("price", "decimal(10,0)"), ("day", "date")]
    assert described(made) == (types, 2, ("id",), "ORC")
    table.insert(pa.table({"id": [1], "a b": ["x"], "price": [Decimal(3)], "day": ["2026-11-20"]}))
    table.update("`a b` = 'y'", "id = 1")
    rows = acidctl.open_table("hive:db.t", metastore=hive.address).scan().to_table().to_pylist()
    assert [(row["id"], row["a b"]) for row in rows] == [(1, "y  ")]
    assert (tmp_path / "t" / "day=2026-11-20").is_dir()


def test_hive_4_claims_statistics_of_an_empty_table_and_hive_3_none(table: WritableTable, hive: FakeHive) -> None:
    hive.config["hive.stats.autogather"] = "TRUE"
    table.create("b int, a int")
    parameters = dict(hive.created[0].parameters)
    accurate = {"BASIC_STATS": "true", "COLUMN_STATS": {"a": "true", "b": "true"}}
    assert json.loads(parameters.pop("COLUMN_STATS_ACCURATE", "null")) == (accurate if hive.version == 4 else None)
    assert (parameters.get("numRows"), parameters["bucketing_version"]) == ("0" if hive.version == 4 else None, "2")
    table.insert(pa.table({"a": [1]}))
    known = hive.tables["db", "t"].parameters
    assert known.get("COLUMN_STATS_ACCURATE") == ('{"BASIC_STATS":"true"}' if hive.version == 4 else None)
    assert known.get("numRows") == ("1" if hive.version == 4 else None)


def test_a_plan_creates_nothing_and_a_yes_does(run: Run, hive: FakeHive, tmp_path: Path) -> None:
    words = ("--schema", "id int", "--comment", "it's", "--property", "k=v", "--type", "insert_only")
    planned = run(*words, "--stored-as", "parquet", "-n", "-o", "json").one()
    assert (planned["result"], planned["directory"], planned["type"], planned["format"]) == (
        "planned", f"file:{tmp_path}/t", "insert-only", "Parquet",
    )  # fmt: skip
    assert run(*words).status == ExitStatus.REFUSED, "nobody can be asked"
    assert (hive.created, (tmp_path / "t").exists()) == ([], False)
    done = run(*words, "--yes", "-o", "json")
    assert (done.status, done.json()[-1]["result"]) == (0, "created")
    parameters = {"transactional": "true", "transactional_properties": "insert_only", "comment": "it's", "k": "v"}
    assert parameters.items() <= hive.created[0].parameters.items()


def test_an_existing_table_is_an_error_unless_it_may_exist(run: Run, hive: FakeHive) -> None:
    assert run("--schema", "id int", "--yes").status == 0
    assert run("--schema", "id int", "--yes").status == ExitStatus.CONFLICT
    again = run("--schema", "id int", "--yes", "--if-not-exists", "-o", "json")
    assert (again.status, again.one()["result"]) == (0, "nothing-to-do")
    assert "differs" not in again.err
    assert "differs" in run("--schema", "id string", "--if-not-exists", "--dry-run").err
    assert len(hive.created) == 1


def test_a_table_that_somebody_creates_meanwhile_is_an_error_unless_it_may_exist(
    table: WritableTable, hive: FakeHive, tmp_path: Path
) -> None:
    def somebody() -> None:
        hive.table("db", "t", str(tmp_path / "theirs"))

    call = "create_table_req" if hive.version == 4 else "create_table"
    hive.before[call] = somebody
    with pytest.raises(ConflictError):
        table.create("id int")
    del hive.tables["db", "t"]
    hive.before[call] = somebody
    assert table.create("id int", if_not_exists=True).is_other
    assert not hive.created


def test_a_file_gives_the_columns(run: Run, table: WritableTable, hive: FakeHive, tmp_path: Path) -> None:
    schema = pa.schema({
        "Id": pa.uint32(), "day": pa.date32(), "s": pa.struct({"x": pa.list_(pa.decimal128(5, 2))}),
        "m": pa.map_(pa.large_string(), pa.uint64()), "d": pa.dictionary(pa.int8(), pa.string()),
        "t": pa.timestamp("us"),
    })  # fmt: skip
    pq.write_table(schema.empty_table(), tmp_path / "f.parquet")
    columns = [
        ("id", "bigint"), ("s", "struct<x:array<decimal(5,2)>>"), ("m", "map<string,decimal(20,0)>"), ("d", "string"),
        ("t", "timestamp"), ("day", "date"),
    ]  # fmt: skip
    assert run("--like", "f.parquet", "--partitioned-by", "DAY date", "--yes").status == 0
    assert [
        (c["name"], c["type"]) for c in run("--like", "f.parquet", "--if-not-exists", "-o", "json").one()["columns"]
    ]
    del hive.tables["db", "t"]
    assert described(table.create(schema, partitioned_by="day date"))[0] == columns
    write_acid(tmp_path / "bucket_00000", *inserts(1, (1, "x")))
    del hive.tables["db", "t"]
    assert run("--like", "bucket_00000", "--yes").status == 0
    assert [one.name for one in hive.created[-1].storage.columns] == ["a", "b"]  # type: ignore[union-attr]


UNUSABLE: list[tuple[str, dict[str, Any]]] = [
    ("", {}), ("id", {}), ("id itn", {}), ("id int,", {}), ("id int comment 'x'", {}), ("id int, ID string", {}),
    ("row__id int", {}), ("`a.b` int", {}), ("`a,b` int", {}), ("`` int", {}), ("`a\n` int", {}), ("c char(256)", {}),
    ("v varchar(65536)", {}), ("v varchar(0)", {}), ("u uniontype<int,string>", {}), ("s struct<a:int,A:int>", {}),
    ("t timestamp with local time zone", {}), ("m map<array<int>,int>", {}), ("d decimal(39,0)", {}),
    ("id int", {"partitioned_by": "id int"}), ("id int, x int", {"partitioned_by": "day float"}),
    ("id int", {"partitioned_by": "day array<int>"}), ("id int", {"partitioned_by": "day"}),
    ("id int", {"clustered_by": "id"}), ("id int", {"buckets": 4}), ("id int", {"clustered_by": "x", "buckets": 4}),
    ("id int", {"clustered_by": ("id", "ID"), "buckets": 4}), ("b binary", {"clustered_by": "b", "buckets": 4}),
    ("id int", {"clustered_by": "id", "buckets": 4097}), ("id int", {"stored_as": "parquet"}),
    ("id int", {"type": "insert-only"}), ("id int", {"stored_as": "avro"}), ("id int", {"location": "here"}),
    ("id int", {"location": "file:///a/../b"}), ("id int", {"location": "file:///"}), ("id int", {"location": "s3://b"}),
    ("id int", {"location": "/a\nb"}), ("id int", {"properties": {"TRANSACTIONAL": "false"}}),
    ("id int", {"properties": {"EXTERNAL": "TRUE"}}), ("id int", {"properties": {"numRows": "7"}}),
    ("id int", {"properties": {"orc.compress": "best"}}), ("id int", {"properties": {"orc.encrypt": "k:id"}}),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "definition"), UNUSABLE)
def test_what_hive_or_acidctl_could_not_use_is_refused(
    table: WritableTable, hive: FakeHive, schema: str, definition: dict[str, Any]
) -> None:
    with pytest.raises(UsageProblem) as refusal:
        table.create(schema, **definition)
    assert refusal.value.what
    assert not hive.created


@pytest.mark.parametrize(
    "kind", [pa.timestamp("us", "UTC"), pa.time64("us"), pa.duration("s"), pa.null(), pa.decimal256(60)]
)
def test_types_that_hive_lacks_are_refused(table: WritableTable, kind: pa.DataType) -> None:
    with pytest.raises(UsageProblem, match=r"column x\.y"):
        table.create(pa.schema({"x": pa.struct({"y": kind})}))


def test_a_schema_of_another_kind_is_refused(table: WritableTable) -> None:
    with pytest.raises(UsageProblem, match="cannot be read"):
        table.create({"id": "int"})


@pytest.mark.parametrize("name", ["hive:db.a-b", "hive:db.é", f"hive:db.{'x' * 129}", "hive:db.t/day=1", "hive:db.*"])
def test_names_that_are_no_table_are_refused(hive: FakeHive, name: str) -> None:
    with pytest.raises(UsageProblem):
        acidctl.create(name, "id int", metastore=hive.address)
    assert not hive.created


def test_a_database_that_is_missing_is_not_made(hive: FakeHive) -> None:
    with pytest.raises(NotFoundError):
        acidctl.create("hive:elsewhere.t", "id int", metastore=hive.address)


def test_files_in_its_directory_are_refused(table: WritableTable, hive: FakeHive, tmp_path: Path) -> None:
    (tmp_path / "t" / "delta_0000001_0000001_0000").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(RefusedError, match="will not create"):
        table.create("id int")
    with pytest.raises(AcidctlError):
        table.create("id int", location=f"file://{tmp_path}/file")
    with pytest.raises(RefusedError):
        table.create("id int", location=str(tmp_path))
    assert not hive.created
    assert table.create("id int", location=f"{tmp_path}/other/").table.location == f"file:{tmp_path}/other"


def test_the_directory_of_another_table_is_refused(table: WritableTable, hive: FakeHive, tmp_path: Path) -> None:
    hive.table("other", "o", f"file:{tmp_path}/other")
    (tmp_path / "other").mkdir()
    for place in ("other", "other/deep/er"):
        with pytest.raises(RefusedError, match=r"other\.o"):
            table.create("id int", location=f"{tmp_path}/{place}")
    assert table.create("id int", location=f"{tmp_path}/other2").table.location.endswith("/other2")


def test_a_directory_that_the_metastore_chose_itself_is_looked_at_too(
    table: WritableTable, hive: FakeHive, tmp_path: Path
) -> None:
    hive.puts_at = f"file:{tmp_path}/managed"
    (tmp_path / "managed" / "t" / "base_0000001").mkdir(parents=True)
    with pytest.raises(RefusedError, match="managed"):
        table.create("id int")
    assert ("db", "t") not in hive.tables
    assert (tmp_path / "managed" / "t" / "base_0000001").is_dir()
    (tmp_path / "managed" / "t" / "base_0000001").rmdir()
    assert table.create("id int").table.location.endswith("/managed/t")


def test_the_warehouse_of_hive_4_is_not_where_external_tables_are(tmp_path: Path) -> None:
    with FakeHive(4, config={"metastore.warehouse.dir": str(tmp_path / "wh")}) as hive:
        hive.databases["db"] = wire.Database("db", f"file:{tmp_path}/external/db.db")
        planned = acidctl.Hive(hive.address).table("db.t").create("id int", dry_run=True)
        assert planned.table.location == f"file:{tmp_path}/wh/db.db/t"


@pytest.mark.parametrize("kind", ["failed", "lost", "done", "refused", "garbage"])
def test_a_broken_call_is_said_and_asked_once(table: WritableTable, hive: FakeHive, kind: str) -> None:
    hive.fault("create_table_req" if hive.version == 4 else "create_table", kind)
    with pytest.raises(AcidctlError):
        table.create("id int")
    assert sum(call.startswith("create_table") for call in hive.calls) == 1
    assert table.create("id int", if_not_exists=True).location == "hive:db.t"


def test_a_metastore_without_write_ids_is_refused(tmp_path: Path) -> None:
    with FakeHive(2) as hive:
        hive.databases["db"] = wire.Database("db", str(tmp_path))
        with pytest.raises(RefusedError, match="will not create"):
            acidctl.create("hive:db.t", "id int", metastore=hive.address)
