"""Killed at every storage call, with everything that a cleaning can take, and holding a lock.

The same is done with rows in ``tests/compaction``; here what is read is told by the state, so that walks are quick.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.cleaning import apply_plan
from support.tables import age, mark, snapshot_of
from support.trouble.crash import a_dead_owner, deaths  # noqa: F401
from support.trouble.locks import locked

from acidctl.base.errors import NotFoundError
from acidctl.cleaning.apply import How
from acidctl.cleaning.plan import plan_cleaning
from acidctl.cleaning.readers import what_is_read
from acidctl.cleaning.retention import Policy
from acidctl.cleaning.trash import TRASH, TrashRun, changes_since, purge, restore, trash_runs
from acidctl.location.change.lock import LOCK
from acidctl.location.change.own_files import Owner
from acidctl.storage.local.filesystem import LocalFileSystem
from acidctl.storage.port import FileSystemSpec

FS = LocalFileSystem()
ALL = Policy(3600, leftovers=True)
CURRENT = {"base_5", "delta_6_6_0"}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    table = tmp_path / "t"
    for name in (*CURRENT, "base_3", "delta_2_2_0", "delete_delta_2_2_0", "_tmp_1", "HIVE_UNION_SUBDIR_1"):
        (table / name).mkdir(parents=True)
        for bucket in (0, 1):
            (table / name / f"0000{bucket:02}_0").write_bytes(b"x" * 10)
        mark(table / name)
    (table / "000000_0").write_bytes(b"x")
    age(table, 30)
    return table


def clean(table: Path, how: How, *, break_stale: bool = False) -> None:
    with locked(FS, str(table), break_stale=break_stale):
        apply_plan(plan_cleaning(snapshot_of(table), ALL), how)


def files(table: Path) -> list[str]:
    found = (str(path.relative_to(table)) for path in table.rglob("*") if path.is_file())
    return sorted(path for path in found if not path.startswith((TRASH, LOCK)))


def names(table: Path) -> set[str]:
    """What is there, but for a lock that was written and never put in its place: nobody minds it."""
    return {path.name for path in table.iterdir() if not path.name.startswith(f"{LOCK}-")}


def read(table: Path) -> object:
    return what_is_read(snapshot_of(table).state)


def restore_all(table: Path) -> None:
    for run in reversed(trash_runs(FS, str(table))):
        try:
            restore(FS, run)
        except NotFoundError:
            assert not run.can_be_undone
            purge(FS, [run])


@pytest.mark.parametrize("how", [How.TRASH, How.DELETE])
def test_killed_cleaning_leaves_the_rows_and_is_finished(how: How, table: Path, tmp_path: Path) -> None:
    before, whole = read(table), files(table)
    points = 0
    for at, copy in deaths(lambda copy: clean(copy, how), table, tmp_path / "dead"):
        points += 1
        assert read(copy) == before, at
        clean(copy, how)
        if how is How.DELETE and (copy / "_tmp_1").exists():  # half of it: nobody knows that it was not written to
            age(copy, 1, "_tmp_1")
            clean(copy, how)
        assert names(copy) - {TRASH} == CURRENT, at
        assert read(copy) == before, at
        if how is How.TRASH:
            restore_all(copy)
            assert files(copy) == whole, at
            assert read(copy) == before, at
            assert names(copy) == names(table), at
    assert points > 20


def test_a_lock_that_is_broken(tmp_path: Path) -> None:
    """Killed while it breaks a stale lock, and the next one, too: the third has the lock."""

    def lock(copy: Path) -> None:
        with locked(FS, str(copy), break_stale=True):
            pass

    table = tmp_path / "t"
    (table / "delta_6_6_0").mkdir(parents=True)
    (table / LOCK).write_bytes(Owner.this().to_bytes())
    for at, copy in deaths(lock, table, tmp_path / "dead"):
        age(copy, 30)  # what is torn is not being written any more
        for again, other in deaths(lock, copy, tmp_path / f"again{at}"):
            age(other, 30)
            lock(other)
            assert not (other / LOCK).exists(), (at, again)
            plan = plan_cleaning(snapshot_of(other), ALL)
            assert all(claim.name in plan.names for claim in other.glob(f"{LOCK}-*")), (at, again)


def test_a_cleaning_that_is_undone_instead(table: Path, tmp_path: Path) -> None:
    before, whole = read(table), files(table)
    for at, copy in deaths(lambda copy: clean(copy, How.TRASH), table, tmp_path / "dead"):
        restore_all(copy)
        assert files(copy) == whole, at
        assert read(copy) == before, at
        assert not (copy / TRASH).exists() or not list((copy / TRASH).iterdir()), at


def test_killed_restore_leaves_the_rows_and_is_finished(table: Path, tmp_path: Path) -> None:
    before, whole = read(table), files(table)
    clean(table, How.TRASH)
    (run,) = trash_runs(FS, str(table))
    for at, copy in deaths(restore_all, table, tmp_path / "dead"):
        assert read(copy) == before, at
        restore_all(copy)
        assert files(copy) == whole, at
        assert read(copy) == before, at
        assert changes_since(FS, replace(run, location=str(copy))) == (), at
        assert not list(copy.glob(f"{TRASH}/*")), at


def test_killed_purge_leaves_the_rows_and_is_finished(table: Path, tmp_path: Path) -> None:
    everything = len(files(table))
    clean(table, How.TRASH)
    before, whole = read(table), files(table)

    def purge_all(table: Path) -> None:
        purge(FS, trash_runs(FS, str(table)))

    for at, copy in deaths(purge_all, table, tmp_path / "dead"):
        assert read(copy) == before, at
        # What is left of a run never looks like a whole one.
        for run in trash_runs(FS, str(copy)):
            if run.can_be_undone:
                restore(FS, run)
                assert len(files(copy)) == everything, at
                clean(copy, How.TRASH)
            else:
                with pytest.raises(NotFoundError):
                    restore(FS, run)
        purge_all(copy)
        assert files(copy) == whole, at
        assert read(copy) == before, at
        assert not list(copy.glob(f"{TRASH}/*")), at


def test_a_location_that_was_dropped_is_not_made_again(table: Path) -> None:
    fs = LocalFileSystem(FileSystemSpec("file"))
    table.rename(table.parent / "dropped")
    with pytest.raises(NotFoundError):
        TrashRun(str(table), "20260101T000000.000Z-0", (), 0).write_note(fs)
    assert not table.exists()
