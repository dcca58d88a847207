"""Killed at every storage call: the visible rows are what they were, and the next run finishes or clears away."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cleaning import apply_plan
from support.compacting import run_compaction
from support.files.acid_files import B0, write_acid
from support.tables import pairs_of, snapshot_of
from support.trouble.crash import a_dead_owner, deaths  # noqa: F401

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.base.errors import AcidctlError, NotFoundError
from acidctl.cleaning.apply import How
from acidctl.cleaning.plan import plan_cleaning
from acidctl.cleaning.retention import AT_ONCE
from acidctl.cleaning.trash import TRASH, purge, restore, trash_runs
from acidctl.compaction.output_settings import Writing
from acidctl.location.change.own_files import Owner
from acidctl.location.change.publication import half_published, remove_dead_staging
from acidctl.storage.local.filesystem import LocalFileSystem

MAJOR, MINOR = CompactionKind


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two buckets, an update and deletes."""
    table = tmp_path / "t"
    for write_id in (1, 2):
        for bucket in (0, 1):
            value = B0 | bucket << 16
            path = table / f"delta_{write_id}_{write_id}_0" / f"bucket_{bucket:05d}"
            write_acid(path, *((0, write_id, value, i, write_id, (i, i)) for i in range(3)))
    write_acid(
        table / "delete_delta_0000003_0000003_0000" / "bucket_00000", (2, 1, B0, 2, 3, None), (2, 2, B0, 1, 3, None)
    )
    return table


def compact_once(table: Path, kind: CompactionKind, writing: Writing | None = None) -> None:
    """What `acidctl compact --offline --no-lock` does with a location."""
    run_compaction(table, kind, writing=writing)


@pytest.mark.sampled
@pytest.mark.parametrize("kind", [MAJOR, MINOR])
@pytest.mark.parametrize("writing", [Writing(), Writing(task_bytes=1)], ids=["whole", "segments"])
def test_a_compaction_that_is_killed(kind: CompactionKind, writing: Writing, table: Path, tmp_path: Path) -> None:
    rows = pairs_of(table)
    points = 0
    for at, copy in deaths(lambda copy: compact_once(copy, kind, writing), table, tmp_path / "dead"):
        points = at
        # Between the two renames of a minor compaction readers see wrong rows: that is why it asks for --offline.
        if not half_published(snapshot_of(copy)):
            assert pairs_of(copy) == rows, at
        compact_once(copy, kind, writing)
        assert pairs_of(copy) == rows, at
        left = [path for staging in copy.glob("_tmp_*") for path in staging.rglob("*") if path.is_file()]
        assert not left or at == 3, (at, left)  # the torn note of whose it is
        assert {"base_0000003"} <= names(copy) if kind is MAJOR else "delta_0000001_0000003" in names(copy)
    assert points > 20


def names(table: Path) -> set[str]:
    return {path.name for path in table.iterdir()}


@pytest.fixture
def compacted(table: Path) -> Path:
    compact_once(table, MAJOR)
    return table


def clean_once(table: Path, *, trash: bool = True) -> None:
    apply_plan(plan_cleaning(snapshot_of(table), AT_ONCE), How.TRASH if trash else How.DELETE)


@pytest.mark.parametrize("trash", [True, False])
def test_a_cleaning_that_is_killed(trash: bool, compacted: Path, tmp_path: Path) -> None:
    rows, before = pairs_of(compacted), names(compacted)
    for at, copy in deaths(lambda copy: clean_once(copy, trash=trash), compacted, tmp_path / "dead"):
        assert pairs_of(copy) == rows, at
        clean_once(copy, trash=trash)
        assert names(copy) - {TRASH} == {"base_0000003"}, at
        assert pairs_of(copy) == rows, at
        if trash:
            fs = LocalFileSystem()
            for run in reversed(trash_runs(fs, str(copy))):
                if run.can_be_undone:
                    restore(fs, run)
            assert names(copy) - {TRASH} == before, at
            assert pairs_of(copy) == rows, at


def restore_all(table: Path) -> None:
    fs = LocalFileSystem()
    for run in reversed(trash_runs(fs, str(table))):
        restore(fs, run)


def test_a_restore_that_is_killed(compacted: Path, tmp_path: Path) -> None:
    rows, before = pairs_of(compacted), names(compacted)
    clean_once(compacted)
    for at, copy in deaths(restore_all, compacted, tmp_path / "dead"):
        assert pairs_of(copy) == rows, at
        try:
            restore_all(copy)
        except NotFoundError:  # all came back, and the run's manifest had gone already
            purge(LocalFileSystem(), trash_runs(LocalFileSystem(), str(copy)))
        assert names(copy) - {TRASH} == before, at
        assert pairs_of(copy) == rows, at


def test_a_purge_that_is_killed(compacted: Path, tmp_path: Path) -> None:
    clean_once(compacted)
    rows = pairs_of(compacted)
    fs = LocalFileSystem()

    def purge_all(table: Path) -> None:
        purge(fs, trash_runs(fs, str(table)))

    for at, copy in deaths(purge_all, compacted, tmp_path / "dead"):
        assert pairs_of(copy) == rows, at
        # Half of it cannot come back; that is said, and nothing is made worse.
        for run in trash_runs(fs, str(copy)):
            try:
                restore(fs, run)
            except AcidctlError:
                assert pairs_of(copy) == rows, at
        purge_all(copy)
        assert pairs_of(copy) == rows, at
        assert not list((copy / TRASH).glob("*")), at


def test_the_staging_of_a_living_process_stays(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    staging = table / "_tmp_1"
    staging.mkdir()
    (staging / "_owner.json").write_bytes(Owner.this().to_bytes())
    assert remove_dead_staging(snapshot_of(table), ()) == ()
    other = Owner("elsewhere", 1, 1, "hive", 0.0)
    (staging / "_owner.json").write_bytes(other.to_bytes())
    assert remove_dead_staging(snapshot_of(table), ()) == ()
    (staging / "_owner.json").write_bytes(b'{"host"')
    assert remove_dead_staging(snapshot_of(table), ()) == ()
