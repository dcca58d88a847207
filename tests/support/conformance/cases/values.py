"""Values of every type, at their limits."""

# fmt: off
from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

from support.conformance.declared import Chapter, dels, events, ins, plain
from support.files.acid_files import B0, INSERT

values = Chapter("values")


def valued(name: str, kind: str, *given: Any, source: str = "types.md", what: str = "", by_pyorc: bool = False) -> None:
    """A delta with values of one type, a row with NULL, and a second delta that deletes the first row."""
    rows = tuple((number, value) for number, value in enumerate((given[0], *given, None)))
    first = ins(1, *rows, by_pyorc=by_pyorc)
    values(name, source, what or f"{kind.upper()}.", {"d1": first, "x2": dels(2, (1, 0), by_pyorc=by_pyorc)},
           columns=f"a int, c {kind}")


FLOATS = (0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1.5)
valued("booleans", "boolean", True, False)
valued("tinyints", "tinyint", 127, -128, 0)
valued("smallints", "smallint", 32767, -32768, 0)
valued("ints", "int", 2**31 - 1, -(2**31), 0)
valued("bigints", "bigint", 2**63 - 1, -(2**63), 0)
valued("floats", "float", *FLOATS, 3.4028235e38, 1e-45)
valued("doubles", "double", *FLOATS, 1.7976931348623157e308, 5e-324)
valued("decimals", "decimal(38,10)", Decimal("9999999999999999999999999999.9999999999"), Decimal("-0.0000000001"),
    Decimal(0))
valued("decimals-short", "decimal(5,2)", Decimal("999.99"), Decimal("-999.99"), Decimal("0.10"), source="orc-379")
valued("strings", "string", "", " ", "Grüße", "\U0001f600", "NULL")
valued("varchars", "varchar(3)", "abc", "", "äöü")
valued("chars", "char(5)", "abc", "", "äöü")
valued("binaries", "binary", b"", b"\x00\xff", b"abc")
valued("dates", "date", date(2020, 2, 29), date(1970, 1, 1), date(1969, 12, 31), date(9999, 12, 31))
valued("dates-before-1582", "date", date(1582, 10, 15), date(1582, 10, 4), date(1000, 3, 1), date(1, 1, 1),
       source="cudf-11691", what="Dates before the Gregorian calendar.")
valued("timestamps", "timestamp", datetime(2020, 2, 29, 23, 59, 59, 999999), datetime(1970, 1, 1),
       datetime(1969, 12, 31, 23, 59, 59, 500000), by_pyorc=True)
valued("timestamps-before-1970", "timestamp", datetime(1969, 12, 31, 23, 59, 59), datetime(1960, 1, 1, 0, 0, 0, 1000),
       source="orc-1053", what="Timestamps before 1970, with fractions and without.",
       by_pyorc=True)
valued("timestamps-before-1900", "timestamp", datetime(1899, 12, 31, 23, 59, 59), datetime(1883, 11, 18, 11),
       datetime(1700, 1, 1), source="spark-37463", what="Timestamps from before time zones.")
valued("timestamps-before-1582", "timestamp", datetime(1582, 10, 15), datetime(1582, 10, 4), datetime(1000, 3, 1, 12),
       source="cudf-11691", what="Timestamps before the Gregorian calendar.", by_pyorc=True)
valued("timestamps-in-a-gap", "timestamp", datetime(2021, 3, 14, 2, 30), datetime(2021, 11, 7, 1, 30), source="orc-10",
       what="Timestamps that a change to summer time leaves out, or has twice, in Los Angeles.")
valued("timestamps-by-pyorc", "timestamp", datetime(2021, 7, 1, 12), datetime(1969, 7, 1, 12, 0, 0, 5),
    source="orc-1053",
       what="Timestamps by a writer in C++.", by_pyorc=True)
valued("lists", "array<int>", [1, 2], [], [None])
valued("maps", "map<string,int>", [("k", 1)], [], [("k", None)])
valued("structs", "struct<x:int,y:string>", {"x": 1, "y": "a"}, {"x": None, "y": None})
valued("nested", "array<map<string,struct<x:array<int>>>>", [[("k", {"x": [1, 2]})]], [[]], [])
valued("unions", "uniontype<int,string>", 1, "x", source="trino-12266", by_pyorc=True)
values("wide-rows", "format section 3.1", "Thirty columns.", {
    "d1": ins(1, tuple(range(30)), tuple(range(30, 60))), "x2": dels(2, (1, 0)),
}, columns=", ".join(f"c{i} int" for i in range(30)))
values("same-field-twice", "orc-626", "A struct whose fields differ in case alone.", {
    "d1": events((INSERT, 1, B0, 0, 1, (1, (1, 2))), row="struct<a:int,s:struct<x:int,X:int>>"),
}, columns="a int, s struct<x:int,y:int>")
values("column-called-rowid", "doris-46130", "Columns with the names of ACID columns.", {
    "d1": ins(1, (1, 2, "x")), "d2": ins(2, (3, 4, "y")), "x3": dels(3, (1, 0)),
}, columns="rowid int, bucket int, originaltransaction string")
values("original-of-all-types", "format section 5.1", "An original file of several types.", {
    "000000_0": plain((1, "x", 0.1, Decimal("1.50"), date(2020, 1, 1), [1])), "x1": dels(1, (0, 7)),
}, columns="a int, b string, c double, d decimal(5,2), e date, f array<int>")
