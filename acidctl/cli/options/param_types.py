"""Values on the command line as click's types: paths, sizes, durations and times of day."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from acidctl.base.arguments import as_write_id_or_time, size_in_bytes
from acidctl.base.deadline import duration_seconds
from acidctl.base.errors import NotFoundError, UsageProblem
from acidctl.base.printable import printable

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class ParsedType(click.ParamType[Any]):
    """A value that is parsed from text; a default that is not text is taken as it is.

    Args:
        parse: returns None for a text that it does not understand, or raises UsageProblem.
        hint: what to write.
    """

    def __init__(self, name: str, parse: Callable[[str], Any], hint: str = "") -> None:
        self.name, self._parse, self._hint = name, parse, hint

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            parsed = self._parse(value)
        except UsageProblem as problem:
            self.fail(f"{problem.what}: {problem.hint}", param, ctx)
        if parsed is None:
            self.fail(f"{value!r} is not a {self._hint}", param, ctx)
        return parsed


def _seconds(text: str) -> float | None:
    """Return the seconds of a duration, or of a number without a unit; else None."""
    return duration_seconds(f"{text}s" if re.fullmatch(r"\d+(\.\d+)?", text.strip()) else text)


class NumberType(click.IntRange):
    """A whole number with a metavar of its own in the help."""

    name = "whole number"

    def __init__(self, metavar: str, least: int, most: int | None = None) -> None:
        super().__init__(least, most)
        self._metavar = metavar

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return self._metavar


class PathType(click.types.StringParamType):
    """A path or a URL as it was typed, which shells complete; whether it exists is not checked here.

    `click.Path` checks, and would exit with 2, for which the table of exit statuses has another meaning.
    """

    name = "path"

    def __init__(self, completed_as: str) -> None:
        self._completed_as = completed_as

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "" and self._completed_as == "file":
            self.fail("the path is empty.", param, ctx)
        return super().convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only for shells

        # The shell may have completed an earlier part of the name.
        return [CompletionItem(printable(incomplete), type=self._completed_as)]


class NewFileType(PathType):
    """A file to write; not standard output, which has the results."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "-":
            self.fail("standard output holds the results: give a file, or ./- for one that is called so.", param, ctx)
        if str(value).endswith("/"):
            raise NotFoundError(f"{value} is a directory", "a file is written", "give the name of a file")
        return super().convert(value, param, ctx)


def comma_separated(_: click.Context, param: click.Parameter, text: str | None) -> tuple[str, ...] | None:
    """Split ``a, b``, as the callback of an option; None stays None."""
    names = None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())
    if names == ():
        raise click.BadParameter("no column is named", param_hint=param.opts[0])
    return names


COUNT, COUNT_OR_NONE = NumberType("N", 1), NumberType("N", 0)
WRITE_ID = NumberType("WRITE_ID", 0)
SIZE = ParsedType("size", size_in_bytes, "size: write it as 512m or 2g")
DURATION = ParsedType("time", duration_seconds, "duration: write it as 90s, 30m, 2h or 1d")
WRITE_ID_OR_TIME = ParsedType("write id or time", lambda text: as_write_id_or_time(text, "it"))
DURATION_OR_SECONDS = ParsedType("time", _seconds, "duration: write it as 90s, 30m, 2h or 1d")
DIRECTORY = LOCATION = PathType("dir")
FILE = PathType("file")
NEW_FILE = NewFileType("file")
