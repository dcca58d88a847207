"""Conditions on floating point numbers beside NaN: what pruning leaves against the values, whoever wrote the file."""

from __future__ import annotations

import io
import math
import operator
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyorc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import orc
from support.files.orc_bytes import tail_of
from support.tables import snapshot_of

import acidctl
from acidctl.orc.types import OrcType
from acidctl.orc.write.stripe_editor import StripeParts
from acidctl.orc.write.stripe_encoder import encode_stripes
from acidctl.orc.write.writer_settings import WriterSettings
from acidctl.rows.export.sinks import OrcSink
from acidctl.rows.scan.pruning import stripe_bounds
from acidctl.rows.scan.scan import Scan

STRIDE = 4
DOUBLE, FLOAT = OrcType("double"), OrcType("float")
ROW = OrcType(
    "struct",
    children=(DOUBLE, FLOAT, OrcType("struct", children=(DOUBLE,), names=("x",))),
    names=("d", "f", "st"),
)
SCHEMA = pa.schema([("d", pa.float64()), ("f", pa.float32()), ("st", pa.struct([("x", pa.float64())]))])
SIGNS: dict[str, Callable[[float, float], bool]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
COLUMNS = ("d", "f", "st.x")
VALUES = (math.nan, math.nan, math.inf, -math.inf, -0.0, 0.0, 1.5, -2.25, 999.0)


def by_pyarrow(values: list[float | None]) -> bytes:
    sink = pa.BufferOutputStream()
    orc.write_table(_table(values), sink, row_index_stride=STRIDE, stripe_size=1, batch_size=3 * STRIDE)
    return bytes(sink.getvalue())


def by_pyorc(values: list[float | None]) -> bytes:
    out = io.BytesIO()
    shape = "struct<d:double,f:float,st:struct<x:double>>"
    writer = pyorc.Writer(out, shape, row_index_stride=STRIDE, stripe_size=1, batch_size=3 * STRIDE)
    for value in values:
        writer.write((value, value, (value,)))
    writer.close()
    return out.getvalue()


def by_acidctl(values: list[float | None]) -> bytes:
    out = io.BytesIO()
    sink = OrcSink(out, ROW, WriterSettings(stride=STRIDE, stripe_size=1, batch_rows=3 * STRIDE))
    for batch in _table(values).to_batches():
        sink.write(batch)
    sink.close()
    return out.getvalue()


def _table(values: list[float | None]) -> pa.Table:
    return pa.Table.from_pylist([{"d": v, "f": v, "st": {"x": v}} for v in values], schema=SCHEMA)


WRITERS = {"pyarrow": by_pyarrow, "pyorc": by_pyorc, "acidctl": by_acidctl}


@pytest.mark.sampled
@pytest.mark.parametrize("writer", WRITERS)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.lists(st.none() | st.sampled_from(VALUES), min_size=1, max_size=STRIDE), min_size=1, max_size=9),
    st.sampled_from(COLUMNS),
)
def test_no_row_is_lost_beside_nan(writer: str, groups: list[list[float | None]], column: str) -> None:
    values = [value for group in groups for value in (group * STRIDE)[:STRIDE]]
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "t"
        table.mkdir()
        (table / "000000_0").write_bytes(WRITERS[writer](values))
        snapshot = snapshot_of(table)
        for wanted in (0.0, 1.5, -2.25, 999.0, 1000.0):
            for sign, holds in SIGNS.items():
                expected = [place for place, v in enumerate(values) if v is not None and holds(v, wanted)]
                check(snapshot, f"{column} {sign} {wanted}", expected)
        unlike = [place for place, v in enumerate(values) if v is not None and not v < 1.5]
        check(snapshot, f"NOT ({column} < 1.5)", unlike)
        check(snapshot, f"{column} IN (999, 0)", [i for i, v in enumerate(values) if v in (999.0, 0.0)])
        check(snapshot, f"{column} IS NULL", [i for i, v in enumerate(values) if v is None])


def check(snapshot: object, where: str, expected: list[int]) -> None:
    scan = Scan(snapshot, ["ROW__ID"], where=where)  # type: ignore[arg-type]
    found = [one["rowid"] for batch in scan.batches() for one in batch.column(0).to_pylist()]
    assert found == expected, where
    assert scan.count() == len(expected), where


@pytest.mark.parametrize("writer", WRITERS)
def test_the_row_beside_many_nans(writer: str, tmp_path: Path) -> None:
    """The first row group is plain, all others begin with NaN: the bounds of a stripe are those of the first."""
    values: list[float | None] = [float(i % 10) if i < STRIDE or i % STRIDE else math.nan for i in range(3 * STRIDE)]
    values[-1] = 999.0
    (tmp_path / "000000_0").write_bytes(WRITERS[writer](values))
    table = acidctl.open_table(str(tmp_path))
    assert table.scan(where="d = 999").count() == 1
    assert table.scan(["f"], "f > 998").to_table().to_pylist() == [{"f": 999.0}]
    assert table.scan(where="st.x BETWEEN 998 AND 1000").count() == 1


@pytest.mark.parametrize(("code", "known"), [(0, False), (1, False), (2, True), (4, True), (9, False)])
def test_bounds_without_a_sum_count_from_presto_and_trino_only(code: int, known: bool) -> None:
    """Those two write no sum, and no bounds beside a NaN."""
    tail = tail_of(by_pyarrow([1.0, 2.0]))
    tail.footer.writer = code  # type: ignore[assignment]
    tail.metadata.stripeStats[0].colStats[1].doubleStatistics.ClearField("sum")
    column = tail.type_tree.children[0]
    bounds = stripe_bounds(tail, 0)(column, column)
    assert bounds is not None and (bounds.low, bounds.high) == ((1.0, 2.0) if known else (None, None))


def test_statistics_of_what_acidctl_writes_have_no_bounds_beside_nan() -> None:
    """Neither those of stripes and of the file, nor those of row groups, which old Java compares with all the same."""
    for stride in (STRIDE, 0):
        for compression in ("zlib", "zstd", "none"):
            settings_ = WriterSettings(compression, stride=stride)
            numbers = [1.0, 2.0, 3.0, 4.0, math.nan, 5.0, 6.0, 7.0, 8.0, math.nan, math.nan, 0.0]
            (stripe,) = encode_stripes(_table(numbers), settings_, ROW)
            blocks = [column.HasField("doubleStatistics") for column in stripe.statistics.colStats]
            assert blocks == [False] * 5
            parts = StripeParts(stripe.data, stripe.info, (compression, settings_.block_size))
            for column in (1, 2, 4):
                entries = () if (index := parts.row_index(column)) is None else index.entry
                found = [entry.statistics.HasField("doubleStatistics") for entry in entries]
                assert found == ([True, False, False] if stride else [])
    (stripe,) = encode_stripes(_table([1.0, None, math.inf]), WriterSettings(stride=STRIDE), ROW)
    assert stripe.statistics.colStats[1].doubleStatistics.maximum == math.inf


@pytest.mark.parametrize("writer", [by_pyorc, by_pyarrow, by_acidctl], ids=lambda one: one.__name__)
@pytest.mark.parametrize("number", [0.1, 0.7, 1e-9, 16777217.0, -0.1, 3.3])
def test_a_float_is_found_where_bounds_are_those_of_its_double(
    writer: Callable[..., bytes], number: float, tmp_path: Path
) -> None:
    """ORC C++ keeps bounds of the doubles that it was given: 0.1 is less than the nearest float."""
    (tmp_path / "000000_0").write_bytes(writer([number] * STRIDE))
    check(snapshot_of(tmp_path), f"f = cast({number!r} as float)", [*range(STRIDE)])
