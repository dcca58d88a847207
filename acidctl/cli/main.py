"""The entry point: the group of all commands, and the only place where errors become exit statuses."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NoReturn

import click

from acidctl import __version__
from acidctl.base.errors import AcidctlError, ExitStatus, UnexpectedError, unexpected
from acidctl.base.guardian import NOTES, watched
from acidctl.base.imports import forget_current_directory, leave_out_pandas
from acidctl.cli.command_table import AFTER_INTERRUPT, GOING_ON, SECTIONS, WATCHED, command_in
from acidctl.cli.groups import LazyGroup
from acidctl.cli.options.param_types import FILE
from acidctl.cli.options.set_option import SECTIONS_OF_SETTINGS, take_settings
from acidctl.cli.output.streams import ending_signals, standard_streams
from acidctl.cli.output.terminal import ERASE, VERBOSITY, is_dumb, own_stream

_SELDOM = 100_000
"""Collect garbage after this many new objects; Python's default is 700."""

COMPLETION = "_ACIDCTL_COMPLETE"
"""The variable that the completion scripts of shells set."""

GLOBAL = ("--profile", "--config", "--color", "--set")
"""Program options with a value; like --debug they may stand anywhere on the line."""

SWITCHES = ("-v", "--verbose", "-q", "--quiet")
"""Program options without a value."""

FLAGS = frozenset("vqnyrahV")
"""The letters of options without a value, of the program and of all commands."""


class Program(LazyGroup):
    """The group of all commands, whose own options may stand anywhere on the line."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_program_options_first(args))


@click.group(
    cls=Program,
    sections=SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit statuses, examples and the JSON forms are in `man acidctl`; the source has more in docs/.",
)
@click.option("--debug", is_flag=True, expose_value=False, envvar="ACIDCTL_DEBUG", help="Show the trace of an error.")
@click.option("-v", "--verbose", is_flag=True, help="Give every location, entry, file and finding its own line.")
@click.option(
    "-q",
    "--quiet",
    is_flag=True,
    help="Print only failures and single answers (a count), without progress; JSON is unaffected.",
)
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="auto: on terminals, unless NO_COLOR is set.",
)
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="SECTION.KEY=VALUE",
    envvar="ACIDCTL_SET",
    is_eager=True,  # its secrets are hidden before another option can be wrong
    expose_value=False,
    callback=take_settings,
    help="A setting as in the configuration file: metastore.auth, .principal, .ca, .timeout; storage.user, .token, "
    ".kerberos, .keytab, .principal, .timeout, .retries (HDFS), .key, .secret, .endpoint_url (S3), and whatever "
    "fsspec's file system takes. Repeatable.",
)
@click.option("--profile", metavar="NAME", envvar="ACIDCTL_PROFILE", help="Use this profile of the configuration.")
@click.option(
    "--config",
    "config_file",
    metavar="FILE",
    type=FILE,
    envvar="ACIDCTL_CONFIG",
    help="Read this file instead of the user's own; /dev/null for none.",
)
@click.version_option(__version__, "-V", "--version", prog_name="acidctl")
@click.pass_context
def cli(
    ctx: click.Context,
    verbose: bool,
    quiet: bool,
    color: str,
    profile: str | None,
    config_file: str | None,
) -> None:
    """See, change, compact, clean and migrate Apache Hive ACID tables, without Hive.

    \b
    Examples:
      acidctl ls /warehouse/sales.db/orders          what is current, what is obsolete, and why
      acidctl cat --row-id --limit 10 orders         the rows that Hive would return
      acidctl compact --major orders                 merge on Spark, local when no --master is given
      acidctl clean orders                           show what can go, ask, and move it to the trash
    """
    VERBOSITY.set(is_verbose=verbose, is_quiet=quiet, color=color)
    if ctx.invoked_subcommand == "completion":
        return  # shells call it at their start
    from acidctl.cli.config.setting_files import read_settings_file  # noqa: PLC0415 - --help does without
    from acidctl.cli.config.settings import settings_of  # noqa: PLC0415 - --help does without
    from acidctl.orc.limits import configure  # noqa: PLC0415 - --help does without

    try:
        settings = settings_of(read_settings_file(config_file), profile)
    except AcidctlError as error:
        if ctx.invoked_subcommand != "doctor" and not {"-h", "--help"} & set(ctx.obj or ()):
            raise
        ctx.meta["acidctl.settings_problem"] = error
        return
    ctx.default_map = settings.default_map()
    ctx.meta["acidctl.settings"] = settings
    if ctx.invoked_subcommand != "doctor":  # which tells a limit of the file from one of the environment
        configure({key: found.value for key, found in settings.below("limits").items()})


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run acidctl and exit with the status of the error table."""
    if args is None:
        forget_current_directory()
        leave_out_pandas()
        # A command keeps many small values and makes few cycles: collecting them takes a tenth of a large listing.
        gc.set_threshold(_SELDOM, *gc.get_threshold()[1:])
        # OpenBLAS, unused here, starts a thread per core, and ends the process if it may have no more threads.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    VERBOSITY.set()
    given = list(sys.argv[1:] if args is None else args)
    debug = VERBOSITY.has_traces = "--debug" in given or bool(os.environ.get("ACIDCTL_DEBUG"))
    has_crashed = args is None and _watched(given)
    try:
        with standard_streams(), ending_signals():
            # --debug may stand anywhere: users append it to a line that failed.
            line = with_program_options_first([arg for arg in given if arg != "--debug"])
            status = _run(line, debug, has_crashed)
    except KeyboardInterrupt:  # before the command began, or while its end was reported
        status = ExitStatus.INTERRUPTED
    # A KeyboardInterrupt inside exec(), which every dataclass uses, counts as uncaught for Python, and ``python -m``
    # ends by SIGINT instead of with this status.  Another exec() that succeeds resets that.
    exec("")
    if NOTES.shared is None and not (args is None and status == ExitStatus.INTERRUPTED):
        sys.exit(status)
    # Freeing every object would first copy the memory that this process shares with its parent. After Ctrl-C, Python
    # would wait for threads that wait for a store.
    atexit._run_exitfuncs()
    os._exit(status)


def _watched(given: Sequence[str]) -> bool:
    """Continue in a child if the command reads files; return whether this is the parent of a child that crashed.

    Another program that calls :func:`main` is not forked.
    """
    name, program = command_in(given), sys.modules["__main__"]
    is_module = program.__spec__ is not None and program.__spec__.name == "acidctl.__main__"
    is_ours = is_module or os.path.basename(getattr(program, "__file__", "")) == "acidctl"  # noqa: PTH119 - not loaded
    if not is_ours or name not in WATCHED or COMPLETION in os.environ or not {"-h", "--help"}.isdisjoint(given):
        return False
    # Standard input can be read only once.
    goes_on = name in GOING_ON and not any(arg == "-" or arg.endswith("=-") for arg in given)
    has_crashed = watched(ends_hanging=goes_on)
    if has_crashed and goes_on and not NOTES["written"]:
        NOTES.before = str(NOTES.error)
        has_crashed = watched()
    return has_crashed


def with_program_options_first(args: Sequence[str]) -> list[str]:
    """Return the line with the program options before the command, where click expects them.

    ``help ls`` becomes ``ls --help``.
    """
    ours: list[str] = []
    rest: list[str] = []
    is_update = command_in(args) == "update"
    remaining = iter(args)
    for arg in remaining:
        moved, left = _split(arg)
        if arg == "--":
            rest += [arg, *remaining]
        elif arg in SWITCHES:
            ours.append(arg)
        elif moved:
            ours += moved
            rest += left
        elif arg in GLOBAL:
            values = [value for value in (next(remaining, None),) if value is not None]
            (rest if is_update and arg == "--set" and _is_sql(values) else ours).extend([arg, *values])
        elif is_update and arg.startswith("--set=") and _is_sql([arg.removeprefix("--set=")]):
            rest.append(arg)
        else:
            (ours if arg.startswith(tuple(f"{name}=" for name in GLOBAL)) else rest).append(arg)
    return ours + (rest if rest[:1] != ["help"] else [*rest[1:], "--help"])


def _is_sql(values: Sequence[str]) -> bool:
    """Return whether the value of ``--set`` is the SQL of an update, and not a setting like ``storage.region=x``."""
    return not values or not values[0].startswith(tuple(f"{section}." for section in SECTIONS_OF_SETTINGS))


def _split(arg: str) -> tuple[list[str], list[str]]:
    """Return the program's options in a cluster of short flags, and what is left of it: ``-v`` and ``-n`` of ``-nv``.

    A word, and a cluster with a letter that takes a value, such as ``-ojsonl``, are left as they are: both are empty.
    """
    letters = arg[1:]
    if arg[:1] != "-" or len(letters) < 2 or not set(letters) <= FLAGS or {"v", "q"}.isdisjoint(letters):
        return [], []
    left = "".join(letter for letter in letters if letter not in "vq")
    return [f"-{letter}" for letter in letters if letter in "vq"], [f"-{left}"] * bool(left)


def _run(args: Sequence[str], debug: bool, has_crashed: bool) -> int:
    try:
        if has_crashed:
            _clear_up()
            raise NOTES.error
        if COMPLETION in os.environ:
            cli.main(prog_name="acidctl")
        # Not cli.main(), which ends a broken pipe with status 1.
        with cli.make_context("acidctl", list(args), obj=tuple(args)) as context, _listings():
            result = cli.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return int(stop.exit_code)
    except click.ClickException as error:
        _show_usage(error)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        _say_interrupted(AFTER_INTERRUPT.get(command_in(args), ""))
        return ExitStatus.INTERRUPTED
    except BrokenPipeError:
        return ExitStatus.BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 - the last resort: a bug is reported as one, without a wall of text
        problem = unexpected(error)
        if debug:
            _trace(problem)
        _say(problem.what, problem.why, problem.hint)
        return problem.exit_status
    return result if isinstance(result, int) else 0


def _listings() -> AbstractContextManager[None]:
    if not sys.stderr.isatty():
        return nullcontext()
    from acidctl.cli.output.progress import listings  # noqa: PLC0415 - only on a terminal

    return listings()


def _clear_up() -> None:
    """Remove the last line of the terminal that a crashed command left."""
    if sys.stderr.isatty() and not is_dumb():
        own_stream(sys.stderr).write(ERASE)


def _say(what: str, why: str = "", hint: str = "") -> None:
    from acidctl.cli.output.console import show_error  # noqa: PLC0415 - only a failure needs it

    show_error(what, why, hint)


def _say_interrupted(hint: str) -> None:
    """Print one line below the ^C of the terminal."""
    if sys.stderr.isatty():
        click.echo(err=True)
    _say(f"interrupted; {hint}" if hint else "interrupted")


def _show_usage(error: click.ClickException) -> None:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)
        return
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f"see `{context.command_path} --help`" if context else ""
    _say(error.format_message(), _source_of(error), hint)


def _source_of(error: click.ClickException) -> str:
    """Return where a bad value comes from, if not from the command line."""
    if not isinstance(error, click.BadParameter) or error.ctx is None or error.param is None:
        return ""
    from acidctl.cli.config.settings import source_of  # noqa: PLC0415 - only a failure needs it

    return source_of(error.ctx, error.param)


def _trace(error: AcidctlError) -> None:
    import traceback  # noqa: PLC0415 - only --debug needs it

    from acidctl.cli.output.console import show_trace  # noqa: PLC0415 - only --debug needs it

    show_trace(error.trace if isinstance(error, UnexpectedError) else traceback.format_exc())
