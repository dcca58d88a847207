"""What people expect of every command line, https://clig.dev for one: held on the walk-through table."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.command_line import Result
from support.tables import age
from support.terminals import Terminals, without_last_line

from acidctl.cli.command_table import walk

Acidctl = Callable[..., Result]
PLAIN = ("-o", "csv", "--columns", "name", "--no-headers")
NAMES = ["base_0000003", "delta_0000001_0000001_0000", "delete_delta_0000002_0000002_0000",
         "delta_0000002_0000002_0000", "delete_delta_0000003_0000003_0000"]  # fmt: skip


@pytest.fixture
def compacted(acidctl: Acidctl, crud: Path) -> Path:
    """What a compaction left, two days ago."""
    assert acidctl("compact", "--assume-committed=0s", "--major", "--engine", "local", crud).status == 0
    age(crud, 48)
    return crud


# --- help -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [(), ("ls",), ("repair",), ("doctor",)], ids=" ".join)
def test_help_is_had_in_every_way(acidctl: Acidctl, words: tuple[str, ...]) -> None:
    whole = acidctl(*words, "--help")
    assert (whole.status, whole.err) == (0, "")
    assert acidctl("help", *words) == whole
    assert acidctl("-h", *words).status == acidctl(*words, "-h").status == 0


def test_help_on_what_is_not_there(acidctl: Acidctl) -> None:
    found = acidctl("help", "lss")
    assert (found.status, found.out, "Did you mean ls?" in found.err) == (2, "", True)


def test_the_version_needs_no_configuration(acidctl: Acidctl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ACIDCTL_CONFIG", str(tmp_path / "missing"))
    long, short = acidctl("--version"), acidctl("-V")
    assert (long.status, long.err, long.out) == (0, "", short.out)


def test_every_command_that_changes_something_can_show_what_it_would(acidctl: Acidctl) -> None:
    without = {
        path
        for path, command in walk()
        if "yes" in {param.name for param in command.params}
        and "dry_run" not in {param.name for param in command.params}
    }  # fmt: skip
    assert not without


# --- styles ---------------------------------------------------------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("environ", "has_styles"),
    [({"NO_COLOR": ""}, True), ({}, False), ({"NO_COLOR": "", "TERM": "dumb"}, False)],
    ids=["usual", "no color", "dumb"],
)
@pytest.mark.parametrize("line", [("ls",), ("status",), ("clean", "-n"), ("ls", "missing")])
def test_a_terminal_gets_styles_only_where_it_shows_them(
    terminal: Terminals, compacted: Path, line: tuple[str, ...], environ: dict[str, str], has_styles: bool
) -> None:
    *words, last = (*line, ".") if line[-1] != "missing" else line
    _, shown = terminal.run(*words, compacted / last, environ=environ)
    shown = shown if environ.get("TERM") == "dumb" else without_last_line(shown)  # a dumb terminal has no progress
    assert ("\x1b[" in shown) == (has_styles and line != ("status",)), shown


@pytest.mark.parametrize("environ", [{}, {"FORCE_COLOR": "1"}, {"CLICOLOR_FORCE": "1", "TTY_COMPATIBLE": "1"}])
def test_a_pipe_gets_none(
    acidctl: Acidctl, compacted: Path, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    for line in (("ls", compacted), ("ls", compacted / "missing")):
        found = acidctl(*line)
        assert "\x1b" not in found.out + found.err


# --- words and streams ----------------------------------------------------------------------------------------------


def test_options_stand_anywhere_and_two_dashes_end_them(
    acidctl: Acidctl, compacted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = compacted.rename(compacted.with_name("-odd"))
    monkeypatch.chdir(odd.parent)
    for line in (("ls", *PLAIN, "--", "-odd"), ("ls", *PLAIN, "./-odd"), ("ls", "./-odd", *PLAIN)):
        assert acidctl(*line).out.split() == NAMES
    assert acidctl("ls", "-odd").status == 2
    assert acidctl("ls", "--output=csv", "--columns=name", "--no-headers", odd).out.split() == NAMES
    assert acidctl("ls", "-ocsv", "--columns", "name", "--no-headers", odd).out.split() == NAMES


def test_a_dash_is_standard_input_which_a_terminal_is_told_of(terminal: Terminals, compacted: Path) -> None:
    command = [sys.executable, "-m", "acidctl", "ls", "--tables", "-", *PLAIN]
    piped = subprocess.run(command, input=f"{compacted}\n", capture_output=True, text=True, check=True)
    assert piped.stdout.split() == NAMES
    assert "reading" not in piped.stderr
    status, shown = terminal.run("ls", "--tables", "-", *PLAIN, typed=f"{compacted}\n")
    assert (status, "reading names and paths from the terminal, until Ctrl-D" in shown) == (0, True), shown


def test_results_go_to_standard_output_and_all_else_to_error(acidctl: Acidctl, compacted: Path) -> None:
    for form in ("json", "jsonl", "csv"):
        assert acidctl("ls", "-o", form, compacted, compacted / "missing").err.startswith("error: ")
    failed = acidctl("ls", compacted / "missing")
    assert (failed.status, failed.out) == (3, "")


# --- questions ------------------------------------------------------------------------------------------------------


CLEAN = ("clean", "--older-than", "1h")


@pytest.mark.parametrize(
    ("typed", "status", "said"),
    [
        ("n\n", 7, "not confirmed"), ("", 7, "not confirmed"), ("\n", 7, "not confirmed"),
        ("y\n", 0, "moved to the trash"),
    ],
    ids=["no", "end", "enter", "yes"],
)  # fmt: skip
def test_nothing_but_a_yes_is_one(terminal: Terminals, compacted: Path, typed: str, status: int, said: str) -> None:
    found, shown = terminal.run(*CLEAN, compacted, typed=typed)
    assert (found, said in shown) == (status, True), shown
    assert typed or "\nerror: nothing was removed" in shown, "below the question"
    assert (compacted / NAMES[1]).exists() == (status != 0)


@pytest.mark.parametrize(
    ("line", "option"),
    [
        (CLEAN, "--yes"), (("purge",), "--yes"), (("compact", "--major", "--engine", "local"), "--assume-committed 1h"),
        (("nightly", "--assume-committed=0s", "--engine", "local", "--older-than", "1h"), "--yes"),
        (("repair", "--only", "version-file"), "--yes"),
    ],
)  # fmt: skip
def test_where_nobody_can_be_asked_the_option_is_named(
    acidctl: Acidctl, compacted: Path, line: tuple[str, ...], option: str
) -> None:
    if line[0] == "purge":
        assert acidctl(*CLEAN, "--yes", compacted).status == 0
    if line[0] == "repair":
        (compacted / NAMES[0] / "_orc_acid_version").unlink()
    if line[0] == "compact":
        assert acidctl("demo", compacted.parent / "other").status == 0
        compacted = compacted.parent / "other"
    found = acidctl(*line, compacted)
    assert (found.status, option in found.err) == (7, True), found.err


INTERRUPTED = """
import sys
def interrupted(question):
    sys.stderr.write(question)
    raise KeyboardInterrupt
import click.termui
click.termui.visible_prompt_func = interrupted
from acidctl.cli.main import main
main(sys.argv[1:])
"""


def test_ctrl_c_is_one_line_below_the_question(terminal: Terminals, compacted: Path) -> None:
    status, shown = terminal.execute(sys.executable, "-c", INTERRUPTED, *CLEAN, compacted)
    assert status == 130
    assert shown.splitlines()[-2].endswith("? [y/N]: ")
    assert shown.splitlines()[-1] == "error: interrupted; run it again: it plans what is left"


# --- settings -------------------------------------------------------------------------------------------------------


def test_what_is_typed_goes_before_variables_and_those_before_files(
    acidctl: Acidctl, compacted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[ls]\noutput = "json"\n')
    config.chmod(0o600)
    monkeypatch.setenv("ACIDCTL_CONFIG", str(config))
    assert acidctl("ls", compacted).out.startswith("[")
    monkeypatch.setenv("ACIDCTL_LS_OUTPUT", "jsonl")
    assert acidctl("ls", compacted).out.startswith("{")
    assert acidctl("ls", "-o", "csv", compacted).out.startswith("location,")
