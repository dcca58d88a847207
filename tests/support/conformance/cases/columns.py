"""Columns that changed since the files were written."""

# fmt: off
from __future__ import annotations

from typing import Any

from support.conformance.declared import Chapter, in_parquet, ins, plain, said, struct_of

columns = Chapter("columns that changed")


def changed(name: str, what: str, was: str, now: str, old: tuple[Any, ...], new: tuple[Any, ...], *alter: str,
            source: str = "format section 3.1", **more: Any) -> None:
    """A table with a delta from before a change and one from after it."""
    files = {"d1": ins(1, *old, row=struct_of(was)), "d2": ins(2, *new, row=struct_of(now))}
    if more.get("insert_only"):
        made = in_parquet if more.get("stored") == "parquet" else plain
        files = {"d1/000000_0": made(*old, row=struct_of(was)), "d2/000000_0": made(*new, row=struct_of(now))}
    columns(name, source, what, files, columns=now, was=was, alter=alter, **more)


def retyped(was: str, now: str, old: tuple[Any, ...], new: Any, source: str = "format section 3.1") -> None:
    """A table whose second column has another type now."""
    name = f"{was}-to-{now}".translate(str.maketrans("(),<>:", "------")).replace("--", "-").strip("-")
    rows = tuple((number, value) for number, value in enumerate(old, 1))
    changed(name, f"{was.upper()} became {now.upper()}.", f"a int, c {was}", f"a int, c {now}", rows, ((9, new),),
            f"alter table {{t}} change c c {now}", source=source)


changed("column-added", "A column was added.", "a int", "a int, b string", ((1,), (2,)), ((3, "b3"),),
        "alter table {t} add columns (b string)", source="trino-6479")
changed("column-added-cascade", "A column was added, to the partitions, too.", "a int", "a int, b string",
        ((1,), (2,)), ((3, "b3"),), "alter table {t} add columns (b string) cascade", source="trino-2933")
changed("column-renamed", "A column was renamed: columns are matched by position.", "a int, b string",
    "a int, d string",
        ((1, "b1"),), ((2, "b2"),), "alter table {t} change b d string", source="trino-6316")
changed("columns-swapped", "Two columns of one type changed their places by REPLACE COLUMNS.", "a int, b int, c int",
        "a int, c int, b int", ((1, 2, 3),), ((4, 6, 5),), "alter table {t} replace columns (a int, c int, b int)",
        source="doris-21306")
changed("struct-swapped", "The fields of a struct changed their places.", "a int, s struct<x:int,y:int>",
        "a int, s struct<y:int,x:int>", ((1, {"x": 1, "y": 2}),), ((2, {"y": 2, "x": 1}),),
        "alter table {t} change s s struct<y:int,x:int>", source="orc-54")
changed("struct-field-behind", "A struct got a field at its end.", "a int, s struct<x:int>",
    "a int, s struct<x:int,y:int>",
        ((1, {"x": 1}), (2, None)), ((3, {"x": 1, "y": 2}),), "alter table {t} change s s struct<x:int,y:int>")
changed("struct-field-between", "A struct got a field in its middle.", "a int, s struct<x:int,y:int>",
        "a int, s struct<x:int,z:int,y:int>", ((1, {"x": 1, "y": 2}),), ((2, {"x": 1, "z": 3, "y": 2}),),
        "alter table {t} change s s struct<x:int,z:int,y:int>")
changed("struct-field-before", "A struct got a field at its beginning.", "a int, s struct<x:int,y:int>",
        "a int, s struct<z:int,x:int,y:int>", ((1, {"x": 1, "y": 2}),), ((2, {"z": 3, "x": 1, "y": 2}),),
        "alter table {t} change s s struct<z:int,x:int,y:int>")
changed("struct-first-dropped", "A struct lost its first field.", "a int, s struct<x:int,y:int>",
    "a int, s struct<y:int>",
        ((1, {"x": 1, "y": 2}),), ((2, {"y": 2}),), "alter table {t} change s s struct<y:int>")
changed("struct-in-a-list", "The fields of a struct in a list changed their places.",
    "a int, s array<struct<x:int,y:int>>",
        "a int, s array<struct<y:int,x:int>>", ((1, [{"x": 1, "y": 2}]),), ((2, [{"y": 2, "x": 1}]),),
        "alter table {t} change s s array<struct<y:int,x:int>>", source="orc-54")
changed("struct-in-a-map", "A struct in a map got a field at its end.", "a int, s map<string,struct<x:int>>",
        "a int, s map<string,struct<x:int,y:int>>", ((1, [("k", {"x": 1})]),), ((2, [("k", {"x": 1, "y": 2})]),),
        "alter table {t} change s s map<string,struct<x:int,y:int>>")
changed("col-names", "A file with the names _col0 and _col1.", "a int, b string", "a int, b string",
        ((1, "b1"),), ((2, "b2"),), source="orc-54")
columns("columns-of-hive-1", "orc-54", "Old files with the names _col0 and _col1.", {
    "d1": ins(1, (1, "b1"), row="struct<_col0:int,_col1:string>"), "d2": ins(2, 2),
})
columns("file-has-more-columns", "trino-6316", "A file with a column that the table does not have.", {
    "d1": ins(1, (1, "b1", 5), row="struct<a:int,b:string,c:int>"), "d2": ins(2, 2),
})
columns("names-in-capitals", "orc-54", "A file with the names A and B.", {
    "d1": ins(1, (1, "b1"), row="struct<A:int,B:string>"), "d2": ins(2, 2),
})
retyped("tinyint", "int", (1, -128, None), 70000, "trino-6070")
retyped("int", "bigint", (2147483647, -2147483648, None), 2**40)
retyped("int", "string", (0, -5, None), "x", "trino-9162")
retyped("bigint", "decimal(5,2)", (123, 70000, None), "1.50", "orc-1386")
retyped("int", "decimal(10,2)", (7, -3, None), "1.50", "orc-1386")
retyped("int", "double", (16777217, None), 0.5)
retyped("bigint", "float", (16777217, None), 0.5)
retyped("float", "double", (0.1, 1e10, None), 0.1, "orc-531")
retyped("float", "string", (0.1, 1e10, 1e-5, None), "x", "orc-1386")
retyped("double", "string", (1e10, 1e7, 123456789.125, 1e22, None), "x", "orc-1386")
retyped("boolean", "string", (True, False, None), "x", "orc-709")
retyped("decimal(20,8)", "double", ("1234567.89", "3.3", "4.35", None), 0.5, "orc-1387")
retyped("decimal(10,2)", "float", ("0.10", "1234.56", None), 0.5, "orc-1387")
retyped("decimal(10,2)", "decimal(5,1)", ("1234.56", "99999.99", "-0.05", None), "1.5", "orc-1881")
retyped("decimal(10,2)", "decimal(20,4)", ("1234.56", "-0.05", None), "1.5", "orc-1881")
retyped("decimal(10,2)", "string", ("1234.50", "0.00", None), "x", "orc-1388")
retyped("date", "string", ("2001-02-03", None), "x")
retyped("date", "timestamp", ("2001-02-03", None), "2001-02-03 04:05:06", "orc-578")
retyped("timestamp", "string", ("2001-02-03 04:05:06", "2001-02-03 04:05:06.7", None), "x")
retyped("varchar(5)", "string", ("abc", None), "x")
retyped("string", "varchar(2)", ("abc", "ab", None), "x", "orc-1390")
retyped("char(5)", "string", ("abc", None), "x")
retyped("bigint", "timestamp", (1700000000, -1500, None), "2001-02-03 04:05:06")
retyped("double", "timestamp", (1.5, -1.5, 1700000000.25, float("nan"), None), "2001-02-03 04:05:06")
retyped("float", "timestamp", (0.1, None), "2001-02-03 04:05:06")
retyped("decimal(20,10)", "timestamp", ("1.0000000019", "-1.0000000019", "4102444800", None), "2001-02-03 04:05:06")
retyped("timestamp", "bigint", ("2001-02-03 04:05:06.7", "1969-12-31 23:59:57.5", None), 5)
retyped("timestamp", "double", ("2001-02-03 04:05:06.7", "1969-12-31 23:59:57.5", None), 0.5)
retyped("timestamp", "decimal(20,9)", ("2001-02-03 04:05:06.123456789", None), "1.5")
retyped("string", "date", ("2001-02-03", "9999-12-31", "2001-02-30x", " 2001-02-03", "", None), "2001-02-03",
        source="orc-1390")
retyped("char(12)", "date", ("2001-02-03", "2001-02-03 ", "x", None), "2001-02-03", source="orc-1390")
retyped("string", "timestamp", ("2001-02-03", "2001-02-03T04:05:06", "x", "", None), "2001-02-03 04:05:06",
        source="orc-1390")
changed("dates-of-two-hives", "Text that became DATE, which each Hive reads differently.", "a int, c string",
        "a int, c date", ((1, "2001-2-3"), (2, "2001-02-30"), (3, "2001-02-03")), ((9, "2001-02-03"),),
        "alter table {t} change c c date", source="orc-1390")
changed("times-of-text", "Text that became TIMESTAMP, which Hive 3 reads by the zone of its process.",
        "a int, c string", "a int, c timestamp", ((1, "2001-02-03 04:05"), (2, "2001-02-03 04:05:06.7"), (3, "x")),
        ((9, "2001-02-03 04:05:06"),), "alter table {t} change c c timestamp", source="orc-1390")
changed("bytes-of-text", "Text that became BINARY, which Hive 3 does not read.", "a int, c string", "a int, c binary",
        ((1, "x"), (2, ""), (3, None)), ((9, b"\x01"),), "alter table {t} change c c binary", source="orc-1390")

# Properties of a table by which Hive finds columns in another way.
BLIND = (("orc.schema.evolution.case.sensitive", "false"),)
BY_PLACE, BY_NAME = ((("orc.force.positional.evolution", value),) for value in ("true", "false"))
DEEP = (*BY_PLACE, ("orc.force.positional.evolution.level", "2"))
BY_INDEX = (("parquet.column.index.access", "true"),)
for kind, more in (("", {}), ("mm-", {"insert_only": True, "ids": "cc"})):
    for name, properties in (("", ()), ("blind-", BLIND)):
        changed(f"{kind}{name}field-in-capitals", f"A field's name changed its case{said(properties)}.",
                "a int, s struct<x:int,y:int>", "a int, s struct<Y:int,x:int>",
                ((1, {"x": 1, "y": 2}),), ((2, {"Y": 3, "x": 4}),),
                "alter table {t} change s s struct<Y:int,x:int>", source="orc-264", properties=properties, **more)
    for name, properties in (("place", BY_PLACE), ("name", BY_NAME)):
        changed(f"{kind}columns-swapped-by-{name}", f"Two columns changed their places{said(properties)}.",
                "a int, b int", "b int, a int", ((1, 2),), ((4, 3),),
                "alter table {t} replace columns (b int, a int)", properties=properties, **more)
    changed(f"{kind}struct-swapped-by-place", f"The fields of a struct changed their places{said(DEEP)}.",
            "a int, s struct<x:int,y:int>", "a int, s struct<y:int,x:int>",
            ((1, {"x": 1, "y": 2}),), ((2, {"y": 3, "x": 4}),),
            "alter table {t} change s s struct<y:int,x:int>", properties=DEEP, **more)

for name, properties in (("", ()), ("-by-place", BY_INDEX)):
    changed(f"mm-parquet-columns-swapped{name}", f"Two columns changed their places{said(properties)}.",
            "a int, b int", "b int, a int", ((1, 2),), ((4, 3),), "alter table {t} replace columns (b int, a int)",
            properties=properties, insert_only=True, stored="parquet", ids="cc")
for name, files in (
    ("original", {"000000_0": plain((2, 1), row="struct<b:int,a:int>"), "d1": ins(1, (3, 4))}),
    ("original-alone", {"000000_0": plain((2, 1), row="struct<b:int,a:int>")}),
    ("loaded", {"d1/000000_0": plain((2, 1), row="struct<b:int,a:int>"), "d2": ins(2, (3, 4))}),
    ("loaded-with-more", {"d1/000000_0": plain((2, 1, 5), row="struct<b:int,a:int,c:int>"), "d2": ins(2, (3, 4))}),
):
    columns(f"columns-of-{name}", "trino-6316", "A file without ids whose columns are in another order.", files,
            columns="a int, b int")
columns("columns-of-mm", "trino-6316", "An insert-only table with a file whose columns are in another order.", {
    "d1/000000_0": plain((2, 1), row="struct<b:int,a:int>"), "d2/000000_0": plain((3, 4), row="struct<a:int,b:int>"),
}, columns="a int, b int", insert_only=True, ids="cc")
