"""`acidctl completion`: the scripts that are installed are those that it prints."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.command_line import Result
from support.paths import REPO

SCRIPTS = {"bash": "acidctl.bash", "zsh": "_acidctl", "fish": "acidctl.fish"}


@pytest.mark.parametrize("shell", SCRIPTS)
def test_it_prints_the_script_that_is_installed(acidctl: Callable[..., Result], shell: str) -> None:
    installed = (REPO / "completions" / SCRIPTS[shell]).read_text("utf-8").splitlines()
    printed = acidctl("completion", shell)
    assert printed.status == 0
    assert [line for line in installed if "make_docs" not in line] == printed.out.splitlines()


def test_no_file_of_settings_stops_it(acidctl: Callable[..., Result]) -> None:
    """A shell reads it at its start."""
    assert acidctl("--config", "/missing", "completion", "bash").status == 0
    assert acidctl("completion", "tcsh").status == 2
