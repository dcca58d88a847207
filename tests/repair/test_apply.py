"""Two at once, changes meanwhile, and what a repair finds of others."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from support.files.acid_files import insert, write_by_pyorc
from support.repairing import DELTA, FS, NOW, interrupted, planned, repair, tree
from support.tables import age
from support.trouble.locks import locked

from acidctl.base.errors import AcidctlError, BadDataError, ConflictError, NotFoundError, StorageError
from acidctl.location.change import journal
from acidctl.location.change.journal import RunState
from acidctl.location.change.lock import LOCK, Locking
from acidctl.location.change.own_files import Owner
from acidctl.location.snapshot import take_snapshot
from acidctl.orc.tail import KEY_INDEX
from acidctl.repair import apply, backup
from acidctl.repair.apply import apply_repair, plan_repair
from acidctl.repair.backup import BACKUP, backup_runs, discard, undo_last
from acidctl.repair.plan import RepairKind, Scope
from acidctl.storage.port import FileSystem
from acidctl.storage.registry import open_location


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write_by_pyorc(tmp_path / "t" / DELTA, [insert(1, 0)], metadata={KEY_INDEX: None})
    return tmp_path / "t"


def test_of_two_at_once_one_wins(table: Path) -> None:
    plan = planned(table, RepairKind.KEY_INDEX)
    with locked(FS, str(table)), pytest.raises(ConflictError, match="is locked"):
        apply_repair(plan)
    assert not (table / LOCK).exists()
    assert not (table / BACKUP).exists()
    assert apply_repair(plan)
    assert apply_repair(plan) is None


def test_a_location_that_others_locked_is_left_alone(table: Path) -> None:
    assert repair(table, RepairKind.KEY_INDEX)
    before = tree(table)
    (table / ".acidctl-lock").write_bytes(Owner("elsewhere", 1, 1, "hive", 0.0).to_bytes())
    with pytest.raises(ConflictError, match="is locked"):
        undo_last(FS, str(table))
    with pytest.raises(ConflictError, match="is locked"):
        repair(table, RepairKind.KEY_INDEX)
    (table / ".acidctl-lock").unlink()
    assert tree(table) == before
    assert undo_last(FS, str(table))


def test_of_many_repairs_at_once_one_wins(table: Path) -> None:
    plan = planned(table, RepairKind.KEY_INDEX)
    ended: list[object] = []

    def work() -> None:
        try:
            ended.append(apply_repair(plan))
        except AcidctlError as error:
            ended.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ended) == 8
    assert all(end is None or isinstance(end, ConflictError) for end in ended if not hasattr(end, "steps")), ended
    assert len([end for end in ended if hasattr(end, "steps")]) == 1
    (run,) = backup_runs(FS, str(table))
    assert run.state is RunState.DONE
    assert planned(table, RepairKind.KEY_INDEX).fixes == ()


@pytest.mark.parametrize(
    ("content", "is_taken"),
    [
        (Owner("elsewhere", 1, 1, "hive", 0.0).to_bytes(), False),
        (b"{}", False),
        (Owner(Owner.this().host, 2**22 - 1, 1, "hive", 0.0).to_bytes(), True),
    ],
)
def test_whose_lock_is_taken(content: bytes, is_taken: bool, table: Path) -> None:
    (table / LOCK).write_bytes(content)
    if is_taken:
        assert repair(table, RepairKind.KEY_INDEX)
        return
    with pytest.raises(ConflictError, match="is locked") as refused:
        repair(table, RepairKind.KEY_INDEX)
    assert "--break-lock" in refused.value.hint
    assert (table / LOCK).read_bytes() == content
    age(table, 1, LOCK)
    plan = planned(table, RepairKind.KEY_INDEX)
    assert apply_repair(plan, Locking(break_stale=True))


def test_what_was_interrupted_is_finished(table: Path) -> None:
    before = tree(table)
    interrupted(table)
    assert tree(table) == before
    (run,) = backup.unfinished(backup_runs(FS, str(table)))
    assert repair(table, RepairKind.KEY_INDEX) is None  # the earlier one did it
    assert [one.id for one in backup_runs(FS, str(table))] == [run.id]
    assert tree(table) != before
    undo_last(FS, str(table))
    assert tree(table) == before


def test_the_backups_are_read_once(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(table)
    plan = planned(table, RepairKind.KEY_INDEX)
    locations: list[str] = []
    list_runs = journal.list_runs

    def listed(fs: FileSystem, location: str, *rest: Any) -> list[Any]:
        locations.append(location)
        return list_runs(fs, location, *rest)

    monkeypatch.setattr(journal, "list_runs", listed)
    assert apply_repair(plan) is None
    assert locations == [str(table)]


def test_what_was_interrupted_can_be_undone(table: Path) -> None:
    before = tree(table)
    interrupted(table)
    undo_last(FS, str(table))
    assert tree(table) == before
    assert not (table / BACKUP).exists()


def test_what_changed_meanwhile_is_not_overwritten(table: Path) -> None:
    interrupted(table)
    changed = write_by_pyorc(table / DELTA, [insert(1, 0), insert(1, 1)], metadata={KEY_INDEX: None}).read_bytes()
    with pytest.raises(ConflictError, match="changed meanwhile"):
        repair(table, RepairKind.KEY_INDEX)
    undo_last(FS, str(table))
    assert (table / DELTA / "bucket_00000").read_bytes() == changed


def test_an_undo_overwrites_nobody(table: Path) -> None:
    repair(table, RepairKind.KEY_INDEX)
    changed = write_by_pyorc(table / DELTA, [insert(1, row) for row in range(50)]).read_bytes()
    with pytest.raises(ConflictError, match="changed meanwhile"):
        undo_last(FS, str(table))
    assert (table / DELTA / "bucket_00000").read_bytes() == changed
    assert backup_runs(FS, str(table))


@pytest.mark.parametrize("kind", [RepairKind.KEY_INDEX, RepairKind.NESTED])
def test_nothing_is_dropped_that_has_no_place_any_more(kind: RepairKind, table: Path) -> None:
    import shutil

    if kind is RepairKind.NESTED:
        shutil.copytree(table / DELTA, table / DELTA / DELTA)
    assert repair(table, kind)
    shutil.rmtree(table / DELTA)
    with pytest.raises(NotFoundError, match="is no more"):
        undo_last(FS, str(table))
    (run,) = backup_runs(FS, str(table))
    assert list((table / run.relative / "old").rglob("bucket_00000"))
    assert [one.id for one in discard(FS, str(table))] == [run.id]
    assert not (table / BACKUP).exists()


def test_undone_in_the_order_of_the_user(table: Path) -> None:
    before = tree(table)
    (table / DELTA / "_orc_acid_version").unlink()
    bare = tree(table)
    first = repair(table, RepairKind.KEY_INDEX)
    second = repair(table, RepairKind.VERSION_FILE)
    assert first and second
    with pytest.raises(NotFoundError, match="no such repair"):
        undo_last(FS, str(table), "19")
    assert undo_last(FS, str(table)).id == second.id
    assert undo_last(FS, str(table), first.id[:10]).id == first.id
    assert tree(table) == bare != before


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"version": 9}', '{"version": 1, "steps": [{"act": "x"}]}'])
def test_a_foreign_manifest_is_refused(content: str, table: Path) -> None:
    run = table / BACKUP / "20260101T000000Z-1"
    run.mkdir(parents=True)
    (run / "manifest.json").write_text(content)
    with pytest.raises(BadDataError, match="not a manifest"):
        repair(table, RepairKind.KEY_INDEX)


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", "a//b", ""])
def test_a_manifest_that_leads_elsewhere_is_refused(path: str, table: Path) -> None:
    import json

    run = table / BACKUP / "20260101T000000Z-1"
    run.mkdir(parents=True)
    step = {"act": "move", "source": path, "target": "y"}
    manifest = {"version": 1, "kind": "nested", "paths": [], "bytes": 0, "steps": [step]}
    (run / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BadDataError, match="not a manifest"):
        undo_last(FS, str(table))


def test_a_store_without_renames_is_refused(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(table, RepairKind.KEY_INDEX)
    monkeypatch.setattr(plan.snapshot.fs, "can_rename", False)
    with pytest.raises(StorageError, match="cannot repair"):
        apply_repair(plan)
    assert not (table / BACKUP).exists()


def test_store_in_memory_is_repaired_and_undone(table: Path) -> None:
    fs, path = open_location("memory://repair/t")
    for name, content in tree(table).items():
        fs.make_dirs(f"{path}/{name}".rpartition("/")[0])
        fs.write_bytes(f"{path}/{name}", content)
    scope = Scope(NOW * 2, force=True)
    run = apply_repair(plan_repair(take_snapshot(fs, path), RepairKind.KEY_INDEX, scope))
    assert run
    assert plan_repair(take_snapshot(fs, path), RepairKind.KEY_INDEX, scope).fixes == ()
    undo_last(fs, path)
    assert fs.read_bytes(f"{path}/{DELTA}/bucket_00000") == (table / DELTA / "bucket_00000").read_bytes()


@pytest.mark.parametrize("end", [b"", b"xyz"])
def test_copy_in_chunks_is_cut_and_extended_anywhere(
    end: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the cut falls among the chunks."""
    from acidctl.repair.plan import Made

    monkeypatch.setattr(apply, "_CHUNK", 4)
    content = bytes(range(9))
    (tmp_path / "old").write_bytes(content)
    for prefix in range(10):
        kept, new = tmp_path / f"kept-{prefix}", tmp_path / f"new-{prefix}"
        apply.write_staged(FS, str(tmp_path / "old"), str(kept), str(new), Made("old", prefix, end, replaces=True))
        assert (kept.read_bytes(), new.read_bytes()) == (content, content[:prefix] + end)


def test_a_later_repair_of_the_same_file_is_undone_first(table: Path) -> None:
    first = repair(table, RepairKind.KEY_INDEX)
    broken = write_by_pyorc(table / DELTA, [insert(1, 0)], metadata={KEY_INDEX: None}).read_bytes()
    second = repair(table, RepairKind.KEY_INDEX)
    assert first and second
    with pytest.raises(ConflictError, match="mended the same file later"):
        undo_last(FS, str(table), first.id)
    undo_last(FS, str(table))
    assert (table / DELTA / "bucket_00000").read_bytes() == broken
