"""How a command goes about its locations: whether it asks, how many at a time, and until when."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from acidctl.cli.report.asking import confirm
from acidctl.errors import AcidctlError
from acidctl.location.change.lock import Locking
from acidctl.parallel import Stop, each

T = TypeVar("T")
R = TypeVar("R")


@dataclass(slots=True)
class Procedure:
    """How a command goes about its locations.

    Attributes:
        yes: do not ask.
        locking: how others are kept away from a location while working there.
        jobs: locations at a time.
    """

    yes: bool = False
    locking: Locking = field(default_factory=Locking)
    jobs: int = 1
    stop: Stop = field(default_factory=Stop)

    def each(
        self, items: Iterable[T], work: Callable[[T], R], failed: Callable[[T, AcidctlError], None]
    ) -> Iterator[tuple[T, R | None]]:
        """Each item with its result; None where the end came first.

        Args:
            failed: told of the errors, instead.
        """

        for item, done in each(items, work, self.jobs, self.stop):
            if isinstance(done, AcidctlError):
                failed(item, done)
            else:
                yield item, done

    def confirm(self, what: str, question: str, undone: str, *, severe: str = "", instead: str = "") -> None:
        """Ask, where somebody can answer.

        Args:
            instead: what else can be given, where it is not --yes.
            severe: where a `y` is not enough: what is typed instead, the number of tables or the name of the one.

        Raises:
            RefusedError: the answer was no, or there is no terminal and no --yes.
        """
        confirm(what, question, undone, yes=self.yes, severe=severe, instead=instead)
