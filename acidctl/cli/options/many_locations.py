"""Work on many locations: threads, since stores make one wait; results in order; an end at a safe point."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from typing import TypeVar

import click

from acidctl.cli.output.console import can_ask, end_question
from acidctl.cli.output.verbosity import VERBOSITY
from acidctl.cli.report.folding import folder_of_table
from acidctl.errors import AcidctlError, RefusedError
from acidctl.location.change.lock import Locking
from acidctl.printable import printable
from acidctl.storage.port import base_name

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
        """The end of a run that begins now."""
        return cls(None if seconds is None else time.monotonic() + seconds)

    def is_due(self) -> bool:
        """Asked between two steps, where nothing is half-done."""
        return self.interrupted.is_set() or (self.until is not None and time.monotonic() >= self.until)


def in_order(items: Iterable[T], work: Callable[[T], R], jobs: int, stop: Stop) -> Iterator[tuple[T, R]]:
    """Each item with its result, in the order of the items, several at work at a time.

    Ctrl-C, and a signal that ends the run, lets what is at work come to a safe point (`work` asks `stop`), gives its
    results, and is raised then.

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

        def tried(item: T) -> R | AcidctlError | None:
            try:
                return None if self.stop.is_due() else work(item)
            except AcidctlError as error:
                return error

        for item, done in in_order(items, tried, self.jobs, self.stop):
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
        if self.yes:
            return
        if not can_ask():
            raise RefusedError(what, "there is no terminal to ask at", instead or "look at the plan, then give --yes")
        if VERBOSITY.is_quiet:
            raise RefusedError(what, "-q shows no plan to say yes to", instead or "leave -q out, or give --yes")
        if not _is_agreed(question, severe):
            raise RefusedError(undone, "it was not confirmed", instead)


def _is_agreed(question: str, severe: str) -> bool:
    """The answer; the end of the input is none."""
    try:
        if not severe:
            return click.confirm(question, err=True)
        typed = click.prompt(f"{question} Type {severe} to go on", default="", show_default=False, err=True)
    except click.Abort as end:
        if not isinstance(end.__context__, EOFError):
            raise
        end_question()
        return False
    return bool(typed.strip() == severe)


MOST_TABLES_BY_YES = 20
"""Tables that a `y` is enough for."""


def to_be_typed(locations: Iterable[str], *, is_for_good: bool = False) -> str:
    """What a severe question wants to be typed: the number of the tables, or the name of the only one; empty for none.

    Severe is what concerns many tables, and what cannot be undone.
    """
    tables = dict.fromkeys(map(folder_of_table, locations))
    if len(tables) > MOST_TABLES_BY_YES or (is_for_good and len(tables) > 1):
        return str(len(tables))
    return printable(base_name(next(iter(tables)))) if tables and is_for_good else ""
