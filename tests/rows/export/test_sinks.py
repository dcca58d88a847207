"""What the sinks write, read back by the tools that others use for those formats."""

from __future__ import annotations

import csv
import gc
import io
import json
import re
from decimal import Decimal
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.files.export_model import Case, cases
from support.files.json_text import encode_json_lines

from acidctl.base.errors import BadDataError, UsageProblem
from acidctl.base.printable import printable
from acidctl.orc.read.wide_timestamps import WideTimestamp
from acidctl.orc.types import OrcType
from acidctl.rows.export import sinks
from acidctl.rows.export.json_lines import cell_rows
from acidctl.rows.export.sinks import SINK_KINDS, open_sink

RELAXED = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def written(kind: str, *batches: pa.RecordBatch, **options: Any) -> bytes:
    out = io.BytesIO()
    sink = open_sink(kind, out, **options)
    for batch in batches:
        sink.write(batch)
    sink.close()
    assert not out.closed
    return out.getvalue()


def read_back(kind: str, data: bytes) -> pa.Table:
    if kind == "arrow":
        return pa.ipc.open_stream(data).read_all()
    # Not read_table, which cannot choose among fields of one name.
    return pq.ParquetFile(pa.BufferReader(data)).read()


def batch_of(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def wide(*values: tuple[int, int] | None, instant: bool = False) -> pa.Array:
    kind = WideTimestamp(instant)
    stored = [None if value is None else {"seconds": value[0], "nanos": value[1]} for value in values]
    return pa.ExtensionArray.from_storage(kind, pa.array(stored, kind.storage_type))


# -- JSON lines and CSV -----------------------------------------------------------------------------------------


@RELAXED
@given(cases())
def test_jsonl_is_what_the_encoder_gives(case: Case) -> None:
    assert written("jsonl", case.batch, case.batch, types=case.types) == 2 * encode_json_lines(case.batch, case.types)


@RELAXED
@given(cases())
def test_json_is_one_document_of_the_same_rows(case: Case) -> None:
    lines = encode_json_lines(case.batch, case.types).split(b"\n")[:-1] * 2
    document = written("json", case.batch, case.batch, types=case.types)
    assert document == (b"[\n" + b",\n".join(lines) + b"\n]\n" if lines else b"[]\n")
    assert [json.dumps(row) for row in json.loads(document)] == [json.dumps(json.loads(line)) for line in lines]


def parsed_csv(data: bytes) -> list[list[tuple[bool, str]]]:
    """Rows of (was it quoted, text): an RFC 4180 parser of its own, as Python's forgets the quotes."""
    text = data.decode()
    field = re.compile(r'(?:"((?:[^"]|"")*)"|([^"\n\r,]*))(,|\n)')
    rows: list[list[tuple[bool, str]]] = [[]]
    place = 0
    while place < len(text):
        match = field.match(text, place)
        assert match, text[place : place + 40]
        quoted = match[1] is not None
        rows[-1].append((quoted, match[1].replace('""', '"') if quoted else match[2]))
        if match[3] == "\n":
            rows.append([])
        place = match.end()
    return rows[:-1]


def csv_field(token: str, value: Any) -> tuple[bool | None, str]:
    """(whether it must be quoted, None when either is right; its text) of a value by its JSON."""
    if value is None:
        return False, ""
    if isinstance(value, str):
        return (True if value == "" else None), value
    return None, token


@RELAXED
@given(cases())
def test_csv_holds_the_json_forms(case: Case) -> None:
    rows = parsed_csv(written("csv", case.batch, types=case.types))
    assert [text for _, text in rows[0]] == case.batch.schema.names
    assert len(rows) == len(case.lines) + 1
    for row, line in zip(rows[1:], case.lines, strict=True):
        # Pairs, not a dict: names may repeat.  Tokens as they were written, so that digits are compared.
        pairs = json.loads(line, object_pairs_hook=list, parse_float=_Digits)
        for (quoted, text), (_, value) in zip(row, pairs, strict=True):
            if isinstance(value, list):
                assert text in line
                continue
            must, expected = csv_field(str(value).lower() if isinstance(value, bool) else str(value), value)
            assert text == expected
            assert must is None or quoted == must


class _Digits(float):
    """A number that remembers how it was written."""

    def __new__(cls, text: str) -> _Digits:
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __str__(self) -> str:
        return self.text


def test_csv_is_read_back_as_it_was() -> None:
    batch = batch_of(
        **{
            "id": pa.array([1, 2, None]),
            "te,xt": pa.array(["a,b", "", None]),
            'q"': pa.array(['say "x"', "line\nfeed", "plain"]),
            "bin": pa.array([b"\x01\x02", b"", None]),
            "day": pa.array([0, None, 1], pa.date32()),
            "list": pa.array([["x"], [], None]),
            "nan": pa.array([float("nan"), 1.0, None]),
        }
    )
    assert written("csv", batch).decode() == (
        'id,"te,xt","q""",bin,day,list,nan\n'
        '1,"a,b","say ""x""","[1,2]",1970-01-01,"[""x""]",NaN\n'
        '2,"","line\nfeed",[],,[],1.0\n'
        ",,plain,,1970-01-02,,\n"
    )
    assert next(csv.reader(io.StringIO(written("csv", batch).decode())))[1] == "te,xt"
    assert written("csv", schema=batch.schema) == b'id,"te,xt","q""",bin,day,list,nan\n'
    assert written("csv", batch.slice(0, 0)) == b'id,"te,xt","q""",bin,day,list,nan\n'


# -- Parquet and Arrow ------------------------------------------------------------------------------------------


def lines_read_back(kind: str, case: Case) -> list[str] | None:
    """The rows, written twice and read back, as JSON; None when a timestamp does not fit."""
    try:
        data = written(kind, case.batch, case.batch, types=case.types)
    except BadDataError as error:
        assert "timestamp" in str(error)
        return None
    table = read_back(kind, data)
    assert table.num_rows == 2 * len(case.lines)
    return b"".join(encode_json_lines(batch) for batch in table.to_batches()).decode().split("\n")[:-1]


@RELAXED
@given(cases())
def test_arrow_holds_the_same_rows(case: Case) -> None:
    assert lines_read_back("arrow", case) in (None, 2 * case.lines)


@RELAXED
@given(cases(plain=True))
def test_parquet_holds_the_same_rows(case: Case) -> None:
    assert lines_read_back("parquet", case) in (None, 2 * case.lines)


@RELAXED
@given(cases())
def test_parquet_takes_every_type(case: Case) -> None:
    lines_read_back("parquet", case)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_an_empty_result_is_a_valid_file(kind: str) -> None:
    schema = pa.schema(
        [("a", pa.int32()), ("u", pa.sparse_union([pa.field("x", pa.int32())])), ("w", WideTimestamp(True))]
    )
    table = read_back(kind, written(kind, schema=schema))
    assert table.num_rows == 0
    assert table.schema.names == ["a", "u", "w"]
    assert table.schema.field("w").type == pa.timestamp("us", "UTC")
    assert read_back(kind, written(kind)).num_rows == 0


def test_unions_in_parquet_are_structs() -> None:
    union = pa.UnionArray.from_sparse(
        pa.array([0, 1, 0], pa.int8()), [pa.array([1, 2, None]), pa.array(["a", "b", "c"])], ["x", "y"]
    )
    table = read_back("parquet", written("parquet", batch_of(u=union)))
    assert table.column("u").to_pylist() == [
        {"tag": 0, "field0": 1, "field1": None},
        {"tag": 1, "field0": None, "field1": "b"},
        {"tag": 0, "field0": None, "field1": None},
    ]
    assert pa.types.is_union(read_back("arrow", written("arrow", batch_of(u=union))).column("u").type)


def test_names_that_repeat_are_told_apart_in_parquet() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([n]) for n in range(4)], names=["a", "a", "a_2", "a"])
    assert pq.read_table(io.BytesIO(written("parquet", batch))).to_pylist() == [
        {"a": 0, "a_2": 1, "a_2_2": 2, "a_3": 3}
    ]
    assert read_back("arrow", written("arrow", batch)).schema.names == ["a", "a", "a_2", "a"]


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_far_timestamps_are_written_exactly_or_refused(kind: str) -> None:
    exact = batch_of(t=wide((253402300799, 123456000), None, (-62135596800, 0)))
    column = read_back(kind, written(kind, exact)).column("t")
    assert column.type == pa.timestamp("us")
    assert column.cast(pa.int64()).to_pylist() == [253402300799123456, None, -62135596800000000]
    with pytest.raises(BadDataError, match=r"column t: .*nanoseconds"):
        written(kind, batch_of(t=wide((253402300799, 1))))
    with pytest.raises(BadDataError, match=r"column s\.t"):
        written(kind, batch_of(s=pa.StructArray.from_arrays([wide((2**62, 0))], names=["t"])))


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_the_first_batch_fixes_the_types(kind: str) -> None:
    nanos = pa.array([1_000, None], pa.timestamp("ns"))
    fitting = wide((1, 5), None)
    column = read_back(kind, written(kind, batch_of(t=nanos), batch_of(t=fitting))).column("t")
    assert column.cast(pa.int64()).to_pylist() == [1_000, None, 1_000_000_005, None]
    with pytest.raises(BadDataError, match=r"column t: a timestamp does not fit timestamp\[ns\]"):
        written(kind, batch_of(t=nanos), batch_of(t=wide((253402300799, 0))))
    micros = read_back(kind, written(kind, batch_of(t=wide((253402300799, 0))), batch_of(t=nanos))).column("t")
    assert micros.type == pa.timestamp("us")
    assert micros.cast(pa.int64()).to_pylist() == [253402300799 * 10**6, 1, None]
    with pytest.raises(BadDataError, match="column t"):
        written(kind, batch_of(t=wide((253402300799, 0))), batch_of(t=pa.array([1], pa.timestamp("ns"))))
    widened = written(kind, batch_of(a=pa.array([1], pa.int64())), batch_of(a=pa.array([2], pa.int32())))
    assert read_back(kind, widened).column("a").to_pylist() == [1, 2]
    for other in (batch_of(b=pa.array([1])), batch_of(a=pa.array([1]), b=pa.array([1]))):
        with pytest.raises(BadDataError, match="the columns changed"):
            written(kind, batch_of(a=pa.array([1])), other)
        with pytest.raises(BadDataError, match="the columns changed"):
            written("csv", batch_of(a=pa.array([1])), other)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_strings_are_those_of_the_json(kind: str) -> None:
    raw = pa.array([b"a\xff", b"ok", None], pa.binary()).view(pa.string())
    types = OrcType("struct", children=(OrcType("char", max_length=3), OrcType("string")), names=("c", "s"))
    table = read_back(kind, written(kind, batch_of(c=raw, s=raw), types=types))
    assert table.column("c").to_pylist() == ["a\ufffd ", "ok ", None]
    assert table.column("s").to_pylist() == ["a\ufffd", "ok", None]


def test_parquet_gathers_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sinks, "ROW_GROUP_BYTES", 800)
    small = batch_of(a=pa.array(range(30)))
    metadata = pq.ParquetFile(io.BytesIO(written("parquet", *[small] * 10))).metadata
    assert metadata.num_rows == 300
    assert metadata.num_row_groups < 6


def test_decimals_and_dates_stay_typed() -> None:
    batch = batch_of(d=pa.array([Decimal("1.50")], pa.decimal128(38, 10)), day=pa.array([1], pa.date32()))
    for kind in ("parquet", "arrow"):
        assert read_back(kind, written(kind, batch)).schema.types == batch.schema.types


# -- all kinds --------------------------------------------------------------------------------------------------


class _Pipe(io.RawIOBase):
    """A stream whose reader has gone away."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        raise BrokenPipeError(32, "Broken pipe")


@pytest.mark.parametrize("kind", SINK_KINDS)
def test_a_broken_pipe_passes_through(kind: str) -> None:
    pipe: BinaryIO = _Pipe()  # type: ignore[assignment]
    with pytest.raises(BrokenPipeError):
        sink = open_sink(kind, pipe)
        sink.write(batch_of(a=pa.array([1])))
        sink.close()


@pytest.mark.parametrize("kind", SINK_KINDS)
def test_a_sink_that_is_dropped_leaves_no_file_that_looks_whole(kind: str) -> None:
    out = io.BytesIO()
    sink = open_sink(kind, out)
    sink.write(batch_of(a=pa.array([1])))
    before = out.getvalue()
    if kind in ("parquet", "arrow"):
        with pytest.raises(BadDataError):
            sink.write(batch_of(b=pa.array([1])))
    del sink
    gc.collect()
    assert out.getvalue() == before
    if kind == "parquet":
        with pytest.raises(pa.ArrowInvalid):
            read_back(kind, before)


def test_unknown_kinds_are_refused() -> None:
    with pytest.raises(UsageProblem, match="table"):
        open_sink("table", io.BytesIO())


# -- cells ------------------------------------------------------------------------------------------------------


def test_cells_are_escaped_for_a_terminal() -> None:
    batch = batch_of(
        n=pa.array([1, None]),
        s=pa.array(['say "x"\x1b[31m\n', "\u202eabc\u2066 日本"]),
        d=pa.array([float("nan"), 1.0]),
        t=pa.array([0, 1], pa.timestamp("s")),
        l=pa.array([["a\x7f\x1b"], []]),
        b=pa.array([b"\x01", None]),
        v=pa.array(["x", None]),
    )
    assert cell_rows(batch, 10) == [
        ["1", 'say "x"\\x1b[31m\\n', "NaN", "1970-01-01 00:00:00.0", '["a\\u007f\\u001b"]', "[1]", "x"],
        ["null", "\\u202eabc\\u2066 日本", "1.0", "1970-01-01 00:00:01.0", "[]", "null", "null"],
    ]
    assert cell_rows(batch, 1) == cell_rows(batch, 10)[:1]
    assert cell_rows(batch, 0) == []
    assert cell_rows(batch_of(c=pa.array(["a"])), 1, OrcType("struct", names=("c",), children=(OrcType("char", max_length=2),))) == [["a "]]  # fmt: skip  # noqa: E501


@given(st.text())
def test_nothing_that_a_terminal_acts_on_is_visible(text: str) -> None:
    shown = printable(text)
    assert shown == printable(shown)
    assert not re.search("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\u061c\u2028\u2029]", shown)
    if text.isascii() and text.isprintable():
        assert shown == text


@RELAXED
@given(cases())
def test_cells_agree_with_json_lines_for_any_type(case: Case) -> None:
    rows = cell_rows(case.batch, 5, case.types)
    assert len(rows) == min(5, len(case.lines))
    for row, line in zip(rows, case.lines, strict=False):
        pairs = json.loads(line, object_pairs_hook=list)
        assert len(row) == len(pairs)
        for cell, (_, value) in zip(row, pairs, strict=True):
            if value is None or isinstance(value, str):
                assert cell == printable("null" if value is None else value)
