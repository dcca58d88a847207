"""Columns of every type, with rows that go to their edges, for tables of a real Hive.

They come from text tables, which hold more than literals in SQL can say.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from acidctl.orc.types import OrcType
from support.engines.hive_text import in_text_table, type_of
from support.engines.real_hive import HiveTable
from support.servers.hive_server import HiveServer

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
    folder = table.hive.warehouse.parent / "external" / f"{name}.d"  # Hive 4 wants none in its warehouse
    table.run(f"create external table {name} ({declared}) stored as textfile location '{folder}'")
    kinds = [type_of(kind) for kind in columns.values()]
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
        "id": "id",
        "s": text.format("s"),
        "bn": "unhex(bn)",
        "b": "b = 'true'",
        "dt": "dt",
        "ts": "ts",
        **{column: f"cast({text.format(column)} as {LEAVES[column]})" for column in ("c", "v")},
    }
    return ", ".join(f"{form} as {column}" for column, form in asked.items())


NESTED = {
    "id": "int",
    "a": "array<int>",
    "aa": "array<array<string>>",
    "m": "map<string,decimal(10,2)>",
    "mi": "map<int,array<timestamp>>",
    "st": "struct<x:bigint,y:string,d:date,t:timestamp,b:binary,c:char(4),v:varchar(3),f:float,n:decimal(20,5)>",
    "u": "uniontype<int,string,array<double>>",
    "deep": "array<map<int,struct<l:array<timestamp>,u:uniontype<date,string>,s:struct<q:tinyint,o:boolean>>>>",
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


POINTS = (10, 300, 700, 1600, 1700, 2500, 3500)
MANY = 4000


def pushed(number: int) -> dict[str, str]:
    """A row in whose columns nearly all values grow with its number, as literals of SQL."""
    day = date(1800, 1, 1) + timedelta(days=30 * number)
    moment = datetime(1960, 1, 1) + timedelta(seconds=1_000_000 * number)
    return {
        "ti": str(number // 20 - 100),
        "si": str(number * 8 - 16_000),
        "i": str(number * 100_000 - 200_000_000),
        "bi": str((number - 2000) * 10**15),
        "f": str((number - 2000) / 8),
        "d": str((number - 2000) / 64),
        "n5": f"{(number - 2000) // 4}.{number % 4 * 25:02d}",
        "n18": str((number - 2000) * 10**14),
        "n38": f"{number * 10**12}.{number:018d}",
        "s": f"'k{number:05d}ü'",
        "c": f"'{number:05d}'",
        "v": f"'{number:05d}'",
        "b": "true" if number >= 2000 else "false",
        "dt": f"date '{day}'",
        "ts": f"timestamp '{moment}.{number + 1:09d}'",
    }


PUSHED = {
    "id": "int",
    "ti": "tinyint",
    "si": "smallint",
    "i": "int",
    "bi": "bigint",
    "f": "float",
    "d": "double",
    "n5": "decimal(7,2)",
    "n18": "decimal(18,0)",
    "n38": "decimal(38,18)",
    "s": "string",
    "c": "char(8)",
    "v": "varchar(8)",
    "b": "boolean",
    "dt": "date",
    "ts": "timestamp",
}


def literal_text(literal: str) -> str:
    """What a text table holds for a literal."""
    return literal.split("'")[1] if "'" in literal else literal


def conditions() -> Iterator[str]:
    """Of every column those that leave most row groups out, and some that do not."""
    at = {number: pushed(number) for number in POINTS}
    for column in at[POINTS[0]]:
        first, low, null, left, right, high, last = (at[number][column] for number in POINTS)
        yield f"{column} = {null}"
        yield f"{column} in ({first}, {high})"
        yield f"{column} is null"
        yield f"{column} is not null and {column} <> {last}"
        if column == "b":  # knows no order here
            continue
        yield f"{column} < {low}"
        yield f"{column} >= {last}"
        yield f"{column} between {left} and {right}"
        yield f"not {column} <= {high} or {column} = {first}"


def fill_pushed(table: HiveTable) -> None:
    """Insert MANY rows of PUSHED, some of NULLs."""
    lines = []
    for number in range(MANY):
        values = [literal_text(one) for one in pushed(number).values()]
        empty = number % 11 == 5 or 1000 <= number < 1400
        lines.append([number, *([None] * len(values) if empty else values)])
    texts = {column: "string" if kind == "boolean" else kind for column, kind in PUSHED.items()}
    load(table, f"{table.name}_text", texts, lines)
    columns = ", ".join("b = 'true'" if column == "b" else column for column in PUSHED)
    table.run(f"insert into {table.name} select {columns} from {table.name}_text")
