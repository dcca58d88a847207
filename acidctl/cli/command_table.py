"""The commands: their names and summaries and how one is imported when it is called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click

SECTIONS: dict[str, dict[str, str]] = {
    "See": {
        "status": "Show what is due, held back, broken or stuck on one screen.",
        "report": "Write a page: bytes, cost, what can go, trend.",
        "ls": "List directories with their state: current, obsolete, aborted, ignored.",
        "why": "Explain a directory's state, and what cleaning waits for.",
        "meta": "Show an ORC file's footer.",
        "log": "Show what acidctl did: when, by whom, how it ended.",
    },
    "Read rows": {
        "cat": "Print the rows that readers see.",
        "dump": "Print the events of ORC files with synthetic columns.",
        "diff": "Print the rows that changed between two write ids.",
        "history": "Show what every write id did: rows inserted, updated, deleted.",
        "blame": "Show where a row was inserted, rewritten and deleted.",
        "erasure": "Find files that still hold certain rows.",
    },
    "Compact and clean": {
        "compact": "Merge deltas: minor, major, or what thresholds ask for.",
        "clean": "Remove obsolete and aborted directories, after showing the plan.",
        "restore": "Undo a cleaning or a repair.",
        "purge": "Delete the trash of cleanings and the backups of repairs for good.",
        "nightly": "Compact, clean and purge in one go, for cron.",
    },
    "Ask the metastore": {
        "hive": "Show tables, transactions, locks and compactions; request, work, clean.",
    },
    "Try and check": {
        "validate": "Check names, files and rows by the rules of the format.",
        "repair": "Mend what validate finds.",
        "demo": "Write a table to try things on.",
        "explain": "Explain a code, exit status, rule or term.",
        "config": "Show the settings that count, and their origin.",
        "doctor": "Show which Java, Spark, packages and metastore are used.",
    },
}
"""Every command with its summary, by section of the help."""

GROUPS: dict[str, dict[str, str]] = {
    "hive": {
        "tables": "List transactional tables: type, location, owner, settings.",
        "txns": "List transactions, and which of them hold back cleaning.",
        "locks": "List locks: who holds them, and who waits for whom.",
        "compactions": "List the queue of compactions, what is stuck and what frees it.",
        "request": "Ask Hive's workers for compactions.",
        "abort": "End transactions; take compactions out of the queue.",
        "initiator": "Ask for compactions that are due in a warehouse.",
        "worker": "Compact what waits in Hive's queue.",
        "cleaner": "Clean what Hive's queue has ready for it.",
        "housekeep": "End transactions and locks of dead clients.",
    },
}
"""Subcommands, each in a module of the folder with the name of the group."""

FOLDERS = {
    "See": "inspect",
    "Read rows": "rows",
    "Compact and clean": "maintain",
    "Try and check": "check",
}
"""The folder with the command modules of each section."""

SUMMARIES = {name: text for section in SECTIONS.values() for name, text in section.items()}

AFTER_INTERRUPT = {
    "compact": "run it again: it finishes or clears away what was staged",
    "clean": "run it again: it plans what is left",
    "restore": "run it again: it moves back what is left",
    "purge": "run it again: it deletes what is left",
    "nightly": "run it again, or wait for the next night: it goes on with what is left",
    "hive request": "see what was asked for: acidctl hive compactions",
    "hive abort": "run it again: it says what is still there",
    "hive initiator": "start it again: it asks for what is due then",
    "hive cleaner": "start it again: it goes on with what is left",
    "hive worker": "start it again: what it worked on is given back to the queue",
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
    if name not in SUMMARIES:
        return None
    command: click.Command = import_module(module_of(name)).command
    return command


def module_of(name: str, group: str = "") -> str:
    """Return the name of the module that defines a command."""
    if name in GROUPS:
        return f"{__package__}.groups"
    folder = group or next(FOLDERS[title] for title, commands in SECTIONS.items() if name in commands)
    return f"{__package__}.{folder}.{name.replace('-', '_')}"


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


def examples(*lines: str) -> str:
    """Return an epilog of examples; ``\\b`` keeps click from wrapping it."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
