"""Random tables and random conditions on them, and what SQL says of every row: a model in plain Python."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyorc

from acidctl.orc.types import OrcType
from acidctl.rows.scan.columns import PartitionColumn

TYPES = {
    "i": "int",
    "b": "bigint",
    "t": "tinyint",
    "f": "float",
    "d": "double",
    "s": "string",
    "v": "varchar(20)",
    "c": "char(6)",
    "dt": "date",
    "ts": "timestamp",
    "de": "decimal(9,3)",
    "big": "decimal(38,2)",
    "ok": "boolean",
    "st": "struct<x:int,y:string>",
}
ADDED = {"late": "bigint", "word": "string"}
EVENT = "struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint,row:{}>"
EPOCH = date(1970, 1, 1)
LONG = "long" * 300
"""Beyond the 1024 bytes at which Java cuts statistics."""

Truth = bool | None
Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A condition in SQL and in Python."""

    sql: str
    truth: Callable[[Row], Truth]


# --- values: each stripe has its own neighbourhood, so that conditions can exclude stripes
def value(luck: random.Random, kind: str, near: int) -> Any:
    if luck.random() < 0.15:
        return None
    close = near * 10 + luck.randrange(12)
    if kind.startswith("struct"):
        return {"x": value(luck, "int", near), "y": value(luck, "string", near)}
    if kind in ("int", "bigint", "tinyint"):
        return luck.choice((close, -close, close % 100)) if kind != "tinyint" else close % 128
    if kind in ("float", "double"):
        return luck.choice((close / 4, -0.0, 0.0, float(close), *((math.nan, math.inf) if luck.random() < 0.1 else ())))
    if kind == "boolean":
        return near % 3 != 0 if luck.random() < 0.9 else True
    if kind.startswith("decimal"):
        return Decimal(close * 37).scaleb(-2) if kind != "decimal(38,2)" else Decimal(close * 10**30).scaleb(-2)
    if kind == "date":
        return EPOCH + timedelta(days=luck.choice((close * 20, -close * 3000 if close < 200 else close)))
    if kind == "timestamp":
        return datetime(1970, 1, 1) + timedelta(
            hours=close * luck.choice((1, -1)), microseconds=luck.choice((0, 1, 999_999))
        )
    words = (f"{close:04}", f"w{close}", "é" * (close % 5), "", f"{close} ", "\U0001f41d", "a_b%c")
    text = luck.choice(words + ((LONG + str(close), "\xff" * 600) if kind == "string" else ()))
    return text[:6].rstrip(" ") if kind == "char(6)" else text[:20] if kind != "string" else text


def literal(luck: random.Random, kind: str, known: list[Any]) -> tuple[str, Any]:
    """SQL and value: mostly one that is in the table, or beside it."""
    if luck.random() < 0.05:
        return "NULL", None
    found = luck.choice(known) if known else None
    if found is None:
        found = value(random.Random(luck.random()), kind, luck.randrange(20)) or None
    if found is None:
        return "NULL", None
    if kind in ("int", "bigint", "tinyint"):
        found += luck.choice((0, 0, 1, -1))
        more = luck.choice((None, None, Decimal("0.5")))
        if more is not None:
            return str(found + more), found + more
        return luck.choice((str(found), f"'{found}'", f"{found}.0")), found
    if kind in ("float", "double"):
        if math.isnan(found) or math.isinf(found):
            found = 1.5
        return luck.choice((f"{found!r}", f"'{found!r}'")), float(found)
    if kind.startswith("decimal"):
        found += luck.choice((Decimal(0), Decimal(0), Decimal("0.0001"), Decimal(1)))
        return luck.choice((f"{found:f}", f"'{found:f}'")), found
    if kind == "boolean":
        return ("TRUE", True) if found else ("false", False)
    if kind == "date":
        found += timedelta(days=luck.choice((0, 0, 1, -1)))
        return luck.choice((f"'{found.isoformat()}'", f"DATE '{found.isoformat()}'")), found
    if kind == "timestamp":
        found += luck.choice((timedelta(0), timedelta(0), timedelta(microseconds=1), timedelta(milliseconds=-1)))
        text = found.isoformat(sep=" ")
        return luck.choice((f"'{text}'", f"TIMESTAMP '{text}'")), found
    text = found + luck.choice(("", "", " ", "a"))
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'", text


# --- conditions
SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "==": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def comparable(found: Any, kind: str) -> Any:
    if isinstance(found, str):
        return (found.rstrip(" ") if kind.startswith("char") else found).encode()
    return float(found) if kind in ("float", "double") and found is not None else found


def like(pattern: str) -> re.Pattern[str]:
    parts = {"%": ".*", "_": "."}
    return re.compile("".join(parts.get(one, re.escape(one)) for one in pattern), re.DOTALL)


def leaf(luck: random.Random, columns: dict[str, str], rows: list[Row]) -> Case:
    name = luck.choice(list(columns))
    kind = columns[name]
    known = [found for row in luck.sample(rows, min(5, len(rows))) if (found := row[name]) is not None]
    sql = luck.choice((name, name.upper())) if name != "ROW__ID.rowid" else name

    def of(row: Row) -> Any:
        return comparable(row[name], kind)

    dice = luck.random()
    if dice < 0.08:
        return Case(f"{sql} IS NULL", lambda row: row[name] is None)
    if dice < 0.14:
        return Case(f"{sql} IS NOT NULL", lambda row: row[name] is not None)
    if kind == "boolean":
        if dice < 0.3:
            return Case(sql, lambda row: row[name])
        if dice < 0.5:
            return Case(f"{sql} IS NOT TRUE", lambda row: row[name] is not True)
        text, wanted = literal(luck, kind, known)
        sign = luck.choice(("=", "<>"))
        return Case(f"{sql} {sign} {text}", lambda row: _compare(sign, of(row), wanted))
    if dice < 0.28:
        given = [literal(luck, kind, known) for _ in range(luck.randint(1, 4))]
        wanted_all = [comparable(one, kind) for _, one in given]
        negated = luck.random() < 0.4

        def within(row: Row) -> Truth:
            own = of(row)
            if own is None:
                return None
            hit = True if any(one is not None and own == one for one in wanted_all) else None
            hit = hit or (None if None in wanted_all else False)
            return hit if not negated or hit is None else not hit

        return Case(f"{sql} {'NOT ' if negated else ''}IN ({', '.join(text for text, _ in given)})", within)
    if dice < 0.38:
        (low_text, low), (high_text, high) = literal(luck, kind, known), literal(luck, kind, known)
        low, high = comparable(low, kind), comparable(high, kind)
        negated = luck.random() < 0.4

        def between(row: Row) -> Truth:
            found = _and([_compare(">=", of(row), low), _compare("<=", of(row), high)])
            return found if not negated or found is None else not found

        return Case(f"{sql} {'NOT ' if negated else ''}BETWEEN {low_text} AND {high_text}", between)
    if kind in ("string", "varchar(20)", "char(6)") and dice < 0.5:
        pattern = luck.choice(("%", "_", "w%", "%1%", "0__5", "%é", "", "a_b%c", f"{luck.randrange(200):04}", "%\n%"))
        negated = luck.random() < 0.3

        def matches(row: Row) -> Truth:
            if row[name] is None:
                return None
            own = row[name].rstrip(" ") if kind.startswith("char") else row[name]
            return (like(pattern).fullmatch(own) is not None) is not negated

        return Case(f"{sql} {'NOT ' if negated else ''}LIKE '{pattern}'", matches)
    text, one = literal(luck, kind, known)
    wanted = comparable(one, kind)
    if dice < 0.55:
        return Case(f"{sql} <=> {text}", lambda row: wanted is None if of(row) is None else of(row) == wanted)
    sign = luck.choice(list(SIGNS))
    if luck.random() < 0.2:
        mirrored = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(sign, sign)
        return Case(f"{text} {mirrored} {sql}", lambda row: _compare(sign, of(row), wanted))
    return Case(f"{sql} {sign} {text}", lambda row: _compare(sign, of(row), wanted))


def _compare(sign: str, left: Any, right: Any) -> Truth:
    return None if left is None or right is None else SIGNS[sign](left, right)


def _and(found: list[Truth]) -> Truth:
    return False if False in found else None if None in found else True


def condition(luck: random.Random, columns: dict[str, str], rows: list[Row], depth: int = 3) -> Case:
    dice = luck.random()
    if depth == 0 or dice < 0.4:
        return leaf(luck, columns, rows)
    if dice < 0.6:
        inner = condition(luck, columns, rows, depth - 1)

        def opposite(row: Row) -> Truth:
            found = inner.truth(row)
            return None if found is None else not found

        return Case(f"NOT ({inner.sql})", opposite)
    parts = [condition(luck, columns, rows, depth - 1) for _ in range(luck.randint(2, 3))]
    word = "AND" if dice < 0.8 else "OR"

    def joined(row: Row) -> Truth:
        found = [part.truth(row) for part in parts]
        if word == "AND":
            return _and(found)
        return True if True in found else None if None in found else False

    return Case("(" + f" {word} ".join(part.sql for part in parts) + ")", joined)


# --- tables
class _Days:
    @staticmethod
    def to_orc(day: date) -> int:
        return (day - EPOCH).days

    @staticmethod
    def from_orc(days: int) -> int:
        return days


class _Seconds:
    @staticmethod
    def to_orc(moment: datetime, zone: Any) -> tuple[int, int]:
        since = moment - datetime(1970, 1, 1)
        return since.days * 86_400 + since.seconds, since.microseconds * 1000

    @staticmethod
    def from_orc(seconds: int, nanos: int, zone: Any) -> tuple[int, int]:
        return seconds, nanos


def write(path: Path, types: dict[str, str], write_id: int, stripes: list[list[Row]]) -> None:
    path.parent.mkdir(parents=True)
    row_type = "struct<" + ",".join(f"{name}:{kind}" for name, kind in types.items()) + ">"
    number = 0
    with path.open("wb") as out:
        writer = pyorc.Writer(
            out,
            EVENT.format(row_type),
            batch_size=len(stripes[0]),
            stripe_size=1,
            row_index_stride=1000,
            struct_repr=pyorc.StructRepr.DICT,
            converters={pyorc.TypeKind.DATE: _Days, pyorc.TypeKind.TIMESTAMP: _Seconds},
        )
        for stripe in stripes:
            for row in stripe:
                ids = {"operation": 0, "originalTransaction": write_id, "bucket": 1 << 29, "rowId": number}
                writer.write({**ids, "currentTransaction": write_id, "row": row})
                number += 1
        writer.close()


def random_table(luck: random.Random, table: Path) -> tuple[list[Row], tuple[PartitionColumn, ...]]:
    """Two deltas; the older one has fewer columns. The rows as conditions see them."""
    day = luck.choice((None, date(2024, 2, 29)))
    partition = (
        PartitionColumn("day", OrcType("date"), day),
        PartitionColumn("region", OrcType("string"), luck.choice((None, "eu"))),
    )
    rows: list[Row] = []
    for write_id, types in ((1, TYPES), (2, TYPES | ADDED)):
        stripes = [
            [{name: value(luck, kind, near) for name, kind in types.items()} for _ in range(20)]
            for near in luck.sample(range(40), 6)
        ]
        write(table / f"delta_{write_id:07}_{write_id:07}_0000" / "bucket_00000", types, write_id, stripes)
        for number, row in enumerate(row for stripe in stripes for row in stripe):
            whole = {name: row.get(name) for name in TYPES | ADDED}
            inside = whole.pop("st") or {"x": None, "y": None}
            whole |= {"st.x": inside["x"], "st.y": inside["y"], "day": day, "region": partition[1].value}
            rows.append(whole | {"ROW__ID.writeid": write_id, "ROW__ID.rowid": number})
    return rows, partition
