"""Options that several commands share."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.core import ParameterSource

from acidctl.base.errors import AcidctlError, NotLookedAtError
from acidctl.cli.options.help_pages import GroupedCommand
from acidctl.cli.options.metastore import (
    exclude_option,
    metastore_options,
    read_lock_option,
    refuse_untyped_none,
    warehouse_of,
)
from acidctl.cli.options.param_types import COUNT_OR_NONE, DURATION, FILE, LOCATION, NEW_FILE
from acidctl.cli.options.set_option import assigned, refuse_assigned, takes_storage
from acidctl.cli.options.tables_file import place_argument, places_from, tables_option
from acidctl.location.arguments import at_its_line, is_hive_name
from acidctl.storage.options import StorageOptions

if TYPE_CHECKING:
    from acidctl.location.snapshot_resolver import SnapshotResolver

F = TypeVar("F", bound=Callable[..., Any])
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


ROW_FORMS = ("jsonl", "json", "csv", "table", "parquet", "arrow")
EXPORT_FORMS = ("jsonl", "json", "csv", "table", "arrow", "parquet", "orc")
"""Output forms of commands that print rows; the export forms include ORC."""

_MOST_BYTES = 64 << 20
"""The longest text of lists that is read."""

typed_option = functools.partial(click.option, allow_from_autoenv=False)
"""An option that only the command line may set, not a file or the environment: it waives a safeguard, holds only for
one moment, or decides what to do at all."""


def command(name: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Return a decorator that makes a command; its examples are in ``examples.txt``."""
    return click.command(name, cls=GroupedCommand)


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return several options as one decorator, in the order of the help."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def passed_as(
    keyword: str, make: Callable[..., Any], *options: Callable[[F], F], takes: tuple[str, ...] = ()
) -> Callable[[F], F]:
    """Return several options as one decorator: the command gets one keyword instead of their values.

    Args:
        make: returns the value of the keyword from the values of the options, by the names of their parameters.
        takes: the names of the parameters, if the signature of `make` does not have them.
    """
    names = takes or tuple(inspect.signature(make).parameters)

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def wrapper(*args: Any, **given: Any) -> Any:
            made = make(**{name: given.pop(name) for name in names})
            return function(*args, **given, **{keyword: made})

        return together(*options)(cast("F", wrapper))

    return decorate


def refuse_unused(beside: str, *names: str) -> None:
    """Refuse options of the command line that would be taken and change nothing.

    Args:
        beside: the option that makes them useless, ``--list``.
        names: parameters of the command.

    Raises:
        UsageError: one of them was typed; values from a file or the environment are meant for other lines as well.
    """
    context = click.get_current_context()
    typed = [
        param.opts[0] if isinstance(param, click.Option) else param.make_metavar(context)
        for param in context.command.params
        if param.name in names and context.get_parameter_source(param.name) == ParameterSource.COMMANDLINE
    ]
    if typed:
        raise click.UsageError(f"{' and '.join(typed)} has no effect with {beside}: leave it out.")


def output_option(*kinds: str, default: str) -> Callable[[F], F]:
    """Return ``-o/--output`` with these forms."""
    return click.option(
        "-o", "--output", type=click.Choice(kinds), default=default, show_default=True, help="Form of the output."
    )


def _resolver(
    snapshot: str | None,
    assume_committed: float | None,
    metastore: str | None,
    exclude: tuple[str, ...] = (),
    read_lock: bool = False,
) -> SnapshotResolver:
    from acidctl.acid.assumed_commits import Assumption  # noqa: PLC0415 - --help does without
    from acidctl.location.snapshot_resolver import SnapshotResolver, SnapshotSpec  # noqa: PLC0415 - as above

    spec = SnapshotSpec() if snapshot is None else SnapshotSpec.parse(*_lists_of(snapshot))
    if assume_committed is not None:
        refuse_untyped_none(metastore)
        spec = replace(spec, assumption=Assumption(assume_committed))
    return SnapshotResolver(spec, warehouse_of(metastore, exclude, read_lock=read_lock))


def _lists_of(snapshot: str) -> tuple[str, str]:
    """Return the text of Hive's lists, and how to name its source in errors."""
    from acidctl.acid.writeids import WriteIdListError  # noqa: PLC0415 - --help does without
    from acidctl.cli.output.console import note_if_typed  # noqa: PLC0415 - --help does without
    from acidctl.storage.os_errors import mapped  # noqa: PLC0415 - --help does without

    if snapshot == "-":
        note_if_typed("lists of write ids")
        return sys.stdin.read(_MOST_BYTES), "standard input"
    if not snapshot.startswith("@"):
        return snapshot, "--snapshot"
    path = FILE.convert(snapshot[1:], None, None)
    try:
        with mapped("read", path), Path(path).open("rb") as file:
            data = file.read(_MOST_BYTES)
        return data.decode(), path
    except UnicodeDecodeError as error:
        raise WriteIdListError(f"cannot use {path}", "it is not text", "give a file with Hive's lists") from error


def _by_path(locations: tuple[str, ...], metastore: str | None, exclude: tuple[str, ...]) -> tuple[str, ...]:
    if not any(map(is_hive_name, locations)):
        return locations
    from acidctl.cli.output.console import warn  # noqa: PLC0415 - --help does without
    from acidctl.location.arguments import HiveName  # noqa: PLC0415 - --help does without
    from acidctl.location.snapshot_resolver import SnapshotResolver  # noqa: PLC0415 - --help does without

    resolver = SnapshotResolver(warehouse=warehouse_of(metastore, exclude))
    found: list[str] = []
    empty: list[str] = []
    for text in locations:
        if not is_hive_name(text):
            found.append(text)
            continue
        try:
            urls = list(resolver.require_warehouse(text).urls(HiveName.parse(text)))
        except AcidctlError as error:
            raise at_its_line(error, text) from error
        found += urls
        empty += [] if urls else [text]
    if empty and not found:
        raise NotLookedAtError(f"nothing was looked at in {' '.join(empty)}", "there are no partitions", "")
    if empty:
        warn(f"nothing was looked at in {' '.join(empty)}: there are no partitions")
    return tuple(found)


named_locations = passed_as("locations", _by_path, *metastore_options, exclude_option)
"""For commands without a snapshot: names of tables among `locations` are replaced by their paths."""


def snapshot_of(*more: str) -> Callable[[F], F]:
    """Return the options of a snapshot.

    Args:
        more: ``exclude`` for a command that takes many tables, ``read_lock`` for a command that reads rows.
    """
    further = {"exclude": exclude_option, "read_lock": read_lock_option}
    return passed_as(
        "resolver",
        _resolver,
        typed_option(
            "--snapshot",
            metavar="TEXT|@FILE|-",
            help="Hive's valid write-id lists, one per line or txn$list$list: db.table:hwm:minOpen:open:aborted. A "
            "line txns=hwm:minOpen:open:aborted decides which _v directories count.",
        ),
        typed_option(
            "--assume-committed",
            type=DURATION,
            metavar="AGE",
            help="Treat all that was last written more than AGE ago (1h) as committed, up to the first younger "
            "directory. Refused if a metastore knows the table, unless --metastore none is typed as well.",
        ),
        *metastore_options,
        *(further[name] for name in more),
        takes=("snapshot", "assume_committed", "metastore", *more),
    )


snapshot_options = snapshot_of("exclude")
"""Hive's lists of write ids and transactions, or their sources: passed on as the keyword `resolver`."""


def _storage(*, changes: bool = False) -> StorageOptions:
    context = click.get_current_context()
    if _is_all_local(context.params):
        refuse_assigned("the local disk", "storage")
    settings = context.find_root().meta.get("acidctl.settings")
    storage = StorageOptions(assigned("storage"), settings.storage_values() if settings else {})
    storage.own_links = changes
    return storage


def _is_all_local(arguments: dict[str, Any]) -> bool:
    given = [arguments.get(name) or () for name in ("location", "locations", "paths", "files")]
    paths = [path.lower() for value in given for path in ((value,) if isinstance(value, str) else value)]
    local = (path.startswith(("file:", "local:")) or ("://" not in path and not is_hive_name(path)) for path in paths)
    return bool(paths) and all(local)


def storage_options(function: Callable[..., Any], *, changes: bool = False) -> Callable[..., Any]:
    """Pass on the settings of stores as the keyword `storage`, a dictionary; `changes` follows no foreign links."""
    takes_storage(function)
    keyword: Decorator = passed_as("storage", lambda: _storage(changes=changes))
    return keyword(function)


def locations_argument(*, required: bool = True) -> Callable[[F], F]:
    """Take locations, tables, databases or warehouses."""
    return places_argument("locations", "LOCATION...", required=required)


def places_argument(name: str, metavar: str, *, required: bool = True, only_names: bool = False) -> Callable[[F], F]:
    """Return an argument for names or paths, and ``--tables`` for a list of them; passed on under one name.

    Args:
        only_names: accept no paths.
    """
    argument = place_argument(name, metavar, required=required)
    places = places_from(name, only_names=only_names)
    return passed_as(name, places, argument, tables_option, takes=(name, "tables_file"))


def one_place(metavar: str) -> Decorator:
    """Return the argument of a command that takes one location or table."""
    return click.argument("location", metavar=metavar, type=LOCATION)


limit_option = click.option("--limit", type=COUNT_OR_NONE, help="Stop after N rows.")
table_type_option = typed_option(
    "--table-type",
    type=click.Choice(["full-acid", "insert-only"]),
    help="Type of the table, if its files do not show it: ORC without ACID columns may be either.",
)
exit_code_option = click.option("--exit-code", is_flag=True, help="Exit with 12 when there was nothing to do.")
yes_option = typed_option("-y", "--yes", is_flag=True, help="Do not ask.")


retention_option = click.option(
    "--older-than",
    type=DURATION,
    default="24h",
    show_default=True,
    help="Retention: count as cleanable only what has been obsolete for this long.",
)


def metrics_options(function: F) -> F:
    """Add ``--metrics-file`` and ``--accept-fewer``, passed on as the keyword `run`, a RunFigures to fill.

    This must be the first decorator below the command, so that refusals of the others count as well.
    """

    @click.option(
        "--metrics-file",
        metavar="FILE",
        type=NEW_FILE,
        help="Write figures of the run for Prometheus' node exporter; FILE ends in .prom.",
    )
    @typed_option(
        "--accept-fewer",
        is_flag=True,
        help="Accept fewer locations than the last recorded run found, and record the new number.",
    )
    @functools.wraps(function)
    def wrapper(*args: Any, metrics_file: str | None, accept_fewer: bool, **kwargs: Any) -> Any:
        from acidctl.cli.report.run_files import recorded  # noqa: PLC0415 - --help does without

        with recorded(metrics_file, accepts_fewer=accept_fewer) as run:
            status = function(*args, run=run, **kwargs)
            run.exit_status = status if isinstance(status, int) else 0
        return status

    return wrapper  # type: ignore[return-value]


def _in_metastore(metastore: str | None) -> SnapshotResolver:
    from acidctl.location.snapshot_resolver import SnapshotResolver  # noqa: PLC0415 - --help does without

    return SnapshotResolver(warehouse=warehouse_of(metastore))


table_options = passed_as("resolver", _in_metastore, *metastore_options)
"""For commands that change a table of a metastore: passed on as the keyword `resolver`."""
