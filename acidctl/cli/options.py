"""Options that several commands share, each defined once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])


class Place(click.types.StringParamType):
    """A path or a URL, as it was typed: shells complete it, and nothing looks whether it is there.

    `click.Path` looks, and would exit with 2 where the table of exit statuses has another status.
    """

    name = "path"

    def __init__(self, completed_as: str) -> None:
        self._completed_as = completed_as

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type=self._completed_as)]


class NewFile(Place):
    """A file that is written: not standard output, where the results go."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "-":
            self.fail("standard output holds the results: give a file, or ./- for one that is called so.", param, ctx)
        return super().convert(value, param, ctx)


DIRECTORY = Place("dir")
FILE = Place("file")
NEW_FILE = NewFile("file")


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
    from acidctl.cli.redact import remember_pair

    key, equals, value = item.partition("=")
    if not key or not equals:
        # The text itself is not shown: it may be a password.
        raise click.BadParameter("one of its values is not KEY=VALUE", param_hint=option)
    remember_pair(key, value)
    return key, value


def output_option(*kinds: str, default: str) -> Callable[[F], F]:
    """``-o/--output``, with the forms a command knows."""
    return click.option(
        "-o", "--output", type=click.Choice(kinds), default=default, show_default=True, help="Form of the output."
    )


def snapshot_options(function: F) -> F:
    """``--write-ids``, ``--valid-txns`` and ``--write-ids-form``: passed on as the keyword `lists`."""

    @click.option(
        "--write-ids",
        metavar="STRING",
        help="Hive's valid write-id list, db.table:hwm:minOpen:open:aborted. Without it all counts as committed.",
    )
    @click.option(
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
    @functools.wraps(function)
    def wrapper(*args: Any, write_ids: str | None, valid_txns: str | None, write_ids_form: str, **kwargs: Any) -> Any:
        from acidctl.cli.locations import SnapshotLists

        lists = SnapshotLists.parse(write_ids, valid_txns, write_ids_form)
        return function(*args, lists=lists, **kwargs)

    return wrapper  # type: ignore[return-value]


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
        from acidctl.storage.options import StorageOptions

        given = dict(key_and_value(item, "--storage-option") for item in storage_option)
        settings = click.get_current_context().find_root().meta.get("acidctl.settings")
        storage = StorageOptions(given, settings.storage_values() if settings else {})
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


def assume_committed_option(function: F) -> F:
    """``--assume-committed``."""
    text = "Count every _v directory as committed although no --valid-txns was given."
    return click.option("--assume-committed", is_flag=True, help=text)(function)


def exit_code_option(function: F) -> F:
    """``--exit-code``."""
    return click.option("--exit-code", is_flag=True, help="Exit with 12 when there was nothing to do.")(function)


def lock_options(function: F) -> F:
    """``--lock`` and ``--break-lock``."""
    return together(
        click.option(
            "--lock", is_flag=True, help="Hold the lock of each location meanwhile, so that two runs never meet."
        ),
        click.option(
            "--break-lock", is_flag=True, help="As --lock, and remove first the lock of a process that has ended."
        ),
    )(function)


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
        from acidctl.cli.run_files import recorded

        with recorded(report, metrics_file) as run:
            status = function(*args, run=run, **kwargs)
            run.exit_status = status if isinstance(status, int) else 0
        return status

    return wrapper  # type: ignore[return-value]
