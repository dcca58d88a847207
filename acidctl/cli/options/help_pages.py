"""Two helps of a command: ``-h`` has examples and the main options on one screen, ``--help`` all options in groups."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

HELP = "help"

GROUPS = {
    "Which rows count": ("snapshot", "assume_committed", "at"),
    "Metastore and storage": ("metastore", "exclude", "read_lock", "take_over", "wait"),
    "Where the work is done": ("engine", "master", "conf", "jobs"),
    "When, and how much": ("window", "deadline", "max_bytes", "min_deltas"),
    "Locks": ("lock", "lock_wait", "break_lock"),
    "Form of the result": ("properties", "verify"),
    "Places and output": (
        "tables_file", "recursive", "output", "report", "metrics_file", "exit_code", HELP,
    ),
}  # fmt: skip
"""Options that many commands share, by the names of their parameters; others are a command's own."""

MOST = 10
"""The most options of the short help, besides --help."""

_FEW = 14
"""Up to this many options are shown without groups."""

_SHORT = "acidctl.short-help"


class PagedCommand(click.Command):
    """A command whose ``-h`` is shorter than its ``--help``.

    Args:
        main: the parameters of the options that the short help shows, with blanks between them; by default the
            command's own.
    """

    def __init__(self, *args: Any, main: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._main = main.split()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = args[: args.index("--")] if "--" in args else args
        ctx.meta[_SHORT] = "-h" in words and "--help" not in words
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Offer the options of the program, too: they may stand behind the command."""
        offered = super().shell_complete(ctx, incomplete)
        if not incomplete.startswith("-"):
            return offered
        root, known = ctx.find_root(), {item.value for item in offered}
        program = click.Command.shell_complete(root.command, root, incomplete)
        return [*offered, *(item for item in program if item.value not in known)]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not ctx.meta.get(_SHORT):
            super().format_help(ctx, formatter)
            return
        self.format_usage(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            _put(formatter, inspect.cleandoc(self.help or "").partition("\n\n")[0])
        self.format_epilog(ctx, formatter)
        shown = self._main_options(ctx)
        with formatter.section("Options"):
            formatter.write_dl([record for option in shown if (record := option.get_help_record(ctx))])
        more = len(_options(self, ctx)) - len(shown)
        if more > 0:
            formatter.write_paragraph()
            _put(formatter, f"{more} more options: {ctx.command_path} --help")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = _options(self, ctx)
        if len(options) <= _FEW:
            super().format_options(ctx, formatter)
            return
        by_group: dict[str, list[tuple[str, str]]] = {title: [] for title in ("Options", *GROUPS)}
        titles = {name: title for title, names in GROUPS.items() for name in names}
        for name, option in options.items():
            if record := option.get_help_record(ctx):
                by_group[titles.get(name, "Options")].append(record)
        for title, records in by_group.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def _main_options(self, ctx: click.Context) -> list[click.Option]:
        options = _options(self, ctx)
        own = [name for name in options if name != HELP]
        shared = {name for names in GROUPS.values() for name in names}
        chosen = self._main or (own if len(own) <= MOST else [name for name in own if name not in shared])
        return [options[name] for name in (*chosen[:MOST], HELP) if name in options]


def _options(command: click.Command, ctx: click.Context) -> dict[str, click.Option]:
    """Return the visible options by name; the name of --help differs between versions of click."""
    options = [param for param in command.get_params(ctx) if isinstance(param, click.Option) and not param.hidden]
    names = set(ctx.help_option_names)
    return {HELP if names & set(option.opts) else option.name or "": option for option in options}


def _put(formatter: click.HelpFormatter, text: str) -> None:
    indent = " " * formatter.current_indent
    formatter.write(click.wrap_text(" ".join(text.split()), formatter.width, indent, indent) + "\n")
