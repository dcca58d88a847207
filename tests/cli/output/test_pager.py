"""A pager, where a list is longer than the screen, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.tables import make

from acidctl.cli.output.pager import Pager, pager_command

COUNTER = "sh -c 'cat > {file}; echo THE PAGER'"
"""A pager that keeps what it gets."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for number in range(60):
        make(tmp_path / "w" / f"t{number:02}", "delta_1_1")
    return tmp_path / "w"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "kept"
    monkeypatch.setenv("ACIDCTL_PAGER", COUNTER.format(file=file))
    return file


def test_a_long_list_goes_to_the_pager_and_remarks_come_after_it(terminal, tree: Path, kept: Path) -> None:  # type: ignore[no-untyped-def]
    status, shown = terminal.run("ls", tree, columns=120)
    assert status == 0
    assert kept.read_text().count("/t") >= 60
    assert "t59" in kept.read_text()
    assert "t59" not in shown
    assert shown.index("THE PAGER") < shown.index("note: no write-id list")


@pytest.mark.parametrize("line", [("--no-pager", "ls"), ("ls", "--no-pager")])
def test_none_where_none_is_wanted(terminal, tree: Path, kept: Path, line: tuple[str, ...]) -> None:  # type: ignore[no-untyped-def]
    status, shown = terminal.run(*line, tree, columns=120)
    assert (status, "t59" in shown, kept.exists()) == (0, True, False)


def test_none_where_all_of_it_fits(terminal, tree: Path, kept: Path) -> None:  # type: ignore[no-untyped-def]
    status, shown = terminal.run("ls", tree / "t01", columns=120)
    assert (status, "delta_1_1" in shown, kept.exists()) == (0, True, False)
    assert shown.index("delta_1_1") < shown.index("note: no write-id list")


def test_none_in_a_pipe(acidctl, tree: Path, kept: Path) -> None:  # type: ignore[no-untyped-def]
    assert ("/t59" in acidctl("ls", tree).out, kept.exists()) == (True, False)


def test_a_pager_that_is_left_at_once_ends_the_list(terminal, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("ACIDCTL_PAGER", "true")
    status, shown = terminal.run("ls", "-r", tree)
    assert "Traceback" not in shown
    assert status in (0, 141)


@pytest.mark.parametrize(
    ("own", "common", "command"),
    [
        (None, None, ["less"]),
        (None, "more -d", ["more", "-d"]),
        ("less -S", "more", ["less", "-S"]),
        ("", "more", []),
        ("cat", None, []),
        ("no-such-program-at-all", None, []),
        ("'", None, []),
    ],
)
def test_the_command_is_chosen_as_git_does(
    monkeypatch: pytest.MonkeyPatch, own: str | None, common: str | None, command: list[str]
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None if name.startswith("no-such") else name)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in (("ACIDCTL_PAGER", own), ("PAGER", common)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    assert pager_command() == command
    monkeypatch.setenv("TERM", "dumb")
    assert pager_command() == []


def test_what_fits_is_given_back_and_long_lines_count_as_they_wrap() -> None:
    pager = Pager(["no-such-program-at-all"], columns=10, lines=4)
    pager.write(b"\x1b[1m0123456789\x1b[0m\nab")
    assert pager.close() == b"\x1b[1m0123456789\x1b[0m\nab"
    pager = Pager(["no-such-program-at-all"], columns=10, lines=4)
    pager.write(b"x" * 31 + b"\n")  # four lines: it would be started, and cannot be
    pager.write(b"more\n")
    assert pager.close() == b"x" * 31 + b"\nmore\n"
