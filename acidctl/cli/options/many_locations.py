"""How a command processes its locations: whether it asks, how many at a time, and until when."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from acidctl.cli.report.verb_screen import confirm
from acidctl.errors import AcidctlError
from acidctl.location.change.lock import Locking
from acidctl.parallel import Stop, each

T = TypeVar("T")
R = TypeVar("R")


@dataclass(slots=True)
class Procedure:
    """How a command processes its locations.

    Attributes:
        yes: do not ask.
        locking: how to lock a location during the work.
        jobs: how many locations to process at a time.
    """

    yes: bool = False
    locking: Locking = field(default_factory=Locking)
    jobs: int = 1
    stop: Stop = field(default_factory=Stop)

    def each(
        self, items: Iterable[T], work: Callable[[T], R], failed: Callable[[T, AcidctlError], None]
    ) -> Iterator[tuple[T, R | None]]:
        """Yield each item with its result; None if the deadline came first.

        Args:
            failed: called with the item and the error instead.
        """
        for item, done in each(items, work, self.jobs, self.stop):
            if isinstance(done, AcidctlError):
                failed(item, done)
            else:
                yield item, done

    def confirm(self, what: str, question: str, undone: str, *, severe: str = "", instead: str = "") -> None:
        """Ask for confirmation unless :attr:`yes` is set; see :func:`acidctl.cli.report.verb_screen.confirm`.

        Raises:
            RefusedError: the answer was no, or nobody can answer.
        """
        confirm(what, question, undone, yes=self.yes, severe=severe, instead=instead)
