"""The module and the function of each command."""

from __future__ import annotations

import sys
from types import ModuleType

import click
import pytest

from acidctl.cli.command_table import MODULES, load


def test_a_command_of_two_words_may_stand_beside_others(monkeypatch: pytest.MonkeyPatch) -> None:
    two_words = click.Command("two-words")
    module = ModuleType("beside")
    vars(module).update(one_command=click.Command("one"), two_words_command=two_words)
    monkeypatch.setitem(sys.modules, "beside", module)
    monkeypatch.setitem(MODULES, ("check", "two-words"), "beside")
    assert load("two-words", "check") is two_words
