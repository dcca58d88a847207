"""Commands made from the options of a verb: every field of the dataclass becomes an option of click."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import click

from acidctl.base.deadline import duration_text
from acidctl.base.errors import AcidctlError
from acidctl.base.guardian import NOTES
from acidctl.cli.options import shared
from acidctl.cli.options.param_types import (
    COUNT,
    DIRECTORY,
    DURATION,
    DURATION_OR_SECONDS,
    FILE,
    NEW_FILE,
    SIZE,
    WRITE_ID_OR_TIME,
    NumberType,
    comma_separated,
)
from acidctl.cli.options.set_option import key_and_value, parts_of
from acidctl.location.arguments import FromMetastore, at_its_line, is_hive_name
from acidctl.verbs.options import REQUIRED, Kind, Option, declared, made

if TYPE_CHECKING:
    from dataclasses import Field

    from acidctl.cli.report.run_figures import RunFigures
    from acidctl.cli.report.verb_screen import Screen
    from acidctl.verbs.selection import Selection

OptionsT = TypeVar("OptionsT")
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

_TYPES: dict[Kind, Any] = {
    Kind.DURATION: DURATION,
    Kind.SECONDS: DURATION_OR_SECONDS,
    Kind.SIZE: SIZE,
    Kind.COUNT: COUNT,
    Kind.MOMENT: WRITE_ID_OR_TIME,
    Kind.FILE: FILE,
    Kind.NEW_FILE: NEW_FILE,
    Kind.DIRECTORY: DIRECTORY,
}
_METAVARS = {
    Kind.PAIRS: "KEY=VALUE", Kind.COLUMNS: "KEY=VALUE", Kind.NAMES: "NAMES", Kind.MOMENT: "WRITE_ID|TIME",
    Kind.FILE: "FILE", Kind.NEW_FILE: "FILE",
}  # fmt: skip
"""How the help names the value of an option, unless the option says it."""


@dataclass(frozen=True)
class Call(Generic[OptionsT]):
    """A parsed command line.

    Attributes:
        selection: the locations that it names.
        output: the form that ``-o`` gives.
        run: takes the result of each location, for ``--metrics-file``; None without that option.
        yes: do not ask.
        exit_code: use an exit status of its own if there was nothing to do.
    """

    selection: Selection
    options: OptionsT
    output: str
    run: RunFigures | None = None
    yes: bool = False
    exit_code: bool = False

    def screen(self, *, is_plan: bool, nothing: str = "") -> Screen:
        """Return what shows the outcomes of the verb.

        Args:
            is_plan: the options only plan.
            nothing: the note if there was nothing at all.
        """
        from acidctl.cli.report.run_figures import RunFigures  # noqa: PLC0415 - --help does without
        from acidctl.cli.report.verb_screen import Screen  # noqa: PLC0415 - --help does without

        return Screen(
            self.output,
            self.run or RunFigures(""),
            yes=self.yes,
            is_plan=is_plan,
            exit_code=self.exit_code,
            given=self.selection.places,
            nothing=nothing,
        )

    def show(self, verb: Callable[..., Any], *more: Any) -> int:
        """Run a verb that has a dry run, show its outcomes, and return the exit status.

        Args:
            more: further arguments of the verb.
        """
        options: Any = self.options
        screen = self.screen(is_plan=options.dry_run)
        return screen.show(verb(self.selection, options, screen, *more))


def verb_command(
    name: str,
    options: type[OptionsT] | None,
    place: Decorator | None = None,
    source: Decorator | None = shared.snapshot_options,
    extras: Sequence[Decorator] = (),
    forms: Sequence[str] = ("table", "json", "jsonl", "csv"),
    changes: bool = False,
    asks: bool = False,
    records: bool = False,
    isolates: bool | str = False,
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make the command of a verb, whose body gets a :class:`Call`, and further options by their names.

    Args:
        options: the options of the verb; None for a verb without any.
        place: the argument that names what is read or changed; by default locations.
        source: the options of the snapshot, or of names in a metastore; None without.
        extras: further options.
        forms: of the output, the default first.
        changes: the command changes locations: it follows no foreign links, and isolates its readers.
        asks: add ``--yes``.
        records: add ``--metrics-file`` and ``--accept-fewer``, for what a scheduler runs.
        isolates: read each file in a separate process that may crash; or the parameter that decides. Other commands are
            watched (:mod:`acidctl.base.guardian`), and isolated after a crash.
    """
    names = {field.name for _, field, _ in declared(options)} if options else set()

    def decorate(body: Callable[..., Any]) -> click.Command:
        @functools.wraps(body)
        def call(
            *,
            storage: dict[str, str],
            output: str,
            location: str | None = None,
            locations: tuple[str, ...] = (),
            run: RunFigures | None = None,
            yes: bool = False,
            resolver: Any = None,
            table_type: str | None = None,
            exit_code: bool = False,
            **values: Any,
        ) -> Any:
            from acidctl.acid.listing import TableType  # noqa: PLC0415 - --help does without
            from acidctl.location.snapshot_resolver import SnapshotResolver  # noqa: PLC0415 - --help does without
            from acidctl.verbs.selection import Selection  # noqa: PLC0415 - --help does without

            places = _expanded(locations, storage) if location is None else (location,)
            kind = TableType(table_type) if table_type else None
            typed = locations if places != locations else ()
            selection = Selection(places, storage, resolver or SnapshotResolver(), kind, typed)
            chosen: Any = made(options, values) if options else None
            rest = {name: value for name, value in values.items() if name not in names}
            if NOTES.before:
                from acidctl.cli.output.console import warn  # noqa: PLC0415 - only after a crash

                warn(f"{NOTES.before}: beginning again, with each file read in a separate process", is_failure=True)
            apart = NOTES.before or changes or (values[isolates] if isinstance(isolates, str) else isolates)
            with NOTES.isolated() if apart else nullcontext():
                return body(Call(selection, chosen, output, run, yes, exit_code), **rest)

        built: Any = shared.together(
            *([shared.metrics_options] if records else []),
            place or shared.locations_argument(),
            *(options_of(options, asks=asks) if options else []),
            *extras,
            *([source] if source else []),
            functools.partial(shared.storage_options, changes=changes),
            shared.output_option(*forms, default=forms[0]),
        )(call)
        return shared.command(name)(built)

    return decorate


def _expanded(places: tuple[str, ...], storage: Mapping[str, str]) -> tuple[str, ...]:
    """Return the places with the patterns in paths and URLs expanded; those of names are the metastore's."""
    from acidctl.storage.globs import expanded  # noqa: PLC0415 - --help does without

    found = list[str]()
    for place in places:
        try:
            found += (place,) if is_hive_name(place) or isinstance(place, FromMetastore) else expanded(place, storage)
        except AcidctlError as error:
            raise at_its_line(error, place) from None
    return tuple(found)


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
    elif face.kind in _PAIRS:
        more = {"multiple": True, "callback": _PAIRS[face.kind]}
    elif face.kind is Kind.LIST:
        more |= {"multiple": True}
    elif face.kind is Kind.NAMES:
        more |= {"callback": comma_separated}
    if (metavar := face.metavar or _METAVARS.get(face.kind)) and face.kind is not Kind.NUMBER:
        more["metavar"] = metavar
    default = duration_text(field.default) if isinstance(field.default, float) else field.default
    if default is REQUIRED:
        more["required"] = True
    elif face.kind not in (*_PAIRS, Kind.LIST):
        more["default"] = default
    make = shared.typed_option if face.typed else click.option
    # Without a default of its own, an option shows the one that a file sets.
    shows = face.kind is not Kind.FLAG and default is not REQUIRED and (default is None or bool(default))
    return make(*face.flags, field.name, show_default=shows, help=face.help, **more)


def _pairs(_: click.Context, param: click.Parameter, items: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple(key_and_value(item, param.opts[0]) for item in items)


def _columns(_: click.Context, param: click.Parameter, items: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple(parts_of(item, param.opts[0]) for item in items)


_PAIRS = {Kind.PAIRS: _pairs, Kind.COLUMNS: _columns}
