"""Rows that share a ROW__ID, of writers that used ids again: no compaction drops one (format section 4.2)."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.compacting import compact_location
from support.files.acid_files import ACID, ID, Event, delete, insert, write_acid, write_by_pyorc
from support.tables import read_rows
from support.validating import check

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.base.errors import RefusedError
from acidctl.compaction.request import CompactionRequest, Mode
from acidctl.validation.findings import Depth

ONE, TWO = "delta_0000001_0000001_0000", "delta_0000002_0000002_0000"
SORTED = [insert(1, number // 3, (number,)) for number in range(6)]
UNSORTED = [insert(1, number % 2, (number,)) for number in range(6)]


def by_hand(directory: Path, *events: Event) -> None:
    """A file in the order given."""
    write_by_pyorc(directory, events, schema=ACID.replace("a:int,b:string", "id:int"))


def shown(table: Path) -> list[int]:
    return sorted(row["id"] for _, row in read_rows(table))


@pytest.mark.parametrize("kind", list(CompactionKind))
@pytest.mark.parametrize("is_sorted", [True, False], ids=["sorted", "unsorted"])
def test_rows_of_one_id_in_a_file_are_kept(tmp_path: Path, kind: CompactionKind, is_sorted: bool) -> None:
    """Where they do not follow each other Hive's row reader shows all of them, and would not in a sorted file."""
    by_hand(tmp_path / ONE, *(SORTED if is_sorted else UNSORTED))
    write_acid(tmp_path / TWO / "bucket_00000", insert(2, 0, (20,)), row=ID)
    told = [one for report in check(tmp_path, depth=Depth.DEEP) for one in report.findings if one.rule == "V27"]
    assert [one.evidence for one in told] == [{"rows": 4}]
    request = CompactionRequest(Mode(kind.value), offline=True)
    if is_sorted:
        outcome = compact_location(str(tmp_path), request)
        assert outcome
    else:
        with pytest.raises(RefusedError):
            compact_location(str(tmp_path), request)
    assert shown(tmp_path) == [0, 1, 2, 3, 4, 5, 20]
    assert not is_sorted or (outcome.rows, outcome.rows_dropped) == (7, 0)


@pytest.mark.parametrize("kind", list(CompactionKind))
def test_a_delete_removes_all_rows_of_an_id(tmp_path: Path, kind: CompactionKind) -> None:
    by_hand(tmp_path / ONE, *SORTED)
    write_acid(tmp_path / "delete_delta_0000003_0000003_0000" / "bucket_00000", delete(1, 0, 3), row=ID)
    write_acid(tmp_path / "delta_0000004_0000004_0000" / "bucket_00000", insert(4, 0, (40,)), row=ID)
    compact_location(str(tmp_path), CompactionRequest(Mode(kind.value), offline=True))
    assert shown(tmp_path) == [3, 4, 5, 40]


@pytest.mark.parametrize("kind", list(CompactionKind))
@pytest.mark.parametrize("other", ["delta_0000001_0000001_0001", TWO])
def test_rows_of_one_id_in_two_files_are_not_put_into_one(tmp_path: Path, kind: CompactionKind, other: str) -> None:
    """Hive's row reader shows them where they are, and would show one of each in one file."""
    for name, first in ((ONE, 10), (other, 20)):
        write_acid(tmp_path / name / "bucket_00000", insert(1, 0, (first,)), insert(1, 1, (first + 1,)), row=ID)
    with pytest.raises(RefusedError) as refused:
        compact_location(str(tmp_path), CompactionRequest(Mode(kind.value), offline=True))
    assert "V27" in (refused.value.why or "")
    assert shown(tmp_path) == [10, 11, 20, 21]
