"""Values on the command line as click's types: paths, sizes, durations and times of day."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from acidctl.base.deadline import DailyWindow, duration_seconds
from acidctl.base.errors import NotFoundError, UsageProblem
from acidctl.base.printable import printable
from acidctl.location.arguments import is_hive_name

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class SizeType(click.ParamType[int]):
    """A number of bytes: ``512m``, ``2GiB``, ``1000``; units are powers of 1024, as in Hadoop."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([kmgtp]?)(?:i?b)?", str(value).strip().lower())
        if not found or float(found[1]) <= 0:
            self.fail(f"{value!r} is not a size: write it as 512m or 2g", param, ctx)
        return int(float(found[1]) * 1024 ** " kmgtp".index(found[2] or " "))


class DurationType(click.ParamType[float]):
    """A duration in seconds: ``90s``, ``30m``, ``2h``, ``1d``, ``1h30m``, ``0``."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        seconds = duration_seconds(str(value))
        if seconds is None:
            self.fail(f"{value!r} is not a duration: write it as 90s, 30m, 2h or 1d", param, ctx)
        return seconds


class WindowType(click.ParamType[DailyWindow]):
    """A daily window, ``01:00-05:00``."""

    name = "from-to"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> DailyWindow:
        if isinstance(value, DailyWindow):
            return value
        try:
            return DailyWindow.parse(str(value))
        except UsageProblem as problem:
            self.fail(f"{problem.what}: {problem.hint}", param, ctx)


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


class LocationType(PathType):
    """A directory, or a name of tables, which the metastore completes."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        if not is_hive_name(incomplete):
            return super().shell_complete(ctx, param, incomplete)
        from acidctl.cli.options.hive_completion import hive_names  # noqa: PLC0415 - only for shells

        return hive_names(ctx, incomplete)


COUNT, COUNT_OR_NONE = NumberType("N", 1), NumberType("N", 0)
WRITE_ID = NumberType("WRITE_ID", 0)
SIZE = SizeType()
DURATION = DurationType()
WINDOW = WindowType()
DIRECTORY = PathType("dir")
LOCATION = LocationType("dir")
FILE = PathType("file")
NEW_FILE = NewFileType("file")
