"""Hints for mistyped names."""

from __future__ import annotations

import pytest

from acidctl.base.nearest import asked, did_you_mean


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("idd", ["id", "name"], "did you mean id?"),
        ("CUSTOMER", ["Custom", "other"], "did you mean Custom?"),
        ("row", ["rows", "Rowid", "x"], "did you mean rows or Rowid?"),
        ("zzz", ["id"], ""),
        ("id", [], ""),
        ("Id", ["id", "ID"], "did you mean id?"),
    ],
)
def test_near_names_are_suggested(name: str, known: list[str], hint: str) -> None:
    assert did_you_mean(name, known) == hint
    assert did_you_mean(name, known, "look there") == (hint or "look there")


def test_no_names_are_asked_for_with_no_words() -> None:
    assert asked([]) == ""
