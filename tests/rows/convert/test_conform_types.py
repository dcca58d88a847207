"""Types alone show which files a compaction refuses, as the conversion of their rows would."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest

from acidctl.base.errors import AcidctlError, BadDataError
from acidctl.orc.types import OrcType, arrow_type, parse_type
from acidctl.rows.convert.conform import How, conform, require_convertible

LEAVES = (
    "boolean", "tinyint", "bigint", "float", "double", "decimal(38,38)", "decimal(5,1)", "string", "varchar(3)",
    "char(3)", "binary", "date", "timestamp", "timestamp with local time zone",
)  # fmt: skip
NESTED = (
    "array<int>", "array<binary>", "map<string,int>", "map<string,date>", "struct<a:int>", "struct<a:date,b:int>",
    "uniontype<int,string>", "uniontype<bigint,string,boolean>", "uniontype<date,string>",
)  # fmt: skip
TYPES = [parse_type(text) for text in (*LEAVES, *NESTED)]


def refusal(own: OrcType, target: OrcType, *, by_rows: bool) -> tuple[str, str, str] | None:
    rows = [OrcType("struct", children=(kind,), names=("c",)) for kind in (own, target)]
    try:
        if by_rows:
            conform(pa.nulls(0, arrow_type(rows[0])), *rows, "file", how=How(for_good=True))
        else:
            require_convertible(*rows, "file")
    except AcidctlError as error:
        return error.what, error.why, error.hint
    return None


def test_types_are_refused_as_the_conversion_of_no_rows_refuses_them() -> None:
    differing = [
        (own, target)
        for own, target in product(TYPES, TYPES)
        if refusal(own, target, by_rows=True) != refusal(own, target, by_rows=False)
    ]
    assert differing == []
    assert any(refusal(own, target, by_rows=False) for own, target in product(TYPES, TYPES))


@pytest.mark.parametrize("kind", ["int", "string"])
def test_a_struct_without_fields_becomes_nothing_else(kind: str) -> None:
    empty = OrcType("struct")
    for own, target in ((empty, OrcType(kind)), (OrcType(kind), empty)):
        rows = [OrcType("struct", children=(part,), names=("c",)) for part in (own, target)]
        with pytest.raises(BadDataError, match="Hive does not convert it either"):
            require_convertible(*rows, "file")
        with pytest.raises(BadDataError, match="Hive does not convert it either"):
            conform(pa.nulls(1, arrow_type(rows[0])), *rows, "file")
