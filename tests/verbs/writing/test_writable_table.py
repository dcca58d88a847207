"""The statements of a table in Python: what an editor and `help` show of them."""

from __future__ import annotations

import inspect
from dataclasses import fields

import pytest

from acidctl.verbs.writing import options
from acidctl.verbs.writing.writable_table import WritableTable

RENAMED = {"directory": "location", "property": "properties"}
ONLY_TYPED = {"create": {"like"}, "delete": {"key"}}
"""Options of files: Python gives Arrow instead."""


@pytest.mark.parametrize("verb", ["create", "insert", "update", "delete", "truncate", "merge"])
def test_each_option_of_a_statement_is_an_argument_by_name(verb: str) -> None:
    shown = inspect.signature(getattr(WritableTable, verb)).parameters
    taken = {item.name for item in fields(getattr(options, f"{verb.title()}Options"))}
    named = {RENAMED.get(name, name) for name in taken - ONLY_TYPED.get(verb, set())}
    assert named <= shown.keys()
    assert all(one.kind is not one.VAR_KEYWORD for one in shown.values())
