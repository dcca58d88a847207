"""Cutting rows out of columns, against Arrow's own filter."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidctl.rows.selection import kept_batch, kept_rows

VALUES = [{"a": i, "b": None if i % 3 == 0 else str(i), "c": [i, None], "d": {"e": i / 2}} for i in range(40)]
TYPE = pa.struct(
    [("a", pa.int64()), ("b", pa.string()), ("c", pa.list_(pa.int32())), ("d", pa.struct([("e", pa.float64())]))]
)

ONE_GOES = st.integers(0, 37).map(lambda i: [i != j for j in range(38)])


@pytest.mark.parametrize("holes", [False, True], ids=["whole", "NULL structs"])
@given(
    st.lists(st.booleans(), min_size=38, max_size=38) | st.integers(0, 37).map(lambda i: [i != j for j in range(38)])
)
def test_as_arrow_filters(holes: bool, keep: list[bool]) -> None:
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
