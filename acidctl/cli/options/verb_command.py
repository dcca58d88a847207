"""Commands made from the options of a verb: every field of the dataclass becomes an option of click."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import click

from acidctl.base.guardian import NOTES
from acidctl.cli.options import shared
from acidctl.cli.options.local_completion import complete_columns, complete_partitions, complete_rules, complete_runs
from acidctl.cli.options.param_types import (
    COUNT,
    DIRECTORY,
    DURATION,
    FILE,
    NEW_FILE,
    SIZE,
    WINDOW,
    NumberType,
)
from acidctl.cli.options.set_option import key_and_value
from acidctl.verbs.options import REQUIRED, Kind, Option, declared, made

if TYPE_CHECKING:
    from dataclasses import Field

    from acidctl.cli.report.run_report import RunReport
    from acidctl.verbs.selection import Selection

OptionsT = TypeVar("OptionsT")
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

_TYPES: dict[Kind, Any] = {
    Kind.DURATION: DURATION,
    Kind.SIZE: SIZE,
    Kind.COUNT: COUNT,
    Kind.WINDOW: WINDOW,
    Kind.FILE: FILE,
    Kind.NEW_FILE: NEW_FILE,
    Kind.DIRECTORY: DIRECTORY,
}
_COMPLETES = {
    "runs": complete_runs,
    "columns": complete_columns,
    "partitions": complete_partitions,
    "rules": complete_rules,
}


@dataclass(frozen=True)
class Call(Generic[OptionsT]):
    """A parsed command line.

    Attributes:
        selection: the locations that it names.
        run: takes the result of each location, for ``--report``.
        yes: do not ask.
        exit_code: use an exit status of its own if there was nothing to do.
    """

    selection: Selection
    options: OptionsT
    run: RunReport
    output: str
    yes: bool
    exit_code: bool


def changing_command(
    name: str,
    options: type[OptionsT],
    *examples: str,
    places: Decorator = shared.snapshot_options,
    extras: Sequence[Decorator] = (),
    main: Sequence[str] = (),
    needs_places: bool = True,
    asks: bool = True,
    records: bool = True,
) -> Callable[[Callable[[Call[OptionsT]], int]], click.Command]:
    """Make a command that changes locations: it names places, may ask, and writes reports.

    Args:
        options: the options of the verb.
        places: the options for the snapshot, or for names in a metastore.
        extras: further options.
        main: the parameters whose options ``-h`` shows.
        needs_places: refuse a line without locations.
        asks: add ``--yes``.
        records: add ``--report`` and ``--metrics-file``, for what a scheduler runs.
    """

    def decorate(body: Callable[[Call[OptionsT]], int]) -> click.Command:
        @functools.wraps(body)
        def call(
            *,
            locations: tuple[str, ...],
            storage: dict[str, str],
            run: RunReport,
            output: str,
            yes: bool = False,
            resolver: Any = None,
            table_type: Any = None,
            exit_code: bool = False,
            **values: Any,
        ) -> int:
            from acidctl.location.snapshot_resolver import SnapshotResolver  # noqa: PLC0415 - --help does without
            from acidctl.verbs.selection import Selection  # noqa: PLC0415 - --help does without

            selection = Selection(locations, storage, resolver or SnapshotResolver(), table_type)
            with NOTES.isolated():  # a file that crashes its native reader is a damaged file
                return body(Call(selection, made(options, values), run, output, yes, exit_code))

        built: Any = shared.together(
            shared.report_options if records else shared.unrecorded,
            shared.locations_argument(required=needs_places),
            *options_of(options, asks=asks),
            *extras,
            places,
            shared.changed_storage_options,
            shared.verbosity_options,
            shared.output_option("table", "json", "jsonl", default="table"),
        )(call)
        return shared.command(name, *examples, main=main)(built)

    return decorate


def options_of(kind: type[Any], *, asks: bool = False) -> list[Decorator]:
    """Return the options of a dataclass in its order; if the command asks, ``--yes`` follows ``--dry-run``."""
    options: list[Decorator] = []
    for _, field, face in declared(kind):
        options.append(_option(field, face))
        if asks and field.name == "dry_run":
            options.append(shared.yes_option)
    return options


def _option(field: Field[Any], face: Option) -> Decorator:
    if face.kind is Kind.ARGUMENT:
        return click.argument(field.name, metavar=face.metavar)
    more: dict[str, Any] = {"type": click.Choice(face.choices) if face.choices else _TYPES.get(face.kind)}
    if face.kind is Kind.FLAG and not any("/" in flag for flag in face.flags):
        more = {"is_flag": True}
    elif face.kind is Kind.NUMBER:
        more = {"type": NumberType(face.metavar or "N", face.least, face.most)}
    elif face.kind is Kind.PAIRS:
        more = {"multiple": True, "callback": _pairs}
    elif face.kind is Kind.LIST:
        more |= {"multiple": True}
    elif face.kind is Kind.NAMES:
        more |= {"callback": _names}
    if face.metavar and face.kind is not Kind.NUMBER:
        more["metavar"] = face.metavar
    if face.completes:
        more["shell_complete"] = _COMPLETES[face.completes]
    if field.default is REQUIRED:
        more["required"] = True
    elif face.kind not in (Kind.PAIRS, Kind.LIST):
        more["default"] = field.default if face.shown is None else face.shown
    make = shared.typed_option if face.typed else click.option
    # Without a default of its own, an option shows the one that a file sets.
    shows = face.shown is not None or (field.default is None and face.kind is not Kind.FLAG)
    return make(*face.flags, field.name, show_default=shows, help=face.help, **more)


def _names(_: click.Context, param: click.Parameter, text: str | None) -> tuple[str, ...] | None:
    names = None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())
    if names == ():
        raise click.BadParameter("no column is named", param_hint=param.opts[0])
    return names


def _pairs(_: click.Context, param: click.Parameter, items: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple(key_and_value(item, param.opts[0]) for item in items)
