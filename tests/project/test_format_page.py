"""docs/format.md: its examples are true, and whatever is cited is there."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest
from support.paths import REPO

from acidctl.acid.listing import Entry, Listing
from acidctl.acid.state import AcidState, State, select
from acidctl.acid.writeids import MAXL, ValidTxns, ValidWriteIds

PAGE = (REPO / "docs" / "format.md").read_text()
CITED = re.compile(r"(format )?\bsections? (\d+(?:\.\d+)?(?:(?:, | and | to |, and )\d+(?:\.\d+)?)*)")
"""One section or several: "section 6.2", "sections 1.4, 8.6 and 12"."""


def examples() -> list[list[str]]:
    """Rows of the table of section 6.4."""
    lines = PAGE[PAGE.index("### 6.4") : PAGE.index("### 6.5")].splitlines()
    rows = [[cell.strip() for cell in line.strip("| ").split(" |")] for line in lines if line.startswith("| `")]
    return [row + [""] * (5 - len(row)) for row in rows]


def names(cell: str) -> set[str]:
    return {name for span in re.findall("`(.*?)`", cell) for name in span.split()}


def state_of(listing: str, said: str) -> AcidState:
    entries = tuple(Entry(name, 1, 1.0, not name[0].isdigit()) for name in sorted(names(listing)))
    text = said.strip("`").replace("MAXL", str(MAXL))
    write_ids = ValidWriteIds.parse(text) if text.startswith("t:") else None
    txns = ValidTxns.parse(text) if text[:1].isdigit() else None
    return select(Listing("t", entries), write_ids, txns)


@pytest.mark.parametrize(("listing", "said", "current", "obsolete", "aborted"), examples())
def test_examples_of_the_page_are_true(listing: str, said: str, current: str, obsolete: str, aborted: str) -> None:
    state = state_of(listing, said)
    if current.startswith("refused"):
        assert state.history_problem
        return
    assert not state.history_problem
    found = {kind: {v.name for v in state.verdicts if v.state is kind} for kind in State}
    assert found[State.CURRENT] == names(current)
    assert found[State.OBSOLETE] == names(obsolete)
    assert found[State.ABORTED] == names(aborted)
    assert found[State.IGNORED] == names(listing) - names(current) - names(obsolete) - names(aborted)


def test_page_has_its_examples() -> None:
    assert len(examples()) > 10


def test_what_is_cited_is_there() -> None:
    there = set(re.findall(r"^#{2,3} (\d+(?:\.\d+)?)\.? ", PAGE, re.MULTILINE))
    listed = subprocess.run(["git", "ls-files"], cwd=REPO, capture_output=True, text=True, check=True).stdout
    missing, count = [], 0
    for name in listed.splitlines():
        if name.startswith(("acidctl/", "tests/", "docs/")) and name.endswith((".py", ".md", ".proto")):
            text = re.sub(r"\s*\n\s*(?:#\s*)?", " ", (REPO / name).read_text())
            for match in CITED.finditer(text):
                numbers = re.findall(r"\d+(?:\.\d+)?", match[2])
                count += len(numbers)
                missing += [f"{name}: {number}" for number in numbers if number not in there]
    assert not missing
    assert count > 100


LAW = re.compile(r'Format section (\d+(?:\.\d+)?): "(.+?)"\.')
"""A law test says in its docstring which sentence it holds, to the letter."""


def section(number: str) -> str:
    """The text of a section and of those below it, on one line."""
    head = re.search(rf"^(#+) {re.escape(number)}\.? ", PAGE, re.MULTILINE)
    assert head, number
    end = re.search(rf"^#{{2,{len(head[1])}}} ", PAGE[head.end() :], re.MULTILINE)
    return re.sub(r"\s+", " ", PAGE[head.start() : head.end() + end.start() if end else len(PAGE)])


def docstrings(file: Path) -> dict[str, str]:
    """Docstrings of a file's tests, each on one line."""
    functions = [node for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)]
    return {f.name: re.sub(r"\s+", " ", ast.get_docstring(f) or "") for f in functions if f.name.startswith("test_")}


def test_law_tests_quote_sentences_of_the_format() -> None:
    wrong, count = [], 0
    for file in sorted((REPO / "tests").rglob("test_*.py")):
        for name, text in docstrings(file).items():
            for number, sentence in LAW.findall(text):
                count += 1
                wrong += [f"{file.name}::{name}: {sentence}"] if sentence not in section(number) else []
    assert not wrong
    assert count >= 20


def test_every_law_of_the_state_quotes_its_sentence() -> None:
    (file,) = (REPO / "tests").rglob("test_state_laws.py")
    assert [name for name, text in docstrings(file).items() if not LAW.search(text)] == []
