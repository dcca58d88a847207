"""The help of a command: its options in groups, and its examples, which are in ``examples.txt``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

GROUPS = {
    "Which rows count": ("snapshot", "assume_committed", "at"),
    "Metastore and storage": ("metastore", "exclude", "read_lock", "take_over", "wait"),
    "Where the work is done": ("engine", "master", "conf", "jobs"),
    "When, and how much": ("deadline", "max_bytes", "min_deltas"),
    "Locks": ("lock", "lock_wait", "break_lock"),
    "Form of the result": ("properties", "verify"),
    "Places and output": ("tables_file", "recursive", "output", "metrics_file", "exit_code", "help"),
}
"""Options that many commands share, by the names of their parameters; others are a command's own."""

_FEW = 14
"""Up to this many options are shown without groups."""


def examples_of(name: str) -> list[str]:
    """Return the examples of a command, ``hive txns`` for a subcommand; none for an unknown name."""
    path = os.path.join(os.path.dirname(__file__), os.pardir, "examples.txt")  # noqa: PTH118, PTH120 - pathlib loads slower
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - as above
        _, _, below = file.read().partition(f"\n\n{name}\n")
    return [line.strip() for line in below.partition("\n\n")[0].splitlines()]


class ExampledCommand(click.Command):
    """A command whose help ends with its examples."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        lines = examples_of(" ".join(ctx.command_path.split()[1:]))
        if not self.epilog and lines:
            self.epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)  # \b: click must not wrap it
        super().format_epilog(ctx, formatter)


class ExampledGroup(ExampledCommand, click.Group):
    """A group whose help ends with its examples."""


class GroupedCommand(ExampledCommand):
    """A command whose help has its options in groups, if they are many."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Offer the options of the program, too: they may stand behind the command."""
        offered = super().shell_complete(ctx, incomplete)
        if not incomplete.startswith("-"):
            return offered
        root, known = ctx.find_root(), {item.value for item in offered}
        program = click.Command.shell_complete(root.command, root, incomplete)
        return [*offered, *(item for item in program if item.value not in known)]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option) and not param.hidden]
        if len(options) <= _FEW:
            super().format_options(ctx, formatter)
            return
        by_group: dict[str, list[tuple[str, str]]] = {title: [] for title in ("Options", *GROUPS)}
        titles = {name: title for title, names in GROUPS.items() for name in names}
        for option in options:
            # The name of the parameter of --help differs between versions of click.
            name = "help" if {*ctx.help_option_names} & {*option.opts} else option.name or ""
            if record := option.get_help_record(ctx):
                by_group[titles.get(name, "Options")].append(record)
        for title, records in by_group.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
