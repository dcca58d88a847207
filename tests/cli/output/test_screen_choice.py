"""What a list shows: conditions, order and columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidctl.base.errors import UsageProblem
from acidctl.cli.output.screen import BYTES, ListChoice, table_lines

KNOWN = {"name": "string", "deltas": "bigint", "bytes": BYTES, "gain": "double", "due": "boolean", "keys": "string"}
RECORDS = [
    {"name": "a", "deltas": 3, "bytes": 2048, "gain": 0.5, "due": True, "keys": ["day", "hour"]},
    {"name": "b", "deltas": None, "bytes": 1, "gain": None, "due": False, "keys": []},
    {"name": "c", "deltas": 77, "bytes": 0, "gain": 2.0, "due": None, "keys": ["day"]},
]


def names(choice: ListChoice) -> str:
    checked = choice.checked(KNOWN)
    return "".join(record["name"] for record in checked.in_order(checked.meeting(RECORDS)))


@pytest.mark.parametrize(
    ("where", "met"),
    [
        ("deltas > 50", "c"),
        ("DELTAS <= 77", "ac"),
        ("deltas IS NULL OR due", "ab"),
        ("NOT due", "b"),
        ("bytes BETWEEN 1 AND 4096 AND name LIKE 'a%'", "a"),
        ("gain >= 0.5", "ac"),
        ("keys = 'day hour'", "a"),
        ("name IN ('a', 'c') AND gain < 1", "a"),
    ],
)
def test_conditions_are_those_of_rows(where: str, met: str) -> None:
    assert names(ListChoice(where=where)) == met


@pytest.mark.parametrize(
    ("sort", "order"),
    [("deltas", "cab"), ("deltas:asc", "acb"), ("name:desc", "cba"), ("NAME", "abc"), ("gain", "cab")],
)
def test_numbers_come_the_greatest_first_and_absent_ones_last(sort: str, order: str) -> None:
    assert names(ListChoice(sort=sort)) == order


@given(st.lists(st.one_of(st.none(), st.integers(-5, 5)), max_size=12), st.integers(-5, 5))
def test_a_condition_is_what_it_is_in_python(values: list[int | None], limit: int) -> None:
    checked = ListChoice(where=f"n > {limit}", sort="n:asc").checked({"n": "bigint"})
    found = [record["n"] for record in checked.in_order(checked.meeting([{"n": value} for value in values]))]
    assert found == sorted(value for value in values if value is not None and value > limit)


@pytest.mark.parametrize(
    ("choice", "hint"),
    [
        (ListChoice(columns=("nam",)), "did you mean name?"),
        (ListChoice(sort="delta"), "did you mean deltas?"),
        (ListChoice(where="delts > 1"), "did you mean deltas?"),
        (ListChoice(sort="name:up"), "write asc or desc"),
    ],
)
def test_what_is_not_known_is_refused_before_anything_is_listed(choice: ListChoice, hint: str) -> None:
    with pytest.raises(UsageProblem) as refused:
        choice.checked(KNOWN)
    assert hint in refused.value.hint


def test_columns_are_set_as_they_were_asked_for() -> None:
    layout = ListChoice(columns=("bytes", "name", "due")).checked(KNOWN).layout()
    assert [line.plain for line in table_lines(layout, RECORDS, 80)] == [
        "  bytes  name  due", "2.0 KiB  a     true", "    1 B  b     false", "    0 B  c     -",
    ]  # fmt: skip
