"""Whether the columns of a file can be read as a table's: which types Hive converts, and a parser of their names."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from acidctl.errors import UsageProblem
from acidctl.orc.types import OrcType, hive_type

_NUMBERS = {"tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "boolean"}
_TEXTS = {"string", "char", "varchar"}
_TIMES = {"date", "timestamp", "timestamp with local time zone"}
_LEAVES = _NUMBERS | _TEXTS | _TIMES | {"binary"}
_QUOTED, _WORD, _NUMBER = re.compile(r"`(?:[^`]|``)*`"), re.compile(r"[A-Za-z_0-9]+"), re.compile(r"[0-9]{1,9}")
_TOKEN = re.compile(rf"{_QUOTED.pattern}|{_WORD.pattern}|\S")
_MOST_DEPTH = 100
T = TypeVar("T")


def misfit(row: OrcType, table: OrcType) -> str:
    """Why a file's columns cannot be read as the table's, by position; empty when they can.

    More columns in the table than in the file are fine: they were added later.
    """
    for place, (child, wanted) in enumerate(zip(row.children, table.children, strict=False)):
        if not _converts(child, wanted):
            return f"column {table.names[place]} is {hive_type(child)[:80]} here, {hive_type(wanted)[:80]} in the table"
    if len(row.children) > len(table.children):
        return f"it has {len(row.children)} columns, the table {len(table.children)}"
    return ""


def _converts(one: OrcType, other: OrcType) -> bool:
    if one.kind in _LEAVES and other.kind in _LEAVES:
        pair = {one.kind, other.kind}
        if one.kind == other.kind or pair & _TEXTS:
            return True
        return "binary" not in pair and not ("date" in pair and pair & _NUMBERS)
    if one.kind != other.kind:
        return False
    if one.kind == "uniontype" and len(one.children) > len(other.children):
        return False
    return all(_converts(a, b) for a, b in zip(one.children, other.children, strict=False))


def parse_columns(text: str) -> OrcType:
    """The columns of a table, ``id int, name string`` or ``struct<id:int,name:string>``.

    Raises:
        UsageProblem: not such a list.
    """
    return _Parser(text).columns()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = _TOKEN.findall(text)
        self._at = 0

    def columns(self) -> OrcType:
        is_struct = [token.lower() for token in self._tokens[:2]] == ["struct", "<"]
        found = self._type(0) if is_struct else self._fields(0, needs_colon=False)
        if self._at != len(self._tokens):
            raise self._problem()
        return found

    def _fields(self, depth: int, *, needs_colon: bool = True) -> OrcType:
        names: list[str] = []
        kinds: list[OrcType] = []
        while not names or self._peek() == ",":
            if names:
                self._next()
            names.append(self._name())
            if needs_colon or self._peek() == ":":
                self._expect(":")
            kinds.append(self._type(depth))
        return OrcType("struct", children=tuple(kinds), names=tuple(names))

    def _type(self, depth: int) -> OrcType:
        kind = self._next().lower()
        if depth > _MOST_DEPTH:
            raise self._problem()
        if kind == "struct":
            self._expect("<")
            found = self._fields(depth + 1)
            self._expect(">")
            return found
        if kind in ("array", "map", "uniontype"):
            children = self._listed("<", lambda: self._type(depth + 1), ">")
            if len(children) != {"array": 1, "map": 2}.get(kind, len(children)):
                raise self._problem()
            return OrcType(kind, children=tuple(children))
        if kind == "timestamp" and self._peek().lower() == "with":
            for word in ("with", "local", "time", "zone"):
                self._expect(word)
            kind = "timestamp with local time zone"
        kind = {"integer": "int"}.get(kind, kind)
        if kind not in _LEAVES:
            raise self._problem()
        numbers = self._listed("(", self._number, ")") if self._peek() == "(" else []
        if len(numbers) > 2:
            raise self._problem()
        if kind == "decimal":
            precision, scale = [*numbers, *(10, 0)[len(numbers) :]]
            return OrcType(kind, precision=precision, scale=scale)
        return OrcType(kind, max_length=numbers[0] if numbers else 0)

    def _listed(self, before: str, read: Callable[[], T], after: str) -> list[T]:
        """One or more, with commas between them."""
        self._expect(before)
        found = [read()]
        while self._peek() == ",":
            self._next()
            found.append(read())
        self._expect(after)
        return found

    def _name(self) -> str:
        token = self._next()
        if _QUOTED.fullmatch(token):
            return token[1:-1].replace("``", "`")
        if not _WORD.fullmatch(token):
            raise self._problem()
        return token

    def _number(self) -> int:
        token = self._next()
        if not _NUMBER.fullmatch(token):
            raise self._problem()
        return int(token)

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        if not token:
            raise self._problem()
        self._at += 1
        return token

    def _expect(self, wanted: str) -> None:
        if self._next().lower() != wanted:
            raise self._problem()

    def _problem(self) -> UsageProblem:
        return UsageProblem(
            f"not a list of columns: {self._text[:200]!r}", "", "write it as in CREATE TABLE: 'id int, name string'"
        )
