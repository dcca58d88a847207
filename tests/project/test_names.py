"""One public name, one thing: what is defined in two modules under one name is found by nobody."""

from __future__ import annotations

import ast
from collections import defaultdict

from support.paths import REPO

VERBS = {"carry_out", "plan_location"}
"""Of compaction, cleaning and repair: planned and carried out in the same way."""

ENTRIES = {"command", "main", "work", "check"}
"""What every command, every program and every kind of repair begins with."""

HIVES = {"acidctl.metastore.interface"}
"""Structs there have the names that Hive gives them."""


def test_no_public_name_is_defined_twice() -> None:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted((REPO / "acidctl").rglob("*.py")):
        module = ".".join(path.relative_to(REPO).with_suffix("").parts)
        if module in HIVES or module.endswith("_pb2"):
            continue
        for node in ast.parse(path.read_text()).body:
            is_named = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            if is_named and not node.name.startswith("_"):
                found[node.name].append(module)
    twice = {name: modules for name, modules in found.items() if len(modules) > 1}
    assert {name: modules for name, modules in twice.items() if name not in VERBS | ENTRIES} == {}
    assert set(twice) >= VERBS  # else they need not be named here
