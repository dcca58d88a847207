"""Rows of many files on the local disk, in their order, in little memory."""

from __future__ import annotations

import tempfile

import numpy as np
import pyarrow as pa
import pytest

from acidctl.base.errors import StorageError
from acidctl.writing.rows.spilled_rows import SpilledRows


def rows(start: int, count: int, kind: pa.DataType | None = None) -> pa.StructArray:
    return pa.StructArray.from_arrays([pa.array(range(start, start + count), kind or pa.int64())], names=["n"])


@pytest.mark.parametrize("limit", [1 << 20, 100, 1])
def test_every_row_comes_back_in_its_group_and_order(limit: int) -> None:
    spilled = SpilledRows(limit)
    random = np.random.default_rng(1)
    expected: dict[int, list[int]] = {group: [] for group in range(5)}
    for start in range(0, 200, 20):
        groups = random.integers(0, 5, 20)
        spilled.add(rows(start, 20), groups)
        for at, group in enumerate(groups):
            expected[int(group)].append(start + at)
    spilled.seal()
    found = {group: [row["n"] for part in spilled.read(group) for row in part.to_pylist()] for group in range(5)}
    spilled.close()
    assert found == expected


def test_stripes_of_different_types_stay_apart() -> None:
    spilled = SpilledRows()
    spilled.add(rows(0, 2), np.zeros(2, np.int64))
    spilled.add(rows(2, 2, pa.int32()), np.zeros(2, np.int64))
    spilled.seal()
    parts = list(spilled.read(0))
    assert [part.type.field(0).type for part in parts] == [pa.int64(), pa.int32()]
    spilled.close()


def test_a_full_disk_is_an_error_of_storage(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(StorageError, match="no space"):
        SpilledRows(1).add(rows(0, 2), np.zeros(2, np.int64))
