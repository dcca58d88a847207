"""Conditions in SQL against the same in Python."""

from __future__ import annotations

import pyarrow as pa
import pytest

from acidctl.errors import UsageProblem
from acidctl.orc.types import OrcType
from acidctl.rows.scan.condition import parse_condition

BATCH = pa.RecordBatch.from_pydict(
    {
        "operation": pa.array([0, 2, 0, 1, None], pa.int32()),
        "rowId": pa.array([5, 6, 7, 8, 9], pa.int64()),
        "name": ["ab", "b", None, "abc", "x"],
        "row": [{"id": 1}, {"id": 2}, {"id": 3}, {"id": None}, {"id": 5}],
    }
)
TYPES = OrcType(
    "struct",
    children=(
        OrcType("int"),
        OrcType("bigint"),
        OrcType("string"),
        OrcType("struct", children=(OrcType("bigint"),), names=("id",)),
    ),
    names=tuple(BATCH.schema.names),
)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("operation = 2", [6]),
        ("OPERATION <> 0", [6, 8]),
        ("rowid between 6 and 7 or rowId >= 9", [6, 7, 9]),
        ("NOT (operation = 0)", [6, 8]),
        ("operation in (1, 2)", [6, 8]),
        ("operation is null", [9]),
        ("operation is not null and rowId < 7", [5, 6]),
        ("name like 'ab%'", [5, 8]),
        ("row.id > 1 and row.id <= 3", [6, 7]),
        ("7 < rowId", [8, 9]),
        ("rowId = -5", []),
    ],
)
def test_condition_keeps_the_rows_that_sql_keeps(text: str, rows: list[int]) -> None:
    predicate = parse_condition(text, TYPES)
    assert predicate.apply(BATCH).column("rowId").to_pylist() == rows


@pytest.mark.parametrize(
    "text",
    [
        "",
        "operation",
        "operation =",
        "nothing = 1",
        "rowId + 1 = 2",
        "exists (select 1)",
        "name = 5",
        "drop table x",
        "1",
    ],
)
def test_malformed_condition_is_refused(text: str) -> None:
    with pytest.raises(UsageProblem):
        parse_condition(text, TYPES).apply(BATCH)


def test_near_names_are_suggested() -> None:
    with pytest.raises(UsageProblem) as caught:
        parse_condition("operatoin = 1", TYPES)
    assert "operation" in caught.value.hint
