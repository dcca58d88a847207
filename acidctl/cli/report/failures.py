"""How a failure is shown: one line what, one why, one what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acidctl.cli.output.console import say, warn
from acidctl.cli.output.logs import json_log
from acidctl.cli.output.redact import hidden
from acidctl.errors import AcidctlError
from acidctl.printable import printable

if TYPE_CHECKING:
    from acidctl.cli.report.run_report import RunReport


def show_error(
    what: str, why: str, hint: str, *, status: int | None = None, code: str = "", location: str = ""
) -> None:
    """The lines on standard error, or the record; nothing in a name reaches the terminal raw."""
    if log := json_log():
        what, why, hint = (printable(hidden(text)) for text in (what, why, hint))
        log.record("error", what, why=why, hint=hint, error=code, location=hidden(location), exitStatus=status)
        return
    for label, text, colour in (("error:", what, "red"), ("  why:", why, "yellow"), ("   do:", hint, "yellow")):
        if text:
            say(label, text, fg=colour)


class Failures:
    """The failures of a command that goes on; the worst of them becomes its exit status."""

    def __init__(self, run: RunReport | None = None) -> None:
        self.worst = 0
        self._run = run

    def add(self, error: AcidctlError, location: str = "") -> None:
        """Show a failure and remember its status."""
        show_failure(location, error)
        self.worst = max(self.worst, error.exit_status)
        if self._run:
            self._run.failed(location, error)

    def warn(self, error: AcidctlError) -> None:
        """The same for what leaves a gap in the result only: a warning of one line."""
        warn(str(error))
        self.worst = max(self.worst, error.exit_status)


def show_failure(location: str, error: AcidctlError) -> None:
    """One of several locations failed; the command goes on with the others."""
    what = error.what if location in error.what else f"{location}: {error.what}"
    show_error(what, error.why, error.hint, status=error.exit_status, code=error.code, location=location)
