"""The rows of ``hive:db.table`` are those of SELECT at the same moment: in every form, while Hive writes and cleans."""

from __future__ import annotations

import json
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Result
from support.engines.hive_text import asked_for, normal, printed, type_of
from support.engines.hive_values import EDGES, LEAVES, leaves, load, load_leaves, nested
from support.engines.hive_views import Views
from support.engines.real_hive import HiveTable
from support.files.json_text import encode_json_lines
from support.servers.hive_server import HiveServer

import acidctl as package
from acidctl.spark.datasource import register

pytestmark = [pytest.mark.server, pytest.mark.timeout(900), pytest.mark.in_turn("real_hive")]

INSERT_ONLY = "tblproperties('transactional'='true', 'transactional_properties'='insert_only')"
FORMS = {
    "orc": "stored as orc",
    "parquet": "stored as parquet",
    "text": "stored as textfile",
    "delimited": "row format delimited fields terminated by '|' escaped by '\\\\' collection items terminated by '^'"
    " map keys terminated by '~' null defined as 'nil' stored as textfile",
}
TEXTS = ("text", "delimited")
NESTED = {
    "a": "array<int>",
    "aa": "array<array<string>>",
    "m": "map<string,decimal(10,2)>",
    "st": "struct<x:bigint,y:string,d:date,n:decimal(20,5)>",
}
KEYS = {"day": "date", "p": "string"}
PARTS = [("2026-11-25", "a b"), ("2026-11-25", "c/d=e%"), ("1969-12-31", "ü")]


@pytest.fixture
def views(real_hive: HiveServer, acidctl: Callable[..., Result]) -> Views:
    return Views(real_hive, acidctl)


def by_hive(hive: HiveServer, name: str, columns: Mapping[str, str]) -> Counter[tuple[str, ...]]:
    kinds = {column: type_of(kind) for column, kind in columns.items()}
    asked = ", ".join(asked_for(column, kind) for column, kind in kinds.items())
    rows = hive.sql(f"select {asked} from {name}")
    return Counter(tuple(normal(*pair) for pair in zip(kinds.values(), row, strict=True)) for row in rows)


def by_acidctl(rows: list[dict[str, Any]], columns: Mapping[str, str]) -> Counter[tuple[str, ...]]:
    kinds = {column: type_of(kind) for column, kind in columns.items()}
    return Counter(tuple(printed(kind, row[column]) for column, kind in kinds.items()) for row in rows)


def judge(views: Views, name: str, columns: Mapping[str, str]) -> list[dict[str, Any]]:
    """The rows of `cat`, which are Hive's."""
    rows = [json.loads(line) for line in views.ask("cat", f"hive:default.{name}").out.splitlines()]
    ours, hives = by_acidctl(rows, columns), by_hive(views.hive, name, columns)
    missing, more = list((hives - ours).elements()), list((ours - hives).elements())
    for one, other in zip(sorted(missing), sorted(more), strict=False):
        differing = [(column, a, b) for column, a, b in zip(columns, one, other, strict=True) if a != b]
        raise AssertionError(f"{name}: Hive and acidctl differ in {str(differing)[:600]}")
    assert not missing and not more, (name, str(missing)[:300], str(more)[:300])
    return rows


@pytest.fixture
def sources(views: Views) -> tuple[dict[str, str], str]:
    """A text table of every type, made once for a Hive; what is to be selected of it by column, and from it."""
    hive = views.hive
    table = HiveTable(hive, "all_types", LEAVES | NESTED, exists=True)
    rows = leaves(7)
    for row in rows:  # texts with line ends are lines of their own in a text table: these have a test of their own
        for place in (place for place, value in enumerate(row) if isinstance(value, str)):
            row[place] = row[place].translate(dict.fromkeys(map(ord, "\n\r\x01\0"), "-"))
    if ["all_types_nested"] not in hive.sql("show tables"):
        load_leaves(table, "all_types_leaves", rows)
        more = [[row[0], row[1], row[2], row[3], row[5]] for row in nested(8, len(rows), hive)]
        kept = [
            [number, a, aa, m, st and {key: st[key] for key in ("x", "y", "d", "n")}] for number, a, aa, m, st in more
        ]
        load(table, "all_types_nested", {"id": "int", **NESTED}, kept)
    return asked_of_leaves(), "all_types_leaves l join all_types_nested n on l.id = n.id"


def asked_of_leaves() -> dict[str, str]:
    text = "decode(unhex(l.{0}), 'UTF-8')"
    asked = {column: f"cast(l.{column} as {kind})" for column, kind in LEAVES.items()}
    asked |= {"id": "l.id", "s": text.format("s"), "bn": "unhex(l.bn)", "b": "l.b = 'true'", "dt": "l.dt", "ts": "l.ts"}
    asked |= {column: f"cast({text.format(column)} as {LEAVES[column]})" for column in ("c", "v")}
    return asked | {column: f"n.{column}" for column in NESTED}


@pytest.mark.parametrize("form", FORMS)
def test_insert_only_tables_of_every_form_and_type(
    views: Views, sources: tuple[dict[str, str], str], form: str, tmp_path: Path
) -> None:
    hive, name = views.hive, f"only_{form}_parts"
    held = LEAVES | NESTED
    if form in TEXTS:  # acidctl refuses to read the others from text
        held = {column: kind for column, kind in LEAVES.items() if kind != "binary"}
    columns = held | KEYS
    declared, keys = (", ".join(f"{c} {kind}" for c, kind in some.items()) for some in (held, KEYS))
    hive.sql(f"create table {name} ({declared}) partitioned by ({keys}) {FORMS[form]} {INSERT_ONLY}")
    by_column, tables = sources
    asked = ", ".join(by_column[column] for column in held)
    parts = " ".join(f"when {number} then '{p}'" for number, (_, p) in enumerate(PARTS))
    days = " ".join(f"when {number} then '{day}'" for number, (day, _) in enumerate(PARTS))
    if form == "parquet":
        # Hive 3.1 moves older times by the offsets of a calendar that its files do not tell.
        asked = asked.replace("l.ts,", "if(l.ts < '1901-01-01', null, l.ts),")
    hive.sql(
        f"insert into {name} partition (day, p) select {asked}, cast(case l.id % 3 {days} end as date),"
        f" case l.id % 3 {parts} end from {tables}"
    )
    assert len(judge(views, name, columns)) > 15
    nothing = {column: f"cast(null as {kind})" for column, kind in LEAVES.items()}
    some = nothing | {column: f"n.{column}" for column in NESTED} | {"id": "id + 1000"}
    hive.sql(
        f"insert into {name} partition (day='2020-02-29', p='far')"
        f" select {', '.join(some[column] for column in held)} from all_types_nested n where id < 5"
    )
    elsewhere = tmp_path / "elsewhere"
    shutil.move(hive.warehouse / name / "day=2020-02-29" / "p=far", elsewhere)
    hive.sql(f"alter table {name} partition (day='2020-02-29', p='far') set location 'file:{elsewhere}'")
    with hive.aborting():
        hive.sql(
            f"insert into {name} partition (day='2020-02-29', p='far') select * from (select {nothing_of_all(held)}) q"
        )
    rows = judge(views, name, columns)
    assert {row["p"] for row in rows} == {"far", *(p for _, p in PARTS)}
    table = package.open_table(f"hive:default.{name}", metastore=hive.metastore)
    scan = table.scan()
    by_name = [
        json.loads(line)
        for batch in scan.batches_as_read()
        for line in encode_json_lines(batch, scan.output_type).decode().splitlines()
    ]
    assert by_acidctl(by_name, columns) == by_acidctl(rows, columns)
    (far,) = [views.ask("cat", f"hive:default.{name}/day=2020-02-29").out]
    assert len(far.splitlines()) == 5
    hive.sql(f"drop table {name}")


def nothing_of_all(columns: Mapping[str, str]) -> str:
    given = {"a": "array(1)", "aa": "array(array('x'))", "m": "map('k', cast(1 as decimal(10,2)))"}
    given["st"] = (
        "named_struct('x', cast(1 as bigint), 'y', 'z', 'd', cast('2026-01-01' as date), 'n', cast(1 as decimal(20,5)))"
    )
    return ", ".join(f"{given.get(column, f'cast(null as {kind})')} as {column}" for column, kind in columns.items())


@pytest.mark.parametrize("form", TEXTS)
def test_texts_with_what_cuts_fields_are_read_as_hive_reads_them(views: Views, form: str) -> None:
    hive, name = views.hive, f"odd_{form}"
    columns = {"a": "string", "i": "int", "b": "string"}
    declared = ", ".join(f"{column} {kind}" for column, kind in columns.items())
    hive.sql(f"create table {name} ({declared}) {FORMS[form]} {INSERT_ONLY}")
    texts = [
        *(text for text in EDGES["s"] if "\n" not in text),
        "nil",
        "\\N",
        "\\",
        "\\\\",
        "a|b",
        "x^y~z",
        "\\n",
        "tail\\",
        "|",
        "^",
        "~",
        "\\|",
        "a\x02b\x03c",
    ]
    values = ", ".join(f"'{text.encode().hex()}'" for text in texts)
    as_text = "decode(unhex(t), 'UTF-8')"
    hive.sql(f"insert into {name} select {as_text}, 7, {as_text} from (select explode(array({values})) as t) e")
    hive.set("hive.vectorized.execution.enabled", "false")
    judge(views, name, columns)
    hive.sql(f"insert into {name} values ('a\\nb', 7, 'c')")
    assert "read the table with Hive" in views.ask("cat", f"hive:default.{name}", status=4).err
    hive.sql(f"drop table {name}")


@pytest.mark.parametrize("form", TEXTS)
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("array<string>", "array('a')"),
        ("map<string,string>", "map('k', 'v')"),
        ("struct<x:int>", "named_struct('x', 1)"),
        ("binary", "cast('a' as binary)"),
    ],
)
def test_types_that_acidctl_does_not_read_from_text(views: Views, form: str, kind: str, value: str) -> None:
    hive, name = views.hive, f"nested_{form}_{kind[:3]}"
    hive.sql(f"create table {name} (i int, c {kind}) {FORMS[form]} {INSERT_ONLY}")
    hive.sql(f"insert into {name} select * from (select 7 as i, {value} as c) q")
    assert "from text, as its column c is" in views.ask("cat", f"hive:default.{name}", status=4).err
    assert json.loads(views.ask("cat", f"hive:default.{name}", "--columns", "i").out) == {"i": 7}
    hive.sql(f"drop table {name}")


class Writer(threading.Thread):
    """Statements of Hive's, one after the other, and what SELECT gave after each.

    Attributes:
        states: the rows after each step, the first before any.
        begun: how many have been begun.
        failed: what went wrong.
    """

    def __init__(self, hive: HiveServer, name: str, steps: list[Callable[[], object]]) -> None:
        super().__init__(daemon=True)
        self._hive, self._name, self._steps = hive, name, steps
        self.states = [self._select()]
        self.begun = 0
        self.failed: Exception | None = None

    def _select(self) -> Counter[tuple[str, ...]]:
        return Counter(map(tuple, self._hive.sql(f"select id, name from {self._name}")))

    def run(self) -> None:
        try:
            for step in self._steps:
                self.begun += 1
                step()
                self.states.append(self._select())
        except Exception as error:  # noqa: BLE001 - the test asks for it
            self.failed = error


@pytest.mark.parametrize("lock", [False, True], ids=["unlocked", "locked"])
def test_rows_are_those_of_some_moment_while_hive_writes_compacts_and_cleans(views: Views, lock: bool) -> None:
    hive, name = views.hive, f"busy_{int(lock)}"
    if hive.version == 3 and not lock:
        pytest.skip("most of a minute; Hive 4 shows the same")
    hive.sql(f"create table {name} (id int, name string) stored as orc tblproperties('transactional'='true')")
    hive.sql(f"insert into {name} values (1, 'a'), (2, 'b'), (3, 'c')")

    def sql(statement: str) -> Callable[[], object]:
        return lambda: hive.sql(statement.format(name=name))

    def compact() -> None:
        hive.sql(f"alter table {name} compact 'major'")
        hive.round("Worker")

    steps = [
        sql("insert into {name} values (4, 'd'), (5, 'e')"),
        sql("update {name} set name = 'u' where id in (2, 4)"),
        compact,
        lambda: hive.round("Cleaner"),
        sql("delete from {name} where id = 1"),
        sql("insert overwrite table {name} select id + 10, name from {name}"),
        sql("insert into {name} values (6, 'f')"),
        compact,
        lambda: hive.round("Cleaner"),
        lambda: hive.round("Cleaner"),
    ]
    writer = Writer(hive, name, steps)
    address = hive.metastore
    writer.start()
    reads, seen, options = 0, set(), ["--read-lock"] if lock else []
    while writer.is_alive():
        done = len(writer.states) - 1
        found = views.acidctl("cat", "--metastore", address, *options, f"hive:default.{name}")
        assert found.status == 0, found
        rows = [json.loads(line) for line in found.out.splitlines()]
        ours = Counter((str(row["id"]), row["name"]) for row in rows)
        begun = writer.begun
        while writer.is_alive() and len(writer.states) <= begun:
            writer.join(0.05)
        assert writer.failed is None, writer.failed
        possible = writer.states[done : begun + 1]
        assert ours in possible, (ours, possible)
        seen.add(frozenset(ours.items()))
        reads += 1
    assert writer.failed is None, writer.failed
    assert reads >= 5
    assert len(seen) > 2
    dropper = threading.Thread(target=sql("drop table {name}"), daemon=True)
    dropper.start()
    while dropper.is_alive():
        found = views.acidctl("cat", "--metastore", address, *options, f"hive:default.{name}")
        assert found.status in (0, 3), found
        if found.status == 0:
            rows = [json.loads(line) for line in found.out.splitlines()]
            assert Counter((str(row["id"]), row["name"]) for row in rows) == writer.states[-1]
    assert views.acidctl("cat", "--metastore", address, f"hive:default.{name}").status == 3


@pytest.mark.spark
def test_spark_and_python_give_the_same_by_name(
    real_hives: Callable[[int], HiveServer], acidctl: Callable[..., Result], spark: Any
) -> None:
    hive = real_hives(4)
    views, name = Views(hive, acidctl), "by_name"
    hive.sql(
        f"create table {name} (id int, s string, n decimal(10,2), l array<int>) partitioned by (day date, h int)"
        " stored as orc tblproperties('transactional'='true')",
        f"insert into {name} select 1, 'a', 1.5, array(1, 2), cast('2026-11-25' as date), 7",
        f"insert into {name} select 2, null, -0.25, array(3), cast('1969-12-31' as date), 8",
        f"update {name} set s = 'u' where id = 1",
    )
    open_one = hive.open_transaction()
    hive.allocate_write_id(open_one, name)
    columns = {"id": "int", "s": "string", "n": "decimal(10,2)", "l": "array<int>", "day": "date", "h": "int"}
    rows = judge(views, name, columns)
    url = f"hive:default.{name}"
    table = package.open_table(url, metastore=hive.metastore).scan().to_table()
    register(spark)
    found = spark.read.format("hive_acid").option("metastore", hive.metastore).load(url)
    assert found.schema["day"].dataType.simpleString() == "date"
    assert found.schema["h"].dataType.simpleString() == "int"
    by_spark = sorted((row.asDict() for row in found.collect()), key=lambda row: row["id"])
    assert by_spark == sorted(table.to_pylist(), key=lambda row: row["id"])
    assert [row["id"] for row in by_spark] == sorted(row["id"] for row in rows) == [1, 2]
    by_name = spark.read.format("hive_acid").options(metastore=hive.metastore, table=f"default.{name}").load()
    assert sorted((row.asDict() for row in by_name.collect()), key=lambda row: row["id"]) == by_spark
    hive.end_transaction(open_one, commit=False)
    hive.sql(f"drop table {name}")
