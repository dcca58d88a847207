"""One normal form of a row, whatever printed it: Hive, the stored expected files, acidctl's JSON lines or Arrow.

The normal form: int, bool, float (float32 for FLOAT; "NaN", "Infinity", "-Infinity" as text so that they compare), str
(CHAR padded to its length), dates 'yyyy-MM-dd', timestamps 'yyyy-MM-dd HH:mm:ss[.f]' without trailing zeros, decimals
as plain text without trailing zeros, binary as bytes, arrays as lists, maps as lists of (key, value) sorted by the
key's repr, structs as dicts, unions as the bare value (acidctl's JSON lines carry no tag).
"""

from __future__ import annotations

import base64
import math
import struct
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from support.judge.hivetypes import HiveType, parse_type

PLAIN = "plain"
"""What `hive.py` returns: binary as bytes, maps as pairs, unions as (tag, value)."""
EXPECTED = "expected"
"""The stored expected/*.jsonl: binary as base64, maps as pairs, unions as [tag, value]."""
ACIDCTL = "acidctl"
"""acidctl's JSON lines and Arrow's to_pylist: binary as byte numbers or bytes, maps as {_key, _value} or pairs, unions
bare."""

_NUMBERS = {"tinyint", "smallint", "int", "bigint"}
_TEXT = {"string", "varchar"}


def normalise(value: Any, node: HiveType | str, form: str = PLAIN) -> Any:
    """The normal form of one value of a Hive type."""
    node = parse_type(node) if isinstance(node, str) else node
    if value is None:
        return None
    kind = node.kind
    if kind in _NUMBERS:
        return int(value)
    if kind == "boolean":
        return bool(value)
    if kind in ("float", "double"):
        return _float(value, single=kind == "float")
    if kind in _TEXT:
        return str(value)
    if kind == "char":
        return str(value).ljust(node.arguments[0])
    if kind == "date":
        return value.isoformat() if isinstance(value, date) else str(value)
    if kind == "timestamp":
        return _timestamp(value)
    if kind == "decimal":
        return _decimal(value)
    if kind == "binary":
        return base64.b64decode(value) if isinstance(value, str) else bytes(value)
    if kind == "array":
        return [normalise(item, node.children[0], form) for item in value]
    if kind == "map":
        pairs = [_pair(item) for item in (value.items() if isinstance(value, dict) else value)]
        both = [(normalise(k, node.children[0], form), normalise(v, node.children[1], form)) for k, v in pairs]
        return sorted(both, key=lambda pair: repr(pair[0]))
    if kind == "struct":
        return {n: normalise(value.get(n), c, form) for n, c in zip(node.names, node.children, strict=True)}
    if kind == "uniontype":
        if form != ACIDCTL:
            tag, inner = value
            return normalise(inner, node.children[tag], form)
        child = next((c for c in node.children if _fits(value, c)), None)
        if child is None:
            raise ValueError(f"{value!r} fits no branch of {node}")
        return normalise(value, child, form)
    raise ValueError(f"unknown type {node}")


def normalise_row(row: dict[str, Any] | None, schema: HiveType | str, form: str = PLAIN) -> dict[str, Any] | None:
    """A whole row of the table's columns; columns that are missing count as null."""
    return None if row is None else dict(normalise(row, schema, form))


def _float(value: Any, single: bool) -> float | str:
    number = float(value)
    if math.isnan(number):
        return "NaN"
    if single and not math.isinf(number):
        number = struct.unpack("f", struct.pack("f", number))[0]
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return number


def _timestamp(value: Any) -> str:
    text = value.isoformat(sep=" ") if isinstance(value, datetime) else str(value).replace("T", " ")
    head, dot, fraction = text.partition(".")
    fraction = fraction.rstrip("0")
    return head + (dot + fraction if fraction else "")


def _decimal(value: Any) -> str:
    text = format(Decimal(str(value)), "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _pair(item: Any) -> tuple[Any, Any]:
    return (item["_key"], item["_value"]) if isinstance(item, dict) else tuple(item)


def _fits(value: Any, node: HiveType) -> bool:
    if node.kind in _NUMBERS:
        return isinstance(value, int) and not isinstance(value, bool)
    if node.kind == "boolean":
        return isinstance(value, bool)
    if node.kind in ("float", "double", "decimal"):
        return isinstance(value, int | float | Decimal) or value in ("NaN", "Infinity", "-Infinity")
    if node.kind in ("array", "map", "binary"):
        return isinstance(value, list | bytes)
    if node.kind == "struct":
        return isinstance(value, dict)
    return isinstance(value, str | date)
