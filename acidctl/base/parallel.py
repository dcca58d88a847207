"""Work on many things: threads, since stores make one wait; results in order; an end at a safe point."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from typing import TypeVar

from acidctl.base.errors import AcidctlError

T = TypeVar("T")
R = TypeVar("R")


@dataclass(slots=True)
class Stop:
    """When to end: at once after a signal, or when the time is up.

    Attributes:
        until: ``time.monotonic()``; None for no end.
    """

    until: float | None = None
    interrupted: Event = field(default_factory=Event)

    @classmethod
    def after(cls, seconds: float | None) -> Stop:
        """Return the end of a run that begins now."""
        return cls(None if seconds is None else time.monotonic() + seconds)

    def is_due(self) -> bool:
        """Return whether to end now; callers ask between two steps, where nothing is half-done."""
        return self.interrupted.is_set() or (self.until is not None and time.monotonic() >= self.until)


def in_order(items: Iterable[T], work: Callable[[T], R], jobs: int, stop: Stop) -> Iterator[tuple[T, R]]:
    """Yield each item with its result, in the order of the items, with several at work at a time.

    After Ctrl-C, or a signal that ends the run, what is at work comes to a safe point (`work` asks `stop`); its results
    are yielded, and then KeyboardInterrupt is raised.

    Args:
        work: runs in a thread.
    """
    waiting: deque[tuple[T, Future[R]]] = deque()
    is_interrupted = False
    with ThreadPoolExecutor(jobs, "acidctl-work") as pool:

        def result(future: Future[R]) -> R:
            nonlocal is_interrupted
            try:
                return future.result()
            except KeyboardInterrupt:
                if is_interrupted:
                    raise
                is_interrupted = True
                stop.interrupted.set()
                return future.result()

        try:
            for item in items:
                waiting.append((item, pool.submit(work, item)))
                if len(waiting) > 2 * jobs:
                    done, future = waiting.popleft()
                    yield done, result(future)
                if is_interrupted:
                    break
            while waiting:
                done, future = waiting.popleft()
                yield done, result(future)
        except BaseException:
            stop.interrupted.set()
            for _, future in waiting:
                future.cancel()
            raise
    if is_interrupted:
        raise KeyboardInterrupt


def each(
    items: Iterable[T], work: Callable[[T], R], jobs: int, stop: Stop
) -> Iterator[tuple[T, R | AcidctlError | None]]:
    """Yield each item with its result or its error, or None if the end came first; see :func:`in_order`."""

    def tried(item: T) -> R | AcidctlError | None:
        try:
            return None if stop.is_due() else work(item)
        except AcidctlError as error:
            return error

    return in_order(items, tried, jobs, stop)
