"""The tutorial and all other pages with ``console`` blocks, command by command: they show what a terminal shows."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.paths import REPO
from support.terminals import Terminals, without_last_line

COLUMNS = 100
FOLDER = "/warehouse/sales.db"
"""What the pages show in place of the directory in which the commands run."""

DEMO = "acidctl demo crud_table"
BEFORE = {
    "README.md": (DEMO, "acidctl compact --major --engine local --assume-committed=0s crud_table"),
    "docs/how-to/history.md": (DEMO,),
    "docs/tutorial.md": (),
}
"""The pages, and what is run before their own commands."""

_STYLE = re.compile(r"\x1b\[\d*m")
_VARIES = (
    (r"\d{8}T\d{6}\.\d{3}Z-[0-9a-f]{8}", "RUN"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?", "TIME"),
    (r"\d{1,2} [A-Z][a-z]{2} \d\d:\d\d", "TIME"),
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


@pytest.mark.parametrize("page", sorted(BEFORE))
def test_a_page_shows_what_its_commands_print(page: str, terminal: Terminals, folder: Path) -> None:
    for command in BEFORE[page]:
        run(terminal, folder, command)
    found = list(steps(page))
    for step in found:
        shown = run(terminal, folder, step.command)
        assert steady(step.shown) == steady(shown), f"{step.command} prints:\n{shown}"
    assert found


def test_every_page_with_commands_and_their_output_is_run() -> None:
    pages = [REPO / "README.md", *(REPO / "docs").rglob("*.md")]
    assert {str(page.relative_to(REPO)) for page in pages if "```console" in page.read_text("utf-8")} == set(BEFORE)


def test_the_tutorial_goes_from_the_demo_table_to_an_empty_trash() -> None:
    commands = [step.command.split()[1] for step in steps("docs/tutorial.md")]
    assert commands[0] == "demo"
    assert {"ls", "why", "cat", "dump", "history", "blame", "compact", "clean", "restore", "purge"} <= set(commands)


def test_the_file_of_the_configuration_page_is_taken(terminal: Terminals, folder: Path) -> None:
    page = (REPO / "docs" / "how-to" / "configure.md").read_text("utf-8")
    (text,) = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    file = folder / "config.toml"
    file.touch(0o600)
    file.write_text(text)
    shown = run(terminal, folder, "acidctl config show --config config.toml --profile prod")
    for word in ("clean.older-than", "72h", "compact.engine", "limits.stripe-memory", "webhdfs://nn:9870"):
        assert word in shown, shown


@pytest.mark.spark
def test_the_first_command_of_the_readme_does_the_main_job(folder: Path) -> None:
    """But for the installation, which the tests do not repeat."""
    (first, _) = re.findall(r"^```sh\n(.*?)\n```", (REPO / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    installing, _, rest = first.partition(" && pip install . && ")
    assert installing == "python3 -m venv .venv && . .venv/bin/activate"
    program = folder / "bin" / "acidctl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m acidctl "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "TMPDIR": str(folder), "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", rest], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ['{"id":1,"value":"A"}', '{"id":2,"value":"B"}']


def test_the_python_page_runs_on_the_demo_table(terminal: Terminals, folder: Path) -> None:
    run(terminal, folder, DEMO)
    page = (REPO / "docs" / "how-to" / "python.md").read_text("utf-8")
    names: dict[str, Any] = {}
    counts = [0, 0]
    for block in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        away = "webhdfs://" in block  # a store that is not here
        counts[away] += 1
        if not away:
            exec(compile(block, "docs/how-to/python.md", "exec"), names)
    assert counts == [3, 1]
    assert names["scan"].to_table().column_names == ["ROW__ID", "id", "value"]
    assert names["done"].published == ("base_0000003",)
