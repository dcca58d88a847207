"""Paths on the command line, as the types of options and arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from acidctl.errors import NotFoundError
from acidctl.printable import printable

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class Place(click.types.StringParamType):
    """A path or a URL, as it was typed: shells complete it, and nothing looks whether it is there.

    `click.Path` looks, and would exit with 2 where the table of exit statuses has another status.
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

        # What was typed may be a name that the shell completed before.
        return [CompletionItem(printable(incomplete), type=self._completed_as)]


class NewFile(Place):
    """A file that is written: not standard output, where the results go."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "-":
            self.fail("standard output holds the results: give a file, or ./- for one that is called so.", param, ctx)
        if str(value).endswith("/"):
            raise NotFoundError(f"{value} is a directory", "a file is written", "give the name of a file")
        return super().convert(value, param, ctx)


DIRECTORY = Place("dir")
FILE = Place("file")
NEW_FILE = NewFile("file")
