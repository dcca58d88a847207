"""How much is printed, and whether in colour, by the program's options `-v`, `-q` and `--color`."""

from __future__ import annotations

import os

import click


class Verbosity:
    """Keep what `-v`, `-q` and `--color` say for this run.

    Attributes:
        is_verbose: every location and every entry has lines of its own.
        is_quiet: results for people and remarks are not printed; results for programs and errors are.
        has_traces: --debug shows the trace of a bug.
        color: auto, always or never.
    """

    def __init__(self) -> None:
        self.is_verbose = self.is_quiet = self.has_traces = False
        self.color = "auto"

    def set(self, *, is_verbose: bool = False, is_quiet: bool = False, color: str = "auto") -> None:
        """Take the options; without any, reset them at the beginning of a run."""
        if is_verbose and is_quiet:
            raise click.UsageError("-v says more and -q says less: leave one of them out.")
        self.is_verbose, self.is_quiet, self.color = is_verbose, is_quiet, color

    def has_colors(self, *, is_terminal: bool) -> bool:
        """Return whether a stream gets colours: by default terminals that understand them, unless NO_COLOR is set."""
        if self.color != "auto":
            return self.color == "always"
        return is_terminal and not os.environ.get("NO_COLOR") and not is_dumb()


def is_dumb() -> bool:
    """Return whether the terminal understands no control sequences."""
    return os.environ.get("TERM", "").lower() in ("", "dumb", "unknown")


VERBOSITY = Verbosity()
