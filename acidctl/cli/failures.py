"""How a failure is shown: one line what, one why, one what to do."""

from __future__ import annotations

from acidctl.cli.output import say, warn
from acidctl.errors import AcidctlError


def show_error(what: str, why: str, hint: str) -> None:
    """The lines on standard error; nothing in a name reaches the terminal raw."""
    for label, text, colour in (("error:", what, "red"), ("  why:", why, "yellow"), ("   do:", hint, "yellow")):
        if text:
            say(label, text, fg=colour)


class Failures:
    """The failures of a command that goes on; the worst of them becomes its exit status."""

    def __init__(self) -> None:
        self.worst = 0

    def add(self, error: AcidctlError, location: str = "") -> None:
        """Show a failure and remember its status."""
        show_failure(location, error)
        self.worst = max(self.worst, error.exit_status)

    def warn(self, error: AcidctlError) -> None:
        """The same for what leaves a gap in the result only: a warning of one line."""
        warn(str(error))
        self.worst = max(self.worst, error.exit_status)


def show_failure(location: str, error: AcidctlError) -> None:
    """One of several locations failed; the command goes on with the others."""
    what = error.what if location in error.what else f"{location}: {error.what}"
    show_error(what, error.why, error.hint)
