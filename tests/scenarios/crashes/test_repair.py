"""Killed at every storage call: rows are what they were, the next run finishes, and undoing brings all back."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.files.acid_files import insert, write_by_pyorc
from support.files.stream import FILE, FIRST, SECOND
from support.repairing import FS, repair, rows, streamed, tree
from support.trouble.crash import a_dead_owner, deaths  # noqa: F401

from acidctl.base.errors import NotFoundError
from acidctl.location.change.journal import RunState
from acidctl.orc.tail import KEY_INDEX
from acidctl.repair.backup import backup_runs, discard, undo_last
from acidctl.repair.plan import RepairKind

DELTA = "delta_0000001_0000001_0000"


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody pulls the plug, and it is slow."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def key_index(table: Path) -> None:
    for bucket in (0, 1):
        events = [insert(1, row, bucket=536870912 | bucket << 16) for row in range(3)]
        write_by_pyorc(table / DELTA, events, f"bucket_{bucket:05d}", metadata={KEY_INDEX: None})


def flush_length(table: Path) -> None:
    streamed(table / FILE, FIRST, SECOND)


def flush_nothing(table: Path) -> None:
    write_by_pyorc(table / DELTA, [insert(1, 0)])
    streamed(table / "delta_0000002_0000004" / "bucket_00000", FIRST, SECOND, [0])


def nested(table: Path) -> None:
    write_by_pyorc(table / DELTA, [insert(1, 0)])
    shutil.copytree(table / DELTA, table / DELTA / DELTA)


def version_file(table: Path) -> None:
    write_by_pyorc(table / DELTA, [insert(1, 0)], marker=None)
    write_by_pyorc(table / "delta_0000002_0000002_0000", [insert(2, 0)], marker=b"")


CASES: dict[str, tuple[Callable[[Path], None], RepairKind]] = {
    "key-index": (key_index, RepairKind.KEY_INDEX),
    "flush-length": (flush_length, RepairKind.FLUSH_LENGTH),
    "flush-nothing": (flush_nothing, RepairKind.FLUSH_LENGTH),
    "nested": (nested, RepairKind.NESTED),
    "version-file": (version_file, RepairKind.VERSION_FILE),
}


@pytest.fixture(params=sorted(CASES))
def broken(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, RepairKind]:
    make, kind = CASES[request.param]
    make(tmp_path / "t")
    return tmp_path / "t", kind


def mended(table: Path, kind: RepairKind, tmp_path: Path) -> dict[str, bytes]:
    """What the table is like after a repair that nothing disturbs."""
    copy = tmp_path / "mended"
    shutil.copytree(table, copy)
    repair(copy, kind)
    return tree(copy)


def states(table: Path) -> list[RunState]:
    return [run.state for run in backup_runs(FS, str(table))]


def test_a_repair_that_is_killed(broken: tuple[Path, RepairKind], tmp_path: Path) -> None:
    table, kind = broken
    seen, before = rows(table), tree(table)
    after = mended(table, kind, tmp_path)
    points = 0
    for at, copy in deaths(lambda copy: repair(copy, kind), table, tmp_path / "dead"):
        points = at
        assert rows(copy) == seen, at
        for path, content in tree(copy).items():
            assert content in (before.get(path), after.get(path)), (at, path)
        repair(copy, kind)
        assert tree(copy) == after, at
        assert rows(copy) == seen, at
        assert set(states(copy)) == {RunState.DONE}, at
        assert all(path.is_dir() for path in (copy / ".acidctl-backup").iterdir()), at
        while states(copy):
            undo_last(FS, str(copy))
        assert tree(copy) == before, at
        assert not (copy / ".acidctl-backup").exists(), at
    assert points > 15


@pytest.mark.sampled
def test_an_undo_that_is_killed(broken: tuple[Path, RepairKind], tmp_path: Path) -> None:
    table, kind = broken
    before = tree(table)
    repair(table, kind)
    seen = rows(table)
    for at, copy in deaths(lambda copy: undo_last(FS, str(copy)), table, tmp_path / "dead"):
        assert rows(copy) == seen, at
        try:
            undo_last(FS, str(copy))
        except NotFoundError:
            assert RunState.DONE not in states(copy), at
        assert tree(copy) == before, at
        repair(copy, kind)  # it sweeps what is left, and works
        assert rows(copy) == seen, at


@pytest.mark.slow
def test_an_undo_that_is_killed_is_finished_by_the_next_repair(broken: tuple[Path, RepairKind], tmp_path: Path) -> None:
    table, kind = broken
    repair(table, kind)
    after, seen = tree(table), rows(table)
    for at, copy in deaths(lambda copy: undo_last(FS, str(copy)), table, tmp_path / "dead"):
        repair(copy, kind)
        if RunState.UNDOING in states(copy):  # nothing was planned, since all was still mended
            continue
        repair(copy, kind)
        assert (tree(copy), rows(copy)) == (after, seen), at


def test_killed_forgetting_leaves_the_repaired_table(broken: tuple[Path, RepairKind], tmp_path: Path) -> None:
    table, kind = broken
    repair(table, kind)
    after, seen = tree(table), rows(table)
    for at, copy in deaths(lambda copy: discard(FS, str(copy)), table, tmp_path / "dead"):
        assert (tree(copy), rows(copy)) == (after, seen), at
        discard(FS, str(copy))
        assert (tree(copy), rows(copy)) == (after, seen), at
        assert not (copy / ".acidctl-backup").exists(), at


def test_a_lost_directory_that_is_killed_on_its_way(tmp_path: Path) -> None:
    """Two renames: between them readers see the location without it, and rows that Hive did not see before either."""
    table = tmp_path / "t"
    write_by_pyorc(table / DELTA, [insert(1, 0)])
    base = "base_0000002"
    write_by_pyorc(table / base / base, [insert(1, 0), insert(2, 0)])
    before, seen = tree(table), rows(table)
    after = mended(table, RepairKind.NESTED, tmp_path)
    gaps = 0
    for at, copy in deaths(lambda copy: repair(copy, RepairKind.NESTED), table, tmp_path / "dead"):
        gaps += not (copy / base).exists()
        assert (copy / base).exists() or len(rows(copy)) == 1, at
        repair(copy, RepairKind.NESTED)
        assert (tree(copy), rows(copy)) == (after, seen), at
        undo_last(FS, str(copy))
        assert tree(copy) == before, at
    assert 0 < gaps < 4
