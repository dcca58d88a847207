"""The status of a location from its listing: what it costs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.command_line import Result
from support.files.acid_files import insert, write_acid

from acidctl.acid import triggers, unfinished


def test_problems_of_a_layout_are_looked_for_once(
    acidctl: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2, 3):
        write_acid(tmp_path / f"delta_000000{number}_000000{number}_0000" / "bucket_00000", insert(number, 0, (1, "a")))
    known = acidctl("ls", "-o", "jsonl", tmp_path).lines()[0]
    assert known["helps"] == "major"
    looked: list[str] = []
    monkeypatch.setattr(triggers, "layout_problems", lambda *_: looked.append("again"))
    assert acidctl("ls", "-o", "jsonl", tmp_path).lines()[0] == known
    assert not looked
    assert unfinished.layout_problems is not triggers.layout_problems


def test_a_layout_with_problems_is_not_said_to_gain(acidctl: Callable[..., Result], tmp_path: Path) -> None:
    for name in ("delta_0000001_0000003", "delta_0000002_0000004"):
        write_acid(tmp_path / name / "bucket_00000", insert(2, 0, (1, "a")))
    found = acidctl("ls", "-o", "jsonl", tmp_path).lines()[0]
    assert (found["helps"], found["saved"]) == (None, 0)
