"""Below the command line no text knows how an option or a command is typed: that is spelled at its edge."""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from support.paths import REPO

from acidctl.api import Location
from acidctl.base.errors import RefusedError
from acidctl.base.spelling import speaking
from acidctl.cli.command_table import COMMANDS, OPTIONS, SUMMARIES, shell_spelling
from acidctl.cli.main import cli

TYPED = re.compile(rf"(^|[ `(])--[a-z]|\bacidctl ({'|'.join(SUMMARIES)})\b")
OF_PROGRAMS = re.compile(r"--[a-z-]+")
"""A text that is nothing but the option of another program, Spark's for one."""

BELOW = [
    path for path in sorted((REPO / "acidctl").rglob("*.py")) if not {"cli", "verbs"} & {*path.relative_to(REPO).parts}
]


def texts(path: Path) -> Iterator[str]:
    """What a module may say: all its constants but docstrings and the text of scripts."""
    tree = ast.parse(path.read_text("utf-8"))
    said_of = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said_of:
            yield node.value


def typed(path: Path) -> list[str]:
    return [text for text in texts(path) if TYPED.search(text) and not OF_PROGRAMS.fullmatch(text)]


@pytest.mark.parametrize("path", BELOW, ids=lambda path: str(path.relative_to(REPO / "acidctl")))
def test_no_text_below_the_command_line_says_what_is_typed(path: Path) -> None:
    found = typed(path)
    if path.name == "java.py":  # a shell script, for Java
        found = [text for text in found if "--add-modules" not in text]
    assert not found


def test_what_is_typed_is_found(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text('"""--x"""\nraise E("--x is low", "why --yes", f"run acidctl clean {a} (--z)", "--conf")\n')
    assert typed(path) == ["--x is low", "why --yes", "run acidctl clean ", " (--z)"]


def test_every_setting_and_verb_that_hints_name_is_one_of_the_command_line() -> None:
    def options(command: click.Command) -> Iterator[str]:
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                found = command.get_command(context, name)
                assert found is not None
                yield from options(found)
        for parameter in command.params:
            yield from (name for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("--"))

    known = set(options(cli))
    assert {shell_spelling(name) for name in OPTIONS} <= known
    for line in COMMANDS.values():
        name, *given = line.split()
        assert name in SUMMARIES
        assert {word for word in given if word.startswith("--")} <= known


def test_every_name_in_backticks_is_used_and_known() -> None:
    quoted = {name for path in BELOW for text in texts(path) for name in re.findall(r"`([^`]+)`", text)}
    ours = {name for name in quoted if re.fullmatch(r"[a-z]+(_[a-z]+)+(=.*)?|[a-z_]+\(.*\)", name)}
    assert not {name for name in ours if shell_spelling(name) is None}
    assert set(COMMANDS) <= quoted | {"clean()", "clean(leftovers=True)"}, "these two are put together"


def test_verbs_that_hints_name_are_those_of_python() -> None:
    verbs = {name.partition("(")[0] for name in COMMANDS}
    assert verbs - set(dir(Location)) == {"dump", "forget_repair"}, "only these are of the command line alone"


@pytest.mark.parametrize(
    ("quoted", "shell"),
    [
        ("offline", "--offline"),
        ("jobs=1", "--jobs 1"),
        ("table_type='full-acid'", "--table-type full-acid"),
        ("spark.executor.memory=1g", "--conf spark.executor.memory=1g"),
        ("compact('major')", "`acidctl compact --major`"),
        ("kinit", None),
        ("hdfs dfsadmin -safemode leave", None),
    ],
)
def test_shell_spelling_of_what_is_in_backticks(quoted: str, shell: str | None) -> None:
    assert shell_spelling(quoted) == shell


def test_errors_are_spelled_for_whom_they_are() -> None:
    error = RefusedError("what", "why", "give `offline`, or `kinit`")
    assert error.hint == "give `offline`, or `kinit`"
    with speaking(shell_spelling):
        assert RefusedError("what", "why", error.hint).hint == "give --offline, or `kinit`"
        assert pickle.loads(pickle.dumps(error)).hint == "give --offline, or `kinit`", "as of a worker process"
