"""Checks many locations at once: their files share one pool of processes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

from acidctl.base.worker_pool import Pool, Runner
from acidctl.base.worker_process import Task
from acidctl.storage import registry
from acidctl.validation.checks.places import Misplaced
from acidctl.validation.location import Key, LocationCheck
from acidctl.validation.model import Options, Place, Report


def validate(
    places: Iterable[Place],
    options: Options,
    on_progress: Callable[[int, int], None] | None = None,
    runner: Runner | None = None,
) -> Iterator[Report]:
    """Check locations; yield the report of each as soon as it and those before it are complete.

    Problems of a location or a file are in its report; they are never raised.

    Args:
        on_progress: called with the numbers of finished tasks and of known tasks.
        runner: reads the files; the default is a pool of processes as the options set it.
    """
    with Pool(options.processes, options.limits) as pool, Pool(0) as in_process:
        yield from _Run(options, (runner or pool, in_process), on_progress).reports(places)


class _Run:
    def __init__(
        self, options: Options, pools: tuple[Runner, Runner], on_progress: Callable[[int, int], None] | None
    ) -> None:
        self._options = options
        self._pools = pools
        self._on_progress = on_progress
        self._checks: dict[int, LocationCheck] = {}
        self._out: dict[int, tuple[int, Key, Task]] = {}
        self._numbers = itertools.count()
        self._complete: dict[int, Report] = {}
        self._due = 0
        self._done = 0
        self._misplaced = Misplaced()

    def reports(self, places: Iterable[Place]) -> Iterator[Report]:
        """Start locations while the queue is short, and finish them as their results arrive."""
        enough = self._pools[0].ahead
        waiting = iter(enumerate(places))
        more = True
        while more or self._checks:
            while more and len(self._out) < enough:
                number, place = next(waiting, (0, None))
                if place is None:
                    more = False
                else:
                    yield from self._begin(number, place)
            for pool in self._pools:
                for number, result in pool.results():
                    yield from self._take(number, result, pool)

    def _begin(self, number: int, place: Place) -> Iterator[Report]:
        check = self._checks[number] = LocationCheck(place, self._options)
        pool = self._pools[0 if registry.is_shared(place.fs.spec) else 1]  # no other process can read a store in memory
        self._submit(number, check.start(), pool)
        check.add(self._misplaced.check(place, has_directories=check.has_directories))
        yield from self._ended(number)

    def _take(self, task_number: int, result: object, pool: Runner) -> Iterator[Report]:
        number, key, task = self._out.pop(task_number)
        self._done += 1
        self._submit(number, self._checks[number].take(key, task, result), pool)
        if self._on_progress is not None:
            self._on_progress(self._done, self._done + len(self._out))
        yield from self._ended(number)

    def _submit(self, number: int, tasks: Iterable[tuple[Key, Task]], pool: Runner) -> None:
        for key, task in tasks:
            task_number = next(self._numbers)
            self._out[task_number] = (number, key, task)
            pool.submit(task_number, task)

    def _ended(self, number: int) -> Iterator[Report]:
        """Yield the reports that are due, in the order of the locations, so that two runs print the same."""
        if self._checks[number].is_done:
            report = self._complete[number] = self._checks.pop(number).report
            report.sort()
        while self._due in self._complete:
            yield self._complete.pop(self._due)
            self._due += 1
