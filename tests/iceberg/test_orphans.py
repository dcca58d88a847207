"""Files of killed runs beside those of a copy."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Result as Run
from support.files.acid_files import delete, insert, write_acid
from support.migrating import copy, rows

from acidctl.base.errors import ConflictError
from acidctl.iceberg import target as target_module

HOUR = 3600.0


def added(table: Path, at: int) -> None:
    write_acid(table / f"delta_{at:07}_{at:07}_0000" / "bucket_00000", insert(at, 0, (at, "x")))


def aged(path: Path, seconds: float) -> Path:
    path.touch()
    now = path.stat().st_mtime - seconds
    os.utime(path, (now, now))
    return path


def test_files_of_killed_runs_are_removed_after_an_hour(tmp_path: Path) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    added(table, 1)
    copy(table, to)
    write_acid(table / "delete_delta_0000002_0000002_0000" / "bucket_00000", delete(1, 0, 2))
    copy(table, to)
    listed = [aged(path, 5 * HOUR) for path in (to / "data").iterdir()]
    data = to / "data"
    suffixes = (f"{uuid.uuid4()}.orc", "deletes.parquet", f"{uuid.uuid4()}.parquet")
    gone = [aged(data / f"acidctl-{uuid.uuid4()}-7-{suffix}", 2 * HOUR) for suffix in suffixes]
    kept = [
        aged(data / f"acidctl-{uuid.uuid4()}-7-{uuid.uuid4()}.orc", HOUR / 2),
        aged(data / f"{uuid.uuid4()}.orc", 9 * HOUR),
        aged(data / "acidctl-notes.orc", 9 * HOUR),
        aged(data / f"00000-0-{uuid.uuid4()}.parquet", 9 * HOUR),
    ]
    added(table, 3)
    done = copy(table, to)
    assert not [path for path in gone if path.exists()]
    assert all(path.exists() for path in (*kept, *listed))
    assert "removed 3 files that a run before left, and that no snapshot lists" in done.notes
    assert [row[0] for row in rows(to)] == [3]
    added(table, 4)
    assert not [note for note in copy(table, to).notes if "removed" in note]


def test_files_of_a_run_that_takes_hours_are_not_committed_after_they_were_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    added(table, 1)
    copy(table, to)
    added(table, 2)
    commit, slow = target_module.Target.commit, []

    def overtaken(self: Any, *args: Any) -> int:
        if not slow:
            slow.extend(path for path in (to / "data").iterdir() if path.stat().st_mtime)
            for path in slow:
                aged(path, 2 * HOUR)
            added(table, 3)
            copy(table, to)
        return commit(self, *args)

    monkeypatch.setattr(target_module.Target, "commit", overtaken)
    with pytest.raises(ConflictError):
        copy(table, to)
    assert len([path for path in slow if path.exists()]) == 1, "only the file of the first copy is left"
    assert [row[0] for row in rows(to)] == [1, 2, 3]


def test_a_copy_is_in_the_log(tmp_path: Path, acidctl: Callable[..., Run]) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    added(table, 1)
    line = ("migrate", "--assume-committed=0s", table, "--to", to, "--yes")
    assert acidctl(*line).status == 0
    assert acidctl(*line, "--catch-up").status == 0
    (found,) = acidctl("log", "-o", "jsonl", table).lines()
    assert (found["verb"], found["result"], found["snapshotFrom"]) == ("migrate", "written", "assumption")
    facts = found["facts"]
    assert (facts["target"], facts["inserted"], facts["proof"]) == (str(to), 1, "all values of 1 row compared")
    shown = acidctl("log", table).out
    assert "1 row inserted" in shown
    assert "to /" in shown
