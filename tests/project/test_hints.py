"""Only hints say what to type: what failed, and why, is the same for those who call the library."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from support.paths import REPO

HINTS = ("hint", "_OWN")
"""Names that hints, or parts of them, are given before they are used."""
OPTION = re.compile(r"(^|[ `(])--[a-z]")


def hints(tree: ast.Module) -> Iterator[ast.expr]:
    """The third word of an error, and what is named like one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from node.args[2:]
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in HINTS:
            yield node.value


def named_elsewhere(tree: ast.Module) -> Iterator[str]:
    """Texts with the spelling of an option that are not hints."""
    allowed = {id(part) for hint in hints(tree) for part in ast.walk(hint)}
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in allowed else None
        if isinstance(text, str) and OPTION.search(text):
            yield text


@pytest.mark.parametrize("package", ["acid", "cleaning", "compaction"])
def test_what_is_decided_and_refused_names_no_option(package: str) -> None:
    paths = sorted((REPO / "acidctl" / package).rglob("*.py"))
    found = [f"{path.name}: {text}" for path in paths for text in named_elsewhere(ast.parse(path.read_text("utf-8")))]
    assert not found


def test_an_option_in_a_reason_is_found() -> None:
    tree = ast.parse('raise Refused("--x is below 1h", "why --y", "give --z")')
    assert list(named_elsewhere(tree)) == ["--x is below 1h", "why --y"]
