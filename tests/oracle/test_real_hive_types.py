"""Hive 3.1.3 and 4.0.1 as judges of types: what they store of each is read as they read it, before and after compaction.

Values come from text tables, which hold more than literals in SQL can say.  Java's default time zone is not UTC.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from support.hive_text import in_text_table, type_of
from support.real_hive import HiveTable, Rows, same, started
from support.servers.hive_server import HiveServer

from acidctl.acid.triggers import CompactionKind
from acidctl.orc.types import OrcType

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]

ZONES = {3: "America/Los_Angeles", 4: "Asia/Kolkata"}
"""Java's default time zones, in which daylight saving time has gaps, or offsets are no whole hours."""


@pytest.fixture(scope="module", params=[3, 4], ids=["hive-3.1", "hive-4.0"])
def hive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveServer]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", ZONES[request.param])
        yield from started(request.param, tmp_path_factory.mktemp(f"types{request.param}"))


LEAVES = {
    "id": "int",
    "ti": "tinyint",
    "si": "smallint",
    "i": "int",
    "bi": "bigint",
    "f": "float",
    "d": "double",
    "n5": "decimal(5,2)",
    "n18": "decimal(18,0)",
    "n38": "decimal(38,18)",
    "n0": "decimal(38,38)",
    "s": "string",
    "c": "char(5)",
    "v": "varchar(5)",
    "b": "boolean",
    "dt": "date",
    "ts": "timestamp",
    "bn": "binary",
}
# BINARY in text tables is base64, and text with line ends cannot be: both come as hexadecimal digits.
EDGES: dict[str, list[Any]] = {
    "ti": [-128, 127, 0, 128, "x"],
    "si": [-32768, 32767, -1],
    "i": [-2147483648, 2147483647, 0],
    "bi": [-9223372036854775808, 9223372036854775807, 10**18, 0],
    "f": ["NaN", "Infinity", "-Infinity", "-0.0", "0.0", "1.4E-45", "3.4028235E38", "16777217", "0.1"],
    "d": ["NaN", "Infinity", "-Infinity", "-0.0", "0.0", "4.9E-324", "1.7976931348623157E308", "0.1", "-1e-310"],
    "n5": ["999.99", "-999.99", "1000", "0.005", "-0.005", "0.00", "-1", "1e2"],
    "n18": ["999999999999999999", "-999999999999999999", "1e18", "0.5", "-0.5", "0"],
    "n38": ["99999999999999999999.999999999999999999", "-1e-18", "1e20", "-0.1", "0"],
    "n0": [f"0.{'9' * 38}", f"-0.{'0' * 37}1", "1", "0", "0.5"],
    "s": ["", "a", " b ", "ü€𝄞", "a\0b", "\t\n\r\x01\\N", "x" * 40_000, "\ufeff", "NULL", "é", "e\u0301"],
    "c": ["", "a", "ab   ", "abcdef", " x", "ü€𝄞", "abcd e", "\x01"],
    "v": ["", "a", "ab   ", "abcdef", " x", "ü€𝄞z1234", "abcd e"],
    "b": ["true", "false"],
    "dt": ["1582-10-15", "1969-12-31", "1970-01-01", "2000-02-29", "9999-12-31", "1900-01-01", "1599-12-31"],
    "ts": [
        *("1969-12-31 23:59:59", "1969-12-31 23:59:59.9", "1969-12-31 23:59:59.001", "1970-01-01 00:00:00.000000001"),
        *("2021-03-14 02:30:00", "2021-11-07 01:30:00.5", "1900-01-01 00:00:00.123456789", "1899-12-31 23:59:59.9"),
        *("1677-09-21 00:12:43.1", "1677-09-22 00:00:00", "2262-04-11 23:47:16.9", "2262-04-12 00:00:00"),
        *("9999-12-31 23:59:59.999999999", "1582-10-15 00:00:00", "1941-10-01 00:30:00", "1600-01-01 00:00:00.000001"),
    ],
    "bn": [b"", b"\0", b"\xff\xfe", b"abc", bytes(range(256)), b"z" * 5000],
}


def leaves(seed: int) -> list[list[Any]]:
    """Every edge of every type, each beside random others, and rows of NULLs only."""
    chance = random.Random(seed)
    rows: list[list[Any]] = []
    for number in range(max(map(len, EDGES.values())) + 12):
        row = [values[number] if number < len(values) else chance.choice([*values, None]) for values in EDGES.values()]
        rows.append([number, *(row if number % 9 != 8 else [None] * len(row))])
    return rows


def load(table: HiveTable, name: str, columns: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> None:
    """Make a text table of some rows."""
    declared = ", ".join(f"{column} {kind}" for column, kind in columns.items())
    table.run(f"create external table {name} ({declared}) stored as textfile location '{table.path.parent}/{name}.d'")
    kinds = [type_of(kind) for kind in columns.values()]
    folder = table.path.parent / f"{name}.d"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "data").write_text("".join(in_text_table(row, kinds) + "\n" for row in rows))


def load_leaves(table: HiveTable, name: str, rows: Sequence[Sequence[Any]]) -> str:
    """Make a text table of rows of LEAVES; what is to be selected of it."""
    hexed = {column: kind if kind in ("int", "date", "timestamp") else "string" for column, kind in LEAVES.items()}
    places = [list(LEAVES).index(column) for column in ("s", "c", "v", "bn")]
    lines = []
    for row in rows:
        line = list(row)
        for place in places:
            value = line[place]
            if value is not None:
                line[place] = (value if isinstance(value, bytes) else value.encode()).hex()
        lines.append(line)
    load(table, name, hexed, lines)
    text = "decode(unhex({0}), 'UTF-8')"
    asked = {
        **{column: f"cast({column} as {kind})" for column, kind in LEAVES.items()},
        **{"id": "id", "s": text.format("s"), "bn": "unhex(bn)", "b": "b = 'true'", "dt": "dt", "ts": "ts"},
        **{column: f"cast({text.format(column)} as {LEAVES[column]})" for column in ("c", "v")},
    }
    return ", ".join(f"{form} as {column}" for column, form in asked.items())


def live_through(table: HiveTable, name: str, asked: str, others: str, change: str) -> None:
    """Insert, replace rows by others, update one column, delete."""
    # In batches Hive 3 takes a NULL list inside of a map for [null] in text, which its results cannot tell apart.
    table.hive.sql("set hive.vectorized.execution.enabled=false")
    for part in range(3):
        table.run(f"insert into {table.name} select {asked} from {name} where id % 3 = {part}")
    if any("uniontype" in kind for kind in table.columns.values()):  # a MERGE of them fails in Hive 3
        table.run(f"delete from {table.name} where id % 2 = 0")
        table.run(f"insert into {table.name} select {asked} from {others} where id % 2 = 0")
    else:
        changes = ", ".join(f"{column} = source.{column}" for column in table.columns if column != "id")
        table.run(
            f"merge into {table.name} as target using (select {asked} from {others}) as source on target.id = source.id"
            f" when matched and source.id % 2 = 0 then update set {changes}"
        )
    table.hive.sql("set hive.vectorized.execution.enabled=true")
    table.run(f"update {table.name} set {change} where id % 4 = 1")
    table.run(f"delete from {table.name} where id % 7 = 3")


def both_ways(table: HiveTable) -> Rows:
    """Hive's rows, the same when a job reads them in batches, in single rows, and without a job."""
    hive = table.hive
    rows = table.judge()
    hive.sql("set hive.fetch.task.conversion=none")
    try:
        for vectorized in ("true", "false"):
            hive.sql(f"set hive.vectorized.execution.enabled={vectorized}")
            same(table.rows(), rows, vectorized)
    finally:
        hive.sql("set hive.fetch.task.conversion=more", "set hive.vectorized.execution.enabled=true")
    return rows


def test_leaves_of_every_type(hive: HiveServer) -> None:
    table = HiveTable(hive, "leaves", LEAVES)
    asked = load_leaves(table, "leaves_text", leaves(1))
    load_leaves(table, "leaves_other", leaves(2))
    live_through(table, "leaves_text", asked, "leaves_other", "ti = null")
    rows = both_ways(table)
    assert len(rows) > 20
    for kind in CompactionKind:
        table.compacted(kind)
        same(both_ways(table), rows, kind)
    table.run("update leaves set i = 7 where id % 3 = 2")
    table.compacted(CompactionKind.MAJOR)


NESTED = {
    "id": "int",
    "a": "array<int>",
    "aa": "array<array<string>>",
    "m": "map<string,decimal(10,2)>",
    "mi": "map<int,array<timestamp>>",
    "st": "struct<x:bigint,y:string,d:date,t:timestamp,b:binary,c:char(4),v:varchar(3),f:float,o:boolean,n:decimal(20,5)>",
    "u": "uniontype<int,string,array<double>>",
    "deep": "array<map<int,struct<l:array<timestamp>,u:uniontype<date,string>,s:struct<q:tinyint>>>>",
}
SMALL: dict[str, list[Any]] = {
    "tinyint": [-128, 0, 127],
    "int": [-(2**31), 0, 7, 2**31 - 1],
    "bigint": [-(2**63), 0, 2**63 - 1],
    "float": [0.5, -1.25, 16777216.0 / 4],
    "double": [0.1, -2.5, 1234567.25],
    "boolean": [True, False],
    "string": ["", "a", 'a"b\\c/d', "ü€𝄞", "null", "x" * 3000],
    "char": ["ab", "abcd", "ü"],
    "varchar": ["", "a ", "ü€𝄞"],
    "date": ["1582-10-15", "1969-12-31", "9999-12-31"],
    "timestamp": ["1969-12-31 23:59:59.0", "2021-03-14 02:30:00.5", "9999-12-31 23:59:59.999999999"],
    "decimal": ["-1.5", "0", "12345678.25"],
    "binary": [b"", b"a", b"xyz"],
}


def random_value(node: OrcType, chance: random.Random, empty: bool, depth: int = 0) -> Any:
    """A value in the form of JSON; perhaps with empty lists, too."""
    # A text table cannot tell a list of one NULL from NULL, nor an empty one inside of another from an empty text.
    if chance.random() < 0.15:
        return None
    if node.kind == "array":
        items = [random_value(node.children[0], chance, empty, depth + 1) for _ in range(chance.choice([2, 3, 40]))]
        return [] if empty and not depth and chance.random() < 0.3 else items
    if node.kind == "map":
        keys = chance.sample(SMALL[node.children[0].kind][1:], chance.choice([1, 2]))
        return [{"_key": key, "_value": random_value(node.children[1], chance, empty, depth + 1)} for key in keys]
    if node.kind == "struct":
        return {name: random_value(child, chance, empty, depth + 1) for name, child in node.fields()}
    if node.kind == "uniontype":
        return random_value(chance.choice(node.children), chance, empty, depth + 1)
    return chance.choice(SMALL[node.kind])


def nested(seed: int, count: int, hive: HiveServer) -> list[list[Any]]:
    """Rows of NESTED; in batches Hive 3 takes [] for [null], too."""
    chance = random.Random(seed)
    kinds = [type_of(kind) for kind in NESTED.values()]
    return [[number, *(random_value(kind, chance, hive.version > 3) for kind in kinds[1:])] for number in range(count)]


def test_nested_types(hive: HiveServer) -> None:
    table = HiveTable(hive, "nested", NESTED)
    load(table, "nested_text", NESTED, nested(3, 40, hive))
    load(table, "nested_other", NESTED, nested(4, 40, hive))
    live_through(table, "nested_text", "*", "nested_other", "a = array(id)")
    rows = both_ways(table)
    assert len(rows) > 20
    for kind in CompactionKind:
        table.compacted(kind)
        same(both_ways(table), rows, kind)
    table.run("update nested set a = array(id) where id % 3 = 2")
    table.compacted(CompactionKind.MAJOR)
