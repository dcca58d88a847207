"""A condition where a column is missing: what is left of it is true wherever some value could make it true."""

from __future__ import annotations

import itertools

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from acidctl.orc.types import OrcType, row_of
from acidctl.rows.scan.condition import parse_condition
from acidctl.rows.scan.predicate import Predicate

COLUMNS = row_of([("a", OrcType("int")), ("b", OrcType("int"))])
VALUES = [None, 0, 1, 2]
leaves = st.sampled_from(
    ["a = 1", "b = 1", "a > 0", "b <= 1", "a IS NULL", "b IS NULL", "b IS NOT NULL", "a < b", "b IN (0, 2)", "a <=> b"]
)
conditions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("({0[0]} AND {0[1]})".format),
        st.tuples(inner, inner).map("({0[0]} OR {0[1]})".format),
        inner.map("NOT ({})".format),
    ),
    max_leaves=5,
)


def truths(left: Predicate | bool, rows: list[tuple[int | None, int | None]]) -> list[bool | None]:
    if isinstance(left, bool):
        return [left] * len(rows)
    arrays = {name: pa.array([row[i] for row in rows], pa.int32()) for i, name in enumerate("ab")}
    return left.mask(lambda path: arrays[path[0]]).to_pylist()  # type: ignore[no-any-return]


@settings(deadline=None)
@given(conditions)
def test_what_is_left_bounds_the_condition_on_both_sides(text: str) -> None:
    whole = parse_condition(text, COLUMNS)
    missing = {("b",)} & set(whole.paths)
    hopeful, sure = (whole.without(missing, hopeful=one) for one in (True, False))
    for left in (hopeful, sure):
        assert isinstance(left, bool) or not missing & set(left.paths)
    rows = list(itertools.product(VALUES, VALUES))
    for told, may, must in zip(truths(whole, rows), truths(hopeful, rows), truths(sure, rows), strict=True):
        assert may is True or told is not True
        assert must is not True or told is True
    if not missing:
        assert truths(whole, rows) == truths(hopeful, rows) == truths(sure, rows)
