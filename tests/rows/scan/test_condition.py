"""Conditions in SQL against the same in Python."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from acidctl.base.errors import UsageProblem
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


KINDS = {"f": "float", "d": "double", "i": "int", "s": "string", "b": "boolean", "dt": "date", "ts": "timestamp"}
TYPED = OrcType(
    "struct",
    children=(*map(OrcType, KINDS.values()), OrcType("decimal", precision=10, scale=2)),
    names=(*KINDS, "n"),
)


@pytest.mark.parametrize(
    "text",
    [
        "f = cast(0.1 as double)", "d = cast(0.1 as float)", "f = cast(1e60 as float)", "i = 300Y", "i = 1L",
        "i = cast(1.5 as int)", "n = cast(1.25 as decimal)", "n = cast(1.25 as decimal(3,1))", "b = cast(1 as boolean)",
        "s = cast('abcd' as char(3))", "s = cast('abcd' as varchar(3))", "i = cast('x' as int)",
        "ts = cast('2024-01-01 00:00:00' as timestamp with local time zone)", "dt = cast('2024-01-01 10:00' as date)",
        "i between symmetric 2 and 1", "s like 'x!%' escape '!'", "s not like 'x' escape '!'", "s like any ('a', 'b')",
        "i = 1; i = 2", "s = 'a' collate x", "s collate x = 'a'", "s = 'it''s'", "s = 'a' 'b'", r"s = 'x\q'",
        r"s = 'x\u0041'", r"s = 'x\101'", "s.x[0] = 1", "s[0].x = 1", "i = 1 + 1", "i + 1 = 2", "-i = 1", "i::int = 1",
        "cast(i as string) = '1'", "lower(s) = 'a'", "dt = date('2024-01-01')", "dt = current_date",
        "dt = date '2024-01-01' + interval '1' day", "i is distinct from 1", "s ilike 'A'", "s rlike 'a'", "s = N'a'",
        "i in (select 1)", "i = ?", "i = @x", "i = 1 is null", "(i, d) = (1, 2)", "exists (select 1)", "i.* = 1",
        "case when b then b end", "i div 2 = 1", "i = ~5", "s regexp 'a'",
    ],
)  # fmt: skip
def test_what_a_condition_cannot_express_is_refused(text: str) -> None:
    with pytest.raises(UsageProblem):
        parse_condition(text, TYPED)


@pytest.mark.parametrize(
    "text", ["i = ", "i = 1 or", "i = 1 AS b", "s = 'x", "i = 0x10", "i in (", "i = 1 limit 3", ""]
)
def test_a_parser_is_not_seen_in_messages(text: str) -> None:
    with pytest.raises(UsageProblem) as found:
        parse_condition(text, TYPED)
    assert "sqlglot" not in str(found.value)
    assert "class" not in str(found.value)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("f = cast(0.1 as float)", [0]), ("f = cast('0.1' as float)", [0]), ("f = 0.1F", [0]),
        ("f = -cast(2 as float)", [1]), ("f <= cast(0.1 as float)", [0, 1]), ("d = cast(0.1 as double)", [0]),
        ("d = 0.1D", [0]),
        ("dt = cast('2024-01-01' as date)", [0]), ("ts = cast('2024-01-01 00:00:00' as timestamp)", [0]),
        ("d = cast(null as double)", []), ("b < true", [1]), ("b >= false", [0, 1]), ("b > false", [0]),
        ("b <= b", [0, 1]), ("b <> true", [1]), (r"s <> 'it\'s'", [0, 1]), ("i = 1;", [0]),
    ],
)  # fmt: skip
def test_casts_and_truth_values_are_those_of_hive(text: str, kept: list[int]) -> None:
    rows = pa.record_batch(
        {
            "f": pa.array([0.1, -2.0], pa.float32()), "d": [0.1, 2.0], "i": pa.array([1, 2], pa.int32()),
            "s": ["a", "b"],
            "b": [True, False], "dt": pa.array([19723, 0], pa.date32()),
            "ts": pa.array([19723 * 86400, 0], pa.timestamp("s")),
            "n": pa.array([Decimal("1.25"), Decimal(2)], pa.decimal128(10, 2)), "at": [0, 1],
        }
    )  # fmt: skip
    assert parse_condition(text, TYPED).apply(rows)["at"].to_pylist() == kept


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("upper(name) = 'A'", "UPPER(name)"), ("name = concat('a', 'b')", "CONCAT('a', 'b')"),
        ("name in (select 1)", "SELECT 1"), ("operation + 1 = 2", "operation + 1"), ("name[0] = 'a'", "name[0]"),
        ("case when operation = 1 then true end", "CASE WHEN"), ("row.id > 'x'", "bigint"), ("row > 1", "struct"),
        ("operation > date '2024-02-29'", "int"), ("operation between symmetric 1 and 3", "BETWEEN"),
        ("operation like 'a'", "type int"), ("interval 1 day > operation", "INTERVAL"),
        ("count(*) over () = 1", "COUNT(*)"),
        ("operation = array(1, 2)", "ARRAY(1, 2)"), ("exists (select 1)", "EXISTS"), ("1 = 1", "1"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_named_in_sql_alone(text: str, said: str) -> None:
    """Messages contain no class, argument or type of the libraries that parse and compare."""
    with pytest.raises(UsageProblem) as refused:
        parse_condition(text, TYPES).apply(BATCH)
    assert said in refused.value.why
    for leaked in ("expressions", "ifs", "query", "sqlglot", "int32", "int64", "symmetric:", "unit", "bool "):
        assert leaked not in refused.value.why


def test_booleans_have_an_order() -> None:
    """FALSE comes before TRUE, as in Hive."""
    flags = pa.RecordBatch.from_pydict({"flag": [True, False, None], "other": [False, False, True]})
    types = OrcType("struct", children=(OrcType("boolean"), OrcType("boolean")), names=("flag", "other"))
    for text, rows in (
        ("flag < true", [False]), ("flag >= false", [True, False]), ("flag > other", [True]),
        ("false < flag", [True]), ("flag between false and false", [False]), ("flag <= other", [False]),
    ):  # fmt: skip
        assert parse_condition(text, types).apply(flags).column("flag").to_pylist() == rows, text
