"""What texts say is to be typed can be typed: options, commands and exit statuses of the command line."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.paths import REPO

from acidctl.cli.command_table import GROUPS, SUMMARIES, walk
from acidctl.cli.main import cli

MODULES = sorted((REPO / "acidctl").rglob("*.py"))
OF_OTHERS = {"--add-modules"}
"""Options of other programs."""


def texts(path: Path) -> Iterator[str]:
    """What a module may say: all its constants but docstrings."""
    tree = ast.parse(path.read_text("utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def options() -> set[str]:
    every = [cli, *(command for _, command in walk())]
    return {"-h", "--help"} | {
        name
        for command in every
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
    }


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(REPO / "acidctl")))
def test_what_texts_name_can_be_typed(path: Path) -> None:
    known = options() | OF_OTHERS
    for text in texts(path):
        if " " not in text:  # the option of another program, or a part of a text
            continue
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z](?![\w-])", text))
        assert named <= known, text
        for name, part in re.findall(r"`acidctl ([a-z]+) ?([a-z]*)", text):
            assert name in SUMMARIES, text
            assert part in ("", *GROUPS.get(name, (part,))), text


def test_no_text_quotes_a_call_of_python() -> None:
    """There is one dialect: a reader of the library's errors finds the parameter by the option's name."""
    verbs = "clean|compact|purge|repair|restore|undo_repair|validate|why|state|trash|dump"
    quoted = re.compile(rf"`(?:(?:{verbs})\([^`]*\)|[a-z]+(?:_[a-z]+)+(?:=[^`]*)?)`")
    assert not [text for path in MODULES for text in texts(path) if quoted.search(text)]
