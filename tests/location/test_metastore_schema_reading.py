"""The properties of a table that change which rows and columns are read of its files."""

from __future__ import annotations

from dataclasses import replace

import pytest

from acidctl.acid.compaction_kind import Hive
from acidctl.acid.listing import TableType
from acidctl.location.metastore_schema import Declared, declared_by
from acidctl.metastore.tables import Column, HivePartition, HiveTable, StoredAs
from acidctl.orc.types import columns_of
from acidctl.rows.convert.matching import fields_of, place_in, table_row_type

HEADER, CASE, PLACE = "skip.header.line.count", "orc.schema.evolution.case.sensitive", "orc.force.positional.evolution"


def table(format_: str = "text", serde: dict[str, str] | None = None, **more: dict[str, str]) -> HiveTable:
    kind, stored = TableType.INSERT_ONLY, StoredAs(format_, properties=serde or {})
    parameters = more.get("parameters", {})
    return HiveTable("d", "t", "/t", kind, (Column("a", "string"),), (), parameters, "", stored_as=stored)


def layout(declared: Declared) -> tuple[int, int]:
    assert declared.text
    return declared.text.header, declared.text.footer


def test_lines_are_left_out_by_the_tables_properties_and_by_those_of_its_serde() -> None:
    assert layout(declared_by(table())) == (0, 0)
    assert layout(declared_by(table(parameters={HEADER: "2"}))) == (2, 0)
    assert layout(declared_by(table(serde={HEADER: "2", "skip.footer.line.count": "1"}))) == (2, 1)
    assert layout(declared_by(table(serde={HEADER: "2"}, parameters={HEADER: "3"}))) == (3, 0)


def test_no_lines_are_left_out_by_the_properties_of_a_partition() -> None:
    own = HivePartition((("p", "1"),), "/t/p=1", {HEADER: "1"}, replace(table().stored_as, properties={HEADER: "1"}))
    assert layout(declared_by(table(), own)) == (0, 0)


@pytest.mark.parametrize(
    ("hive", "place", "wanted"),
    [
        (Hive.HIVE3, "", [1, 0]),
        (Hive.HIVE4, "", [0, 1]),
        (Hive.HIVE3, "TRUE", [0, 1]),
        (Hive.HIVE3, "false", [1, 0]),
        (Hive.HIVE4, "false", [0, 1]),
    ],
)
def test_columns_are_found_by_place_where_a_property_says_so(hive: Hive, place: str, wanted: list[int]) -> None:
    said = replace(declared_by(table("ORC", {PLACE: place}), hive=hive), columns=(("b", "int"), ("a", "int")))
    assert fields_of(columns_of("a int, b int"), table_row_type(said, []), is_top=True) == wanted


@pytest.mark.parametrize("case", ["false", "true"])
def test_case_counts_unless_a_property_says_otherwise(case: str) -> None:
    said = declared_by(table("ORC", parameters={CASE: case}), hive=Hive.HIVE4)
    files, now = "s struct<x:int,y:int>", "struct<Y:int,x:int>"
    row = table_row_type(replace(said, columns=(("s", now), ("l", f"array<{now}>"))), [])
    second = 1 if case == "false" else None
    for new in (row.children[0], row.children[1].children[0]):
        assert fields_of(columns_of(files).children[0], new) == [second, 0]
    assert place_in(columns_of(files), (0, 0), row) == ((0, second) if second else None)


@pytest.mark.parametrize(("levels", "hive", "is_swapped"), [(1, 4, True), (2, 3, True), (2, 4, False), (3, 4, False)])
def test_fields_are_found_by_place_down_to_a_level(levels: int, hive: int, is_swapped: bool) -> None:
    said = declared_by(table("ORC", parameters={f"{PLACE}.level": str(levels)}), hive=Hive(f"hive{hive}"))
    now = "struct<y:int,x:struct<b:int,a:int>>"
    row = table_row_type(replace(said, columns=(("s", now),)), [])
    own = columns_of("s struct<x:int,y:struct<a:int,b:int>>").children[0]
    assert fields_of(own, row.children[0]) == ([1, 0] if is_swapped else [0, 1])
    assert fields_of(own.children[1], row.children[0].children[1]) == ([0, 1] if levels == 3 else [1, 0])
