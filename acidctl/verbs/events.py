"""The events of a verb at work: the command line shows them, services log them, Python ignores them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from acidctl.base.printable import shell_line
from acidctl.location.coverage import Coverage, Looked

if TYPE_CHECKING:
    from acidctl.base.errors import AcidctlError
    from acidctl.location.evidence import Evidence
    from acidctl.location.snapshot import Snapshot
    from acidctl.location.table_location import TableLocation


@dataclass(frozen=True, slots=True)
class Question:
    """A question to the user before anything is changed.

    Attributes:
        what: the work, for messages if nobody can be asked: ``3 entries (1.2 MiB) would be removed``.
        text: the question itself.
        undone: what is true after a no: ``nothing was removed``.
        locations: the locations that it concerns.
        is_for_good: the work cannot be undone.
    """

    what: str
    text: str
    undone: str
    locations: tuple[str, ...]
    is_for_good: bool = False


class Progress:
    """Receives the steps or bytes that are done, from any thread. This one ignores them; others count."""

    def advance(self, count: int = 1) -> None:
        """Count more as done."""

    def grow(self, count: int) -> None:
        """Count more as to be done."""

    def reach(self, done: int, total: int | None) -> None:
        """Set both counts."""


class Events:
    """Receives what happens besides outcomes. This one is silent: calling a function in Python is consent.

    Attributes:
        coverage: counts the locations at each named place and the directories that were skipped.
        errors: failures that belong to no outcome, each with its location.
        unknown: locations that are left alone because they are not known to be transactional.
        looked: the number of locations that later runs should find at the same places; set when the walk has ended.
        shows_plans: plans are shown before they are carried out.
    """

    shows_plans = False

    def __init__(self) -> None:
        self.coverage = Coverage()
        self.errors: list[tuple[str, AcidctlError]] = []
        self.unknown: list[str] = []
        self.looked: Looked | None = None

    @property
    def is_whole(self) -> bool:
        """Return whether nothing has failed so far."""
        return not self.errors

    def failed(self, location: str, error: AcidctlError) -> None:
        """Take the error of a directory that cannot be listed, or of a location that is skipped.

        Args:
            location: the path; empty for a directory above locations.
        """
        self.errors.append((location, error))

    def skipped(self, found: TableLocation, evidence: Evidence) -> None:  # noqa: ARG002 - others show it
        """Take a location that is left alone because it is not known to be transactional."""
        self.unknown.append(found.shown)
        self.coverage.strangers += found.holds_something

    def looked_through(self, on_record: Callable[[str], int | None] = lambda _: None) -> Looked:
        """End the walk of all named places, and report a failure if too little was found.

        Args:
            on_record: returns the number of locations that the last run found at the same places.

        Returns:
            The number that later runs should find there.
        """
        looked = self.coverage.looked
        before = on_record(looked.where)
        status = max((error.exit_status for _, error in self.errors), default=0)
        if problem := self.coverage.problem(None if status else before):
            self.failed("", problem)
        return replace(looked, locations=looked.on_record(before, status, is_accepted=False))

    def saw(self, snapshot: Snapshot) -> None:
        """Take the state of a location before it is changed."""

    def note(self, text: str) -> None:
        """Take a remark."""

    def warn(self, text: str) -> None:
        """Take a warning."""

    def line_for(
        self,
        words: Sequence[str],
        places: Sequence[str],
        *,
        of_snapshot: bool = False,  # noqa: ARG002 - for those who know what the user typed
    ) -> str:
        """Return the line of a command for a hint, as it can be typed.

        Args:
            words: the command and its options.
            of_snapshot: repeat the options that say what is committed.
        """
        return shell_line(["acidctl", *words, *places])

    def confirm(self, question: Question) -> None:
        """Ask whether to go on.

        Raises:
            RefusedError: the answer was no, or nobody can be asked.
        """

    @contextmanager
    def progress(
        self,
        doing: str,  # noqa: ARG002 - for those who show it
        total: int,  # noqa: ARG002
        *,
        is_bytes: bool = False,  # noqa: ARG002
        coming: int | None = None,  # noqa: ARG002
    ) -> Iterator[Progress]:
        """Show the progress of the work within the block.

        Args:
            total: the number of steps, or of bytes.
            coming: the most outcomes that follow; default: as many as there are steps.
        """
        yield Progress()
