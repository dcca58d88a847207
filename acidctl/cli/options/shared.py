"""Options that several commands share, each defined once."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from acidctl.cli.options.amounts import DURATION
from acidctl.cli.options.places import DIRECTORY, FILE, NEW_FILE
from acidctl.cli.output.redact import HIDDEN, is_secret_name, remember_pair
from acidctl.storage.options import StorageOptions

F = TypeVar("F", bound=Callable[..., Any])


ROW_FORMS = ("jsonl", "json", "csv", "table", "parquet", "arrow")
EXPORT_FORMS = ("jsonl", "json", "csv", "table", "arrow", "parquet", "orc")
"""Forms of the commands that print rows; those of the second may go to where ORC is wanted, too."""

WHOLE_FILE = "Write to a new file, complete or not at all; without -o the end of its name tells the form."


typed_option = functools.partial(click.option, allow_from_autoenv=False)
"""An option that counts where it is typed, and that neither a file nor the environment may set: it waives a safeguard,
says what is true of one moment, or says what is to be done at all."""


def can_ask() -> bool:
    """Whether somebody is there to answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def examples(*lines: str) -> str:
    """An epilog of examples; ``\\b`` keeps click from wrapping it."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, in the order of the help."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def key_and_value(item: str, option: str) -> tuple[str, str]:
    """A ``KEY=VALUE`` of an option; raises BadParameter for what is none."""
    key, equals, value = item.partition("=")
    if not key or not equals:
        # The text itself is not shown: it may be a password.
        raise click.BadParameter("one of its values is not KEY=VALUE", param_hint=option)
    remember_pair(key, value)
    return key, value


def refuse_unused(beside: str, *names: str) -> None:
    """Refuse options of the command line that would be taken and change nothing.

    Args:
        beside: what makes them useless, ``--list``.
        names: of the command's parameters.

    Raises:
        UsageError: one of them was typed; what a file or the environment sets is for other lines, too.
    """
    context = click.get_current_context()
    typed = [
        param.opts[0] if isinstance(param, click.Option) else param.make_metavar(context)
        for param in context.command.params
        if param.name in names and context.get_parameter_source(param.name) == ParameterSource.COMMANDLINE
    ]
    if typed:
        raise click.UsageError(f"{beside} leaves nothing to do for {' and '.join(typed)}: leave it out.")


def output_option(*kinds: str, default: str) -> Callable[[F], F]:
    """``-o/--output``, with the forms a command knows."""
    return click.option(
        "-o", "--output", type=click.Choice(kinds), default=default, show_default=True, help="Form of the output."
    )


class BareOption(click.Option):
    """An option that may stand without a value, which then is another than the default; a value follows after ``=``.

    click would take the next word for the value; :func:`with_values` writes the value out before it looks.
    """

    def __init__(self, *args: Any, bare: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.bare = bare


def with_values(command: click.Command, words: list[str]) -> list[str]:
    """The words of a command line, with the values of its options that stand without one."""
    bare = {name: option.bare for option in command.params if isinstance(option, BareOption) for name in option.opts}
    end = words.index("--") if "--" in words else len(words)
    return [f"{word}={bare[word]}" if word in bare else word for word in words[:end]] + words[end:]


def snapshot_options(function: F) -> F:
    """The lists of Hive's, and what stands for them: passed on as the keyword `lists`, a SnapshotLists."""

    @typed_option(
        "--write-ids",
        metavar="STRING",
        help="Hive's valid write-id list, db.table:hwm:minOpen:open:aborted; of several tables txn$list$list.",
    )
    @typed_option(
        "--write-ids-from", metavar="FILE", type=FILE, help="The same from a file, a list a line; - is standard input."
    )
    @typed_option(
        "--table", "table_name", metavar="NAME", help="The table's name in the list, where the path does not show it."
    )
    @typed_option(
        "--valid-txns",
        metavar="STRING",
        help="Hive's valid transaction list: hwm:minOpen:open:aborted. Decides which _v directories count.",
    )
    @click.option(
        "--write-ids-form",
        type=click.Choice(["hive3", "hive2", "hive1"]),
        default="hive3",
        show_default=True,
        help="Form of --write-ids: hive2 is hwm:minOpen:exc:..., hive1 is hwm:exc:...",
    )
    @typed_option(
        "--assume-committed",
        cls=BareOption,
        bare="1h",
        type=DURATION,
        metavar="[=AGE]",
        help="Where no list says it: what is older than AGE (1h) counts as committed, and nothing from there on.",
    )
    @functools.wraps(function)
    def wrapper(
        *args: Any,
        write_ids: str | None,
        write_ids_from: str | None,
        table_name: str | None,
        valid_txns: str | None,
        write_ids_form: str,
        assume_committed: float | None,
        **kwargs: Any,
    ) -> Any:
        from acidctl.acid.assumption import Assumption  # noqa: PLC0415 - --help does without
        from acidctl.acid.writeids import Form  # noqa: PLC0415 - --help does without
        from acidctl.location.lists import read_lists  # noqa: PLC0415 - --help does without

        lists = read_lists(
            write_ids,
            write_ids_from=write_ids_from,
            valid_txns=valid_txns,
            form=Form(write_ids_form),
            table=table_name,
            assumption=None if assume_committed is None else Assumption(assume_committed),
        )
        return function(*args, lists=lists, **kwargs)

    return wrapper  # type: ignore[return-value]


_TOLD = ("write_ids", "write_ids_from", "table_name", "valid_txns", "write_ids_form", "assume_committed")


def snapshot_words() -> list[str]:
    """What this command was told of the snapshot, as words for the line of another one that must be told."""
    context = click.get_current_context()
    words = []
    for param in context.command.params:
        value = context.params.get(param.name or "")
        given = context.get_parameter_source(param.name or "") not in (None, ParameterSource.DEFAULT)
        if param.name in _TOLD and given and value is not None:
            shown = f"{value:f}".rstrip("0").rstrip(".") + "s" if param.name == "assume_committed" else value
            words.append(f"{param.opts[0]}={shown}")
    is_told = any(word.startswith(("--write-ids=", "--write-ids-from=", "--assume-committed=")) for word in words)
    return words if is_told else [*words, "--assume-committed"]


def storage_words() -> list[str]:
    """What this command was told of the store, as words for the line of another one; of secrets the names only."""
    words = []
    for item in click.get_current_context().params.get("storage_option") or ():
        key, _, value = item.partition("=")
        words.append(f"--storage-option={key}={HIDDEN if is_secret_name(key) else value}")
    return words


def global_words() -> list[str]:
    """What stood before the name of this command of configuration files and profiles."""
    root = click.get_current_context().find_root()
    return [
        f"{param.opts[0]}={root.params[param.name or '']}"
        for param in root.command.params
        if param.name in ("profile", "config_file")
        and root.get_parameter_source(param.name) is ParameterSource.COMMANDLINE
    ]


def storage_options(function: F) -> F:
    """``--storage-option k=v``: passed on as the keyword `storage`, a dictionary."""

    @click.option(
        "--storage-option",
        "storage_option",
        multiple=True,
        metavar="KEY=VALUE",
        help="An option for the storage: user, token, kerberos=true, keytab, principal, timeout=60, retries=3 (HDFS); "
        "key, secret, endpoint_url, timeout, retries (S3); whatever fsspec's file system takes. Repeatable.",
    )
    @functools.wraps(function)
    def wrapper(*args: Any, storage_option: tuple[str, ...], **kwargs: Any) -> Any:
        if storage_option and _all_local(kwargs):
            refuse_unused("the local disk", "storage_option")
        given = dict(key_and_value(item, "--storage-option") for item in storage_option)
        settings = click.get_current_context().find_root().meta.get("acidctl.settings")
        storage = StorageOptions(given, settings.storage_values() if settings else {})
        return function(*args, storage=storage, **kwargs)

    return wrapper  # type: ignore[return-value]


def _all_local(arguments: Mapping[str, Any]) -> bool:
    """Whether paths were given, and none of them is a URL of another store."""
    given = [arguments.get(name) or () for name in ("location", "locations", "paths", "files")]
    paths = [path for one in given for path in ((one,) if isinstance(one, str) else one)]
    return bool(paths) and all("://" not in path or path.lower().startswith(("file:", "local:")) for path in paths)


def changed_storage_options(function: F) -> F:
    """The same for a command that changes what is there: it goes through nobody's links, unless ``--follow-links``."""

    @typed_option(
        "--follow-links",
        is_flag=True,
        help="Go through symbolic links even if they lead to what is not their owner's.",
    )
    @storage_options
    @functools.wraps(function)
    def wrapper(*args: Any, follow_links: bool, storage: StorageOptions, **kwargs: Any) -> Any:
        storage.own_links = not follow_links
        return function(*args, storage=storage, **kwargs)

    return wrapper  # type: ignore[return-value]


def locations_argument(*, required: bool = True) -> Callable[[F], F]:
    """One or more locations, tables, databases or warehouses; ``--recursive`` is taken and changes nothing."""
    argument = click.argument("locations", nargs=-1, required=required, metavar="LOCATION...", type=DIRECTORY)
    recursive = click.option(
        "--recursive", is_flag=True, expose_value=False, help="Every location below LOCATION, too: always done."
    )
    return lambda function: argument(recursive(function))


def columns_option(function: F) -> F:
    """``--columns a,b``: passed on as the keyword `columns`, a list or None."""

    @click.option("--columns", metavar="NAMES", help="Only these columns, separated by commas, in this order.")
    @functools.wraps(function)
    def wrapper(*args: Any, columns: str | None, **kwargs: Any) -> Any:
        names = None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]
        if names is not None and not names:
            raise click.BadParameter("no column is named", param_hint="--columns")
        return function(*args, columns=names, **kwargs)

    return wrapper  # type: ignore[return-value]


def limit_option(function: F) -> F:
    """``--limit N``."""
    return click.option("--limit", type=click.IntRange(min=0), metavar="N", help="Stop after N rows.")(function)


def table_type_option(function: F) -> F:
    """``--table-type``."""
    return typed_option(
        "--table-type",
        type=click.Choice(["full-acid", "insert-only"]),
        help="What the table is, where its files do not show it; ORC without ACID columns may be either.",
    )(function)


def exit_code_option(function: F) -> F:
    """``--exit-code``."""
    return click.option("--exit-code", is_flag=True, help="Exit with 12 when there was nothing to do.")(function)


def lock_options(function: F) -> F:
    """``--lock``, ``--lock-wait`` and ``--break-lock``: passed on as the keyword `locking`, a Locking."""

    @click.option(
        "--lock/--no-lock",
        default=None,
        help="Hold the lock of each location meanwhile, so that two runs never meet: done where the store can.",
    )
    @click.option(
        "--lock-wait", type=DURATION, default="0", metavar="TIME", help="Wait so long for another run's lock, e.g. 10m."
    )
    @typed_option(
        "--break-lock",
        is_flag=True,
        help="Remove a lock that was torn, or is of another machine: its process has ended, you know.",
    )
    @functools.wraps(function)
    def wrapper(*args: Any, lock: bool | None, lock_wait: float, break_lock: bool, **kwargs: Any) -> Any:
        from acidctl.cli.output.console import warn  # noqa: PLC0415 - --help does without
        from acidctl.location.lock import Locking  # noqa: PLC0415 - --help does without

        if lock is False and (lock_wait or break_lock):
            raise click.UsageError("--no-lock takes no lock: leave out --lock-wait and --break-lock.")
        return function(*args, locking=Locking(lock, lock_wait, break_lock, warn), **kwargs)

    return wrapper  # type: ignore[return-value]


def report_options(function: F) -> F:
    """``--report`` and ``--metrics-file``: passed on as the keyword `run`, a RunReport to fill in.

    It goes first of all decorators below the command, so that what the others refuse is reported, too.
    """

    @click.option("--report", metavar="FILE", type=NEW_FILE, help="Write what was done, location by location, as JSON.")
    @click.option(
        "--metrics-file",
        metavar="FILE",
        type=NEW_FILE,
        help="Write figures of the run for Prometheus' node exporter; FILE ends in .prom.",
    )
    @functools.wraps(function)
    def wrapper(*args: Any, report: str | None, metrics_file: str | None, **kwargs: Any) -> Any:
        from acidctl.cli.report.run_files import recorded  # noqa: PLC0415 - --help does without

        with recorded(report, metrics_file) as run:
            status = function(*args, run=run, **kwargs)
            run.exit_status = status if isinstance(status, int) else 0
        return status

    return wrapper  # type: ignore[return-value]
