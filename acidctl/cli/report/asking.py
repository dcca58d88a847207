"""The question before anything is changed."""

from __future__ import annotations

from collections.abc import Iterable

import click

from acidctl.cli.output.console import can_ask, end_question
from acidctl.cli.output.verbosity import VERBOSITY
from acidctl.cli.report.folding import folder_of_table
from acidctl.errors import RefusedError
from acidctl.printable import printable
from acidctl.storage.port import base_name


def confirm(what: str, question: str, undone: str, *, yes: bool, severe: str = "", instead: str = "") -> None:
    """Ask, if somebody can answer.

    Args:
        what: would be done.
        undone: what is true after a no.
        yes: do not ask.
        instead: what else can be given, where it is not --yes.
        severe: what is typed where a `y` is not enough: the number of tables, or the name of the only one.

    Raises:
        RefusedError: the answer was no, or there is no terminal and no --yes.
    """
    if yes:
        return
    if not can_ask():
        raise RefusedError(what, "there is no terminal to ask at", instead or "look at the plan, then give --yes")
    if VERBOSITY.is_quiet:
        raise RefusedError(what, "-q shows no plan to say yes to", instead or "leave -q out, or give --yes")
    if not _is_agreed(question, severe):
        raise RefusedError(undone, "it was not confirmed", instead)


def _is_agreed(question: str, severe: str) -> bool:
    """The answer; the end of the input is none."""
    try:
        if not severe:
            return click.confirm(question, err=True)
        typed = click.prompt(f"{question} Type {severe} to go on", default="", show_default=False, err=True)
    except click.Abort as end:
        if not isinstance(end.__context__, EOFError):
            raise
        end_question()
        return False
    return bool(typed.strip() == severe)


MOST_TABLES_BY_YES = 20
"""Tables that a `y` is enough for."""


def to_be_typed(locations: Iterable[str], *, is_for_good: bool = False) -> str:
    """What a severe question wants to be typed: the number of the tables, or the name of the only one; empty for none.

    Severe is what concerns many tables, and what cannot be undone.
    """
    tables = dict.fromkeys(map(folder_of_table, locations))
    if len(tables) > MOST_TABLES_BY_YES or (is_for_good and len(tables) > 1):
        return str(len(tables))
    return printable(base_name(next(iter(tables)))) if tables and is_for_good else ""
