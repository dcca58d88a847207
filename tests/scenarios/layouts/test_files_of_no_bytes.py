"""Files of 0 bytes are files without rows, for every reader and every compaction, and findings of validate."""

from __future__ import annotations

import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.compacting import compact_location
from support.files.acid_files import B1, ID, delete, insert, write_acid, write_plain
from support.tables import json_rows, snapshot_of
from support.validating import check

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.layout import TableType
from acidctl.acid.reasons import Code
from acidctl.base.errors import BadDataError
from acidctl.compaction.request import CompactionRequest, Mode
from acidctl.rows.scan.scan import Scan
from acidctl.validation.findings import Depth, Severity

ONE, TWO, WIDE = "delta_0000001_0000001_0000", "delta_0000002_0000002_0000", "delta_0000001_0000004"
DELETED = "delete_delta_0000003_0000003_0000"
CASES = {
    f"{TWO}/bucket_00003_0": Severity.WARNING,
    f"{ONE}/bucket_00001": Severity.WARNING,
    f"{DELETED}/bucket_00001": Severity.ERROR,
    f"{WIDE}/bucket_00001": Severity.WARNING,
    f"{TWO}/000003_0": Severity.INFO,
    "000000_0": Severity.INFO,
}


def shown(table: Path) -> list[int]:
    return sorted(row["id"] for row in json_rows(Scan(snapshot_of(table))))


def filled(table: Path) -> list[int]:
    write_acid(table / ONE / "bucket_00000", insert(1, 0, (1,)), insert(1, 1, (2,)), row=ID)
    write_acid(table / TWO / "bucket_00001", insert(2, 0, (3,), bucket=B1), row=ID)
    write_acid(table / DELETED / "bucket_00000", delete(1, 0, 3), row=ID)
    return [2, 3]


@pytest.mark.parametrize("kind", [None, *CompactionKind])
@pytest.mark.parametrize("path", CASES)
def test_a_full_acid_table(tmp_path: Path, path: str, kind: CompactionKind | None) -> None:
    wanted = filled(tmp_path)
    if path.startswith(WIDE):
        write_acid(tmp_path / WIDE / "bucket_00000", insert(4, 0, (4,)), row=ID)
        for name in (ONE, TWO):
            (tmp_path / name).rename(tmp_path / f"_{name}")
        wanted = [4]
    (tmp_path / path).unlink(missing_ok=True)
    (tmp_path / path).touch()
    if path == f"{ONE}/bucket_00001":
        assert len(wanted) == 2
    codes = {note.code for note in snapshot_of(tmp_path).state.notes}
    assert (Code.EMPTY_FILES in codes) is ("bucket" in path)
    told = {one.path: one.severity for one in check(tmp_path, depth=Depth.DEEP)[0].findings if one.rule == "V46"}
    assert told == {path: CASES[path]}
    if kind is not None:
        compact_location(str(tmp_path), CompactionRequest(Mode(kind.value), offline=True))
    assert shown(tmp_path) == wanted
    assert Scan(snapshot_of(tmp_path)).count() == len(wanted)


@pytest.mark.parametrize(
    ("lengths", "is_read"), [(b"", True), (struct.pack(">q", 0), True), (struct.pack(">q", 9), False)]
)
def test_a_stream_by_what_its_side_file_says(tmp_path: Path, lengths: bytes, is_read: bool) -> None:
    write_acid(tmp_path / WIDE / "bucket_00000", insert(1, 0, (1,)), row=ID)
    (tmp_path / WIDE / "bucket_00001").touch()
    (tmp_path / WIDE / "bucket_00001_flush_length").write_bytes(lengths)
    if is_read:
        assert shown(tmp_path) == [1]
        return
    with pytest.raises(BadDataError):
        shown(tmp_path)


@pytest.mark.parametrize("form", ["orc", "parquet"])
@pytest.mark.parametrize("kind", [None, *CompactionKind])
def test_an_insert_only_table(tmp_path: Path, form: str, kind: CompactionKind | None) -> None:
    for number in (1, 2):
        directory = tmp_path / f"delta_000000{number}_000000{number}_0000"
        directory.mkdir()
        if form == "orc":
            write_plain(directory / "000000_0", (number,), row=ID)
        else:
            pq.write_table(pa.table({"id": pa.array([number], pa.int32())}), directory / "000000_0")
        (directory / "000001_0").touch()
    if kind is not None:
        request = CompactionRequest(Mode(kind.value), table_type=TableType.INSERT_ONLY, offline=True)
        compact_location(str(tmp_path), request)
    assert shown(tmp_path) == [1, 2]
