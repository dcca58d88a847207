"""Random schemas and values, from a seed or from hypothesis: `Choice` is the one door to either source of luck."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

from support.judge.hivetypes import HiveType, parse_type
from support.judge.lazybinary import timestamp_text

T = TypeVar("T")

ALL_TYPES = (
    "struct<t1:tinyint,t2:smallint,t3:int,t4:bigint,f:float,d:double,b:boolean,s:string,c:char(10),vc:varchar(12),dt:date,"
    "ts:timestamp,de:decimal(10,2),de2:decimal(38,10),bin:binary,li:array<int>,mp:map<string,bigint>,"
    "st:struct<x:int,y:string,z:array<struct<k:int,v:string>>>,un:uniontype<int,string,double>>"
)
SCHEMAS = (
    "struct<a:int,b:string>",
    "struct<id:bigint>",
    "struct<k:int,price:decimal(12,3),day:date,at:timestamp,ok:boolean>",
    "struct<id:bigint,tags:array<string>,counts:map<string,int>,pos:struct<x:double,y:double>>",
    "struct<a:tinyint,c:char(4),v:varchar(6),raw:binary,deep:array<array<struct<k:int,v:map<int,string>>>>>",
    "struct<bucket:int,row:string,operation:bigint>",
    ALL_TYPES,
)
"""Flat and nested; one uses the names of the ACID columns."""

WORDS = ("", "a", "brown", "épée", "日本", "zz", "x" * 40, 'quote"\\', "line\nbreak", "N", "\\N", "null", "🐝", "\x01")


class Choice(Protocol):
    """A source of decisions; smaller numbers and earlier options are the simpler ones."""

    def integer(self, low: int, high: int) -> int: ...

    def chance(self, percent: int) -> bool: ...

    def pick(self, options: Sequence[T]) -> T: ...

    def several(self, low: int, high: int, make: Callable[[Any], T]) -> tuple[T, ...]:
        """Between `low` and `high` things, each made from the choice it is given."""
        ...


class SeedChoice:
    """Decisions from a seed: the same history on every machine."""

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def chance(self, percent: int) -> bool:
        return self._random.randrange(100) < percent

    def pick(self, options: Sequence[T]) -> T:
        return options[self._random.randrange(len(options))]

    def several(self, low: int, high: int, make: Callable[[Any], T]) -> tuple[T, ...]:
        return tuple(make(self) for _ in range(self.integer(low, high)))


class DrawChoice:
    """Decisions from hypothesis, which shrinks them towards no, 0 and the first option."""

    def __init__(self, draw: Any) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return int(self._draw(st.integers(low, high)))

    def chance(self, percent: int) -> bool:
        return int(self._draw(st.integers(0, 99))) >= 100 - percent

    def pick(self, options: Sequence[T]) -> T:
        return options[self.integer(0, len(options) - 1)]

    def several(self, low: int, high: int, make: Callable[[Any], T]) -> tuple[T, ...]:
        @st.composite
        def one(draw: Any) -> T:
            return make(DrawChoice(draw))

        return tuple(self._draw(st.lists(one(), min_size=low, max_size=high)))  # lists: hypothesis can drop any item


_RANGES = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}


def _integer(choice: Choice, bits: int) -> int:
    if choice.chance(15):
        return choice.pick((0, -1, 2 ** (bits) - 1, -(2**bits)))
    return choice.integer(0, min(1000, 2**bits - 1))


def _decimal(choice: Choice, precision: int, scale: int) -> Decimal:
    digits = choice.integer(1, precision)
    unscaled = choice.integer(0, 10**digits - 1) * (-1 if choice.chance(30) else 1)
    return Decimal(f"{unscaled}E-{scale}")


def _timestamp(choice: Choice) -> str:
    seconds = choice.integer(0, 4_000_000_000) if choice.chance(80) else -choice.integer(1, 2_000_000_000)
    return timestamp_text(seconds, choice.pick((0, 500_000_000, 679_000_000, 161_695_604, 1, 999_999_999)))


def value_of(choice: Choice, node: HiveType, nullable: bool = True) -> Any:
    """A value in the plain form of `normal.py`, null now and then."""
    if nullable and choice.chance(15):
        return None
    kind, inner = node.kind, node.children
    if kind in _RANGES:
        return _integer(choice, _RANGES[kind])
    if kind == "boolean":
        return choice.chance(50)
    if kind in ("float", "double"):
        return choice.pick((0.0, 0.75, -27.5, 1e10, float("nan"), float("inf"), float(choice.integer(0, 999)) / 8))
    if kind in ("string", "char", "varchar"):
        word = choice.pick(WORDS)
        return word if kind == "string" else word[: node.arguments[0]].rstrip(" ")
    if kind == "binary":
        return bytes(choice.several(0, 5, lambda c: c.integer(0, 255)))
    if kind == "date":
        return timestamp_text(choice.integer(-10_000, 40_000) * 86400, 0)[:10]
    if kind == "timestamp":
        return _timestamp(choice)
    if kind == "decimal":
        return _decimal(choice, *node.arguments)
    if kind == "array":
        return list(choice.several(0, 3, lambda c: value_of(c, inner[0])))
    if kind == "map":
        keys = {repr(k): k for k in choice.several(0, 3, lambda c: value_of(c, inner[0], False))}
        return [(key, value_of(choice, inner[1])) for key in keys.values()]
    if kind == "uniontype":
        tag = choice.integer(0, len(inner) - 1)
        return (tag, value_of(choice, inner[tag], False))
    if kind == "struct":
        return {name: value_of(choice, child) for name, child in zip(node.names, inner, strict=True)}
    raise ValueError(f"no values for {node}")


def row_of(choice: Choice, schema: str) -> dict[str, Any]:
    """A row of the table's columns."""
    return dict(value_of(choice, parse_type(schema), False))
