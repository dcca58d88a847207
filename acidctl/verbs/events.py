"""What a verb says while it works: the command line shows it, services log it, Python is silent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from acidctl.location.coverage import Coverage

if TYPE_CHECKING:
    from acidctl.errors import AcidctlError
    from acidctl.location.evidence import Evidence
    from acidctl.location.find import Found
    from acidctl.location.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Question:
    """What a user is asked before anything is changed.

    Attributes:
        what: would be done, for who cannot be asked: ``3 entries (1.2 MiB) would be removed``.
        text: the question itself.
        undone: what is true after a no: ``nothing was removed``.
        locations: which it concerns.
        is_for_good: it cannot be undone.
    """

    what: str
    text: str
    undone: str
    locations: tuple[str, ...]
    is_for_good: bool = False


class Progress(Protocol):
    """Counts steps that are done; any thread may call it."""

    def advance(self, count: int = 1) -> None:
        """Count more steps as done."""
        ...


class Uncounted:
    """Counts nothing."""

    def advance(self, count: int = 1) -> None:
        """Do nothing."""


class Events:
    """Receives what happens besides outcomes. This one is silent: calling a function in Python is consent.

    Attributes:
        coverage: counts the locations at each named place, and what was not looked at.
        errors: failures that belong to no outcome, each with its location.
    """

    def __init__(self) -> None:
        self.coverage = Coverage()
        self.errors: list[tuple[str, AcidctlError]] = []

    @property
    def is_whole(self) -> bool:
        """Whether nothing failed so far."""
        return not self.errors

    def failed(self, location: str, error: AcidctlError) -> None:
        """Take the error of a directory that cannot be listed, or of a location that is passed over.

        Args:
            location: empty for a directory above locations.
        """
        self.errors.append((location, error))

    def skipped(self, found: Found, evidence: Evidence) -> None:
        """Take a location that is left alone, since it is not known to be transactional."""

    def looked_through(self) -> object:
        """Take the end of the walk: :attr:`coverage` is complete."""

    def saw(self, snapshot: Snapshot) -> None:
        """Take the state of a location before it is changed."""

    def note(self, text: str) -> None:
        """Take a remark."""

    def warn(self, text: str) -> None:
        """Take a warning."""

    def confirm(self, question: Question) -> None:
        """Ask whether to go on.

        Raises:
            RefusedError: the answer was no, or nobody can be asked.
        """

    @contextmanager
    def progress(self, doing: str, total: int) -> Iterator[Progress]:  # noqa: ARG002 - for those who show it
        """Show how far the work within the block is."""
        yield Uncounted()
