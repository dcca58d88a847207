"""Commands that read: made from the options of a verb, with those of a snapshot, of the storage and of the output."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import click

from acidctl.cli.options import shared
from acidctl.cli.options.param_types import LOCATION, NEW_FILE
from acidctl.cli.options.verb_command import Decorator, options_of
from acidctl.verbs.options import made

if TYPE_CHECKING:
    from acidctl.verbs.selection import Selection

OptionsT = TypeVar("OptionsT")

out_option = click.option("--out", type=NEW_FILE, metavar="PATH", help=shared.WHOLE_FILE)


@dataclass(frozen=True)
class Reading(Generic[OptionsT]):
    """A parsed command line.

    Attributes:
        selection: what it names.
        output: the form that ``-o`` gives.
    """

    selection: Selection
    options: OptionsT
    output: str


def one_place(metavar: str) -> Decorator:
    """Return the argument of a command that takes one location or table."""
    return click.argument("location", metavar=metavar, type=LOCATION)


def row_command(
    name: str,
    options: type[OptionsT] | None,
    *examples: str,
    place: Decorator,
    forms: Sequence[str],
    more: tuple[str, ...] | None = ("read_lock",),
    extras: Sequence[Decorator] = (),
    pages: bool = True,
    isolates: bool | str = False,
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command that reads.

    Args:
        options: the options of the verb; None for a verb without any.
        place: the argument that names what is read.
        forms: of the output, the default first.
        more: see :func:`acidctl.cli.options.shared.reading_options`; None for a command without a snapshot.
        extras: further options, which are passed on by their names.
        pages, isolates: see :func:`acidctl.cli.options.shared.runs`.
    """
    names = {field.name for field in fields(options)} if options else set()  # type: ignore[arg-type]

    def decorate(body: Callable[..., Any]) -> click.Command:
        @functools.wraps(body)
        def call(
            *,
            storage: dict[str, str],
            output: str,
            resolver: Any = None,
            location: str | None = None,
            locations: tuple[str, ...] = (),
            **values: Any,
        ) -> Any:
            from acidctl.location.snapshot_resolver import SnapshotResolver  # noqa: PLC0415 - --help does without
            from acidctl.verbs.selection import Selection  # noqa: PLC0415 - --help does without

            places = locations if location is None else (location,)
            selection = Selection(places, storage, resolver or SnapshotResolver())
            rest = {name: value for name, value in values.items() if name not in names}
            return body(Reading(selection, made(options, values) if options else None, output), **rest)

        output_options = (
            (shared.storage_options, shared.output_option(*forms, default=forms[0]))
            if more is None
            else (shared.reading_options(*forms, default=forms[0], more=more),)
        )
        built = shared.together(
            place, *(options_of(options) if options else ()), *extras, *output_options,
            shared.runs(pages=pages, isolates=isolates),
        )(call)  # fmt: skip
        return shared.command(name, *examples)(built)

    return decorate
