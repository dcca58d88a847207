"""What commands print: data on standard output, everything else on standard error."""

from __future__ import annotations

import json
import math
import os
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from acidctl.cli.logs import json_log
from acidctl.cli.redact import hidden, hidden_in

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_LEVELS = {"warning:": "warning", "error:": "error"}
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def safe(text: str) -> str:
    """Text that may hold names: control, format and undecodable characters become visible escapes, one line."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char if char.isprintable() and unicodedata.category(char) not in ("Cf", "Cc", "Cs") else _escape(char)
        for char in text
    )


def _escape(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")


def note(text: str) -> None:
    """A remark on standard error."""
    say("note:", text, dim=True)


def warn(text: str) -> None:
    """A warning on standard error."""
    say("warning:", text, fg="yellow")


def say(label: str, text: str, **style: Any) -> None:
    """A labelled line on standard error, made safe here; on a terminal it breaks between words.

    One that cannot be written is lost, as there is no other place to say so.
    """
    text = safe(hidden(text))
    if log := json_log():
        log.record(_LEVELS.get(label, "info"), text)
        return
    lines = [text]
    with suppress(OSError):
        if sys.stderr.isatty():
            indent = " " * (len(label) + 1)
            width = max(20, os.get_terminal_size(sys.stderr.fileno()).columns - len(indent))
            broken = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
            lines = [indent * bool(place) + line for place, line in enumerate(broken)] or [""]
        shown = label if os.environ.get("NO_COLOR") else click.style(label, **style)
        click.echo(f"{shown} " + "\n".join(lines), err=True)


def out_stream() -> BinaryIO:
    """Standard output for bytes."""
    return sys.stdout.buffer


_ON_ONE_LINE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_INDENTED = json.JSONEncoder(ensure_ascii=False, indent=2)


def put_json(value: Any, *, lines: bool) -> None:
    """One JSON object on standard output: indented, or on one line."""
    data = (_ON_ONE_LINE if lines else _INDENTED).encode(hidden_in(value)).encode("utf-8", "surrogateescape") + b"\n"
    out_stream().write(data)
    out_stream().flush()


def put_csv(header: Sequence[str] | None, rows: Iterable[Sequence[object]]) -> None:
    """RFC 4180 on standard output; None for the header where one was put before."""
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if header:
        writer.writerow(header)
    writer.writerows(["" if cell is None else cell for cell in row] for row in rows)
    out_stream().write(text.getvalue().encode("utf-8", "surrogateescape"))
    out_stream().flush()


def console() -> Console:
    """A rich console on standard output; plain and unwrapped when it is no terminal, colourless with NO_COLOR."""
    from rich.console import Console

    class PassingOn(Console):
        def on_broken_pipe(self) -> None:
            # rich would end the process with 1; the exit status is the entry point's to choose.
            self.quiet = True
            raise BrokenPipeError

    terminal = sys.stdout.isatty()
    return PassingOn(
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=not terminal,
        no_color=True if not terminal or os.environ.get("NO_COLOR") else None,
        width=None if terminal else 10_000,
    )


def table_of(names: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = ()) -> Table:
    """A borderless table; every cell is made safe here."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in names:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(safe, row))
    return table


def human_bytes(count: int | None) -> str:
    """``1.5 MiB``; a dash for None."""
    if count is None:
        return "-"
    size = float(count)
    for unit in _UNITS:
        if size < 1024 or unit == _UNITS[-1]:
            return f"{int(size)} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError


def human_count(count: int, noun: str, plural: str | None = None) -> str:
    """``1 file``, ``1,234 files``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def iso_time(seconds: float | None) -> str | None:
    """``2026-11-21T22:24:05Z``; None when there is no time."""
    return None if seconds is None else _iso_time(math.floor(seconds))


@lru_cache(maxsize=1 << 12)
def _iso_time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def local_time(seconds: float | None) -> str:
    """``2026-11-21 22:24`` in the user's time zone; a dash for None."""
    return "-" if seconds is None else datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
