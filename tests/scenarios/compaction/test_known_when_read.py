"""A plan refuses what footers already show, and names what is known only when rows are read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.command_line import Result
from support.compacting import compact_location, plan_compaction
from support.files.acid_files import ID, delete, insert, write_acid, write_orc
from support.tables import snapshot_of

from acidctl.acid.bucket import encode
from acidctl.acid.compaction_kind import CompactionKind, Hive
from acidctl.base.errors import AcidctlError, RefusedError
from acidctl.compaction.output_settings import Writing
from acidctl.compaction.plan import CompactionPlan
from acidctl.compaction.request import CompactionRequest, Mode

Acidctl = Callable[..., Result]
MAJOR, MINOR = CompactionKind.MAJOR, CompactionKind.MINOR


def planned(table: Path, kind: CompactionKind = MAJOR, writing: Writing | None = None) -> CompactionPlan:
    return plan_compaction(snapshot_of(table), kind, "_tmp_x", writing)


@pytest.fixture
def misplaced(tmp_path: Path) -> Path:
    write_acid(tmp_path / "delta_0000001_0000001_0000/bucket_00000", insert(1, 0, (1,)), insert(1, 1, (2,)), row=ID)
    write_acid(tmp_path / "delete_delta_0000002_0000002_0000/bucket_00001", delete(1, 0, 2), row=ID)
    return tmp_path


def test_deletes_of_other_buckets_are_a_question_until_rows_are_read(misplaced: Path) -> None:
    (question,) = planned(misplaced).questions
    assert "delete_delta_0000002_0000002_0000/bucket_00001" in question
    assert "V21" in question
    with pytest.raises(RefusedError, match="V21"):
        compact_location(str(misplaced), CompactionRequest(Mode.MAJOR, offline=True, force=True))


def test_the_plan_of_a_night_names_them_too(
    misplaced: Path, tmp_path_factory: pytest.TempPathFactory, acidctl: Acidctl
) -> None:
    for one in range(3, 13):  # so that a compaction is due
        write_acid(misplaced / f"delta_{one:07}_{one:07}_0000/bucket_00000", insert(one, 0, (one,)), row=ID)
    options = ("--assume-committed=0s", "--state", str(tmp_path_factory.mktemp("state")))
    assert "V21" in acidctl("nightly", "--dry-run", *options, str(misplaced)).err


def test_they_are_none_for_who_applies_all_deletes(misplaced: Path) -> None:
    assert not planned(misplaced, writing=Writing(apply_all_deletes=True)).questions


@pytest.mark.parametrize("kind", [MINOR, MAJOR])
def test_updates_among_rows_are_a_question(tmp_path: Path, kind: CompactionKind) -> None:
    write_acid(tmp_path / "delta_0000001_0000001_0000/bucket_00000", insert(1, 0, (1,)), row=ID)
    events = [(1, 1, encode(0, 0), 0, 2, (5,))]
    write_acid(tmp_path / "delta_0000002_0000002_0000/bucket_00000", *events, row=ID)
    assert ["V12" in question for question in planned(tmp_path, kind).questions] == [True]
    assert not planned(tmp_path, kind, Writing(reader=Hive.HIVE2)).questions


def test_columns_that_no_hive_converts_are_refused_by_the_plan(tmp_path: Path) -> None:
    write_orc(tmp_path / "000000_0", "struct<a:struct<x:int>>", [((1,),)])
    write_orc(tmp_path / "000001_0", "struct<a:int>", [(1,)])
    with pytest.raises(AcidctlError):
        planned(tmp_path)


def test_an_ordinary_table_has_no_questions(tmp_path: Path) -> None:
    write_acid(tmp_path / "delta_0000001_0000001_0000/bucket_00000", insert(1, 0, (1,)), row=ID)
    write_acid(tmp_path / "delete_delta_0000002_0000002_0000/bucket_00000", delete(1, 0, 2), row=ID)
    assert not planned(tmp_path).questions
