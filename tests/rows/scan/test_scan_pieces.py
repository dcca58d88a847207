"""A scan in pieces, as many workers share it."""

from __future__ import annotations

import pickle

import pytest
from support.tables import json_rows, snapshot_of
from support.written_by_hive import HIVE23

from acidctl.rows.scan.scan import Scan, scan_pieces


@pytest.mark.parametrize("case", sorted(path.name for path in HIVE23.iterdir() if path.is_dir()))
@pytest.mark.parametrize("target", [1, 1 << 30])
def test_pieces_make_the_whole(case: str, target: int) -> None:
    snapshot = snapshot_of(HIVE23 / case / "table")
    whole = json_rows(Scan(snapshot, row_id=True))
    shipped = pickle.loads(pickle.dumps(snapshot))
    found = [
        row
        for piece in scan_pieces(snapshot, target)
        for row in json_rows(Scan(shipped, row_id=True, only={piece.path: piece.stripes}))
    ]
    assert found == whole


def test_pieces_count_bytes_and_rows() -> None:
    snapshot = snapshot_of(HIVE23 / "snappy" / "table")
    small, large = scan_pieces(snapshot, 1), scan_pieces(snapshot)
    assert sum(piece.rows for piece in small) == sum(piece.rows for piece in large) > 0
    assert sum(piece.bytes for piece in small) == sum(piece.bytes for piece in large)
    assert all(len(piece.stripes) == 1 for piece in small)
