"""The entry point: a lazy command group and the one place where errors become exit statuses."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import click

from acidctl import __version__
from acidctl.cli.streams import ending_signals, standard_streams
from acidctl.errors import BROKEN_PIPE, INTERRUPTED, AcidctlError

COMPLETION = "_ACIDCTL_COMPLETE"
"""Set by the shells' completion scripts."""

SECTIONS: dict[str, dict[str, str]] = {
    "See": {
        "ls": "List directories with their state: current, obsolete, aborted, ignored.",
        "why": "Prove a directory's state, and say what cleaning waits for.",
        "cat": "Print the rows that a reader would see.",
        "dump": "Print the events of ORC files with their synthetic columns.",
        "meta": "Show what an ORC file's tail says.",
        "history": "Show what every write id did: rows inserted, updated, deleted.",
        "blame": "Show where a row was inserted, rewritten and deleted.",
        "diff": "Print the rows that changed between two write ids.",
    },
    "Compact and clean": {
        "compact": "Merge deltas: minor, major, or what the thresholds ask for.",
        "clean": "Remove obsolete and aborted directories, after showing the plan.",
        "restore": "Bring back what a cleaning run moved to the trash.",
        "purge": "Delete the trash of earlier cleaning runs for good.",
    },
    "Try and check": {
        "validate": "Check names, files and rows against the rules of the format.",
        "demo": "Write a table to try things on.",
        "doctor": "Show which Java, Spark and packages are used.",
    },
}
"""Every command with its one line; a command's module is imported when it is called, and not before."""

ALIASES = {"check": "validate"}
"""Other names of commands; help and man pages do not list them."""

SUMMARIES = {name: text for section in SECTIONS.values() for name, text in section.items()}

AFTER_INTERRUPT = {
    "compact": "run it again; what was staged is hidden and harmless",
    "clean": "run it again: it plans what is left",
    "restore": "run it again: it moves back what is left",
    "purge": "run it again: it deletes what is left",
}
"""What to do when a command that changes a table was interrupted."""


class LazyGroup(click.Group):
    """Commands by name from :data:`SECTIONS`; their modules are imported one at a time."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUMMARIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        cmd_name = ALIASES.get(cmd_name, cmd_name)
        if cmd_name not in SUMMARIES:
            return None
        command: click.Command = import_module(f"acidctl.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            # click compares with the commands that are loaded already: here there are none.
            from difflib import get_close_matches

            close = get_close_matches(args[0], SUMMARIES)
            if not close:
                raise
            raise click.UsageError(f"{error.message} Did you mean {' or '.join(map(repr, close))}?", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit statuses, examples and the JSON forms are in `man acidctl` and in the README.",
)
@click.option("--debug", is_flag=True, envvar="ACIDCTL_DEBUG", help="Show the trace of an error.")
@click.version_option(__version__, prog_name="acidctl")
def cli(debug: bool) -> None:
    """See, dump, compact and clean Apache Hive ACID tables, without Hive.

    \b
    Examples:
      acidctl ls /warehouse/sales.db/orders          what is current, what is obsolete, and why
      acidctl cat --row-id --limit 10 orders         the rows that Hive would return
      acidctl compact --major orders                 merge on Spark, local when no --master is given
      acidctl clean orders                           show what can go, ask, and move it to the trash
    """


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run acidctl and exit with the status of the error table."""
    given = list(sys.argv[1:] if args is None else args)
    debug = "--debug" in given or bool(os.environ.get("ACIDCTL_DEBUG"))
    with standard_streams(), ending_signals():
        # Wherever it stands: whoever meets an error appends it to the line.
        status = _run([arg for arg in given if arg != "--debug"], debug)
    sys.exit(status)


def _run(args: Sequence[str], debug: bool) -> int:
    try:
        if COMPLETION in os.environ:
            cli.main(prog_name="acidctl")
        # Not cli.main(), which ends a broken pipe with status 1.
        with cli.make_context("acidctl", list(args)) as context:
            result = cli.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return int(stop.exit_code)
    except click.ClickException as error:
        _show_usage(error)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        name = next((arg for arg in args if arg in SUMMARIES), "")
        _say("interrupted", "", AFTER_INTERRUPT.get(name, ""))
        return INTERRUPTED
    except BrokenPipeError:
        return BROKEN_PIPE
    except AcidctlError as error:
        if debug:
            _trace()
        _say(error.what, error.why, error.hint)
        return error.exit_status
    except Exception as error:  # noqa: BLE001 - the last resort: a bug is reported as one, without a wall of text
        if debug:
            _trace()
        _say(
            f"unexpected {type(error).__name__}: {error}",
            "this is a bug in acidctl",
            "run again with --debug, report it",
        )
        return AcidctlError.exit_status
    return result if isinstance(result, int) else 0


def _say(what: str, why: str, hint: str) -> None:
    from acidctl.cli.failures import show_error

    show_error(what, why, hint)


def _show_usage(error: click.ClickException) -> None:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)
        return
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f"see `{context.command_path} --help`" if context else ""
    _say(error.format_message(), "", hint)


def _trace() -> None:
    import traceback

    traceback.print_exc()
