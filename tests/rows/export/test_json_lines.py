"""JSON lines against the plain model, and the cases that once were or could be traps."""

from __future__ import annotations

import json
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from make_docs import DATA
from support.files.export_model import Case, cases
from support.files.json_text import encode_json_lines
from support.trouble.unsafe import UNSAFE, is_unsafe, quoted

from acidctl.base.errors import BadDataError
from acidctl.base.printable import printable
from acidctl.orc.read.wide_timestamps import WideTimestamp
from acidctl.orc.types import OrcType
from acidctl.rows.export import json_lines
from acidctl.rows.export.json_lines import json_buffers, text_bound
from acidctl.rows.export.text import cleaned, printable_texts

RELAXED = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


def lines(array: pa.Array, types: OrcType | None = None) -> list[str]:
    """The JSON texts of one column."""
    root = None if types is None else OrcType("struct", children=(types,), names=("c",))
    text = encode_json_lines(pa.RecordBatch.from_arrays([array], names=["c"]), root).decode()
    assert text == "" or text.endswith("\n")
    rows = text.split("\n")[:-1]
    assert all(row.startswith('{"c":') and row.endswith("}") for row in rows)
    return [row[len('{"c":') : -1] for row in rows]


@pytest.mark.slow
@RELAXED
@given(cases())
def test_any_column_gives_the_models_text(case: Case) -> None:
    text = encode_json_lines(case.batch, case.types).decode()
    assert text.split("\n")[:-1] == case.lines
    for line in case.lines:
        json.loads(line)
    rows = pa.StructArray.from_arrays(case.batch.columns, fields=list(case.batch.schema))
    assert len(text.encode()) <= text_bound(rows, case.types)


@pytest.mark.slow
@settings(RELAXED, max_examples=100)
@given(cases())
def test_small_slices_change_nothing(case: Case) -> None:
    expected = "".join(line + "\n" for line in case.lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_lines, "SLICE_TEXT", 200)
        patch.setattr(json_lines, "SLICE_ROWS", 5)
        pieces = [bytes(piece) for piece in json_buffers(case.batch, case.types)]
    assert b"".join(pieces).decode() == expected
    assert all(piece.endswith(b"\n") for piece in pieces)


def test_the_line_is_that_of_orcfiledump() -> None:
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([0], pa.int32()),
            pa.array([1], pa.int64()),
            pa.array([536870912], pa.int32()),
            pa.array([0], pa.int64()),
            pa.array([1], pa.int64()),
            pa.array([{"id": 1, "value": "A"}], pa.struct([("id", pa.int32()), ("value", pa.string())])),
        ],
        names=["operation", "originalTransaction", "bucket", "rowId", "currentTransaction", "row"],
    )
    assert encode_json_lines(batch) == (
        b'{"operation":0,"originalTransaction":1,"bucket":536870912,"rowId":0,"currentTransaction":1,'
        b'"row":{"id":1,"value":"A"}}\n'
    )


def test_a_null_row_of_a_delete_event() -> None:
    row = pa.array([None, {"a": 1}], pa.struct([("a", pa.int32())]))
    assert lines(row) == ["null", '{"a":1}']


def test_doubles_are_written_shortest() -> None:
    array = pa.array([0.1, 15.0, -0.0, 1e300, 5e-324, 1e10, 2.0**33, 2**53 + 2.0, float("nan"), None, float("-inf")])
    assert lines(array) == [
        "0.1", "15.0", "-0.0", "1e+300", "5e-324", "1e+10", "8589934592.0", "9.007199254740994e+15",
        '"NaN"', "null", '"-Infinity"',
    ]  # fmt: skip
    assert lines(pa.array([float("inf")])) == ['"Infinity"']
    assert lines(pa.array([0.1, 16777216.0, 1e9, 1e10, 3.4e38], pa.float32())) == [
        "0.1", "16777216.0", "1000000000.0", "1e+10", "3.4e+38",
    ]  # fmt: skip


def test_a_null_over_a_not_a_number_is_null() -> None:
    hidden = pa.Array.from_buffers(pa.float64(), 2, [pa.py_buffer(b"\x02"), pa.array([float("nan"), 1.5]).buffers()[1]])
    assert lines(hidden) == ["null", "1.5"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("kind", "bits"), [(pa.float32(), "0000a07f"), (pa.float64(), "000000000000f47f")])
def test_signalling_nans_print_no_warning(kind: pa.DataType, bits: str) -> None:
    """NumPy warns of them, on standard error: a file may hold one, and so may the slot of a NULL."""
    values = pa.py_buffer(bytes.fromhex(bits) * 20)
    assert lines(pa.Array.from_buffers(kind, 20, [None, values])) == ['"NaN"'] * 20
    assert lines(pa.Array.from_buffers(kind, 20, [pa.py_buffer(b"\0\0\0"), values])) == ["null"] * 20


def test_decimals_are_written_without_exponent() -> None:
    values = ["5299567.02", "77669410.986365825", "0", "-1.5", "100", "0.0000000001", "-0.0000000001", "-100.1"]
    array = pa.array([Decimal(value) for value in values] + [None], pa.decimal128(38, 10))
    assert lines(array) == [f'"{value}"' for value in values] + ["null"]
    assert lines(pa.array([Decimal(100), Decimal(0)], pa.decimal128(5, 0))) == ['"100"', '"0"']
    assert lines(pa.array([Decimal("1E-38"), Decimal(0)], pa.decimal128(38, 38))) == [f'"0.{"0" * 37}1"', '"0"']
    assert lines(pa.array([Decimal("1.50"), Decimal("1E-9")], pa.decimal256(60, 20))) == ['"1.5"', '"0.000000001"']
    assert lines(pa.array([Decimal("-0.00000001")], pa.decimal64(18, 8))) == ['"-0.00000001"']
    assert lines(pa.array([Decimal(12300)], pa.decimal128(5, -2))) == ['"12300"']


def test_dates_and_timestamps_of_any_year() -> None:
    assert lines(pa.array([-719163, 2932897, None, -(2**31), 2**31 - 1], pa.date32())) == [
        '"0000-12-31"', '"10000-01-01"', "null", '"-5877641-06-23"', '"5881580-07-11"',
    ]  # fmt: skip
    assert lines(pa.array([2**63 - 1, -(2**63), 0, 10**8, None], pa.timestamp("ns"))) == [
        '"2262-04-11 23:47:16.854775807"', '"1677-09-21 00:12:43.145224192"', '"1970-01-01 00:00:00.0"',
        '"1970-01-01 00:00:00.1"', "null",
    ]  # fmt: skip
    assert lines(pa.array([-62135596800], pa.timestamp("s"))) == ['"0001-01-01 00:00:00.0"']
    assert lines(pa.array([0], pa.timestamp("ns", "Asia/Tokyo"))) == ['"1970-01-01 00:00:00.0"']
    kind = WideTimestamp()
    stored = [(-62135596801, 999999999), (253402300800, 0), (-(2**63), 1), (2**63 - 1, 120000000), None]
    storage = pa.array(
        [None if s is None else dict(zip(("seconds", "nanos"), s, strict=True)) for s in stored], kind.storage_type
    )
    wide = pa.ExtensionArray.from_storage(kind, storage)
    assert lines(wide) == [
        '"0000-12-31 23:59:59.999999999"', '"10000-01-01 00:00:00.0"', '"-292277022657-01-27 08:29:52.000000001"',
        '"292277026596-12-04 15:30:07.12"', "null",
    ]  # fmt: skip
    assert lines(pa.ListArray.from_arrays([0, 1, 5], wide).slice(1)) == ["[" + ",".join(lines(wide)[1:]) + "]"]


def test_every_character_of_strings_is_escaped_as_json_wants() -> None:
    everything = "".join(map(chr, range(0x100))) + "\u2028\u2029\U0001f600"
    assert lines(pa.array([everything, None, ""])) == [quoted(everything), "null", '""']


def beside(chars: str) -> list[str]:
    """Each of them alone, and its neighbours among the code points: those need no escape, most of them."""
    near = {chr(ord(char) + step) for char in chars for step in (-1, 1) if 0 <= ord(char) + step < 0x110000}
    return sorted(char for char in near | set(chars) if not 0xD800 <= ord(char) <= 0xDFFF)


@pytest.mark.parametrize("joined", ["", "é", "日本", "’", "\U0001f600"])
def test_every_character_that_a_terminal_acts_on(joined: str) -> None:
    values = [f"{joined}{char}{joined}{char}" for char in beside("".join(UNSAFE))]
    written = lines(pa.array(values))
    assert written == [quoted(value) for value in values]
    assert [json.loads(line) for line in written] == values
    shown = printable_texts(pa.array(values, pa.string()).view(pa.binary()))
    assert [text.decode() for text in shown.to_pylist()] == [printable(value) for value in values]
    assert not any(map(is_unsafe, "".join(printable(value) for value in values)))


@given(
    st.lists(st.none() | st.text(st.characters(codec="utf-8") | st.sampled_from([c for c in UNSAFE if c.isascii()])))
)
def test_texts_of_any_characters_are_escaped(values: list[str | None]) -> None:
    array = pa.array(values, pa.string())
    assert lines(array) == ["null" if value is None else quoted(value) for value in values]
    shown = printable_texts(array.view(pa.binary())).to_pylist()
    assert shown == [None if value is None else printable(value).encode() for value in values]


def test_names_of_columns_are_escaped() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1])], names=["a\x7f\x9b\u202e\U000e0041b"])
    (line,) = encode_json_lines(batch).decode().splitlines()
    assert not any(map(is_unsafe, line))
    assert list(json.loads(line)) == batch.schema.names


def test_bytes_that_are_not_utf8_are_replaced_within_their_value_only() -> None:
    raw = [b"\xe2", b"\x82\xac", b"ok", None, b"a\nb\xff", b"\n", b"", b"\xed\xa0\x80"]
    expected = [None if value is None else value.decode("utf-8", "replace") for value in raw]
    array = pa.array(raw, pa.binary()).view(pa.string())
    assert [json.loads(line) for line in lines(array)] == expected
    padded = lines(array.slice(1), OrcType("char", max_length=3))
    assert [json.loads(line) for line in padded] == [None if v is None else v.ljust(3) for v in expected[1:]]
    assert cleaned(array).to_pylist() == expected


def test_char_is_padded_by_characters_everywhere() -> None:
    char = OrcType("char", max_length=4)
    array = pa.array(["日本", "abcd", "abcde", "", None])
    assert lines(array, char) == ['"日本  "', '"abcd"', '"abcde"', '"    "', "null"]
    assert lines(array, OrcType("varchar", max_length=4))[0] == '"日本"'
    nested = pa.array([[("k", ["v", None])]], pa.map_(pa.string(), pa.list_(pa.string())))
    types = OrcType("map", children=(char, OrcType("array", children=(char,))))
    assert lines(nested, types) == ['[{"_key":"k   ","_value":["v   ",null]}]']


def test_types_of_a_projection_are_found_by_name() -> None:
    types = OrcType("struct", children=(OrcType("int"), OrcType("char", max_length=3)), names=("a", "b"))
    batch = pa.RecordBatch.from_arrays([pa.array(["x"])], names=["b"])
    assert encode_json_lines(batch, types) == b'{"b":"x  "}\n'
    unknown = pa.RecordBatch.from_arrays([pa.array(["x"])], names=["z"])
    assert encode_json_lines(unknown, types) == b'{"z":"x"}\n'


def test_maps_and_lists_are_nested_with_their_nulls() -> None:
    kind = pa.map_(pa.string(), pa.list_(pa.int32()))
    array = pa.array([[("a", None), ("b", []), ("c", [1, None])], [], None], kind)
    assert lines(array) == ['[{"_key":"a","_value":null},{"_key":"b","_value":[]},{"_key":"c","_value":[1,null]}]', "[]", "null"]  # fmt: skip  # noqa: E501
    assert lines(pa.array([{}, None], pa.struct([]))) == ["{}", "null"]
    assert lines(pa.array([b"", b"\x00\xff\x80", None])) == ["[]", "[0,255,128]", "null"]
    twins = pa.StructArray.from_arrays([pa.array([1]), pa.array(["x"])], names=["a", "a"])
    assert lines(twins) == ['{"a":1,"a":"x"}']
    assert lines(pa.nulls(2)) == ["null", "null"]


def test_batches_without_rows_or_columns() -> None:
    assert encode_json_lines(pa.RecordBatch.from_arrays([pa.array([], pa.int32())], names=["a"])) == b""
    assert list(json_buffers(pa.RecordBatch.from_arrays([pa.array([], pa.int32())], names=["a"]))) == []
    bare = pa.RecordBatch.from_struct_array(pa.array([{}, {}], pa.struct([])))
    assert encode_json_lines(bare) == b"{}\n{}\n"
    kinds = [pa.list_(pa.string()), pa.map_(pa.string(), pa.int8()), pa.binary(), pa.struct([("a", pa.string())])]
    for kind in kinds:
        assert lines(pa.array([], kind)) == []
        assert lines(pa.array([None], kind)) == ["null"]


def test_a_type_without_form_is_named() -> None:
    with pytest.raises(BadDataError, match="duration"):
        lines(pa.array([1], pa.duration("s")))


def test_every_kind_of_orc_is_in_the_table_of_forms() -> None:
    listed = {
        name.partition("(")[0].partition("<")[0]
        for form in DATA["json-forms"]
        for name in form["hive-type"].split(", ")
    }
    kinds = {
        "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "varchar", "char", "binary",
        "date", "decimal", "timestamp", "timestamp with local time zone", "array", "map", "struct", "uniontype",
    }  # fmt: skip
    assert kinds <= listed
    for form in DATA["json-forms"]:
        json.loads(form["example"])


def test_bytes_behind_a_null_are_not_written() -> None:
    offsets, data = pa.py_buffer(bytes([0, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0])), pa.py_buffer(b"abc")
    column = pa.Array.from_buffers(pa.string(), 2, [pa.py_buffer(b"\x01"), offsets, data])
    assert lines(column) == ['"a"', "null"]


def test_quotes_stand_around_values_only() -> None:
    words, days = pa.array(["a", None, "b", None]), pa.array([0, 1, None, None], pa.date32())
    numbers = pa.array([1, None, 3, 4])
    batch = pa.RecordBatch.from_arrays([words, days, numbers], names=["w", "d", "n"])
    assert encode_json_lines(batch).decode().splitlines() == [
        '{"w":"a","d":"1970-01-01","n":1}',
        '{"w":null,"d":"1970-01-02","n":null}',
        '{"w":"b","d":null,"n":3}',
        '{"w":null,"d":null,"n":4}',
    ]


def test_columns_of_one_value_and_structs_in_structs() -> None:
    inner = pa.StructArray.from_arrays([pa.array([7, 7, 7]), pa.nulls(3)], names=["one", "none"])
    row = pa.StructArray.from_arrays([inner, pa.array(["x", None, "z"])], names=["inner", "word"])
    empty = pa.StructArray.from_buffers(pa.struct([]), 3, [None])
    columns = [pa.array([-2, -2, -2], pa.int32()), row, empty, pa.array([5, 6, 5])]
    batch = pa.RecordBatch.from_arrays(columns, names=["op", "row", "empty", "id"])
    start = '{"op":-2,"row":{"inner":{"one":7,"none":null},"word":'
    expected = [f'{start}"x"}},"empty":{{}},"id":5}}', f'{start}null}},"empty":{{}},"id":6}}']
    expected.append(f'{start}"z"}},"empty":{{}},"id":5}}')
    assert encode_json_lines(batch).decode().splitlines() == expected
    assert encode_json_lines(batch.slice(1, 1)).decode().splitlines() == expected[1:2]
    assert encode_json_lines(batch.select(["op"])).decode() == '{"op":-2}\n' * 3


def test_dates_close_together_and_far_apart() -> None:
    close = pa.array([20_000, None, 20_001, 20_000, 20_002, 20_000, 20_000, None], pa.date32())
    assert lines(close) == [json.dumps(str(day)) if day else "null" for day in close.to_pylist()]
    assert lines(close.slice(2, 2)) == ['"2024-10-05"', '"2024-10-04"']
    edge = pa.array([10_000_000, 10_000_001] * 4, pa.date32())
    assert lines(edge)[:2] == ['"29349-01-26"', '"29349-01-27"']
