"""``--tables FILE``: names and paths from a list, for every command that takes several."""

from __future__ import annotations

import fnmatch
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from acidctl.base.errors import UsageProblem
from acidctl.base.printable import printable
from acidctl.cli.options.param_types import FILE, LOCATION
from acidctl.location.arguments import HIVE, FromList, is_hive_name, table_in

_MOST_BYTES = 64 << 20
_A_LINE = "write one name or path a line: hive:db.table, hive:db.*, or where it lies"


def places_from(name: str, *, only_names: bool) -> Callable[..., tuple[str, ...]]:
    """Return a function that joins the places on the command line with the places of a list.

    Args:
        name: the parameter of the argument.
        only_names: accept no paths, so that names need no ``hive:``.
    """

    def places(**given: Any) -> tuple[str, ...]:
        typed, path = given[name], given["tables_file"]
        if path is None:
            return tuple(typed)
        patterns = click.get_current_context().params.get("exclude") or ()
        exclude = [pattern.lower().removeprefix(HIVE) for pattern in patterns]
        return tuple(dict.fromkeys((*typed, *_listed(path, exclude, HIVE if only_names else ""))))

    return places


def place_argument(name: str, metavar: str, *, required: bool) -> Callable[[Any], Any]:
    """Return the argument for names and paths, which may be empty if there is a list."""

    def some(context: click.Context, argument: click.Parameter, typed: tuple[str, ...]) -> tuple[str, ...]:
        if required and not typed and context.params.get("tables_file") is None and not context.resilient_parsing:
            raise click.MissingParameter(ctx=context, param=argument)
        return typed

    return click.argument(name, nargs=-1, metavar=metavar, type=LOCATION, callback=some)


tables_option = click.option(
    "--tables",
    "tables_file",
    metavar="FILE",
    type=FILE,
    allow_from_autoenv=False,
    is_eager=True,  # the argument asks whether there is a list
    help="Also read locations from FILE, one per line; # starts a comment, - is standard input.",
)


def _listed(path: str, exclude: Sequence[str], before: str) -> list[FromList]:
    """Return the places of a list that are not excluded, each with the number of its line.

    Args:
        before: the prefix that a name may lack.
    """
    shown = "standard input" if path == "-" else printable(path)
    places, skipped = [], 0
    for number, line in enumerate(_read(path, shown).split(b"\n"), 1):
        text = os.fsdecode(line).strip()
        if not text or text.startswith("#"):
            continue
        place = FromList(text, f"{shown}, line {number}")
        if "\0" in text:
            raise UsageProblem(f"{place.origin} is no name and no path", "it holds a NUL byte", _A_LINE)
        name = text if is_hive_name(text) else before + text
        if is_hive_name(name) and any(fnmatch.fnmatchcase(table_in(name), pattern) for pattern in exclude):
            skipped += 1
        else:
            places.append(place)
    if not places:
        why = f"all {skipped} are excluded" if skipped else "it is empty"
        raise UsageProblem(f"nothing is listed in {shown}", why, _A_LINE)
    return places


def _read(path: str, shown: str) -> bytes:
    from acidctl.storage.os_errors import mapped  # noqa: PLC0415 - --help does without

    with mapped("read", shown):
        if path == "-":
            from acidctl.cli.output.console import note_if_typed  # noqa: PLC0415 - --help does without

            note_if_typed("names and paths")
            data = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise UsageProblem(f"{shown} is too long for a list of tables", "", "give a pattern: hive:db.*")
    return data
