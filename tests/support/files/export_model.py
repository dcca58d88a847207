"""A second encoder, in plain Python, one value at a time: what the fast one is held against.

It shares nothing with acidctl: calendars through ``datetime``, digits through ``numpy``'s formatter and ``decimal``,
escapes through ``json`` and ``unicodedata``. Beside it, random column types with random values, and the Arrow arrays
that hold them in every layout the format allows: slices, offsets, garbage where the value is null, dictionaries, both
kinds of unions.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from acidctl.orc.read.wide_timestamps import WideTimestamp
from acidctl.orc.types import OrcType
from support.trouble.unsafe import quoted

# -- the forms, a value at a time -------------------------------------------------------------------------------


def date_text(days: int) -> str:
    """yyyy-MM-dd through datetime, moved by whole 400-year cycles (146,097 days) into its range."""
    cycles = (days - 11017) // 146097  # 2000-03-01 is day 11017
    moment = datetime(1970, 1, 1) + timedelta(days=days - cycles * 146097)
    year = moment.year + cycles * 400
    return f"{'-' if year < 0 else ''}{abs(year):04d}-{moment.month:02d}-{moment.day:02d}"


def timestamp_text(nanoseconds: int) -> str:
    seconds, nanos = divmod(nanoseconds, 10**9)
    days, of_day = divmod(seconds, 86400)
    clock = f"{of_day // 3600:02d}:{of_day // 60 % 60:02d}:{of_day % 60:02d}"
    return f"{date_text(days)} {clock}.{f'{nanos:09d}'.rstrip('0') or '0'}"


def float_text(value: float, single: bool) -> str:
    if value != value:
        return '"NaN"'
    if value in (float("inf"), float("-inf")):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    number = np.float32(value) if single else np.float64(value)
    mantissa, _, exponent = np.format_float_scientific(number, unique=True, trim="-").partition("e")
    if value == 0:
        return "-0.0" if str(number).startswith("-") else "0.0"
    power = int(exponent)
    if power < -6 or power >= 10:
        return f"{mantissa}e{power:+d}"
    return np.format_float_positional(number, unique=True, trim="0")


def decimal_text(value: Decimal) -> str:
    text = f"{value:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def string_text(value: bytes, length: int) -> str:
    return quoted(value.decode("utf-8", "replace").ljust(length))


# -- random types -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A type: how to draw its values, build its arrays and write its JSON."""

    orc: OrcType
    values: st.SearchStrategy[Any]
    build: Callable[[list[Any], random.Random], pa.Array]
    text: Callable[[Any], str]

    def nullable(self) -> st.SearchStrategy[Any]:
        return st.none() | self.values

    def json(self, value: Any) -> str:
        return "null" if value is None else self.text(value)

    def array(self, values: list[Any], rng: random.Random) -> pa.Array:
        """The array, as a slice out of a longer one half of the time."""
        if not values or rng.random() < 0.5:
            return self.build(values, rng)
        before = [rng.choice(values) for _ in range(rng.randrange(9))]
        after = [rng.choice(values) for _ in range(rng.randrange(3))]
        return self.build(before + values + after, rng).slice(len(before), len(values))


def _leaf(kind: str, arrow: pa.DataType, values: Any, text: Callable[[Any], str], **attributes: int) -> Column:
    return Column(OrcType(kind, **attributes), values, lambda rows, _: pa.array(rows, arrow), text)


def _integer(kind: str, arrow: pa.DataType, bits: int) -> Column:
    return _leaf(kind, arrow, st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1), str)


def _bytes_array(rows: list[Any], kind: pa.DataType) -> pa.Array:
    """Strings and bytes from raw bytes (UTF-8 or not)."""
    return pa.array(rows, pa.binary()).view(kind)


_TEXTS = st.text(max_size=12).map(str.encode)
_ODD = st.lists(
    st.sampled_from([b'"', b"\\", b"\n", b"\x00", b"\x1f", b"\x7f", b"\xff", b"\xe2\x82", b"\xc3\xa9", b"a", b" "]),
    max_size=8,
).map(b"".join)


def _string(kind: str, length: int = 0) -> Column:
    return Column(
        OrcType(kind, max_length=length),
        _TEXTS | _ODD,
        lambda rows, _: _bytes_array(rows, pa.string()),
        lambda value: string_text(value, length if kind == "char" else 0),
    )


def _binary() -> Column:
    return Column(
        OrcType("binary"),
        st.binary(max_size=8),
        lambda rows, _: _bytes_array(rows, pa.binary()),
        lambda value: "[" + ",".join(map(str, value)) + "]",
    )


def _decimal(precision: int, scale: int) -> Column:
    bound = 10**precision - 1
    small = st.integers(-1000, 1000) | st.integers(0, precision - 1).map(lambda power: 10**power)
    return _leaf(
        "decimal",
        pa.decimal128(precision, scale),
        (st.integers(-bound, bound) | small.map(lambda n: max(-bound, min(bound, n)))).map(
            lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -scale))
        ),
        lambda value: f'"{decimal_text(value)}"',
        precision=precision,
        scale=scale,
    )


def _timestamp(kind: str, unit: str, zone: str | None) -> Column:
    factor = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit]
    any_tick = st.integers(-(2**63), 2**63 - 1)
    second = 10**9 // factor
    whole = st.integers(-(2**33), 2**33).map(lambda seconds: seconds * second)
    near = st.integers(-(2**55), 2**55)
    return _leaf(
        kind, pa.timestamp(unit, zone), any_tick | whole | near, lambda ticks: f'"{timestamp_text(ticks * factor)}"'
    )


def _wide() -> Column:
    pair = st.tuples(
        st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**36), 2**38),
        st.integers(0, 999_999_999) | st.just(0) | st.sampled_from([100_000_000, 1, 999_999_999]),
    )

    def build(rows: list[Any], _: random.Random) -> pa.Array:
        kind = WideTimestamp()
        stored = [None if row is None else {"seconds": row[0], "nanos": row[1]} for row in rows]
        return pa.ExtensionArray.from_storage(kind, pa.array(stored, kind.storage_type))

    return Column(OrcType("timestamp"), pair, build, lambda row: f'"{timestamp_text(row[0] * 10**9 + row[1])}"')


_PRECISIONS = st.integers(1, 38).flatmap(lambda p: st.tuples(st.just(p), st.integers(0, p)))

LEAVES: st.SearchStrategy[Column] = st.one_of(
    st.sampled_from(
        [
            _leaf("boolean", pa.bool_(), st.booleans(), lambda value: "true" if value else "false"),
            _integer("tinyint", pa.int8(), 8),
            _integer("smallint", pa.int16(), 16),
            _integer("int", pa.int32(), 32),
            _integer("bigint", pa.int64(), 64),
            _leaf("float", pa.float32(), st.floats(width=32), lambda value: float_text(value, True)),
            _leaf("double", pa.float64(), st.floats(), lambda value: float_text(value, False)),
            _leaf("double", pa.float64(), st.integers(-9, 9).map(float), lambda value: float_text(value, False)),
            _binary(),
            _leaf("date", pa.date32(), st.integers(-(2**31), 2**31 - 1), lambda days: f'"{date_text(days)}"'),
            _leaf("date", pa.date32(), st.integers(-800_000, 3_000_000), lambda days: f'"{date_text(days)}"'),
            _timestamp("timestamp", "ns", None),
            _timestamp("timestamp", "us", None),
            _timestamp("timestamp", "ms", None),
            _timestamp("timestamp", "s", None),
            _timestamp("timestamp with local time zone", "ns", "UTC"),
            _timestamp("timestamp with local time zone", "us", "Europe/Berlin"),
            _string("string"),
            _string("varchar", 3),
        ]
    ),
    st.integers(1, 20).map(lambda length: _string("char", length)),
    _PRECISIONS.map(lambda both: _decimal(*both)),
    st.builds(_wide),
)


def _struct(names: list[str], children: list[Column]) -> Column:
    def build(rows: list[Any], rng: random.Random) -> pa.Array:
        arrays = []
        for place, child in enumerate(children):
            own = [None if row is None else row[place] for row in rows]
            some = next((value for value in own if value is not None), None)
            # What stands below a null struct is nobody's business.
            arrays.append(
                child.array([some if row is None else value for row, value in zip(rows, own, strict=True)], rng)
            )
        mask = pa.array([row is None for row in rows], pa.bool_())
        if not arrays:
            return pa.array([None if row is None else {} for row in rows], pa.struct([]))
        return pa.StructArray.from_arrays(arrays, names=names, mask=mask)

    def text(row: tuple[Any, ...]) -> str:
        pairs = zip(names, children, row, strict=True)
        return "{" + ",".join(f"{quoted(n)}:{c.json(v)}" for n, c, v in pairs) + "}"

    orc = OrcType("struct", children=tuple(child.orc for child in children), names=tuple(names))
    return Column(orc, st.tuples(*(child.nullable() for child in children)), build, text)


def _cut(rows: list[Any], rng: random.Random) -> tuple[list[Any], list[int]]:
    """(elements, offsets) of lists; null lists cut elements too, and some lie before the first."""
    some = next((element for row in rows if row for element in row), None)
    elements: list[Any] = [some] * rng.randrange(3)
    offsets = [len(elements)]
    for row in rows:
        elements += [some] * rng.randrange(3) if row is None else row
        offsets.append(len(elements))
    return elements, offsets


def _array(child: Column) -> Column:
    def build(rows: list[Any], rng: random.Random) -> pa.Array:
        elements, offsets = _cut(rows, rng)
        mask = pa.array([row is None for row in rows], pa.bool_())
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), child.array(elements, rng), mask=mask)

    return Column(
        OrcType("array", children=(child.orc,)),
        st.lists(child.nullable(), max_size=4),
        build,
        lambda row: "[" + ",".join(child.json(value) for value in row) + "]",
    )


def _map(key: Column, value: Column) -> Column:
    def build(rows: list[Any], rng: random.Random) -> pa.Array:
        pairs, offsets = _cut(rows, rng)
        if pairs and pairs[0] is None:
            pairs, offsets = [pair for pair in pairs if pair is not None], [0] * len(offsets)
        mask = pa.array([row is None for row in rows], pa.bool_())
        keys = key.array([pair[0] for pair in pairs], rng)
        items = value.array([pair[1] for pair in pairs], rng)
        return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, items, mask=mask)

    def text(row: list[tuple[Any, Any]]) -> str:
        return "[" + ",".join(f'{{"_key":{key.json(k)},"_value":{value.json(v)}}}' for k, v in row) + "]"

    pair = st.tuples(key.values, value.nullable())
    return Column(OrcType("map", children=(key.orc, value.orc)), st.lists(pair, max_size=3), build, text)


def _union(children: list[Column]) -> Column:
    def build(rows: list[Any], rng: random.Random) -> pa.Array:
        codes = rng.sample(range(len(children) + 3), len(children))
        tags = [0 if row is None else row[0] for row in rows]
        kinds = pa.array([codes[tag] for tag in tags], pa.int8())
        names = [f"_union_{i}" for i in range(len(children))]
        arrays = []
        for i, child in enumerate(children):
            own = [None if row is None or tag != i else row[1] for row, tag in zip(rows, tags, strict=True)]
            some = next((value for value in own if value is not None), None)
            arrays.append(child.array([some if tag != i else v for tag, v in zip(tags, own, strict=True)], rng))
        return pa.UnionArray.from_sparse(kinds, arrays, names, codes)

    values = st.one_of(*(st.tuples(st.just(i), child.nullable()) for i, child in enumerate(children)))
    orc = OrcType("uniontype", children=tuple(child.orc for child in children))
    return Column(orc, values, build, lambda row: children[row[0]].json(row[1]))


NAMES = st.text(max_size=6) | st.sampled_from(["id", "value", 'q"\\\n', "a", "a"])


def _nested(children: st.SearchStrategy[Column]) -> st.SearchStrategy[Column]:
    fields = st.lists(st.tuples(NAMES, children), max_size=4)
    return _plain_nested(children) | st.lists(children, min_size=1, max_size=3).map(_union) | fields.map(_struct_of)


def _plain_nested(children: st.SearchStrategy[Column]) -> st.SearchStrategy[Column]:
    fields = st.lists(st.tuples(NAMES, children), min_size=1, max_size=4, unique_by=itemgetter(0))
    return st.one_of(fields.map(_struct_of), children.map(_array), st.builds(_map, children, children))


def _struct_of(pairs: list[tuple[str, Column]]) -> Column:
    return _struct([name for name, _ in pairs], [child for _, child in pairs])


COLUMNS: st.SearchStrategy[Column] = st.recursive(LEAVES, _nested, max_leaves=6)
"""All that ORC knows."""

PLAIN_COLUMNS: st.SearchStrategy[Column] = st.recursive(LEAVES, _plain_nested, max_leaves=6)
"""Without unions, structs without fields, and names that repeat."""


@dataclass(frozen=True, repr=False)
class Case:
    """A batch, the types of its columns, and the lines that it must give."""

    batch: pa.RecordBatch
    types: OrcType
    lines: list[str]

    def __repr__(self) -> str:
        return "\n".join([str(self.batch.schema), *self.lines])


@st.composite
def cases(draw: st.DrawFn, plain: bool = False) -> Case:
    """Random columns with random rows; `plain` as for PLAIN_COLUMNS."""
    pair = st.tuples(NAMES, PLAIN_COLUMNS if plain else COLUMNS)
    pairs = draw(st.lists(pair, min_size=1, max_size=4, unique_by=itemgetter(0) if plain else None))
    root = _struct([name for name, _ in pairs], [column for _, column in pairs])
    rows = draw(st.lists(root.values, max_size=10))
    rng = random.Random(draw(st.integers(0, 2**32)))
    arrays = [column.array([row[i] for row in rows], rng) for i, (_, column) in enumerate(pairs)]
    batch = pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in pairs])
    return Case(batch, root.orc, [root.json(row) for row in rows])


# -- the model itself -------------------------------------------------------------------------------------------
