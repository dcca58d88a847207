"""The lines of further commands, which hints, lists and JSON name: typed as they stand, they do what is said of them.

A line repeats what the user typed to get there and what its command needs: the program's options, ``--metastore``, the
``--set`` of each section that is used (secrets hidden), and the snapshot, if one was given.
"""

from __future__ import annotations

from collections.abc import Sequence

import click
from click.core import ParameterSource

from acidctl.base.printable import shell_line
from acidctl.cli.output.redact import HIDDEN, is_secret_name
from acidctl.location.arguments import is_hive_name

ASSIGNED = "acidctl.set"
"""The key of the program's context with the values of --set by section."""


def line_for(words: Sequence[str], places: Sequence[str], hive_name: str = "", *, of_snapshot: bool = False) -> str:
    """Return the line of another command for several places.

    Args:
        words: the command and its options.
        hive_name: the name of the only place in a metastore; empty without one.
        of_snapshot: repeat all snapshot options, for a command that needs them.
    """
    *others, last = [*words, *places]
    return other_line(*others, path=last, hive_name=hive_name, of_snapshot=of_snapshot)


def other_line(*words: str, path: str, hive_name: str = "", of_snapshot: bool = False) -> str:
    """Return the line of another command for one location.

    It has only snapshot options that the user gave: a default could overlook an open transaction, and nothing is
    assumed about a table that a metastore knows. --exclude and --read-lock apply to this command only.

    Args:
        words: the command, its options, and further places.
        hive_name: the name of the location in a metastore; empty without one.
        of_snapshot: repeat all snapshot options, for a command that needs them.
    """
    context = click.get_current_context(silent=True)
    place = hive_name or path
    if context is None:
        return shell_line(["acidctl", *words, place])
    needs_metastore = of_snapshot or any(map(is_hive_name, (*words, place)))
    snapshot = ("snapshot",) if is_hive_name(place) else ("snapshot", "assume_committed")
    options = _given(context, *snapshot) if of_snapshot else []
    options += _given(context, "metastore") if needs_metastore else []
    settings = _assigned(context, *(("metastore",) if needs_metastore else ()), "storage")
    return shell_line(["acidctl", *_of_program(context), *words, *options, *settings, place])


def next_lines(places: Sequence[str]) -> dict[str, str]:
    """Return the lines of the commands that go on after an overview of places, by their verbs."""
    *others, last = places
    words = {"ls": ("ls", "--sort", "gain"), "clean": ("clean",), "purge": ("purge",), "log": ("log",)}
    return {
        verb: other_line(*line, *others, path=last, of_snapshot=verb in ("ls", "clean")) for verb, line in words.items()
    }


def hive_line(*words: str) -> str:
    """Return the line of a command of ``acidctl hive``; plain outside of a command."""
    context = click.get_current_context(silent=True)
    if context is None:
        return shell_line(["acidctl", "hive", *words])
    given = (*_given(context, "metastore"), *_assigned(context, "metastore"))
    return shell_line(["acidctl", *_of_program(context), "hive", *words, *given])


def _assigned(context: click.Context, *sections: str) -> list[str]:
    values = context.meta.get(ASSIGNED, {})
    return [
        f"--set={section}.{key}={HIDDEN if is_secret_name(key) else value}"
        for section in sections
        for key, value in values.get(section, {}).items()
    ]


def _of_program(context: click.Context) -> list[str]:
    return _given(context.find_root(), "profile", "config_file")


def _given(context: click.Context, *names: str) -> list[str]:
    """Return those of some options that have another value than the default, as words for another line."""
    words = []
    for param in context.command.params:
        value = context.params.get(param.name or "")
        is_default = context.get_parameter_source(param.name or "") == ParameterSource.DEFAULT
        if param.name in names and value is not None and not is_default:
            shown = f"{value:f}".rstrip("0").rstrip(".") + "s" if isinstance(value, float) else value
            words.append(f"{param.opts[0]}={shown}")
    return words
