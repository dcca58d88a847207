"""Values of the ``bucket`` column, many at once, are what they are one at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidctl.acid.bucket import decode, encode
from acidctl.base.errors import BadDataError
from acidctl.rows.read.bucket_numbers import decode_all, versions_of

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@given(values=st.lists(INT32))
def test_many_values_are_decoded_as_one_by_one(kind: type[np.generic], values: list[int]) -> None:
    """Format section 2: "whose highest three tell the form"."""
    parts = decode_all(np.array(values, kind))
    assert versions_of(np.array(values, kind)).tolist() == parts.version.tolist()
    rows = np.column_stack([parts.version, parts.bucket, parts.statement]).tolist()
    for value, found in zip(values, rows, strict=True):
        try:
            one = decode(value)
        except BadDataError:
            assert found[0] > 1
            assert found[1:] == [-1, -1]
        else:
            assert found == [one.version, one.bucket, one.statement]


@given(bucket=st.integers(0, 4095), statement=st.integers(0, 4095))
def test_encoded_values_are_decoded_in_both_versions(bucket: int, statement: int) -> None:
    parts = decode_all(np.array([encode(bucket, statement), bucket]))
    assert (parts.bucket.tolist(), parts.statement.tolist()) == ([bucket, bucket], [statement, 0])
