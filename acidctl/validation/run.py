"""Check many locations at once: their files share one pool of processes."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator

from acidctl.validation.findings import Finding, Severity
from acidctl.validation.isolate import Pool, Task
from acidctl.validation.location import Key, LocationCheck
from acidctl.validation.model import Options, Place, Report
from acidctl.validation.rules import rule

_AHEAD = 4
"""Tasks in the queue for every process; below that, the next location is begun."""


def validate(
    places: Iterable[Place], options: Options, on_progress: Callable[[int, int], None] | None = None
) -> Iterator[Report]:
    """Check locations; a report of each as soon as it and those before it are complete.

    Nothing that is wrong with a location or a file is raised: it is in its report.

    Args:
        on_progress: called with (tasks that ended, tasks known so far).
    """
    with Pool(options.processes, options.limits) as pool, Pool(0) as here:
        yield from _Run(options, (pool, here), on_progress).reports(places)


class _Run:
    """The locations that are being checked, and the tasks that are out for them."""

    def __init__(
        self, options: Options, pools: tuple[Pool, Pool], on_progress: Callable[[int, int], None] | None
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
        self._tables: dict[str, str] = {}
        self._told: set[str] = set()

    def reports(self, places: Iterable[Place]) -> Iterator[Report]:
        """Begin locations while the queue is short, and end them as their results come."""
        enough = _AHEAD * max(1, self._options.processes)
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
        # What lives in this process cannot be read from another.
        pool = self._pools[place.fs.spec.protocol == "memory"]
        self._submit(number, check.start(), pool)
        check.report.findings += (finding for finding in self._misplaced(place, check) if self._options.wants(finding))
        yield from self._ended(number)

    def _take(self, task_number: int, result: object, pool: Pool) -> Iterator[Report]:
        number, key, task = self._out.pop(task_number)
        self._done += 1
        self._submit(number, self._checks[number].take(key, task, result), pool)
        if self._on_progress is not None:
            self._on_progress(self._done, self._done + len(self._out))
        yield from self._ended(number)

    def _submit(self, number: int, tasks: Iterable[tuple[Key, Task]], pool: Pool) -> None:
        for key, task in tasks:
            task_number = next(self._numbers)
            self._out[task_number] = (number, key, task)
            pool.submit(task_number, task)

    def _ended(self, number: int) -> Iterator[Report]:
        """The reports that are due: in the order of the locations, so that two runs print the same."""
        if self._checks[number].is_done:
            self._complete[number] = self._checks.pop(number).report
        while self._due in self._complete:
            yield self._complete.pop(self._due)
            self._due += 1

    def _misplaced(self, place: Place, check: LocationCheck) -> Iterator[Finding]:
        """Rule V40: ACID directories in the table's own directory; a partition that is a link to elsewhere."""
        if not place.partition:
            if check.has_directories:
                self._tables[place.path] = place.fs.display(place.path)
            return
        table = place.path.rsplit("/", len(place.partition))[0]
        if table in self._tables and table not in self._told:
            self._told.add(table)
            text = f"the table's own directory {self._tables[table]} holds ACID directories too"
            yield rule("V40").finding("", text, {"table": self._tables[table]})
        local, root = place.fs.local_path(place.path), place.fs.local_path(table)
        if local is not None and root is not None:
            real = os.path.realpath(local)
            if os.path.commonpath([real, os.path.realpath(root)]) != os.path.realpath(root):
                text = f"it is a link to {real}, outside of the table's directory"
                yield rule("V40").finding("", text, {"target": real}, Severity.INFO)
