"""Tables of very many columns: whatever is done for each of them must not look at all of them."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc

import acidctl
from acidctl.orc.types import OrcType
from acidctl.rows.scan.columns import FileColumns

COLUMNS = 20_000


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    """One row of COLUMNS columns; a child writes it, since Arrow's writer keeps four gigabytes."""
    base = tmp_path / "t" / "base_0000001"
    base.mkdir(parents=True)
    (base / "_orc_acid_version").write_text("2")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.apply(_write, (base / "bucket_00000",))
    return base.parent


def _write(path: Path) -> None:
    names = [f"c{i}" for i in range(COLUMNS)]
    row = pa.StructArray.from_arrays([pa.array([i], pa.int32()) for i in range(COLUMNS)], names)
    ids = [pa.array([n], kind) for n, kind in zip((0, 1, 536870912, 0, 1), _KINDS, strict=True)]
    orc.write_table(pa.table([*ids, row], names=[*_NAMES, "row"]), path, compression="uncompressed")


_KINDS = (pa.int32(), pa.int64(), pa.int32(), pa.int64(), pa.int64())
_NAMES = ("operation", "originalTransaction", "bucket", "rowId", "currentTransaction")


@pytest.mark.slow
def test_scan_of_very_many_columns_ends(wide: Path) -> None:
    table = acidctl.open_table(str(wide))
    for every in (1, 2):
        names = [f"c{i}" for i in range(0, COLUMNS, every)]
        found = table.scan(columns=names).to_table()
        assert found.column_names == names
        assert found.column(names[-1]).to_pylist() == [COLUMNS - every]


def test_a_column_is_got_without_a_look_at_the_others() -> None:
    seen: Counter[str] = Counter()

    class Rows:
        """A struct array that counts."""

        def __init__(self, array: pa.StructArray) -> None:
            self._array = array

        def __len__(self) -> int:
            return len(self._array)

        @property
        def type(self) -> pa.DataType:
            return self._array.type

        def field(self, place: int) -> pa.Array:
            seen["field"] += 1
            return self._array.field(place)

    count = 100
    names = tuple(f"c{i}" for i in range(count))
    tree = OrcType("struct", children=(OrcType("int"),) * count, names=names)
    rows = pa.StructArray.from_arrays([pa.array([i], pa.int32()) for i in range(count)], list(names))
    files = FileColumns(tree, tree, [(i,) for i in range(count)])
    assert [files.get(Rows(rows), (i,), "f").to_pylist() for i in range(count)] == [[i] for i in range(count)]
    assert seen["field"] == count
