"""A rule and what finds it are one: none without a function, no two of one id, no finding of an unknown one."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from acidctl import validation
from acidctl.validation.checks import RULES
from acidctl.validation.findings import DECLARED, ERROR, LISTING, Rule, place_of

SOURCES = sorted(Path(validation.__file__).parent.rglob("*.py"))


def trees() -> dict[str, ast.Module]:
    return {path.stem: ast.parse(path.read_text("utf-8")) for path in SOURCES}


def names_in_functions(tree: ast.Module) -> set[str]:
    """The names that the bodies of functions read."""
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return {node.id for one in functions for node in ast.walk(one) if isinstance(node, ast.Name)}


def declared(tree: ast.Module) -> dict[str, str]:
    """The ids of the rules that a module makes, by the name that it gives them."""
    return {
        ast.unparse(node.targets[0]): str(ast.literal_eval(node.value.args[0]))
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "Rule"
    }


def test_every_rule_stands_in_a_module_with_a_function_that_reports_it() -> None:
    found: dict[str, str] = {}
    for module, tree in trees().items():
        rules = declared(tree)
        assert rules == {rule_id: rule_id for rule_id in rules}, module
        assert set(rules) <= names_in_functions(tree), module
        found |= rules
    assert set(found) == set(RULES) == set(DECLARED)


def test_two_rules_of_one_id_cannot_be() -> None:
    before = dict(DECLARED)
    with pytest.raises(ValueError, match="two rules are called V1"):
        Rule("V1", ERROR, LISTING, "Another.", "Why.", "What to do.")
    assert before == DECLARED


def test_only_a_rule_makes_findings() -> None:
    """So that none is of an unknown rule: to make a rule is to declare it."""
    calls = [
        f"{module}: {ast.unparse(node)}"
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "Finding"
    ]
    assert len(calls) == 1, calls
    assert calls[0].startswith("findings: Finding(self.id,")


RETIRED = {"R14"}
"""Rules that real servers refuted: their numbers stay unused."""


def test_rules_are_in_order() -> None:
    checks, readers = (sum(id_.startswith(kind) for id_ in (*RULES, *RETIRED)) for kind in "VR")
    assert (checks >= 42, readers >= 18) == (True, True), "a rule that was published does not go"
    numbered = [*(f"V{n}" for n in range(1, checks + 1)), *(f"R{n}" for n in range(1, readers + 1))]
    assert list(RULES) == [one for one in numbered if one not in RETIRED], (
        "numbers have no gap: a new rule has the one after the last"
    )
    assert sorted(["R1", "V10", "V9"], key=place_of) == ["V9", "V10", "R1"]
