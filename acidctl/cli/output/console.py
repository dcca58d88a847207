"""Printing: data on standard output, everything else on standard error."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from acidctl.base.printable import printable, printable_json
from acidctl.cli.output.redact import hidden, hidden_in
from acidctl.cli.output.streams import on_terminal, uninterrupted
from acidctl.cli.output.terminal import VERBOSITY, own_stream, terminal_columns

if TYPE_CHECKING:
    from rich.console import Console

_SHOWN = 10
_NARROWEST, UNBOUNDED = 20, 10_000
"""Widths in columns."""
SCHEMA_VERSION = 1
"""The version of all JSON forms: while it stays, keys are only ever added."""
_BEFORE_UNIT, _NO_BREAK = re.compile(r"(?<=\d) (?=(?:[KMGTP]?i?B|s|min|h|d)\b)"), "\x00"


def note(text: str) -> None:
    """Print a remark on standard error, unless `-q` was given."""
    if not VERBOSITY.is_quiet:
        say("note:", text, dim=True)


def warn(text: str, *, is_failure: bool = False) -> None:
    """Print a warning on standard error.

    Args:
        is_failure: the warning reports a failure, and is printed even with `-q`.
    """
    if is_failure or not VERBOSITY.is_quiet:
        say("warning:", text, fg="yellow")


def warn_of(texts: Sequence[str]) -> None:
    """Warn of the first texts, and of how many more there are: thousands of directories may share one fault."""
    for text in texts[:_SHOWN]:
        warn(text)
    if len(texts) > _SHOWN:
        warn(f"and {len(texts) - _SHOWN} more like these")


def show_error(what: str, why: str, hint: str) -> None:
    """Print an error on standard error; no name reaches the terminal unescaped."""
    for label, text, colour in (("error:", what, "red"), ("  why:", why, "yellow"), ("   do:", hint, "yellow")):
        if text:
            say(label, text, fg=colour)


def show_trace(text: str) -> None:
    """Print the trace of a bug, or of any error that ends the command, if --debug was given."""
    if text and VERBOSITY.has_traces:
        sys.stderr.write(hidden(text))


def broken(text: str, width: int, indent: int = 0) -> list[str]:
    """Return the lines of a printable text, broken between words; long words, sizes and durations stay whole.

    Args:
        indent: the indentation of all lines but the first.
    """
    words = _BEFORE_UNIT.sub(_NO_BREAK, text.lstrip(" "))
    first, others = " " * (len(text) - len(words)), " " * indent
    wrapper = textwrap.TextWrapper(
        max(width, indent + _NARROWEST),
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_NO_BREAK, " ") for line in wrapper.wrap(words)] or [""]


def say(label: str, text: str, **style: Any) -> None:
    """Print a labelled line on standard error, made printable here; on a terminal it breaks between words.

    A failure to write is ignored, as there is nowhere else to report it.
    """
    lines = [text := printable(hidden(text))]
    with suppress(OSError):
        if sys.stderr.isatty():
            indent = " " * (len(label) + 1)
            width = max(20, terminal_columns() - len(indent))
            lines = [indent * bool(place) + line for place, line in enumerate(broken(text, width))]
        shown = click.style(label, **style) if VERBOSITY.has_colors(is_terminal=sys.stderr.isatty()) else label
        behind = own_stream(sys.stderr)
        with on_terminal(behind, "\n"):
            behind.write(f"{shown} " + "\n".join(lines) + "\n")
            behind.flush()


def note_if_typed(what: str) -> None:
    """Print what is being read if standard input is a terminal."""
    if sys.stdin.isatty():
        note(f"reading {what} from the terminal, until Ctrl-D")


def can_ask() -> bool:
    """Return whether a user can answer a question."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def end_question() -> None:
    """End the line of a question that got no answer."""
    click.echo(err=True)


def put_line(text: str = "", *, is_answer: bool = False) -> None:
    """Print one line on standard output, made printable here, unless `-q` was given.

    Args:
        is_answer: the line is the single answer that was asked for, and is printed even with `-q`.
    """
    if is_answer or not VERBOSITY.is_quiet:
        click.echo(printable(hidden_in(text)))


def put_text(text: str, indent: int = 4, *, most: int | None = None, is_answer: bool = False) -> None:
    """Print a sentence on standard output; it breaks between words on a terminal, or if COLUMNS gives a width.

    Args:
        indent: the indentation of all lines but the first.
        most: the most columns, even in a pipe: for text that people read at length.
        is_answer: see :func:`put_line`.
    """
    width = columns_told() or (terminal_columns() if sys.stdout.isatty() else UNBOUNDED)
    for line in broken(printable(hidden_in(text)), min(width, most or UNBOUNDED), indent):
        put_line(line, is_answer=is_answer)


def out_stream() -> BinaryIO:
    """Return standard output for bytes, which must hold nothing that a terminal would act on."""
    return sys.stdout.buffer


_ON_ONE_LINE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_INDENTED = json.JSONEncoder(ensure_ascii=False, indent=2)


def put_json(value: Mapping[str, Any], *, lines: bool) -> None:
    """Print a JSON object, with the version of its schema: indented, or on one line."""
    out_stream().write(json_text(value, lines=lines).encode("utf-8") + b"\n")
    out_stream().flush()


def json_text(value: Mapping[str, Any], *, lines: bool) -> str:
    """Return a JSON object, with the version of its schema: indented, or on one line."""
    versioned = {"schema_version": SCHEMA_VERSION, **value}
    return printable_json((_ON_ONE_LINE if lines else _INDENTED).encode(hidden_in(versioned)))


class Records:
    """Prints results as they come: one JSON array, with `jsonl` one object per line, or rows of `csv`.

    The array is closed however the command ends; without a result it is ``[]``.

    Args:
        output: json, jsonl or csv; nothing is written for another form.
        columns: the columns of CSV.
        rows: the key of a result whose value is the list of CSV rows; without it a result is one row.
        has_headings: whether the first line of CSV has the names of the columns.
    """

    def __init__(self, output: str, columns: Sequence[str] = (), rows: str = "", *, has_headings: bool = True) -> None:
        self.output = output
        self._begun = False
        self.of(columns, rows, has_headings=has_headings)
        if output == "json":
            click.get_current_context().call_on_close(self._close)

    def of(self, columns: Sequence[str], rows: str = "", *, has_headings: bool = True) -> Records:
        """Set the columns and rows of CSV, if they were not known from the start, and return itself."""
        self._columns, self._rows, self._has_headings = columns, rows, has_headings
        return self

    def put(self, value: Any) -> None:
        """Print a result."""
        if self.output == "csv":
            self.put_header()
            rows = [{"location": value["location"], **row} for row in value[self._rows]] if self._rows else [value]
            _put_csv([in_short(row[name]) for name in self._columns] for row in rows)
        elif self.output == "jsonl":
            self._write(json_text(value, lines=True) + "\n")
        elif self.output == "json":
            text = json_text(value, lines=False).replace("\n", "\n  ")
            self._write((",\n  " if self._begun else "[\n  ") + text)

    def put_header(self) -> None:
        """Print the CSV header once; called before the first result, as there may be none."""
        if self.output == "csv" and self._has_headings and not self._begun:
            _put_csv([self._columns])
            self._begun = True

    def _write(self, text: str) -> None:
        with uninterrupted():
            self._begun = True
            out_stream().write(text.encode("utf-8"))
            out_stream().flush()

    def _close(self) -> None:
        self._write("\n]\n" if self._begun else "[]\n")


def _put_csv(rows: Iterable[Sequence[object]]) -> None:
    """Write rows by RFC 4180, made printable."""
    import csv  # noqa: PLC0415 - only for -o csv

    text = io.StringIO()
    lines = (["" if cell is None else printable(str(cell)) for cell in row] for row in rows)
    csv.writer(text, lineterminator="\n").writerows(lines)
    out_stream().write(text.getvalue().encode("utf-8"))
    out_stream().flush()


def in_short(value: Any) -> Any:
    """Return a value for a cell: lists and objects as a line of text, booleans as JSON spells them."""
    if isinstance(value, dict):
        return " ".join(f"{key}={item}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return " ".join(str(item.get("on", item)) if isinstance(item, dict) else str(item) for item in value)
    return str(value).lower() if isinstance(value, bool) else value


def columns_told() -> int | None:
    """Return the width that COLUMNS gives for standard output, a terminal or not; None without a valid one."""
    text = os.environ.get("COLUMNS", "")
    columns = int(text) if text.isascii() and text.isdigit() and len(text) < 5 else 0
    return max(_NARROWEST, columns) if columns else None


def console() -> Console:
    """Return a rich console on standard output, with colours only if the user, or else the terminal, wants them.

    A pipe gets plain lines of any length, or of the width that COLUMNS gives.
    """
    from rich.console import Console, ConsoleOptions, RenderableType  # noqa: PLC0415 - only for people
    from rich.segment import Segment  # noqa: PLC0415 - only for people

    class PassingOn(Console):
        def on_broken_pipe(self) -> None:
            # rich would end the process with 1; the exit status is the entry point's to choose.
            self.quiet = True
            raise BrokenPipeError

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
            # A safety net for callers that forgot to escape a cell: here styles are apart from the text.
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else "\n".join(map(printable, text.split("\n"))), style, control)

    terminal = sys.stdout.isatty()
    has_colors = VERBOSITY.has_colors(is_terminal=terminal)
    return PassingOn(
        file=own_stream(sys.stdout),
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=not terminal,
        force_terminal=has_colors or None,
        no_color=not has_colors,
        color_system=None if not has_colors else "standard" if VERBOSITY.color == "always" else "auto",
        width=columns_told() or (None if terminal else UNBOUNDED),
        quiet=VERBOSITY.is_quiet,
    )
