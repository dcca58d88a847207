"""Lines of text as rows: the forms in which Hive writes values are read, all others are refused by name."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from acidctl.base.errors import BadDataError
from acidctl.location.metastore_schema import Declared, TextLayout
from acidctl.orc.byte_source import ByteSource
from acidctl.rows.foreign.format import open_foreign, read_any_tail
from acidctl.storage.local.filesystem import LocalFileSystem

INF = float("inf")


def read(path: Path, text: bytes, *columns: str, only: list[str] | None = None, **layout: Any) -> list[Any]:
    """The columns of a text; `columns` are like ``a int``."""
    path = path / "000000_0"
    path.write_bytes(text)
    declared = [(name, kind) for name, _, kind in (column.partition(" ") for column in columns)]
    said = Declared(tuple(declared), "text", TextLayout(tuple(declared), **layout))
    source = ByteSource(LocalFileSystem(), str(path))
    found = read_any_tail(source, said)
    reader = open_foreign(source, found.format, found.tail, said)
    batches = [reader.read_stripe(i, only) for i in range(reader.stripe_count)]
    return [column for batch in batches for column in batch.columns]


VALUES: dict[str, tuple[str, list[Any]]] = {
    "tinyint": ("-128 127 \\N", [-128, 127, None]),
    "smallint": ("-32768 32767 007", [-32768, 32767, 7]),
    "int": ("-2147483648 2147483647 -0", [-(1 << 31), (1 << 31) - 1, 0]),
    "bigint": ("-9223372036854775808 9223372036854775807 \\N", [-(1 << 63), (1 << 63) - 1, None]),
    "float": ("1.4E-45 3.4028235E38 -0.0", [1.401298464324817e-45, 3.4028234663852886e38, -0.0]),
    "double": ("1.0E10 Infinity -Infinity", [1e10, INF, -INF]),
    "boolean": ("true FALSE \\N", [True, False, None]),
    "decimal(10,2)": ("1.5 -99999999.99 \\N", [Decimal("1.50"), Decimal("-99999999.99"), None]),
    "decimal(38,38)": ("0.1 0 -0.0", [Decimal("0.1"), Decimal(0), Decimal(0)]),
    "date": ("9999-12-31 0001-01-01 \\N", [date(9999, 12, 31), date(1, 1, 1), None]),
    "string": ("\\N nil é", [None, b"nil", "é".encode()]),
    "char(3)": ("abcd a\\ ab", [b"abc", b"a\\", b"ab"]),
    "varchar(2)": ("abcd a\\ üüü", [b"ab", b"a\\", "üü".encode()]),
}


def told(value: object) -> object:
    """With the sign of zero."""
    return repr(value) if isinstance(value, float) else value


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_values_in_the_forms_in_which_hive_writes_them(tmp_path: Path, kind: str, end: str) -> None:
    texts, wanted = VALUES[kind]
    (column,) = read(tmp_path, end.join(texts.split(" ")).encode(), f"a {kind}")
    column = column.cast(pa.binary()) if pa.types.is_string(column.type) else column
    assert list(map(told, column.to_pylist())) == list(map(told, wanted))


def test_timestamps_of_any_year(tmp_path: Path) -> None:
    text = b"2026-11-25 10:11:12.000000001\n9999-12-31 23:59:59.9\n\\N\n0001-01-01 00:00:00\n1969-12-31 23:59:59.5\n"
    (column,) = read(tmp_path, text, "t timestamp")
    seconds = [
        int(datetime(*day, tzinfo=UTC).timestamp()) for day in ((2026, 11, 25, 10, 11, 12), (1969, 12, 31, 23, 59, 59))
    ]
    assert [one and (one["seconds"], one["nanos"]) for one in column.storage.to_pylist()] == [
        (seconds[0], 1), (253402300799, 900_000_000), None, (-62135596800, 0), (seconds[1], 500_000_000),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["int", "double", "boolean", "decimal(5,2)", "date", "timestamp"])
def test_an_empty_field_is_null_but_in_texts(tmp_path: Path, kind: str) -> None:
    a, b = read(tmp_path, b",\n,\n", f"a {kind}", "b string", separator=ord(","))
    assert (a.to_pylist(), b.to_pylist()) == ([None, None], ["", ""])


@pytest.mark.parametrize("null", ["nil", "", "\\N", "-"])
def test_the_text_for_null(tmp_path: Path, null: str) -> None:
    a, b = read(tmp_path, f"{null}|{null}\n1|x{null}\n".encode(), "a int", "b string", separator=ord("|"), null=null)
    assert (a.to_pylist(), b.to_pylist()) == ([None, 1], [None, f"x{null}" if null else "x"])


def test_columns_that_all_lines_end_before_are_null(tmp_path: Path) -> None:
    columns = read(tmp_path, b"1\x01x\n2\x01\\N\n", "a int", "b string", "c date", "d string")
    assert [column.to_pylist() for column in columns] == [[1, 2], ["x", None], [None, None], [None, None]]


def test_header_and_footer_are_no_rows(tmp_path: Path) -> None:
    (column,) = read(tmp_path, b"number\n\n1\n2\nthe end\n", "a int", header=2, footer=1)
    assert column.to_pylist() == [1, 2]


def test_quotes_and_blanks_are_part_of_texts(tmp_path: Path) -> None:
    a, b = read(tmp_path, b'"x,y\n \'z\' ,""\n', "a string", "b string", separator=ord(","))
    assert (a.to_pylist(), b.to_pylist()) == (['"x', " 'z' "], ["y", '""'])


def test_escapes_that_arrow_knows(tmp_path: Path) -> None:
    text = b"x\\|y|tail\\\\\nnil|\\^\\\\n\n"
    a, b = read(tmp_path, text, "a string", "b string", separator=ord("|"), escape=ord("\\"), null="nil")
    assert (a.to_pylist(), b.to_pylist()) == (["x|y", None], ["tail\\", "^\\n"])


def test_an_escape_in_the_text_for_null_alone(tmp_path: Path) -> None:
    a, b = read(tmp_path, b"\\N|x\n1|\\N\n", "a int", "b string", separator=ord("|"), escape=ord("\\"))
    assert (a.to_pylist(), b.to_pylist()) == ([None, 1], ["x", None])


REFUSED: dict[str, tuple[bytes, tuple[str, ...], dict[str, Any], str]] = {
    "a list": (b"1\x022\n", ("a array<int>",), {}, "does not read array from text, as its column a is"),
    "a map": (b"1\x032\n", ("a map<int,int>",), {}, "does not read map"),
    "a struct": (b"1\x022\n", ("a struct<x:int,y:int>",), {}, "does not read struct"),
    "a union": (b"0\x022\n", ("a uniontype<int,string>",), {}, "does not read uniontype"),
    "base64": (b"YQ==\n", ("a binary",), {}, "does not read binary"),
    "no number": (b"1\nabc\n", ("a int",), {}, "its column a has 'abc', which is not how Hive writes int"),
    "a fraction": (b"1.5\n", ("a int",), {}, "has '1.5'"),
    "blanks": (b" 1\n", ("a int",), {}, "has ' 1'"),
    "beyond its type": (b"128\n", ("a tinyint",), {}, "values beyond tinyint"),
    "beyond 64 bits": (b"9223372036854775808\n", ("a bigint",), {}, "values beyond bigint"),
    "an f": (b"1.5f\n", ("a float",), {}, "has '1.5f'"),
    "hexadecimal": (b"0x1p3\n", ("a double",), {}, "has '0x1p3'"),
    "rounded": (b"1.005\n", ("a decimal(10,2)",), {}, "values beyond decimal"),
    "too many digits": (b"999999999\n", ("a decimal(10,2)",), {}, "values beyond decimal"),
    "an exponent": (b"1e3\n", ("a decimal(10,2)",), {}, "has '1e3'"),
    "a short day": (b"2020-2-3\n", ("a date",), {}, "has '2020-2-3'"),
    "no day": (b"2020-02-30\n", ("a date",), {}, "values beyond date"),
    "a day with a time": (b"2020-02-03\n", ("a timestamp",), {}, "which is not how Hive writes timestamp"),
    "no hour": (b"2020-02-03 24:00:00\n", ("a timestamp",), {}, "values beyond timestamp"),
    "no boolean": (b"1\n", ("a boolean",), {}, "has '1'"),
    "fewer fields in some lines": (b"1\x01x\n2\n", ("a int", "b string"), {}, "Expected 2 columns, got 1"),
    "more fields": (b"1\x01x\x01y\n", ("a int", "b string"), {}, "Expected 2 columns, got 3"),
    "empty lines": (b"1\x01x\n\n2\x01y\n", ("a int", "b string"), {}, "empty lines among lines of several fields"),
    "empty lines of Windows": (b"1\x01x\r\n\r\n2\x01y\r\n", ("a int", "b string"), {}, "empty lines"),
    "empty lines of old": (b"1\x01x\r\r2\x01y\r", ("a int", "b string"), {}, "empty lines"),
    "a separator beyond ASCII": (b"1\xfe2\n", ("a int", "b int"), {"separator": 0xFE}, "ASCII alone"),
    "an escaped n": (b"x\\ny\n", ("a string",), {"escape": ord("\\"), "null": "x"}, "escapes that"),
    "an escape at the end": (b"x\\", ("a string",), {"escape": ord("\\"), "null": "x"}, "escapes that"),
    "an escaped line end": (b"x\\\ny\n", ("a string",), {"escape": ord("\\"), "null": "x"}, "escapes that"),
    "an escape in NULL": (b"x\\,y\n", ("a string",), {"escape": ord("\\")}, "escapes that"),
    "an escape before NULL": (b"ni\\l\n", ("a string",), {"escape": ord("\\"), "null": "nil"}, "escapes that"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_arrow_does_not_read_as_hive_does_is_refused(tmp_path: Path, name: str) -> None:
    text, columns, layout, why = REFUSED[name]
    with pytest.raises(BadDataError) as caught:
        read(tmp_path, text, *columns, **layout)
    assert why in caught.value.why
    assert caught.value.hint == "read the table with Hive"


def test_a_column_of_another_type_does_not_keep_the_others_from_being_read(tmp_path: Path) -> None:
    (column,) = read(tmp_path, b"1\x01a\x02b\x01x\n", "a int", "l array<string>", "c string", only=["c"])
    assert column.to_pylist() == ["x"]
