"""Lines of text: what Hive's LazySimpleSerDe would read as other values is refused."""

from __future__ import annotations

import datetime
import io
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from acidctl.base.errors import BadDataError
from acidctl.location.metastore_schema import TextLayout
from acidctl.orc.types import arrow_type, columns_of
from acidctl.writing.insert_only.text_form import TextForm, TextSink

PLAIN = TextLayout(())
ESCAPED = TextLayout((), separator=ord(","), escape=ord("\\"), nested=(ord(";"), ord(":")))


def lines(columns: str, *rows: tuple[Any, ...], layout: TextLayout = PLAIN) -> list[str]:
    row = columns_of(columns)
    values = zip(*rows, strict=True)
    arrays = [pa.array(list(column), arrow_type(kind)) for column, kind in zip(values, row.children, strict=True)]
    out = io.BytesIO()
    sink = TextSink(out, row, TextForm.of(layout))
    sink.write(pa.RecordBatch.from_arrays(arrays, list(row.names)))
    sink.close()
    return out.getvalue().decode().split("\n")


def test_simple_values_are_written_as_hive_writes_them() -> None:
    columns = (
        "i int, f float, d double, n decimal(20,8), s string, h char(3), o boolean, da date, ts timestamp, x binary"
    )
    moment = datetime.datetime(2026, 7, 1, 12, 30, 0, 500)
    row = (1, 0.1, 1e10, Decimal("-0.00000001"), "", "a", True, datetime.date(1, 2, 3), moment, b"\0\xff")
    first, second, end = lines(columns, row, (None,) * 10)
    assert first.split("\1") == [
        "1", "0.1", "1.0E10", "-0.00000001", "", "a  ", "true", "0001-02-03", "2026-07-01 12:30:00.0005", "AP8="
    ]  # fmt: skip
    assert second.split("\1") == ["\\N"] * 10
    assert end == ""


def test_nested_values_take_the_delimiters_of_their_level() -> None:
    columns = "l array<int>, m map<string,array<int>>, s struct<a:int,b:array<string>>"
    rows = (
        ([1, None], [("k", [1, 2]), ("j", None)], {"a": None, "b": ["x", "y"]}),
        ([], [], {"a": 1, "b": []}),
        (None, None, None),
    )
    assert lines(columns, *rows) == [
        "1\2\\N\1k\x031\x042\2j\3\\N\1\\N\2x\3y",
        "\1\x011\2",
        "\\N\1\\N\1\\N",
        "",
    ]


def test_texts_are_escaped_where_the_table_has_an_escape() -> None:
    assert lines("s string, l array<string>", ("a,b\\;", ["c;d", "e:f"]), ("\\N", None), layout=ESCAPED) == [
        "a\\,b\\\\\\;,c\\;d;e:f",
        "\\\\N,\\N",
        "",
    ]


AMBIGUOUS: dict[str, tuple[str, Any, TextLayout]] = {
    "a line end": ("string", "a\nb", PLAIN),
    "a carriage return": ("string", "a\rb", ESCAPED),
    "a delimiter": ("string", "a\1b", PLAIN),
    "a delimiter of a level below": ("array<string>", ["a\2b"], PLAIN),
    "the text of NULL": ("string", "\\N", PLAIN),
    "the text of NULL that has no escape": ("string", "nil", TextLayout((), null="nil", escape=ord("\\"))),
    "a delimiter in a number": ("decimal(3,1)", Decimal("1.5"), TextLayout((), separator=ord("."), escape=ord("\\"))),
    "an array of one empty text": ("array<string>", [""], PLAIN),
    "an array of one NULL": ("array<string>", [None], PLAIN),
    "a struct of one NULL": ("struct<a:int>", {"a": None}, PLAIN),
    "a year of five digits": ("date", 3_000_000, PLAIN),
    "the year 0": ("date", -719_400, PLAIN),
    "a year before it": ("date", -800_000, PLAIN),
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_a_value_that_is_read_as_another_is_refused(name: str) -> None:
    kind, value, layout = AMBIGUOUS[name]
    with pytest.raises(BadDataError, match="column c"):
        lines(f"c {kind}, e array<int>", (value, []), layout=layout)


def test_a_file_does_not_begin_with_a_byte_order_mark() -> None:
    with pytest.raises(BadDataError, match="U\\+FEFF"):
        lines("s string", ("\ufeffx",))
    assert lines("s string", ("x",), ("\ufeffx",)) == ["x", "\ufeffx", ""]


def test_delimiters_are_data_where_no_type_uses_them() -> None:
    assert lines("a string, b string", ("x\2y", "z\3")) == ["x\2y\1z\3", ""]


@pytest.mark.parametrize(
    "layout",
    [
        TextLayout((), separator=200),
        TextLayout((), separator=ord("\n")),
        TextLayout((), escape=1),
        TextLayout((), separator=ord("n"), escape=ord("\\")),
        TextLayout((), header=1),
        TextLayout((), problem="its encoding is GBK"),
    ],
)
def test_a_layout_that_cannot_be_written_has_a_problem(layout: TextLayout) -> None:
    assert TextForm.of(layout).problem
