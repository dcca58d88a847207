"""Outcomes for people and for programs, one per location; and the exit status that they come to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from acidctl.cli.output.console import Records, human_count, note, put_line, warn
from acidctl.cli.report.visits import Visits, show_failure, some
from acidctl.errors import ExitStatus
from acidctl.outcome import Outcome, Result, Skipped

if TYPE_CHECKING:
    from acidctl.cli.report.run_report import RunReport
    from acidctl.errors import AcidctlError
    from acidctl.location.evidence import Evidence
    from acidctl.location.find import Found

SCHEMA_VERSION = 1

_NAMED = 20


class Outcomes(Visits):
    """What a command says of each location: a line of text, or one JSON object; errors go to standard error.

    Args:
        output: table, json or jsonl.
        text_of: a line for an outcome of the command's own kind; empty for none.
    """

    run: RunReport

    def __init__(self, output: str, run: RunReport, text_of: Callable[[Outcome], str]) -> None:
        super().__init__(run)
        self.is_table = output == "table"
        self._records = Records(output)
        self._text_of = text_of
        self._seen: set[Result] = set()
        self._failed: list[str] = []
        self._left: list[str] = []

    def put(self, outcome: Outcome, *, is_last: bool = True) -> None:
        """Say what became of a location.

        Args:
            is_last: False shows a plan to people, of which more is to be told.
        """
        if is_last:
            self._seen.add(outcome.result)
            self._left += [outcome.location] * outcome.is_unfinished
            self.run.take(outcome)
        elif not self.is_table:
            return
        if not self.is_table:
            self._records.put({"schema_version": SCHEMA_VERSION, **outcome.record()})
        elif text := self._text_of(outcome) or _text(outcome):
            put_line(text)
        if outcome.error:
            self.status = max(self.status, outcome.error.exit_status)
            self._failed += [outcome.location] * bool(outcome.location)
            show_failure(outcome.location, outcome.error)

    @property
    def is_whole(self) -> bool:
        """Whether nothing failed so far, nor was left for later."""
        return not (self.status or self._left)

    def sum_up(self, locations: int, done: str) -> None:
        """Say what became of all locations together; those that failed, and those that are left, by name."""
        rests = [(what, names) for what, names in (("failed", self._failed), ("left for later", self._left)) if names]
        note(f"{human_count(locations, 'location')}: {', '.join([done, *(f'{len(n)} {what}' for what, n in rests)])}")
        for what, names in rests:
            warn(f"{what}: {some(names, _NAMED)}")

    def failed(self, location: str, error: AcidctlError) -> None:
        self.put(Outcome(location=location, result=Result.FAILED, error=error))

    def lost(self, found: Found, error: AcidctlError) -> None:
        """The same, by the location itself."""
        self.failed(found.shown, error)

    def skipped(self, found: Found, evidence: Evidence) -> None:
        self.put(Skipped(location=found.shown, reason=evidence.text, code=evidence.code))

    def postponed(self, location: str, why: str) -> None:
        """A location is left for another run."""
        self.put(Outcome(location=location, result=Result.POSTPONED, reason=why))

    def exit_status(self, speaks: bool) -> int:
        """Of the whole run; with `speaks` there is a status for nothing to do and for work that was put off."""
        if self.status or not speaks:
            return self.status
        if self._left:
            return ExitStatus.POSTPONED
        return 0 if self._seen - {Result.NOTHING_TO_DO, Result.SKIPPED} else ExitStatus.NOTHING_TO_DO


def _text(outcome: Outcome) -> str:
    """What is said of every kind of outcome in the same way."""
    if outcome.result is Result.NOTHING_TO_DO:
        return f"{outcome.location}: nothing to do: {outcome.reason}"
    if outcome.result is Result.POSTPONED:
        return f"{outcome.location}: left for later: {outcome.reason}"
    return ""
