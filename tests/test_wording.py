"""The table of codes: a sentence and one next step each, and all values that the sentences of reasons name."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from string import Formatter

from support.paths import REPO

from acidctl.acid.reasons import Code
from acidctl.wording import example, meanings, next_step, text_of


def made() -> Iterator[tuple[str, Code, dict[str, ast.expr]]]:
    """Every call of `reason(Code.X, name=value)` in the package: where it stands, its code, and its values."""
    for path in sorted((REPO / "acidctl").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("reason", "_unknown") and node.args:
                code = ast.unparse(node.args[0])
                if code.startswith("Code."):
                    values = {one.arg: one.value for one in node.keywords if one.arg}
                    yield f"{path.name}:{node.lineno}", Code[code.removeprefix("Code.")], values


def test_every_code_has_a_sentence_and_one_next_step() -> None:
    assert list(json.loads((REPO / "acidctl/wording.json").read_text("utf-8"))) == list(Code)
    texts = [text for code in Code for text in (text_of(example(code)), next_step(code))]
    assert all(text and not text.endswith(".") and "None" not in text and "{" not in text for text in texts)


def test_every_reason_has_the_values_that_its_sentence_names() -> None:
    seen = set()
    for where, code, values in made():
        sentence = meanings()[code].sentence
        if isinstance(sentence, Mapping):
            how = values["how"]
            constant = ast.literal_eval(how) if isinstance(how, ast.Constant) else None
            assert constant in {None, *sentence}, where
            seen.add((code, constant))
            sentence = sentence[constant] if constant else ""
        if isinstance(sentence, str):
            names = {name.partition("[")[0] for _, name, _, _ in Formatter().parse(sentence) if name}
            assert names <= {*values}, where
    assert len(seen) > 30
