"""Parse types as Hive's metastore writes them, ``array<struct<a:int,b:char(10)>>``, into type trees."""

from __future__ import annotations

import re

from acidctl.base.errors import BadDataError
from acidctl.orc.types import KINDS, MAX_DEPTH, OrcType

_WORD = re.compile(r"\s*([A-Za-z_0-9 ]+?)\s*(?=[(<,>]|$)")
_NUMBERS = re.compile(r"\(\s*(\d{1,9})\s*(?:,\s*(\d{1,9})\s*)?\)\s*")
_ZONE = re.compile(r"\(\s*'[^'()]*'\s*\)\s*")
"""Hive names the zone of the session that made a TIMESTAMP WITH LOCAL TIME ZONE; values do not depend on it."""
_FIELD = re.compile(r"\s*(?:`((?:[^`]|``)*)`|([^:<>,`]+?))\s*:")
_COLUMN = re.compile(r"\s*(?:`((?:[^`]|``)*)`|(\w+))\s*:?", re.ASCII)
_STRUCT = re.compile(r"struct\s*<", re.IGNORECASE)
_NESTED = {"array": 1, "map": 2, "struct": 0, "uniontype": 0}
_OTHER_NAMES = {"integer": "int", "numeric": "decimal", "double precision": "double", "void": "string"}


def parse_type(text: str) -> OrcType:
    """Return the type that a text names; column ids are not set.

    Raises BadDataError if Hive does not have this type, or tables cannot have it.
    """
    node, at = _node(text, 0, 0)
    if at != len(text):
        raise _unknown(text)
    return node


def columns_of(text: str) -> OrcType:
    """Return the row type of columns as in CREATE TABLE, ``id int, name string``, or ``struct<id:int,name:string>``.

    Raises:
        BadDataError: as for :func:`parse_type`.
    """
    text = text.strip()
    if _STRUCT.match(text):
        return parse_type(text)
    node, at = _nested(f"<{text}>", 0, 0, "struct", _COLUMN)
    if at != len(text) + 2:
        raise _unknown(text)
    return node


def _node(text: str, at: int, depth: int) -> tuple[OrcType, int]:
    word = _WORD.match(text, at)
    if word is None or depth > MAX_DEPTH:
        raise _unknown(text)
    kind = " ".join(word[1].lower().split())
    kind = _OTHER_NAMES.get(kind, kind)
    at = word.end()
    if kind not in KINDS:
        raise _unknown(text)
    if kind in _NESTED:
        return _nested(text, at, depth, kind)
    if kind == "timestamp with local time zone" and (zone := _ZONE.match(text, at)):
        return OrcType(kind), zone.end()
    numbers = _NUMBERS.match(text, at)
    if numbers:
        at = numbers.end()
    first, second = (int(number) if number else 0 for number in (numbers.groups() if numbers else ("", "")))
    if kind == "decimal":
        first = first if numbers else 10
        if not 1 <= first <= 38 or second > first:
            raise _unknown(text)
        return OrcType(kind, precision=first, scale=second), at
    if kind in ("char", "varchar") and first:
        return OrcType(kind, max_length=first), at
    if numbers or kind in ("char", "varchar"):
        raise _unknown(text)
    return OrcType(kind), at


def _nested(text: str, at: int, depth: int, kind: str, name_of_field: re.Pattern[str] = _FIELD) -> tuple[OrcType, int]:
    names, children, following = [], [], "<"
    while text[at : at + 1] == following:
        at += 1
        if kind == "struct":
            field = name_of_field.match(text, at)
            if field is None:
                raise _unknown(text)
            names.append(field[2] if field[1] is None else field[1].replace("``", "`"))
            at = field.end()
        child, at = _node(text, at, depth + 1)
        children.append(child)
        following = ","
    if text[at : at + 1] != ">" or len(children) != (_NESTED[kind] or len(children)):
        raise _unknown(text)
    at += 1
    while text[at : at + 1] == " ":
        at += 1
    return OrcType(kind, children=tuple(children), names=tuple(names)), at


def _unknown(text: str) -> BadDataError:
    return BadDataError(f"acidctl does not know the type {text[:200]}", "the metastore has a column of it", "")


def row_type_of(columns: tuple[tuple[str, str], ...]) -> OrcType:
    """Return the row type of columns, given by name and type.

    Raises BadDataError if the type of a column is unknown.
    """
    children = []
    for name, text in columns:
        try:
            children.append(parse_type(text))
        except BadDataError as error:
            raise BadDataError(f"cannot read column {name}", error.what, "read the table with Hive") from error
    return OrcType("struct", children=tuple(children), names=tuple(name for name, _ in columns))
