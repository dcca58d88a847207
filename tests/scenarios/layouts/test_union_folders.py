"""Folders of a UNION ALL in bases and deltas: Hive 4.0.1 reads them, Hive 3.1.3 does not, as measured with both."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.compacting import compact_location
from support.files.acid_files import ID, insert, write_acid, write_plain
from support.tables import snapshot_of
from support.validating import check

from acidctl.acid.compaction_kind import Hive
from acidctl.acid.layout import union_folder_of
from acidctl.acid.listing import TableType
from acidctl.base.errors import RefusedError
from acidctl.compaction.output_settings import Writing
from acidctl.compaction.request import CompactionRequest, Mode
from acidctl.rows.scan.odd_layout import odd_layout
from acidctl.validation.findings import WARNING, Depth

FOLDER = "delta_0000001_0000001_0000/HIVE_UNION_SUBDIR_1"


@pytest.fixture(params=TableType)
def union(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, TableType]:
    for number in (1, 2):
        write_plain(tmp_path / f"delta_0000001_0000001_0000/HIVE_UNION_SUBDIR_{number}/000000_0", (number,), row=ID)
    if request.param is TableType.FULL_ACID:
        write_acid(tmp_path / "delta_0000002_0000002_0000/bucket_00000", insert(2, 0, (3,)), row=ID)
    else:
        write_plain(tmp_path / "delta_0000002_0000002_0000/000000_0", (3,), row=ID)
    return tmp_path, request.param


def test_they_are_told(union: tuple[Path, TableType]) -> None:
    table, _ = union
    assert [FOLDER in warning for warning in odd_layout(snapshot_of(table))] == [True, False]
    told = [one for one in check(table, depth=Depth.LISTING)[0].findings if one.rule == "V45"]
    assert [(one.path[:-1], one.severity) for one in told] == [(FOLDER[:-1], WARNING)] * 2


@pytest.mark.parametrize("mode", [Mode.MINOR, Mode.MAJOR])
def test_they_are_compacted_for_hive_4_alone(union: tuple[Path, TableType], mode: Mode) -> None:
    table, kind = union
    for reader in (None, Hive.HIVE3):
        with pytest.raises(RefusedError, match="UNION ALL"):
            compact_location(str(table), request_for(mode, kind, reader))
    compact_location(str(table), request_for(mode, kind, Hive.HIVE4))
    name = "delta_0000001_0000002" if mode is Mode.MINOR else "base_0000002"
    assert (table / name).is_dir()


def request_for(mode: Mode, kind: TableType, reader: Hive | None) -> CompactionRequest:
    return CompactionRequest(mode, offline=True, force=True, table_type=kind, writing=Writing(reader=reader))


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        (f"{FOLDER}/000000_0", FOLDER),
        ("base_0000001/HIVE_UNION_SUBDIR_2/sub/000000_0", "base_0000001/HIVE_UNION_SUBDIR_2"),
        ("base_0000001/000000_0", ""),
        ("HIVE_UNION_SUBDIR_1/000000_0", ""),
        ("000000_0", ""),
    ],
)
def test_only_folders_in_bases_and_deltas_count(path: str, folder: str) -> None:
    assert union_folder_of(path) == folder
