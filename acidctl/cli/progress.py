"""How far long work is: a counter or a bar on the terminal, nothing anywhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

T = TypeVar("T")

_EVERY = 0.2
"""Seconds between two counts."""


def counted(items: Iterable[T], what: str) -> Iterator[T]:
    """The items, with their number on the terminal's last line while it takes longer than a moment.

    For commands that print when they have all items: the number would stand between the lines of others.
    """
    if not sys.stderr.isatty():
        yield from items
        return
    shown, due = False, time.monotonic() + 2 * _EVERY
    try:
        for count, item in enumerate(items, 1):
            if time.monotonic() >= due:
                click.echo(f"\r{count:,} {what}", nl=False, err=True)
                shown, due = True, time.monotonic() + _EVERY
            yield item
    finally:
        if shown:
            click.echo("\r\x1b[K", nl=False, err=True)


def bar_of(*columns: ProgressColumn) -> Progress:
    """A bar on standard error that goes when the work has ended.

    Not redirected: rich would send the results, printed meanwhile, to the terminal even where they go to a file.
    """
    from rich.console import Console
    from rich.progress import Progress

    return Progress(
        *columns, console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False
    )
