"""A scan in pieces, as many workers share it."""

from __future__ import annotations

import pickle

import pytest
from support.engines.written_by_hive import HIVE23
from support.tables import json_rows, snapshot_of

from acidctl.rows.scan.scan import Scan


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", sorted(path.name for path in HIVE23.iterdir() if path.is_dir()))
@pytest.mark.parametrize("most", [1, 1 << 30])
def test_pieces_make_the_whole(case: str, most: int) -> None:
    snapshot = snapshot_of(HIVE23 / case / "table")
    whole = json_rows(Scan(snapshot, row_id=True))
    shipped = pickle.loads(pickle.dumps(snapshot))
    found = [
        row
        for source in Scan(snapshot).sources
        for start in range(0, 0 if source.is_delete else len(source.tail.stripes), most)
        for row in json_rows(
            Scan(
                shipped,
                row_id=True,
                only={source.file.path: range(start, min(start + most, len(source.tail.stripes)))},
            )
        )
    ]
    assert found == whole
