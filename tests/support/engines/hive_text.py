"""Values as Hive's own text: what its text tables hold, and what its SELECT prints of what `cat` prints as JSON.

The JSON forms are those of docs/reference/types.md; a union's value tells by its kind which of the alternatives it is.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from acidctl.orc.types import OrcType

_NULL = "\\N"
_SEPARATORS = "\x01\x02\x03\x04\x05\x06\x07\x08"
_QUOTED = frozenset({"string", "char", "varchar", "date", "timestamp", "timestamp with local time zone"})
_JSON_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), (int,)),
    **dict.fromkeys(("array", "map", "binary"), (list,)),
    **dict.fromkeys(("float", "double"), (float, int)),
    "boolean": (bool,),
    "struct": (dict,),
}


def type_of(text: str) -> OrcType:
    """A type as Hive writes it, ``array<struct<a:int>>``."""
    node, rest = _parsed(text.replace(" ", ""))
    assert not rest, rest
    return node


def _parsed(text: str) -> tuple[OrcType, str]:
    length = next((i for i, one in enumerate(text) if one in "<>,("), len(text))
    kind, rest = text[:length], text[length:]
    if rest.startswith("("):
        inner, _, rest = rest[1:].partition(")")
        numbers = [int(number) for number in inner.split(",")]
        if kind == "decimal":
            return OrcType(kind, precision=numbers[0], scale=numbers[1]), rest
        return OrcType(kind, max_length=numbers[0]), rest
    names, children = [], []
    while rest.startswith(("<", ",")) and (children or rest[0] == "<"):
        rest = rest[1:]
        if kind == "struct":
            name, _, rest = rest.partition(":")
            names.append(name)
        child, rest = _parsed(rest)
        children.append(child)
    if children:
        rest = rest.removeprefix(">")
    return OrcType(kind, children=tuple(children), names=tuple(names)), rest


def alternative(union: OrcType, value: object) -> int:
    """Which of a union's alternatives a value is, told by its kind."""
    for tag, child in enumerate(union.children):
        if type(value) in _JSON_KINDS.get(child.kind, (str,)) and (child.kind != "date" or _is_date(value)):
            return tag
    raise AssertionError(f"{value!r} is none of {union}")


def _is_date(value: object) -> bool:
    return isinstance(value, str) and len(value) == 10 and value[4] == "-"


def in_text_table(row: Sequence[Any], kinds: Sequence[OrcType]) -> str:
    """A line of a text table with Hive's own separators; values in the forms of :func:`printed`."""
    return _SEPARATORS[0].join(_delimited(kind, value, 1) for kind, value in zip(kinds, row, strict=True))


def _delimited(node: OrcType, value: Any, level: int) -> str:
    if value is None:
        return _NULL
    here = _SEPARATORS[level]
    if node.kind == "array":
        return here.join(_delimited(node.children[0], item, level + 1) for item in value)
    if node.kind == "map":
        key, inner = node.children
        pairs = [(_delimited(key, one["_key"], level + 2), one["_value"]) for one in value]
        return here.join(name + _SEPARATORS[level + 1] + _delimited(inner, one, level + 2) for name, one in pairs)
    if node.kind == "struct":
        parts = zip(node.names, node.children, strict=True)
        return here.join(_delimited(child, value[name], level + 1) for name, child in parts)
    if node.kind == "uniontype":
        tag = alternative(node, value)
        return f"{tag}{here}{_delimited(node.children[tag], value, level + 1)}"
    if node.kind == "binary":
        return base64.b64encode(bytes(value)).decode()
    return _plain(value)


def printed(node: OrcType, value: Any) -> str:
    """What SELECT prints of a column, by the JSON of its value; BINARY is asked for as ``hex(c)``, STRING, too.

    Floats are in a form that only equal values share, as :func:`normal` has them.
    """
    if value is None:
        return "NULL"
    if node.kind in ("float", "double"):
        return _exact(node, value)
    if node.kind == "string":
        return str(value).encode().hex().upper()
    if node.kind == "binary":
        return bytes(value).hex().upper()
    if node.kind == "decimal":
        return _padded(value, node.scale)
    if node.children:
        return _nested(node, value)
    return _nested(node, value).strip('"') if node.kind in ("date", "timestamp") else _plain(value)


def normal(node: OrcType, text: str) -> str:
    """What Hive printed of a column, in the form that :func:`printed` has."""
    return _exact(node, text) if node.kind in ("float", "double") and text != "NULL" else text


def asked_for(name: str, node: OrcType) -> str:
    """What SELECT is asked for of a column."""
    return f"hex({name})" if node.kind in ("string", "binary") else name


def _exact(node: OrcType, value: object) -> str:
    return (np.float32 if node.kind == "float" else np.float64)(value).tobytes().hex()


def _padded(value: str, scale: int) -> str:
    whole, _, rest = value.partition(".")
    return f"{whole}.{rest.ljust(scale, '0')}" if scale else whole


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _java(value) if isinstance(value, float) else str(value)


def _java(value: float) -> str:
    """As Java prints numbers of common size."""
    assert value == 0 or 1e-3 <= abs(value) < 1e7, value
    return repr(value)


def _nested(node: OrcType, value: Any) -> str:
    """A value inside of another, in the JSON of Hive's that is none."""
    if value is None:
        return "null"
    if node.kind == "array":
        return f"[{','.join(_nested(node.children[0], item) for item in value)}]"
    if node.kind == "map":
        key, inner = node.children
        pairs = [f"{_nested(key, one['_key'])}:{_nested(inner, one['_value'])}" for one in value]
        return f"{{{','.join(pairs)}}}"
    if node.kind == "struct":
        pairs = [f'"{name}":{_nested(child, value[name])}' for name, child in node.fields()]
        return f"{{{','.join(pairs)}}}"
    if node.kind == "uniontype":
        tag = alternative(node, value)
        return f"{{{tag}:{_nested(node.children[tag], value)}}}"
    if node.kind == "binary":
        return bytes(value).decode()
    if node.kind == "timestamp":
        return f'"{value.removesuffix(".0")}"'
    if node.kind in _QUOTED:
        return json.dumps(value, ensure_ascii=False)
    return _plain(value)
