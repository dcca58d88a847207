"""Column types of the histories: values, their SQL literals, and texts that only equal values share.

Values have the forms of the JSON that `acidctl cat` prints: a decimal, a date and a timestamp are texts, a binary is a
list of numbers, a map a list of pairs.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Mapping
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from acidctl.orc.types import arrow_type, parse_type

VALUES: Mapping[str, tuple[Any, ...]] = {
    "tinyint": (-128, 0, 7, 100),
    "smallint": (-32768, 0, 300),
    "int": (-(2**31), -1, 0, 8, 40000),
    "bigint": (-(2**63), 0, 5, 2**40),
    "float": (0.5, -1.25, 0.0, 1048576.125),
    "double": (0.1, -2.5, 0.0, 1234567.25),
    "decimal(10,2)": ("1.50", "-0.01", "0.00", "99999999.99"),
    "decimal(38,10)": ("1.5000000000", "-99999999999999999.0000000001", "0.0000000000"),
    "string": ("", "a", "b c", "ü€", "x'y\\z", "NULL", "a "),
    "varchar(6)": ("", "a", "ab  ", "ü€xyz1"),
    "char(4)": ("", "a", "ab", "abcd", "ü"),
    "date": ("1969-12-31", "2000-02-29", "9999-12-31", "1900-01-01"),
    "timestamp": (
        *("1969-12-31 23:59:58.5", "2021-03-14 02:30:00", "1900-01-01 00:00:00.123456"),
        *("2262-04-11 23:47:16.000001", "9999-12-31 23:59:59"),
    ),
    "boolean": (True, False),
    "binary": ([], [0, 255, 10], [97]),
    "array<int>": ([], [1], [2, None]),
    "map<string,int>": ([{"_key": "k", "_value": 1}], [{"_key": "k", "_value": None}], []),
    "struct<x:int,y:string>": ({"x": 1, "y": "s"}, {"x": None, "y": ""}),
}
KEYS: Mapping[str, tuple[Any, ...]] = {
    "int": (1, 20, -3, None),
    "bigint": (0, 2**40, None),
    "smallint": (5, -7),
    "string": ("x", "a b", "y/1:z=%\"'", "ü€", "x#{}[]^*", None),
    "varchar(10)": ("v", "w w"),
    "char(5)": ("c", "cd", "abcde"),
    "date": ("2021-03-28", "1899-12-31", None),
    "boolean": (True, False),
    "timestamp": ("2021-03-14 02:30:00", "1900-01-01 00:00:00.123456", "2262-04-11 23:47:16.5"),
}
"""Types of partition keys and their values; NULL only where Hive itself can write such a partition twice.

Decimals are left out: by batches Hive reads other values of such keys, also of what it wrote itself.
"""

_DEFAULT = b"__HIVE_DEFAULT_PARTITION__".hex().upper()
"""NULL in a key of text as some of Hive's readers return it, cut to its length; in a boolean key they return true."""

NESTED = ("array<int>", "map<string,int>", "struct<x:int,y:string>")
NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
ORDERED = (*NUMBERS, "string", "varchar", "date", "timestamp")


def base(kind: str) -> str:
    """The name of a type without what follows it."""
    return kind.partition("(")[0].partition("<")[0]


def literal(kind: str, value: Any) -> str:
    """A value as Hive's SQL has it, of exactly this type."""
    plain = {"array<int>": "array(1)", "map<string,int>": "map('k',1)"}
    plain["struct<x:int,y:string>"] = "named_struct('x',1,'y','s')"
    if value is None:
        return f"if(false, {plain[kind]}, null)" if kind in plain else f"cast(null as {kind})"
    if kind == "array<int>":
        return f"array({', '.join(literal('int', item) for item in value)})" if value else "array_of_none"
    if kind == "map<string,int>":
        return f"map('k', {literal('int', value[0]['_value'])})" if value else "map_of_none"
    if kind in plain:
        return f"named_struct('x', {literal('int', value['x'])}, 'y', {literal('string', value['y'])})"
    if kind == "binary":
        return f"unhex('{bytes(value).hex()}')"
    if kind == "boolean":
        return str(value).lower()
    return f"cast({condition_literal(kind, value)} as {kind})"


def condition_literal(kind: str, value: Any) -> str:
    """A value as it stands in a condition, which acidctl understands as Hive does."""
    if base(kind) in ("date", "timestamp"):
        return f"{base(kind)} '{value}'"
    if base(kind) in ("string", "varchar", "char"):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return str(value).lower()


def has_literal(kind: str, value: Any) -> bool:
    """Whether Hive's SQL can say it: an empty array or map of a type it cannot."""
    return value != [] or kind == "binary"


def asked(kind: str, name: str) -> str:
    """The columns of a SELECT, a text in both Hives; NULL is a text of its own, see :func:`text`."""
    if base(kind) in ("string", "varchar", "char"):
        found = f"hex(cast({name} as string))"
    elif kind == "binary":
        found = f"hex({name})"
    elif kind == "boolean":
        found = f"case when {name} is null then null when {name} then 'true' else 'false' end"
    elif kind == "array<int>":
        items = ", '.', ".join(f"coalesce(cast({name}[{i}] as string), '~')" for i in range(2))
        found = f"case when {name} is null then null else concat(cast(size({name}) as string), '.', {items}) end"
    elif kind == "map<string,int>":
        item = f"coalesce(cast({name}['k'] as string), '~')"
        found = f"case when {name} is null then null else concat(cast(size({name}) as string), '.', {item}) end"
    elif base(kind) == "struct":
        x, y = f"coalesce(cast({name}.x as string), '~')", f"coalesce(hex({name}.y), '~')"
        found = f"case when {name} is null then null else concat({x}, '.', {y}) end"
    else:
        found = f"cast({name} as string)"
    return f"coalesce({found}, 'N')"


def normal(kind: str, found: str) -> str:
    """The values that Hive printed for :func:`asked`, in the form of :func:`text`."""
    if found == "N" or (kind in NESTED and found.startswith(("-1.", "~.~"))):
        return "N"  # row by row Hive 3 takes NULL of a nested type for one that is there
    if base(kind) in ("string", "varchar", "char") and len(found) >= 10 and _DEFAULT.startswith(found):
        return "N"
    if base(kind) == "char":
        return _stripped(found)
    if base(kind) in ("float", "double", "decimal", "timestamp"):
        return text(kind, float(found) if base(kind) in ("float", "double") else found)
    return found


def _stripped(digits: str) -> str:
    while digits.endswith("20"):
        digits = digits[:-2]
    return digits


def text(kind: str, value: Any) -> str:
    """A text that only equal values share."""
    name = base(kind)
    if value is None:
        return "N"
    if name in ("string", "varchar"):
        return str(value).encode().hex().upper()
    if name == "char":
        return str(value).rstrip(" ").encode().hex().upper()
    if name == "binary":
        return bytes(value).hex().upper()
    if name == "boolean":
        return str(value).lower()
    if name in ("float", "double"):
        return struct.pack("f" if name == "float" else "d", value).hex()
    if name == "decimal":
        return str(Decimal(value).normalize(Context(prec=60))) if Decimal(value) else "0"
    if name == "timestamp":
        whole, _, rest = str(value).partition(".")
        return f"{whole}.{rest.ljust(9, '0')}"
    return _nested(name, value)


def _nested(name: str, value: Any) -> str:
    if name == "array":
        items = [*value, None, None][:2]
        return ".".join([str(len(value)), *("~" if item is None else str(item) for item in items)])
    if name == "map":
        item = value[0]["_value"] if value else None
        return f"{len(value)}.{'~' if item is None else item}"
    if name == "struct":
        x, y = value["x"], value["y"]
        return f"{'~' if x is None else x}.{'~' if y is None else y.encode().hex().upper()}"
    return str(value)


def comparable(kind: str, value: Any) -> Any:
    """A value of an ordered type in a form that Python compares as SQL does."""
    if base(kind) == "decimal":
        return Decimal(value)
    if base(kind) == "float":
        return struct.unpack("f", struct.pack("f", value))[0]
    return value.rstrip(" ") if base(kind) == "char" else text(kind, value) if base(kind) == "timestamp" else value


def arrow_array(kind: str, values: list[Any], *, wide: bool = False) -> pa.Array:
    """The values as a source of rows has them.

    Args:
        wide: in a wider type than the column's, which conversion makes fit.
    """
    name = base(kind)
    if name == "timestamp":
        if wide or any(value and value > "2262" for value in values):
            return pa.array([value and datetime.datetime.fromisoformat(value) for value in values], pa.timestamp("us"))
        return pa.array([value and _nanos(value) for value in values], pa.timestamp("ns"))
    made = [None if value is None else _python(name, value) for value in values]
    target = arrow_type(parse_type(kind))
    if wide and name in ("tinyint", "smallint", "int"):
        target = pa.int64()
    if wide and name == "string":
        return pa.array(made, pa.string()).dictionary_encode()
    return pa.array(made, pa.large_string() if wide and name == "varchar" else target)


def _nanos(value: str) -> int:
    whole, _, rest = value.partition(".")
    seconds = (datetime.datetime.fromisoformat(whole) - datetime.datetime(1970, 1, 1)) // datetime.timedelta(seconds=1)
    return seconds * 10**9 + int(rest.ljust(9, "0"))


def _python(name: str, value: Any) -> Any:
    if name == "decimal":
        return Decimal(value)
    if name == "date":
        return datetime.date.fromisoformat(value)
    if name == "binary":
        return bytes(value)
    return [(item["_key"], item["_value"]) for item in value] if name == "map" else value
