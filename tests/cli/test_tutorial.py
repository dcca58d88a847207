"""The tutorial and the README's picture, command by command: what the pages show is what a terminal shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from terminals import Terminals, without_last_line

REPO = Path(__file__).resolve().parents[2]
COLUMNS = 100
FOLDER = "/warehouse/sales.db"
"""What the pages show in place of the directory in which the commands run."""

_STYLE = re.compile(r"\x1b\[\d*m")
_VARIES = (
    (r"\d{8}T\d{6}\.\d{3}Z-[0-9a-f]{8}", "RUN"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?", "TIME"),
    (r"\d+(\.\d+)? ([KMG]i)?B\b", "SIZE"),
    (r"\d+\.\d+ s of work", "SECONDS"),
)


class Step(NamedTuple):
    """A command of a page, and what the page shows below it."""

    command: str
    shown: str


def steps(page: str) -> Iterator[Step]:
    """Every command of the ``console`` blocks of a page, in their order."""
    for block in re.findall(r"^```console\n(.*?)^```", (REPO / page).read_text("utf-8"), re.MULTILINE | re.DOTALL):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = step.partition("\n")
            yield Step(command, shown)


def steady(shown: str) -> str:
    """Its words, without times and sizes: lines may be folded elsewhere where a path is longer."""
    for pattern, name in _VARIES:
        shown = re.sub(pattern, name, shown)
    return " ".join(shown.split())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(terminal: Terminals, folder: Path, command: str) -> str:
    program, *words = command.split()
    assert program == "acidctl"
    status, shown = terminal.run(*words, columns=COLUMNS)
    assert status == 0, shown
    return _STYLE.sub("", without_last_line(shown)).replace(str(folder), FOLDER)


def test_the_tutorial_shows_what_its_commands_print(terminal: Terminals, folder: Path) -> None:
    found = list(steps("docs/tutorial.md"))
    for step in found:
        shown = run(terminal, folder, step.command)
        assert steady(step.shown) == steady(shown), f"{step.command} prints:\n{shown}"
    assert len(found) > 15


def test_the_picture_of_the_readme_is_what_ls_prints(terminal: Terminals, folder: Path) -> None:
    for command in (
        "acidctl demo crud_table",
        "acidctl compact --major --engine local --assume-committed=0s crud_table",
    ):
        run(terminal, folder, command)
    (picture,) = steps("README.md")
    shown = run(terminal, folder, picture.command)
    assert steady(picture.shown) == steady(shown), f"{picture.command} prints:\n{shown}"
