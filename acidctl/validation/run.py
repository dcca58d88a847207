"""Check many locations at once: their files share one pool of processes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from acidctl.base.errors import unexpected
from acidctl.base.worker_pool import Pool, Runner
from acidctl.storage import registry
from acidctl.validation.checks.whole_location import FormatsOfTables, Misplaced
from acidctl.validation.location import AnyTask, LocationCheck
from acidctl.validation.report import CheckOptions, LocationToCheck, Report


def check_locations(
    targets: Iterable[LocationToCheck],
    options: CheckOptions,
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
        yield from _Run(options, runner or pool, in_process, on_progress).reports(targets)


@dataclass(slots=True)
class _Running:
    """A location that is being checked.

    Attributes:
        results: of the tasks of its present phase, in their order; None for one that is not done.
    """

    check: LocationCheck
    steps: Generator[Sequence[AnyTask], list[Any]]
    pool: Runner
    results: list[Any] = field(default_factory=list)
    waiting: int = 0


class _Run:
    def __init__(
        self,
        options: CheckOptions,
        runner: Runner,
        in_process: Runner,
        on_progress: Callable[[int, int], None] | None,
    ) -> None:
        self._options, self._runner, self._in_process = options, runner, in_process
        self._on_progress = on_progress
        self._running: dict[int, _Running] = {}
        self._out: dict[int, tuple[int, int]] = {}  # number of a task -> its location and index among the results
        self._numbers = itertools.count()
        self._complete: dict[int, Report] = {}
        self._due = self._done = 0
        self._misplaced, self._formats = Misplaced(), FormatsOfTables()

    def reports(self, targets: Iterable[LocationToCheck]) -> Iterator[Report]:
        """Start locations while the queue is short, and finish them as their results arrive."""
        coming = enumerate(targets)
        more = True
        while more or self._running:
            while more and len(self._out) < self._runner.ahead:
                number, target = next(coming, (0, None))
                more = target is not None
                if target is not None:
                    self._begin(number, target)
                    yield from self._ended()
            for pool in (self._runner, self._in_process):
                for task_number, result in pool.results():
                    self._take(task_number, result)
                    yield from self._ended()

    def _begin(self, number: int, target: LocationToCheck) -> None:
        check = LocationCheck(target, self._options, self._misplaced, self._formats)
        # No other process can read a store in memory.
        pool = self._runner if registry.is_shared(target.fs.spec) else self._in_process
        self._running[number] = _Running(check, check.steps(), pool)
        self._go_on(number, None)

    def _take(self, task_number: int, result: object) -> None:
        number, index = self._out.pop(task_number)
        running = self._running[number]
        running.results[index] = result
        running.waiting -= 1
        self._done += 1
        if not running.waiting:
            self._go_on(number, running.results)
        if self._on_progress is not None:
            self._on_progress(self._done, self._done + len(self._out))

    def _go_on(self, number: int, results: list[Any] | None) -> None:
        """Give a location the results of its phase, and submit the tasks of the next that has any."""
        running = self._running[number]
        tasks: Sequence[AnyTask] = ()
        while not tasks:
            try:
                tasks, results = running.steps.send(results), []  # type: ignore[arg-type]  # None starts it
            except StopIteration:
                self._complete[number] = self._running.pop(number).check.report()
                return
            except Exception as error:  # noqa: BLE001 - the other locations go on
                check = self._running.pop(number).check
                check.not_checked("", unexpected(error))
                self._complete[number] = check.report()
                return
        running.results, running.waiting = [None] * len(tasks), len(tasks)
        for index, task in enumerate(tasks):
            task_number = next(self._numbers)
            self._out[task_number] = number, index
            running.pool.submit(task_number, task)

    def _ended(self) -> Iterator[Report]:
        """Yield the reports that are due, in the order of the locations, so that two runs print the same."""
        while self._due in self._complete:
            yield self._complete.pop(self._due)
            self._due += 1
