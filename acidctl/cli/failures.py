"""How a failure is shown: one line what, one why, one what to do."""

from __future__ import annotations

import click

from acidctl.cli.output import safe
from acidctl.errors import AcidctlError


def show_error(what: str, why: str, hint: str) -> None:
    """The lines on standard error; nothing in a name reaches the terminal raw."""
    for label, text, colour in (("error:", what, "red"), ("  why:", why, "yellow"), ("   do:", hint, "yellow")):
        if text:
            click.echo(f"{click.style(label, fg=colour)} {safe(text)}", err=True)


def show_failure(location: str, error: AcidctlError) -> None:
    """One of several locations failed; the command goes on with the others."""
    what = error.what if location in error.what else f"{location}: {error.what}"
    show_error(what, error.why, error.hint)
