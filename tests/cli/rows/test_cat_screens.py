"""What `acidctl cat` says when something is odd or wrong."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.files.acid_files import damage_stripe, ids, write_delta

import acidctl as package

Call = Callable[..., Any]


def damaged(path: Path) -> Path:
    """Thirty rows in three stripes, the second of which cannot be read."""
    write_delta(path, 1, ids(*range(10)), ids(*range(10, 20)), ids(*range(20, 30)))
    damage_stripe(path / "delta_0000001_0000001_0000" / "bucket_00000", 1)
    return path


def test_rows_that_come_twice_are_said(acidctl: Call, crud: Path) -> None:
    first, second = crud / "delta_0000001_0000001_0000", crud / "delta_0000002_0000002_0000"
    assert "warning" not in acidctl("cat", crud).err
    assert package.open_table(str(crud)).scan().warnings == []
    shutil.copy(first / "bucket_00000", first / "bucket_00000_1")
    shutil.copytree(second, crud / "delta_2_2_0")
    found = acidctl("cat", crud)
    assert found.status == 0
    assert len(found.lines()) == 4
    warnings = [line for line in found.err.splitlines() if line.startswith("warning:")]
    assert len(warnings) == 2
    assert (
        "delta_0000002_0000002_0000 and delta_2_2_0 are the same directory spelled twice: both are read" in warnings[0]
    )
    assert "bucket_00000_1 and delta_0000001_0000001_0000/bucket_00000 are attempts" in warnings[1]
    told = package.open_table(str(crud)).scan().warnings
    assert [f"warning: {text}" for text in told] == warnings
    assert "warning" in acidctl("cat", crud, "--count").err


def test_what_is_not_read_is_said(acidctl: Call, crud: Path) -> None:
    delta = crud / "delta_0000001_0000001_0000"
    shutil.copy(delta / "bucket_00000", delta / "bucket_00000.fixacidindex")
    found = acidctl("cat", crud)
    assert len(found.lines()) == 2
    assert found.err.count("it is not read") == 1


def test_thousands_of_warnings_fit_the_screen(acidctl: Call, crud: Path) -> None:
    delta = crud / "delta_0000001_0000001_0000"
    for attempt in range(1, 26):
        shutil.copy(delta / "bucket_00000", delta / f"bucket_00000_{attempt}")
    found = acidctl("cat", crud, "--count")
    assert found.err.count("warning:") == 11
    assert "and 15 more like these" in found.err


def test_a_limit_reads_no_further(acidctl: Call, tmp_path: Path) -> None:
    table = damaged(tmp_path / "t")
    found = acidctl("cat", table, "--limit", "10")
    assert (found.status, len(found.lines())) == (0, 10)
    assert acidctl("cat", table, "--limit", "0").status == 0
    assert acidctl("cat", table, "--limit", "11").status == 4


def test_a_damaged_file_says_what_is_lost_and_how_to_go_on(acidctl: Call, tmp_path: Path) -> None:
    table = damaged(tmp_path / "t")
    found = acidctl("cat", table)
    assert "rows 11 to 20 of its 30 cannot be read" in found.err
    assert "--skip-bad-files (on_loss in Python) reads the rest" in found.err
    (table / "delta_0000001_0000001_0000" / "bucket_00000").write_bytes(b"ORC")
    found = acidctl("cat", table)
    assert "nothing in it can be read" in found.err
    assert "--skip-bad-files" in found.err
    assert "--skip-bad-files" not in acidctl("cat", table, "--skip-bad-files").err


def test_column_asked_for_twice_is_refused(acidctl: Call, crud: Path) -> None:
    found = acidctl("cat", crud, "--columns", "id,value,ID")
    assert found.status == 2
    assert "column id is asked for twice" in found.err
    once = acidctl("cat", crud, "--row-id", "--columns", "id,ROW__ID")
    assert list(once.lines()[0]) == ["id", "ROW__ID"]


def test_write_id_to_come_is_noted(acidctl: Call, crud: Path) -> None:
    assert "beyond the newest one here, 3" in acidctl("cat", crud, "--at", "4").err
    assert "beyond" not in acidctl("cat", crud, "--at", "3").err


def test_rows_as_a_table(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    assert acidctl("cat", "-o", "table", crud).out.split() == ["id", "value", "1", "A", "2", "B"]


def test_rows_that_are_wider_than_the_terminal_become_records(terminal, crud: Path) -> None:  # type: ignore[no-untyped-def]
    line = ("cat", "-o", "table", "--row-id", crud)
    assert "RECORD" not in terminal.run(*line, columns=80)[1]
    assert "-[ RECORD 2 ]" in terminal.run(*line, columns=40)[1]


def test_rows_that_are_wider_than_a_pipe_was_told_to_be_become_records(  # type: ignore[no-untyped-def]
    acidctl, crud: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = acidctl("cat", "-o", "table", "--row-id", crud).out
    assert "RECORD" not in whole
    monkeypatch.setenv("COLUMNS", "20")
    assert "-[ RECORD 1 ]-" in acidctl("cat", "-o", "table", "--row-id", crud).out
