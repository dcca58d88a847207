"""The locations that a command goes through: which ones it takes, what fails there, and the outcome of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from acidctl.base.errors import AcidctlError, ExitStatus, GoneError, UnexpectedError
from acidctl.cli.output.command_lines import line_for
from acidctl.cli.output.console import note, show_error, show_trace, warn, warn_of
from acidctl.cli.output.progress import progress
from acidctl.location.coverage import Looked
from acidctl.verbs.events import Events, Progress
from acidctl.wording import human_count, some_of

if TYPE_CHECKING:
    from acidctl.cli.report.run_figures import RunFigures

_FEW = 3


class RunReporter(Events):
    """Failures, skipped directories and notes of a command that goes through many locations.

    Attributes:
        status: the worst exit status of all failures.
        on_unknown: what the note about locations says that are not known to be transactional.
    """

    on_unknown = "left alone, not known to be transactional"

    def __init__(self, run: RunFigures | None = None) -> None:
        super().__init__()
        self.status = 0
        self.run = run
        self._gone: list[str] = []
        self._passed = self._unknown = 0
        self._notes: dict[str, None] = {}
        self._odd: dict[str, None] = {}

    @property
    def is_whole(self) -> bool:
        """Return whether nothing failed so far."""
        return not self.status

    def note(self, text: str) -> None:
        note(text)

    def warn(self, text: str) -> None:
        warn(text)

    def line_for(self, words: Sequence[str], places: Sequence[str], *, of_snapshot: bool = False) -> str:
        return line_for(words, places, of_snapshot=of_snapshot)

    @contextmanager
    def progress(
        self, doing: str, total: int, *, is_bytes: bool = False, coming: int | None = None
    ) -> Iterator[Progress]:
        with progress(doing, total or None, is_bytes=is_bytes) as bar:
            yield bar

    def failed(self, location: str, error: AcidctlError) -> None:
        """Report that a location failed; an empty location means a directory of a tree that cannot be listed."""
        if isinstance(error, GoneError):
            self._gone.append(location or error.what.removesuffix(" is gone"))
            return
        show_failure(location, error)
        self.raise_status(error.exit_status)
        if self.run:
            self.run.failed(location)

    def raise_status(self, status: int) -> None:
        """Keep the worst status; NOT_LOOKED_AT counts only if nothing else failed."""
        if self.status in (0, ExitStatus.NOT_LOOKED_AT):
            self.status = status or self.status
        elif status != ExitStatus.NOT_LOOKED_AT:
            self.status = max(status, self.status)

    def looked_through(self, on_record: Callable[[str], int | None] = lambda _: None) -> Looked:
        looked = self.coverage.looked
        before = on_record(looked.where)
        in_files = self.run.looked_before(looked.where) if self.run else None
        recorded = [count for count in (before, in_files) if count is not None]
        is_accepted = bool(self.run and self.run.accepts_fewer)
        # A failure was reported already, and may be the very thing that is missing.
        least = None if is_accepted or self.status else max(recorded, default=None)
        problem = self.coverage.problem(least)
        if self.run:
            self.run.looked = looked
        if problem:
            RunReporter.failed(self, "", problem)  # not of a subclass, which would write a record without a location
        return replace(looked, locations=looked.on_record(before, self.status, is_accepted=is_accepted))

    def gap(self, error: AcidctlError) -> None:
        """Warn of an error that leaves a gap in the result, and keep its status."""
        warn(str(error), is_failure=True)
        self.raise_status(error.exit_status)

    def remember(self, notes: Iterable[str] = (), odd: Iterable[str] = ()) -> None:
        """Keep texts that are printed once at the end, however many locations they apply to.

        Args:
            odd: warnings of layouts that Hive never writes.
        """
        self._notes |= dict.fromkeys(notes)
        self._odd |= dict.fromkeys(odd)

    def tell_notes(self) -> None:
        """Print the texts that :meth:`remember` kept, each once."""
        for text in self._notes:
            note(text)
        warn_of(list(self._odd))
        self._notes.clear()
        self._odd.clear()

    def tell_strangers(self) -> None:
        """Print what was left alone since this was last called, in a line for each kind."""
        if passed := self.coverage.passed[self._passed :]:
            self._passed = len(self.coverage.passed)
            count = human_count(len(passed), "entry", "entries")
            note(f"not entered or read, {count}: {some_of(passed, _FEW, '; ')}")
        self.tell_gone()
        if unknown := self.unknown[self._unknown :]:
            self._unknown = len(self.unknown)
            count, names = human_count(len(unknown), "location"), some_of(unknown, _FEW, "; ")
            note(f"{count} {self.on_unknown} (`acidctl ls` says why): {names}")

    def tell_gone(self) -> None:
        """Print the locations that were dropped while the command ran."""
        if self._gone:
            count = human_count(len(self._gone), "location was", "locations were")
            note(f"{count} dropped meanwhile: {some_of(self._gone, _FEW, '; ')}")
            self._gone.clear()


def show_failure(location: str, error: AcidctlError) -> None:
    """Print the error of one of several locations."""
    if isinstance(error, UnexpectedError):
        show_trace(error.trace)
    what = error.what if location in error.what else f"{location}: {error.what}"
    show_error(what, error.why, error.hint)
