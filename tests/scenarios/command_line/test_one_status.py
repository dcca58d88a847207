"""One kind of mistake has one status, whatever the command; and no option is taken to be ignored."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from support.terminals import Terminals

from acidctl.cli.command_table import SECTIONS, SUMMARIES, walk

Acidctl = Callable[..., Any]
MAJOR = ("compact", "--major", "--engine", "local", "--assume-committed=0s")

NIGHT = ("nightly", "--engine", "local", "--assume-committed=0s", "-n")

LOCATIONS = [
    ("ls",), ("status",), ("report", "-o", "md"), ("log",), ("why",), ("cat",), ("history",), MAJOR,
    ("compact", "--auto", "--assume-committed=0s", "-n"),
    NIGHT, ("clean", "-n"), ("clean", "--yes"), ("restore", "--list"), ("restore", "--yes"), ("purge", "-n"),
    ("purge", "--yes"), ("validate",), ("validate", "--deep"), ("blame", "{}", "1:536870912:0"),
    ("diff", "{}", "--from", "1"),
    ("erasure", "--where", "a = 1"), ("migrate", "--to", "copy", "--assume-committed=0s", "-n"),
]  # fmt: skip
"""Which want a location."""
EITHER = [
    ("dump",), ("repair",), ("repair", "--only", "empty-result"),
]  # fmt: skip
"""Which take a location or a file."""
READ = [
    ("meta",), ("clean", "--apply"), ("ls", "{t}", "--config"), ("ls", "{t}", "--snapshot", "@{}"),
    ("compact", "--auto", "{t}", "--snapshot", "@{}"), ("meta", "--config"),
]  # fmt: skip
"""Which read a file."""
WRITTEN = [
    ("compact", "--auto", "--assume-committed=0s", "{t}", "--metrics-file"),
    (*NIGHT, "{t}", "--metrics-file"),
    ("clean", "{t}", "--plan"), ("clean", "{t}", "--metrics-file"),
    ("validate", "{t}", "--metrics-file"),
    ("report", "{t}", "--out"),
]  # fmt: skip
"""Which write a file."""
ELSEWHERE = {"completion", "doctor", "demo", "explain", "hive", *SECTIONS["Change rows"]}
"""Commands without any of these, and those that need a metastore."""


def joined(line: tuple[str, ...]) -> str:
    return "-".join(word for word in line if "{" not in word)


def with_path(line: tuple[str, ...], path: Path, table: Path) -> list[str]:
    words = [word.replace("{}", str(path)).replace("{t}", str(table)) for word in line]
    return words if any("{}" in word for word in line) else [*words, str(path)]


def test_every_command_is_here() -> None:
    assert {line[0] for line in [*LOCATIONS, *EITHER, *READ]} | ELSEWHERE == set(SUMMARIES)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("line", [*LOCATIONS, *EITHER, *READ], ids=joined)
def test_a_path_that_is_not_there(acidctl: Acidctl, crud: Path, tmp_path: Path, line: tuple[str, ...]) -> None:
    found = acidctl(*with_path(line, tmp_path / "missing", crud))
    assert found.status == 3, found.err
    assert "missing" in found.err


@pytest.mark.sampled(3)
@pytest.mark.parametrize("line", [*LOCATIONS, *EITHER, *READ, *WRITTEN], ids=joined)
def test_empty_path_is_refused_by_every_option(acidctl: Acidctl, crud: Path, line: tuple[str, ...]) -> None:
    """It was taken and ignored for reports, metrics and configuration."""
    words = [word.replace("{}", "").replace("{t}", str(crud)) for word in line]
    found = acidctl(*words, *([] if "{}" in line else [""]))
    assert found.status == 2, found.err
    assert "the path is empty" in found.err


@pytest.mark.sampled(3)
@pytest.mark.parametrize("line", [*LOCATIONS, *EITHER, *READ, *WRITTEN], ids=joined)
def test_a_name_that_is_too_long(acidctl: Acidctl, crud: Path, tmp_path: Path, line: tuple[str, ...]) -> None:
    found = acidctl(*with_path(line, tmp_path / ("n" * 300), crud))
    assert found.status == 6, found.err
    assert "the name is too long" in found.err
    assert "n" * 60 in found.err
    assert "n" * 200 not in found.err


@pytest.mark.parametrize("line", WRITTEN, ids=joined)
def test_a_directory_for_a_new_file(acidctl: Acidctl, crud: Path, tmp_path: Path, line: tuple[str, ...]) -> None:
    found = acidctl(*with_path(line, tmp_path / "new", crud)[:-1], f"{tmp_path}/new/")
    assert found.status == 3, found.err
    assert not (tmp_path / "new").exists()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("line", LOCATIONS, ids=joined)
@pytest.mark.parametrize("name", ["file.txt", "crud_table/delta_0000001_0000001_0000/bucket_00000"])
def test_a_file_for_a_location(
    acidctl: Acidctl, crud: Path, tmp_path: Path, line: tuple[str, ...], name: str
) -> None:  # fmt: skip
    (tmp_path / "file.txt").write_text("hello")
    before = sorted(tmp_path.rglob("*"))
    found = acidctl(*with_path(line, tmp_path / name, crud))
    assert found.status == 3, found.err
    assert name in found.err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("line", EITHER[1:], ids=joined)
def test_a_file_of_no_table(acidctl: Acidctl, tmp_path: Path, line: tuple[str, ...]) -> None:
    (tmp_path / "file.txt").write_text("hello")
    assert acidctl(*line, tmp_path / "file.txt").status == 3


@pytest.mark.sampled(3)
@pytest.mark.parametrize("line", [*READ, *WRITTEN], ids=joined)
@pytest.mark.parametrize("name", ["crud_table", "empty"])
def test_a_directory_for_a_file(
    acidctl: Acidctl, crud: Path, tmp_path: Path, line: tuple[str, ...], name: str
) -> None:  # fmt: skip
    (tmp_path / "empty").mkdir()
    before = sorted(tmp_path.rglob("*"))
    found = acidctl(*with_path(line, tmp_path / name, crud))
    assert found.status == 3, found.err
    assert name in found.err
    assert "directory" in found.err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("line", WRITTEN, ids=joined)
def test_no_directory_for_a_file(acidctl: Acidctl, crud: Path, tmp_path: Path, line: tuple[str, ...]) -> None:
    found = acidctl(*with_path(line, tmp_path / "missing" / "file", crud))
    assert found.status == 3, found.err
    assert not (tmp_path / "missing").exists()


IGNORED = [
    ("cat", "{t}", "--count", "-o", "csv"),
    ("diff", "{t}", "--from", "1", "--count", "-o", "csv"),
    ("validate", "{t}", "--timeout", "3"),
    ("validate", "{t}", "--jobs", "2"), ("validate", "{t}", "--all"),
    ("validate", "{t}", "--schema", "id int"), ("validate", "{t}", "--rule", "V26"),
    ("validate", "{t}", "--footers", "--rule", "V1", "--rule", "V26"),
    ("validate", "{t}", "--rule", "V1", "--ignore", "v1"),
    ("restore", "--list", "{t}", "--yes"), ("restore", "--list", "{t}", "--jobs", "2"),
    ("restore", "--list", "{t}", "--deadline", "2h"),
    (*MAJOR[:2], "-n", "{t}", "--assume-committed=1h", "--master", "nonsense"),
    (*MAJOR[:2], "-n", "{t}", "--assume-committed=1h", "--master", "spark://host"),
    (*MAJOR[:2], "{t}", "--assume-committed=1h", "--master", "spark://host:0"),
    ("validate", "--deep", "--engine", "spark", "{t}", "--master", "spark//host:7077"),
    ("restore", "--list", "{t}", "--run", "2"),
    ("restore", "--list", "{t}", "-n"), ("restore", "--list", "{t}", "--break-lock"),
    ("restore", "--list", "{t}", "--lock-wait", "3s"),
    ("clean", "--plan", "{p}", "{t}", "--no-trash"),
    ("clean", "--plan", "{p}", "{t}", "-n"), ("clean", "--plan", "{p}", "{t}", "--jobs", "3"),
    ("demo", "{p}", "--partitions", "2"), ("demo", "{p}", "--compression", "none"), ("ls", "{t}", "--snapshot", "a.b"),
    ("clean", "{t}", "-n", "--no-lock", "--lock-wait", "3s"),
    ("validate", "{t}", "--engine", "local", "--master", "yarn"),
    ("validate", "{t}", "--engine", "spark", "--jobs", "2"),
]  # fmt: skip


@pytest.mark.parametrize("line", IGNORED, ids=joined)
def test_options_that_would_be_ignored(acidctl: Acidctl, crud: Path, tmp_path: Path, line: tuple[str, ...]) -> None:
    place = tmp_path / "new"
    found = acidctl(*(word.format(t=crud, p=place) for word in line))
    assert found.status == 2, found.err
    assert not place.exists()


def test_settings_for_other_lines_are_no_mistake(acidctl: Acidctl, crud: Path, tmp_path: Path) -> None:
    """What a file sets holds for every line of that command."""
    config = tmp_path / "config.toml"
    config.write_text("[validate]\njobs = 2\ntimeout = '5m'\n[restore]\nlock-wait = '3s'\n[clean]\njobs = 3\n")
    for line in (
        ("validate", crud), ("restore", "--list", crud), ("clean", "--plan", tmp_path / "plan", crud),
    ):  # fmt: skip
        found = acidctl(*line, "--config", config)
        assert found.status == 0, found.err


def test_a_key_of_a_command_without_settings_is_refused(acidctl: Acidctl, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("[demo]\nrows = 7\n")
    found = acidctl("demo", tmp_path / "d", "--config", config)
    assert (found.status, "demo.rows" in found.err) == (2, True)


def test_options_of_one_meaning_have_one_spelling() -> None:
    """What is the same has the same name everywhere, and nothing is called by the name of something else."""
    kinds: dict[str, set[str]] = {}

    for path, command in walk():
        if path == ("demo",):  # whose rows are made, not looked for
            continue
        for param in command.params:
            is_choice = isinstance(param, click.Option) and isinstance(param.flag_value, str)  # one of several words
            for spelled in param.opts if isinstance(param, click.Option) and not is_choice else ():
                kinds.setdefault(param.name or "", set()).update(param.opts)
                assert spelled.startswith("-")
    several = {name: spelled for name, spelled in kinds.items() if len({s for s in spelled if s[:2] == "--"}) > 1}
    assert not several
    assert "--processes" not in {spelled for names in kinds.values() for spelled in names}


READING = [
    ("ls",), ("ls", "-o", "json"), ("why",), ("history",), ("validate",), (*MAJOR, "-n"), ("clean", "-n"),
]  # fmt: skip


def give_away(path: Path) -> None:
    for parent in path.parents:
        if len(parent.parts) > 2:
            parent.chmod(0o755)
    for one in (path, *path.rglob("*")):
        os.chown(one, 65534, 65534)


@pytest.mark.sampled(3)
@pytest.mark.skipif("os.geteuid() != 0", reason="another user is needed, and only root can become one")
@pytest.mark.parametrize("line", READING, ids="-".join)
def test_an_unreadable_location_of_a_tree(
    terminal: Terminals, acidctl: Acidctl, tmp_path: Path, line: tuple[str, ...]
) -> None:
    top = tmp_path / "w.db"
    for name in ("a", "b", "c", "p/d=1", "p/d=2", "p/d=3"):
        assert acidctl("demo", top / name).status == 0
    give_away(top)
    for name in ("b", "p/d=2"):
        (top / name).chmod(0)
    status, shown = terminal.run(*line, top, nobody=True)
    assert status == (15 if line[0] == "validate" else 5), shown
    for name in ("a", "c", "p/d=1", "p/d=3"):
        assert line[0] == "validate" or f"{top / name}" in shown
    for name in ("b", "p/d=2"):
        assert f"cannot list {top / name}" in shown
    assert "4 locations checked" in shown or line[0] != "validate"


@pytest.mark.skipif("os.geteuid() != 0", reason="another user is needed, and only root can become one")
@pytest.mark.parametrize("line", [("ls",), ("ls", "-o", "json"), ("why",), ("validate",)], ids="-".join)
def test_an_unreadable_directory_of_a_location(
    terminal: Terminals, acidctl: Acidctl, crud: Path, line: tuple[str, ...]
) -> None:
    give_away(crud)
    closed = crud / "delta_0000001_0000001_0000"
    closed.chmod(0)
    status, shown = terminal.run(*line, crud, nobody=True)
    assert status == (15 if line[0] == "validate" else 5), shown
    assert f"cannot list {closed}" in shown
    for name in ("delta_0000002_0000002_0000", "delete_delta_0000003_0000003_0000"):
        assert name in shown or line[0] == "validate"


@pytest.mark.skipif("os.geteuid() != 0", reason="another user is needed, and only root can become one")
@pytest.mark.parametrize("line", [MAJOR, ("clean", "-n"), ("cat",), ("history",)], ids=lambda line: line[0])
def test_what_must_know_all_refuses(
    terminal: Terminals, acidctl: Acidctl, crud: Path, line: tuple[str, ...]
) -> None:  # fmt: skip
    give_away(crud)
    (crud / "delta_0000001_0000001_0000").chmod(0)
    before = sorted(path.name for path in crud.iterdir())
    status, shown = terminal.run(*line, crud, nobody=True)
    assert status == 5, shown
    assert sorted(path.name for path in crud.iterdir()) == before


@pytest.mark.skipif("os.geteuid() != 0", reason="another user is needed, and only root can become one")
@pytest.mark.parametrize("line", [*READING, ("cat",), ("diff", "--from", "1")], ids="-".join)
def test_hidden_directories_of_other_writers_hinder_nobody(
    terminal: Terminals, acidctl: Acidctl, crud: Path, line: tuple[str, ...]
) -> None:
    for name in (".hive-staging_hive_2026-11-20_1", ".acidctl-trash/20261120T000000.000Z-0a1b2c3d"):
        (crud / name / "below").mkdir(parents=True)
        (crud / name).chmod(0)
        os.utime(crud / name, (0, 0))  # a young one is a writer at work
    give_away(crud)
    status, shown = terminal.run(*line, crud, nobody=True)
    assert status == 0, shown


@pytest.mark.skipif("os.geteuid() != 0", reason="another user is needed, and only root can become one")
def test_a_result_half_of_which_may_be_hidden(terminal: Terminals, acidctl: Acidctl, crud: Path) -> None:
    (crud / "_tmp_0a1b2c3d").mkdir()
    give_away(crud)
    (crud / "_tmp_0a1b2c3d").chmod(0)
    assert terminal.run(*MAJOR, crud, nobody=True)[0] == 5
