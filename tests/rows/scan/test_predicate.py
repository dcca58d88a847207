"""`where` on random tables: the same rows as a full scan filtered by a model of SQL's logic."""

from __future__ import annotations

import datetime
import math
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.files.acid_files import SMALL_GROUPS, write_deletes, write_delta, write_plain
from support.tables import snapshot_of

from acidctl.base.errors import UsageProblem
from acidctl.orc.types import OrcType
from acidctl.rows.scan.scan import Scan

DAY = datetime.date(2024, 1, 1)
NOON = datetime.datetime(2024, 1, 1, 12, 0, 0, 123000)

TYPES = OrcType(
    "struct",
    children=(
        OrcType("bigint"),
        OrcType("smallint"),
        OrcType("double"),
        OrcType("float"),
        OrcType("string"),
        OrcType("char", max_length=4),
        OrcType("date"),
        OrcType("decimal", precision=10, scale=2),
        OrcType("timestamp"),
        OrcType("boolean"),
        OrcType("struct", children=(OrcType("int"), OrcType("string")), names=("x", "y")),
    ),
    names=("i", "h", "d", "f", "t", "c", "dt", "de", "ts", "b", "st"),
)

TEXTS = ["", "a", "a ", "ab", "b", "ä", "\N{GRINNING FACE}", "zz"]
DOUBLES = [math.nan, -0.0, 0.0, 1.5, -2.0, math.inf, -math.inf, 3.25]
POOLS: dict[str, list[Any]] = {
    "i": [-(1 << 63), (1 << 63) - 1, 0, 1, 2, 3, (1 << 53) + 1],
    "h": [-5, 0, 1, 2, 3, 32767],
    "d": DOUBLES,
    "f": DOUBLES,
    "t": TEXTS,
    "c": ["", "a", "ab", "b", "zz"],
    "dt": [DAY, DAY + datetime.timedelta(1), datetime.date(1960, 5, 5), datetime.date(1500, 1, 1)],
    "de": [Decimal("0.00"), Decimal("1.50"), Decimal("-2.25"), Decimal("99999999.99")],
    "ts": [NOON, NOON + datetime.timedelta(days=3), datetime.datetime(1950, 12, 31, 23, 59, 59)],
    "b": [True, False],
    "st": [{"x": 1, "y": "a"}, {"x": None, "y": "b"}, {"x": 3, "y": None}],
}
LITERALS: dict[str, list[tuple[str, Any]]] = {
    "i": [("0", 0), ("2", 2), ("1.5", 1.5), ("9223372036854775807", (1 << 63) - 1), ("99999999999999999999", 10**20),
          ("'3'", 3), ("-9223372036854775808", -(1 << 63)), ("9007199254740993", (1 << 53) + 1), ("NULL", None)],
    "h": [("1", 1), ("0.5", 0.5), ("100000", 100000), ("-5", -5)],
    "d": [("0", 0.0), ("1.5", 1.5), ("-2", -2.0), ("3.3", 3.3), ("1e300", 1e300)],
    "f": [("0", 0.0), ("1.5", 1.5), ("3.3", 3.3)],
    "t": [(f"'{text}'", text) for text in TEXTS],
    "c": [("'a'", "a"), ("'a  '", "a"), ("'ab'", "ab"), ("''", "")],
    "dt": [("DATE '2024-01-01'", DAY), ("'2024-01-02'", DAY + datetime.timedelta(1)),
           ("'1500-01-01'", datetime.date(1500, 1, 1))],
    "de": [("1.5", Decimal("1.5")), ("1.505", Decimal("1.505")), ("0", Decimal(0)), ("1e20", Decimal("1e20"))],
    "ts": [("TIMESTAMP '2024-01-01 12:00:00.123'", NOON), ("'2024-01-02'", datetime.datetime(2024, 1, 2)),
           ("'0001-01-01'", datetime.datetime(1, 1, 1)),
           ("'9999-12-31 23:59:59'", datetime.datetime(9999, 12, 31, 23, 59, 59))],
    "b": [("true", True), ("FALSE", False)],
    "st.x": [("1", 1), ("2", 2)],
    "st.y": [("'a'", "a"), ("'b'", "b")],
}  # fmt: skip
SIGNS = {
    "=": lambda a, b: a == b, "<>": lambda a, b: a != b, "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip

Model = tuple[str, Any]
"""A condition as text, and as a function of a row to True, False or None."""


def value_of(row: dict[str, Any], name: str) -> Any:
    for part in name.split("."):
        row = None if row is None else row[part]
    return row.rstrip(" ") if name == "c" and row is not None else row


@st.composite
def leaves(draw: st.DrawFn) -> Model:
    name = draw(st.sampled_from(sorted(LITERALS)))
    options = LITERALS[name]
    shape = draw(st.sampled_from(["compare", "compare", "compare", "in", "between", "null"]))
    negated = draw(st.booleans())
    word = "NOT " if negated else ""

    def finish(text: str, found: Any) -> Model:
        return text, (lambda row: invert(found(row))) if negated else found

    if shape == "null":
        return finish(f"{name} IS {word}NULL", lambda row: value_of(row, name) is None)
    if shape == "in" and name != "x":
        some = draw(st.lists(st.sampled_from(options), min_size=1, max_size=3))
        return finish(
            f"{name} {word}IN ({', '.join(text for text, _ in some)})",
            lambda row: either(known("=", value_of(row, name), value) for _, value in some),
        )
    if shape == "between" and name != "b":
        (low, a), (high, b) = draw(st.sampled_from(options)), draw(st.sampled_from(options))
        return finish(
            f"{name} {word}BETWEEN {low} AND {high}",
            lambda row: both([known(">=", value_of(row, name), a), known("<=", value_of(row, name), b)]),
        )
    sign = draw(st.sampled_from(["=", "<>"] if name == "b" else sorted(SIGNS)))
    text, value = draw(st.sampled_from(options))
    return f"{name} {sign} {text}", lambda row: known(sign, value_of(row, name), value)


def known(sign: str, a: Any, b: Any) -> bool | None:
    return None if a is None or b is None else SIGNS[sign](a, b)


def invert(one: bool | None) -> bool | None:
    return None if one is None else not one


def both(parts: Any) -> bool | None:
    found = list(parts)
    return False if False in found else None if None in found else True


def either(parts: Any) -> bool | None:
    return invert(both(invert(part) for part in parts))


def conditions() -> st.SearchStrategy[Model]:
    return st.recursive(
        leaves(),
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(
                lambda p: (f"({p[0][0]}) AND ({p[1][0]})", lambda row: both([p[0][1](row), p[1][1](row)]))
            ),
            st.tuples(inner, inner).map(
                lambda p: (f"({p[0][0]}) OR ({p[1][0]})", lambda row: either([p[0][1](row), p[1][1](row)]))
            ),
            inner.map(lambda p: (f"NOT ({p[0]})", lambda row: invert(p[1](row)))),
        ),
        max_leaves=4,
    )


ROWS = st.fixed_dictionaries({name: st.none() | st.sampled_from(pool) for name, pool in POOLS.items()})
SCHEMA = pa.schema(
    [
        ("i", pa.int64()), ("h", pa.int16()), ("d", pa.float64()), ("f", pa.float32()), ("t", pa.string()),
        ("c", pa.string()), ("dt", pa.date32()), ("de", pa.decimal128(10, 2)), ("ts", pa.timestamp("ns")),
        ("b", pa.bool_()), ("st", pa.struct([("x", pa.int32()), ("y", pa.string())])),
    ]
)  # fmt: skip


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    st.lists(st.lists(ROWS, min_size=1, max_size=4), min_size=1, max_size=4),
    st.lists(conditions(), min_size=8, max_size=8),
    st.sampled_from(sorted(POOLS)),
    st.booleans(),
)
def test_where_is_a_filter(stripes: list[list[dict[str, Any]]], wanted: list[Model], order: str, native: bool) -> None:
    stripes.sort(key=lambda rows: str(rows[0][order]))
    batches = [pa.RecordBatch.from_pylist(rows, schema=SCHEMA) for rows in stripes]
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "t"
        if native:
            write_delta(table, 1, *batches, row=TYPES)
            write_deletes(table, 2, 1, [1], row=TYPES)
        else:
            write_plain(table / "000000_0", *batches, row=TYPES, settings=SMALL_GROUPS)
        snapshot = snapshot_of(table)
        everything = [row for batch in Scan(snapshot).batches() for row in batch.to_pylist()]
        for text, model in wanted:
            scan = Scan(snapshot, where=text)
            found = [row for batch in scan.batches() for row in batch.to_pylist()]
            expected = [row for row in everything if model(row) is True]
            assert repr(found) == repr(expected), text
            assert scan.count() == len(expected), text


def stripes_read(scan: Scan) -> list[int]:
    return [stripe for _, stripe, _ in scan._stripes([])]


@pytest.fixture(scope="module")
def sorted_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten stripes of ten rows; every column ascends, the last stripe is all NULL."""
    table = tmp_path_factory.mktemp("sorted") / "t"
    batches = []
    for stripe in range(9):
        ids = range(stripe * 10, stripe * 10 + 10)
        rows = [
            {
                "i": i, "h": i, "d": float(i), "f": float(i), "t": f"k{i:03}", "c": f"{i:03}",
                "dt": DAY + datetime.timedelta(i), "de": Decimal(i), "ts": NOON + datetime.timedelta(days=7 * i),
                "b": True, "st": {"x": i, "y": "a"},
            }
            for i in ids
        ]  # fmt: skip
        batches.append(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
    batches.append(pa.RecordBatch.from_pylist([dict.fromkeys(SCHEMA.names)] * 10, schema=SCHEMA))
    write_plain(table / "o" / "000000_0", *batches, row=TYPES, settings=SMALL_GROUPS)
    write_delta(table / "n", 5, *batches, row=TYPES)
    return table


@pytest.mark.parametrize("kind", ["o", "n"])
@pytest.mark.parametrize(
    ("where", "stripes"),
    [
        ("i = 25", [2]),
        ("i < 10", [0]),
        ("i >= 79.5", [8]),
        ("h IN (5, 85)", [0, 8]),
        ("d BETWEEN 33 AND 34", [3]),
        ("f > 88", [8]),
        ("t = 'k042'", [4]),
        ("t >= 'k088'", [8]),
        ("dt <= '2024-01-05'", [0]),
        ("de = 12.00", [1]),
        ("de > 79.995", [8]),
        ("ts < '2024-02-01'", [0]),
        ("st.x = 50", [5]),
        ("i IS NULL", [9]),
        ("NOT (i IS NOT NULL OR h > 3)", []),
        ("NOT (i >= 10)", [0]),
        ("i = 25 OR t = 'k031'", [2, 3]),
        ("i = 25 AND t = 'k031'", []),
        ("ROW__ID.rowid < 5", [0]),
        ("row__id.writeid = 77", []),
        ("i = NULL", []),
        ("c = '025'", list(range(9))),
        ("NOT (d >= 10)", list(range(9))),
        ("d <> 3", list(range(9))),
    ],
)
def test_stripes_out_of_range_are_not_read(sorted_table: Path, kind: str, where: str, stripes: list[int]) -> None:
    scan = Scan(snapshot_of(sorted_table / kind), where=where)
    assert stripes_read(scan) == stripes


def test_columns_of_the_condition_are_not_returned(sorted_table: Path) -> None:
    scan = Scan(snapshot_of(sorted_table / "n"), ["st.y", "i"], where="ROW__ID.rowid = 12 AND st.x = 12")
    (batch,) = scan.batches()
    assert batch.to_pylist() == [{"st.y": "a", "i": 12}]


@pytest.mark.parametrize(
    "where", ["t = 5", "i = 'x'", "dt = 5", "b < 5", "st = 1", "ts > 'soon'", "i", "dt = '2024-13-01'", "t LIKE 5"]
)
def test_values_that_do_not_fit_are_refused_at_once(sorted_table: Path, where: str) -> None:
    with pytest.raises(UsageProblem):
        Scan(snapshot_of(sorted_table / "n"), where=where)


@pytest.mark.parametrize("sign", ["", "-"])
def test_decimals_of_all_their_digits(tmp_path: Path, sign: str) -> None:
    """Python rounds the negative of a decimal to 28 digits."""
    texts = [f"{sign}{'9' * 36}.99", f"{sign}{'9' * 36}.98", "1.50"]
    types = OrcType("struct", children=(OrcType("decimal", precision=38, scale=2),), names=("d",))
    batch = pa.record_batch({"d": pa.array([Decimal(text) for text in texts], pa.decimal128(38, 2))})
    write_delta(tmp_path / "t", 1, batch, row=types)
    snapshot = snapshot_of(tmp_path / "t")
    assert Scan(snapshot, where=f"d = {texts[0]}").count() == 1
    assert Scan(snapshot, where=f"d IN ({texts[0]}, {texts[1]})").count() == 2
    assert Scan(snapshot, where=f"d = {sign}{'9' * 36}.97").count() == 0
    assert Scan(snapshot, where=f"d = {sign}1{'0' * 36}").count() == 0
