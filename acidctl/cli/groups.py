"""Groups of commands whose modules are imported one at a time, when they are called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from acidctl.base.nearest import asked, near_names
from acidctl.cli.command_table import GROUPS, load
from acidctl.cli.options.help_pages import ExampledGroup
from acidctl.cli.options.set_option import refuse_useless


class LazyCommands(Mapping[str, click.Command]):
    """Commands by name in the order of the table, each imported when it is used."""

    def __init__(self, lines: Mapping[str, str], group: str = "") -> None:
        self._lines, self._group = lines, group

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._lines:
            raise KeyError(name)
        return load(name, self._group)

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)


class LazyGroup(ExampledGroup):
    """A group of :class:`LazyCommands`, which its help shows in sections.

    Args:
        sections: the summaries of the commands, by the title of their section.
        folder: the folder of the modules; if empty, :data:`~acidctl.cli.command_table.FOLDERS` has it by section.
    """

    def __init__(self, *args: Any, sections: Mapping[str, Mapping[str, str]], folder: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sections = sections
        self._lines = {name: line for section in sections.values() for name, line in section.items()}
        self.commands: Mapping[str, click.Command] = LazyCommands(self._lines, folder)  # type: ignore[assignment]

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            name, command, rest = super().resolve_command(ctx, args)
        except click.UsageError as error:
            # click compares only with commands that are loaded, and here none is.
            typed, known = args[0], self._lines
            groups = [f"`acidctl {name} {typed}`" for name, lines in GROUPS.items() if typed in lines and name in known]
            near = asked(groups or near_names(typed, known))
            if not near:
                raise
            raise click.UsageError(f"{error.message} {near.capitalize()}", ctx) from None
        if name and command and not (ctx.resilient_parsing or isinstance(command, LazyGroup)):
            from acidctl.cli.config.settings import take_variables  # noqa: PLC0415 - --help does without

            take_variables(command, (*ctx.command_path.split()[1:], name))
            if {"-h", "--help"}.isdisjoint(rest):
                refuse_useless(ctx, command, f"{ctx.command_path} {name}")
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in self._sections.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))


command = LazyGroup(
    "hive",
    sections={"Commands": GROUPS["hive"]},
    folder="hive",
    help="""Show what a metastore knows and what waits there, and do the work of Hive's own services.

    Tables may be named with or without hive: before them, db.table for hive:db.table.
    """,
    no_args_is_help=True,
)
