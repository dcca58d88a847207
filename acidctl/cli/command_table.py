"""The commands: their names and summaries and how one is imported when it is called."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click

FOLDERS = {
    "See": "inspect",
    "Read rows": "rows",
    "Change rows": "write",
    "Compact and clean": "maintain",
    "Ask the metastore": "",
    "Try and check": "check",
}
"""The sections of the help, and the folder with the command modules of each."""


ORDER = (
    "status", "report", "ls", "why", "meta", "log",
    "cat", "dump", "diff", "history", "blame", "erasure",
    "create", "insert", "update", "delete", "erase", "merge", "truncate",
    "compact", "clean", "restore", "purge", "nightly", "migrate",
    "validate", "repair", "demo", "explain", "doctor", "completion",
    "tables", "txns", "locks", "compactions", "request", "abort", "initiator", "worker", "cleaner", "housekeep",
    "rescue",
)  # fmt: skip
"""Names of commands as each section shows them; a command that is missing here comes last in its section."""


MODULES: dict[tuple[str, str], str] = {}
"""The module of each command, by the folder and the name of the command."""


def _commands_in(folder: str) -> dict[str, str]:
    """Return the commands of a folder with their summaries.

    The docstring of a module has a line for each of its commands, with the name and the summary. No module is imported,
    so that the help of the program is quick.
    """
    commands: dict[str, str] = {}
    where = os.path.join(os.path.dirname(__file__), folder)  # noqa: PTH118, PTH120 - pathlib is slower to load
    for file in sorted(os.listdir(where)):  # noqa: PTH208 - as above
        if file.endswith(".py"):
            with open(f"{where}/{file}", encoding="utf-8") as module:  # noqa: PTH123 - as above
                docstring = module.read().partition("\nfrom ")[0]
            for line in docstring.splitlines():
                words, is_command, summary = line.strip('"').partition("`: ")
                if is_command and words.startswith("`acidctl "):
                    name = words.split()[-1]
                    commands[name] = summary
                    MODULES[folder, name] = f"{__package__}.{folder}.{file.removesuffix('.py')}"
    known = [name for name in ORDER if name in commands]
    return {name: commands[name] for name in dict.fromkeys((*known, *commands))}


GROUPS: dict[str, dict[str, str]] = {"hive": _commands_in("hive")}
"""Subcommands, each in a module of the folder with the name of the group."""

SECTIONS: dict[str, dict[str, str]] = {
    title: _commands_in(folder)
    if folder
    else {"hive": "Show tables, transactions, locks and compactions; request, work, clean, rescue."}
    for title, folder in FOLDERS.items()
}
"""Every command with its summary, by section of the help."""

SUMMARIES = {name: text for section in SECTIONS.values() for name, text in section.items()}

AFTER_INTERRUPT = {
    "create": "run it again with --if-not-exists",
    **dict.fromkeys(
        ("insert", "update", "delete", "merge", "truncate"),
        "`acidctl history` shows whether it was committed: run it again only if it was not",
    ),
    "erase": "run it again: it goes on with what is left",
    "compact": "run it again: it finishes or clears away what was staged",
    "clean": "run it again: it plans what is left",
    "restore": "run it again: it moves back what is left",
    "purge": "run it again: it deletes what is left",
    "migrate": "nothing new is visible in the copy: run it again",
    "nightly": "run it again, or wait for the next run: it goes on with what is left",
    "hive request": "see what was asked for: acidctl hive compactions",
    "hive abort": "run it again: it says what is still there",
    "hive initiator": "start it again: it asks for what is due then",
    "hive cleaner": "start it again: it goes on with what is left",
    "hive worker": "start it again: what it worked on is given back to the queue",
    "hive rescue": "run it again, with the same --aborted and --aside: it finishes what was begun",
    "hive housekeep": "run it again: it ends what is left",
    "repair": "run it again: it finishes the interrupted repair; `acidctl restore` undoes it",
}
"""What to do when a command that changes a table was interrupted."""


WATCHED = frozenset(SECTIONS["Read rows"])
"""Commands that decode rows in their own process: they run in a child, whose parent reports which file crashed it."""

GOING_ON = frozenset(("erasure",))
"""Watched commands that print only at their end: after a crash they start again, with one process for each file."""


def command_named(name: str) -> click.Command | None:
    """Import a command and return it; None for an unknown name."""
    return load(name) if name in SUMMARIES else None


def load(name: str, group: str = "") -> click.Command:
    """Import a command, or a subcommand of a group, and return it."""
    module = import_module(module_of(name, group))
    command: click.Command = getattr(module, f"{name.replace('-', '_')}_command", None) or module.command
    return command


def module_of(name: str, group: str = "") -> str:
    """Return the name of the module that defines a command."""
    if name in GROUPS:
        return f"{__package__}.groups"
    return MODULES[group or next(FOLDERS[title] for title, commands in SECTIONS.items() if name in commands), name]


def command_in(line: Sequence[str]) -> str:
    """Return the command on a line, ``hive txns`` for a subcommand; empty without one."""
    words = iter(line)
    name = next((word for word in words if word in SUMMARIES), "")
    part = next((word for word in words if word in GROUPS.get(name, ())), "")
    return f"{name} {part}".rstrip()


def walk() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Import every command and yield it with its path, a group before its subcommands."""
    for name in SUMMARIES:
        if command := command_named(name):
            yield from below((name,), command)


def below(path: tuple[str, ...], command: click.Command) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield a command and its subcommands, each with its path."""
    yield path, command
    parts: Mapping[str, click.Command] = getattr(command, "commands", {})
    for name, part in parts.items():
        yield from below((*path, name), part)
