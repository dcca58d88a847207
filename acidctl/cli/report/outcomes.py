"""The locations that a command goes through: which ones it takes, what fails there, and the outcome of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import click

from acidctl.acid.reasons import Reason
from acidctl.base.errors import AcidctlError, ExitStatus, GoneError, NotLookedAtError
from acidctl.cli.output.console import Records, note, put_text, show_error, warn, warn_of
from acidctl.cli.output.progress import progress
from acidctl.cli.output.verbosity import VERBOSITY
from acidctl.cli.report.folding import HANDFUL, Totals, put_folded, put_idle
from acidctl.location.coverage import Looked
from acidctl.outcome import TIME_IS_UP, Outcome, Result
from acidctl.verbs.events import Events, Progress
from acidctl.wording import human_count, some_of

if TYPE_CHECKING:
    from acidctl.cli.report.run_report import RunReport
    from acidctl.location.evidence import Evidence
    from acidctl.location.table_location import TableLocation

_FEW, _NAMED = 3, 20
_IDLE = frozenset({Result.NOTHING_TO_DO, Result.POSTPONED, Result.SKIPPED})


class RunReporter(Events):
    """Failures, skipped directories and notes of a command that goes through many locations.

    Attributes:
        status: the worst exit status of all failures.
    """

    def __init__(self, run: RunReport | None = None) -> None:
        super().__init__()
        self.status = 0
        self.run = run
        self._gone: list[str] = []
        self._notes: dict[str, None] = {}
        self._odd: dict[str, None] = {}

    @property
    def is_whole(self) -> bool:
        """Return whether nothing failed so far."""
        return not self.status

    def note(self, text: str) -> None:
        note(text)

    @contextmanager
    def progress(
        self,
        doing: str,
        total: int,
        *,
        is_bytes: bool = False,
        coming: int | None = None,
    ) -> Iterator[Progress]:
        with progress(doing, total or None, is_bytes=is_bytes) as bar:
            yield bar

    def failed(self, location: str, error: AcidctlError) -> None:
        """Report that a location failed; an empty location means a directory of a tree that cannot be listed."""
        if isinstance(error, GoneError):
            self._gone.append(location or error.what.removesuffix(" is gone"))
            return
        show_failure(location, error)
        self._raise_status(error)
        if self.run:
            self.run.failed(location, error)

    def _raise_status(self, error: AcidctlError) -> None:
        """Keep the worst status; NOT_LOOKED_AT counts only if nothing else failed."""
        if isinstance(error, NotLookedAtError):
            self.status = self.status or error.exit_status
        elif self.status == ExitStatus.NOT_LOOKED_AT:
            self.status = error.exit_status
        else:
            self.status = max(self.status, error.exit_status)

    def looked_through(self, on_record: Callable[[str], int | None] = lambda _: None) -> Looked:
        looked = self.coverage.looked
        before = on_record(looked.where)
        in_files = self.run.looked_before(looked.where) if self.run else None
        recorded = [count for count in (before, in_files) if count is not None]
        is_accepted = bool(self.run and self.run.accepts_fewer)
        # A failure was reported already, and may be the very thing that is missing.
        least = None if is_accepted or self.status else max(recorded, default=None)
        problem = self.coverage.problem(least, len(self.unknown))
        if self.run:
            self.run.looked = looked
            self.run.facts["notLookedAt"] = self.coverage.as_json()
        if problem:
            RunReporter.failed(self, "", problem)  # not of a subclass, which would write a record without a location
        return replace(looked, locations=looked.on_record(before, self.status, is_accepted=is_accepted))

    def gap(self, error: AcidctlError) -> None:
        """Warn of an error that leaves a gap in the result, and keep its status."""
        warn(str(error), is_failure=True)
        self._raise_status(error)

    def remember(self, notes: Iterable[str] = (), odd: Iterable[str] = ()) -> None:
        """Keep texts that are printed once at the end, however many locations they apply to.

        Args:
            odd: warnings of layouts that Hive never writes.
        """
        self._notes |= dict.fromkeys(notes)
        self._odd |= dict.fromkeys(odd)

    def tell_notes(self) -> None:
        """Print the texts that :meth:`remember` kept."""
        for text in self._notes:
            note(text)
        warn_of(list(self._odd))

    def tell_strangers(self) -> None:
        """Print what was left alone, in a line for each kind."""
        if passed := self.coverage.passed:
            count = human_count(len(passed), "directory", "directories")
            note(f"not entered, {count}: {some_of(passed, _FEW, '; ')}")
        self.tell_gone()
        if self.unknown:
            count, names = human_count(len(self.unknown), "location"), some_of(self.unknown, _FEW, "; ")
            note(f"{count} left alone, not known to be transactional (`acidctl ls` says why): {names}")

    def tell_gone(self) -> None:
        """Print the locations that were dropped while the command ran."""
        if self._gone:
            count = human_count(len(self._gone), "location was", "locations were")
            note(f"{count} dropped meanwhile: {some_of(self._gone, _FEW, '; ')}")


@dataclass(slots=True)
class _Gathered:
    """Outcomes that are printed together: a handful line by line, more of them as totals."""

    first: list[tuple[Outcome, str]] = field(default_factory=list)
    totals: Totals | None = None


class Outcomes(RunReporter):
    """Prints the outcome of each location: a line of text, or one JSON object; errors go to standard error.

    With `counts_of` the lines are gathered, and more than a handful of locations are folded into a line for each table;
    :meth:`tell` must be called before a question.

    Args:
        output: table, json or jsonl.
        text_of: returns the line for an outcome of the command's own kind; empty for other outcomes.
        counts_of: returns the amounts to add up when lines are folded; without it every line is printed at once.
    """

    run: RunReport

    def __init__(
        self,
        output: str,
        run: RunReport,
        text_of: Callable[[Outcome], str],
        counts_of: Callable[[Outcome], Mapping[str, int]] | None = None,
    ) -> None:
        super().__init__(run)
        self.is_table = output == "table"
        self._records = Records(output)
        self._text_of = text_of
        self._counts_of = counts_of or (lambda _: {})
        self._folds = counts_of is not None and not VERBOSITY.is_verbose
        self._gathers = self._folds
        self._gathered: dict[tuple[Result, str], _Gathered] = {}
        if self._folds and self.is_table:
            click.get_current_context().call_on_close(self.tell)  # also when the run is interrupted
        self._seen: set[Result] = set()
        self._failed: list[str] = []
        self._left: list[str] = []

    def put(self, outcome: Outcome, *, is_last: bool = True) -> None:
        """Print the outcome of a location.

        Args:
            is_last: False for a plan that will be carried out: only people see it.
        """
        if is_last:
            self._seen.add(outcome.result)
            self._left += [outcome.location] * outcome.is_unfinished
            self.run.take(outcome)
        elif not self.is_table:
            return
        if not self.is_table:
            self._records.put(outcome.record())
        elif text := self._text_of(outcome) or _text(outcome):
            if self._gathers:
                self._gather(outcome, text)
            else:
                self._tell_one(text, outcome)
        if outcome.error:
            self._raise_status(outcome.error)
            self._failed += [outcome.location] * bool(outcome.location)
            show_failure(outcome.location, outcome.error)

    def tell(self, coming: int | None = None) -> None:
        """Print what was gathered: a line for each location, or for more than a handful a line for each table.

        Args:
            coming: the number of outcomes that follow; up to a handful are printed as they come.
        """
        gathered, self._gathered = self._gathered, {}
        for (result, kind), some in gathered.items():
            if some.totals is None:
                for outcome, text in some.first:
                    self._tell_one(text, outcome)
            elif result in _IDLE:
                put_idle(kind, some.totals.codes)
            else:
                put_folded(kind, some.totals)
        if coming is not None:
            self._gathers = self._folds and coming > HANDFUL

    def _gather(self, outcome: Outcome, text: str) -> None:
        """Keep a handful of outcomes for :meth:`tell`; of more only the totals, as plans hold large listings."""
        some = self._gathered.setdefault((outcome.result, self.kind_of(outcome)), _Gathered())
        some.first.append((outcome, text))
        if some.totals is None and len(some.first) > HANDFUL:
            some.totals = Totals()
        if some.totals is not None:
            for each, _ in some.first:
                some.totals.add(each.location, self._counts_of(each), self.code_of(each))
            some.first.clear()

    def _tell_one(self, text: str, outcome: Outcome) -> None:
        put_text(text)
        self.put_details(outcome)

    def kind_of(self, outcome: Outcome) -> str:
        """Return the heading under which outcomes like this one are folded."""
        return outcome.result.words

    def code_of(self, outcome: Outcome) -> str:
        """Return the code of the reason why nothing happens there; empty without one."""
        return outcome.reasons[0].code if outcome.reasons else ""

    def put_details(self, outcome: Outcome) -> None:
        """Print what stands below the line of an outcome; a subclass may override it."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing has failed or was postponed so far."""
        return not (self.status or self._left)

    def sum_up(self, locations: int, done: str) -> None:
        """Print the totals of all locations, and name those that failed or were postponed."""
        rests = [(what, names) for what, names in (("failed", self._failed), ("left for later", self._left)) if names]
        note(f"{human_count(locations, 'location')}: {', '.join([done, *(f'{len(n)} {what}' for what, n in rests)])}")
        for what, names in rests:
            warn(f"{what}: {some_of(names, _NAMED)}", is_failure=what == "failed")

    def failed(self, location: str, error: AcidctlError) -> None:
        self.put(Outcome(location=location, result=Result.FAILED, error=error))

    def lost(self, found: TableLocation, error: AcidctlError) -> None:
        """Report that a location failed."""
        self.failed(found.shown, error)

    def skipped(self, found: TableLocation, evidence: Evidence) -> None:
        super().skipped(found, evidence)
        self.put(Outcome(location=found.shown, result=Result.SKIPPED, reasons=(evidence.reason,)))

    def postponed(self, location: str, why: Reason = TIME_IS_UP) -> None:
        """Report that a location is left for another run."""
        self.put(Outcome(location=location, result=Result.POSTPONED, reasons=(why,)))

    def exit_status(self, speaks: bool) -> int:
        """Return the exit status of the run; with `speaks`, no work and postponed work have statuses of their own."""
        if self.status or not speaks:
            return self.status
        if self._left:
            return ExitStatus.POSTPONED
        return 0 if self._seen - {Result.NOTHING_TO_DO, Result.SKIPPED} else ExitStatus.NOTHING_TO_DO


def _text(outcome: Outcome) -> str:
    if outcome.result is Result.NOTHING_TO_DO:
        return f"{outcome.location}: nothing to do: {outcome.reason}"
    if outcome.result is Result.POSTPONED:
        return f"{outcome.location}: left for later: {outcome.reason}"
    return ""


def show_failure(location: str, error: AcidctlError) -> None:
    """Print the error of one of several locations."""
    what = error.what if location in error.what else f"{location}: {error.what}"
    show_error(what, error.why, error.hint, status=error.exit_status, code=error.code, location=location)
