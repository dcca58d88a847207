"""Base of the services of Hive's queue: choose tables, count results, and check again and again despite errors."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event

from acidctl.base.errors import AcidctlError, UsageProblem
from acidctl.hive.table_names import as_hive_names
from acidctl.metastore.client import Metastore

_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 60.0


class Tables:
    """The tables that a service is for.

    Args:
        names: patterns of tables, ``db.table`` or ``db.*``; all tables by default.
    """

    def __init__(
        self, names: Sequence[str] = (), exclude: Sequence[str] = (), storage: Mapping[str, str] | None = None
    ) -> None:
        self.names, self.exclude, self.storage = as_hive_names(names or ("*.*",)), tuple(exclude), storage or {}


@dataclass(slots=True)
class Counts:
    """Counters of a service; each service uses some of them.

    Attributes:
        checked: when the metastore last answered in full, in seconds since the epoch.
        seconds: duration of the last check, or of all entries.
    """

    results: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)
    marked: int = 0
    rounds: int = 0
    running: int = 0
    checked: float = 0.0
    seconds: float = 0.0
    failing: bool = False
    leading: bool = False


class Service:
    """Base of the services that check in rounds."""

    def __init__(self, metastore: Metastore, on_failure: Callable[[AcidctlError], None]) -> None:
        self._metastore, self._on_failure = metastore, on_failure
        self._stopping = Event()
        self.counts = Counts()

    def stop(self) -> None:
        """Stop before the next location or entry."""
        self._stopping.set()

    def _round_failed(self, error: AcidctlError) -> None:
        self.counts.failing = True
        self._on_failure(error)

    def _round_ended(self, start: float) -> None:
        self.counts.rounds += 1
        self.counts.checked, self.counts.seconds = time.time(), time.monotonic() - start
        self.counts.failing = False

    def _repeat(self, check: Callable[[], None], every: float) -> None:
        """Call `check` until :meth:`stop`; after a failure, retry sooner, with growing pauses.

        Args:
            every: seconds from the start of a check to the start of the next.
        """
        pause = _FIRST_PAUSE
        while not self._stopping.is_set():
            start = time.monotonic()
            try:
                check()
                pause, wait = _FIRST_PAUSE, every - (time.monotonic() - start)
            except AcidctlError as error:
                self._round_failed(error)
                pause = min(2 * pause, _LONGEST_PAUSE)
                wait = min(pause, every)
            self._stopping.wait(max(wait, 0.0))


def require_queue(metastore: Metastore) -> None:
    """Refuse a server before Hive 4, whose queue is closed to services outside of it."""
    if not metastore.features.txn_types:
        raise UsageProblem(
            f"the metastore {metastore.shown} takes no workers and cleaners outside of it",
            "that came with Hive 4",
            "work on its tables: `acidctl compact --auto`, `acidctl clean`",
        )
