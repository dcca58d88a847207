"""Work on many items in threads, since stores make each wait: results in order, and an end at a safe point.

Pools of threads are made here, and in the client of WebHDFS, which lists directories ahead. Elsewhere a bare thread
does one thing beside the main one, such as a heartbeat or a progress line, and :mod:`acidctl.base.worker_pool` has
processes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeVar

from acidctl.base.deadline import Deadline
from acidctl.base.errors import AcidctlError, unexpected

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

T = TypeVar("T")
R = TypeVar("R")

STORE_THREADS = 16
"""Threads that wait for a store at the same time; clients keep at least as many connections."""


@contextmanager
def threads(jobs: int, name: str) -> Iterator[ThreadPoolExecutor]:
    """Give a pool of threads for work that may be left: its end cancels what waits, and waits for nothing.

    Args:
        jobs: the number of threads.
        name: the beginning of their names.
    """
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - with logging: only where threads are needed

    pool = ThreadPoolExecutor(jobs, name)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def in_order(
    items: Iterable[T],
    work: Callable[[T], R],
    jobs: int = STORE_THREADS,
    stop: Deadline | None = None,
    *,
    ahead: int = 0,
    is_quick: Callable[[T], bool] = lambda _: False,
) -> Iterator[tuple[T, R]]:
    """Yield each item with its result, in order, with several items at work at a time.

    After Ctrl-C, or a signal that ends the run, running work comes to a safe point; its results are yielded, and then
    KeyboardInterrupt is raised.

    Args:
        work: runs in a thread.
        stop: the deadline that `work` looks at; without it, items that wait for a thread are left out after Ctrl-C.
        ahead: the most results that wait for the caller; by default twice the jobs.
        is_quick: returns whether an item needs no thread: on a local disk threads only block each other.
    """
    waiting: deque[tuple[T, Future[R]]] = deque()
    asks_stop, stop = stop is not None, stop or Deadline()
    is_interrupted = False
    pool: ThreadPoolExecutor | None = None
    with ExitStack() as stack:

        def result(future: Future[R]) -> R:
            nonlocal is_interrupted
            try:
                return future.result()
            except KeyboardInterrupt:
                if is_interrupted:
                    raise
                is_interrupted = True
                stop.end_now()
                for _, later in () if asks_stop else waiting:
                    later.cancel()
                return future.result()

        try:
            for item in items:
                if not waiting and is_quick(item):
                    yield item, work(item)
                    continue
                if pool is None:
                    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - with logging: only for threads

                    pool = stack.enter_context(ThreadPoolExecutor(jobs, "acidctl-work"))
                waiting.append((item, pool.submit(work, item)))
                if len(waiting) > (ahead or 2 * jobs):
                    done, future = waiting.popleft()
                    yield done, result(future)
                if is_interrupted:
                    break
            while waiting:
                done, future = waiting.popleft()
                if not future.cancelled():
                    yield done, result(future)
        except BaseException:
            stop.end_now()
            for _, future in waiting:
                future.cancel()
            raise
    if is_interrupted:
        raise KeyboardInterrupt


def results(work: Callable[[T], R], items: Iterable[T], jobs: int = STORE_THREADS, *, ahead: int = 0) -> Iterator[R]:
    """Yield the result of each item in order, as :func:`in_order` does; a single item is done in this thread."""
    rest = iter(items)
    first = list(islice(rest, 2))
    if len(first) < 2:
        yield from map(work, first)
        return
    for _, result in in_order(chain(first, rest), work, jobs, ahead=ahead):
        yield result


def each(
    items: Iterable[T], work: Callable[[T], R], jobs: int, stop: Deadline
) -> Iterator[tuple[T, R | AcidctlError | None]]:
    """Yield each item with its result or its error, or None if the end came first; see :func:`in_order`.

    A bug in the work on one item is the error of that item alone.
    """

    def tried(item: T) -> R | AcidctlError | None:
        try:
            return None if stop.is_over else work(item)
        except Exception as error:  # noqa: BLE001 - the other items go on
            return unexpected(error)

    return in_order(items, tried, jobs, stop)
