"""The layout of the tests: a file mirrors a module, scenarios stand apart, nothing is taken from a file of tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.paths import REPO, TESTS
from support.tables import read_rows

from acidctl.cli.command_table import MODULES

APART = ("scenarios", "oracle", "project")
"""Folders whose files tell of several modules together, of Hive as the judge, and of the repository itself."""


def mirrors(folder: str, name: str) -> bool:
    """Whether the name is that of a module or command of the folder, alone or followed by what of it is tested."""
    package = REPO / "acidctl" / folder
    modules = {path.stem for path in package.glob("[a-z]*.py")}
    modules |= {name.replace("-", "_") for section, name in MODULES if folder == f"cli/{section}"}
    modules |= {path.parent.name for path in package.glob("*/__init__.py")}
    return any(name == module or name.startswith(f"{module}_") for module in modules)


def imported(path: Path) -> Iterator[str]:
    """What a file imports: modules, and names of modules with a dot before them."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_every_file_mirrors_a_module_or_stands_apart() -> None:
    files = [path.relative_to(TESTS) for path in sorted(TESTS.rglob("test_*.py"))]
    strangers = [
        f"tests/{path}"
        for path in files
        if path.parts[0] not in APART and not mirrors(path.parent.as_posix(), path.stem.removeprefix("test_"))
    ]
    assert len(files) > 100
    assert not strangers, (
        "name them after what they test, tests/<package>/test_<module>.py or test_<module>_<aspect>.py, "
        "or put them into tests/scenarios/<topic>/"
    )


def test_only_modules_are_mirrored() -> None:
    assert mirrors("acid", "names")
    assert mirrors("orc/write", "acid_writer_java")
    assert mirrors("cli/maintain", "restore")
    assert mirrors("cli/hive", "initiator")
    assert not mirrors("cli/rows", "restore")
    assert not mirrors("acid", "namesake")
    assert not mirrors("nowhere", "names")


@pytest.mark.slow
def test_nothing_is_imported_from_a_file_of_tests() -> None:
    taken = [
        f"{path.relative_to(REPO)}: {name}"
        for path in sorted(TESTS.rglob("*.py"))
        for name in imported(path)
        if name.startswith((".", "tests.")) or any(part.startswith(("test_", "conftest")) for part in name.split("."))
    ]
    assert not taken, "what several files need belongs into tests/support, imported as support.<module>"


def test_folders_of_tests_are_no_packages() -> None:
    """Files of one name in several folders are told apart by importlib mode."""
    assert {path.relative_to(TESTS).parts[0] for path in TESTS.rglob("__init__.py")} == {"support"}


def test_example_of_contributing_works(tmp_path: Path) -> None:
    page = (REPO / "CONTRIBUTING.md").read_text("utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    exec(example, {"table": tmp_path / "t"})
    assert len(read_rows(tmp_path / "t")) == 2


def test_what_contributing_says_of_support_is_there() -> None:
    page = (REPO / "CONTRIBUTING.md").read_text("utf-8")
    rows = page[page.index("| `support.` |") : page.index("```python")].splitlines()[2:]
    named = [name for row in rows if row for name in re.findall(r"`(\w+)/?`", row.split("|")[1])]
    assert len(named) > 15
    assert [name for name in named if not (TESTS / "support" / name).is_dir()] == [
        name for name in named if (TESTS / "support" / f"{name}.py").is_file()
    ]
