"""Every file that a command writes for its user takes the road of acidctl.location.change.own_files."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from acidctl.cli.main import main

Acidctl = Callable[..., Any]
LINES = {
    "metrics": ("compact", "--auto", "--assume-committed=0s", "--metrics-file"),
    "metrics of validate": ("validate", "--metrics-file"), "plan": ("clean", "--plan"), "page": ("report", "--out"),
}  # fmt: skip


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("what", LINES)
def test_a_link_of_another_user(acidctl: Acidctl, crud: Path, tmp_path: Path, what: str) -> None:
    victim, path = tmp_path / "victim", tmp_path / "f.prom"
    path.symlink_to(victim)
    os.chown(path, 65534, 65534, follow_symlinks=False)
    found = acidctl(*LINES[what], path, crud)
    assert found.status == 7, found.err
    assert "another user" in found.err
    assert not victim.exists()
    assert path.is_symlink()


def test_only_written_plans_are_private(acidctl: Acidctl, crud: Path, tmp_path: Path) -> None:
    """A plan may hold what opens a store."""
    before = os.umask(0o022)
    try:
        for what, line in LINES.items():
            path = tmp_path / f"{what}.prom"
            assert acidctl(*line, path, crud).status == 0
            assert stat.S_IMODE(path.stat().st_mode) == (0o600 if what == "plan" else 0o644)
    finally:
        os.umask(before)


def test_nothing_else_writes_local_files() -> None:
    package = Path(main.__code__.co_filename).parents[1]
    allowed = {"location/own_files.py", "spark/driver/session_plan.py"}
    for path in package.rglob("*.py"):
        name = path.relative_to(package).as_posix()
        if name not in allowed:
            text = path.read_text("utf-8")
            assert not re.search(
                r"\.(write_text|write_to_textfile)\(|open\(\"[wax]", text.replace("devnull).open(", "")
            ), name
