"""Cutting rows out of columns, against Arrow's own filter."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from acidctl.rows.read import selection
from acidctl.rows.read.selection import kept_batch, kept_rows, without_places

VALUES = [{"a": i, "b": None if i % 3 == 0 else str(i), "c": [i, None], "d": {"e": i / 2}} for i in range(40)]
TYPE = pa.struct(
    [("a", pa.int64()), ("b", pa.string()), ("c", pa.list_(pa.int32())), ("d", pa.struct([("e", pa.float64())]))]
)

ONE_GOES = st.integers(0, 37).map(lambda i: [i != j for j in range(38)])


@pytest.mark.parametrize("holes", [False, True], ids=["whole", "NULL structs"])
@given(st.lists(st.booleans(), min_size=38, max_size=38) | ONE_GOES)
def test_rows_are_kept_as_arrow_filters_them(holes: bool, keep: list[bool]) -> None:
    rows = pa.array([None if holes and i % 5 == 0 else value for i, value in enumerate(VALUES)], TYPE).slice(1, 38)
    found = kept_rows(rows, np.array(keep))
    found.validate(full=True)
    assert found.type == TYPE
    assert found.to_pylist() == [row for row, stays in zip(rows.to_pylist(), keep, strict=True) if stays]
    if not holes:
        batch = pa.RecordBatch.from_struct_array(rows)
        assert kept_batch(batch, np.array(keep)).equals(pa.RecordBatch.from_struct_array(found))


def test_rows_without_columns_are_counted() -> None:
    keep = np.array([True, False, True])
    assert len(kept_rows(pa.array([{}] * 3, pa.struct([])), keep)) == 2


@example(set(range(40)))
@given(st.sets(st.integers(0, 39)))
def test_rows_at_places_are_left_out(places: set[int]) -> None:
    batch = pa.RecordBatch.from_struct_array(pa.array(VALUES, TYPE))
    kept = [row for place, row in enumerate(VALUES) if place not in places]
    for slices, joined in ((1, 1), (1000, 1), (1000, 1000)):  # rows between two that go, for each of the three ways
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(selection, "SLICE_ROWS", slices)
            patch.setattr(selection, "JOINED_ROWS", joined)
            found = list(without_places(batch, np.array(sorted(places), np.intp), joined=True))
        assert [row for one in found for row in one.to_pylist()] == kept
        if places and slices > 1:
            assert len(found) == bool(kept)  # no batch where no row is left


def test_slices_of_unions_are_not_put_together() -> None:
    """Arrow would put all values of the union into each, and a stripe would grow with the number of its deletes."""
    kinds, offsets = pa.array([0] * 9000, pa.int8()), pa.array(range(9000), pa.int32())
    batch = pa.record_batch([pa.UnionArray.from_dense(kinds, offsets, [pa.array(range(9000))])], names=["u"])
    (found,) = without_places(batch, np.array([4000, 8000]), joined=False)
    assert found.num_rows == 8998
    assert found.nbytes <= batch.nbytes
