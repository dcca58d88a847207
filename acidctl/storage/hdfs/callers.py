"""Calls that know no timeout of their own, made by threads that are left behind when they do not return in time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

_Work = tuple["Future[Any]", Callable[[], Any]]


class Callers:
    """As many threads as there are calls at once.  They serve one call after the other, since a new thread takes
    longer than a short call, and none of them keeps the process from ending.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._idle: list[SimpleQueue[_Work]] = []

    def call(self, function: Callable[[], Any], timeout: float) -> Any:
        """What the function returns or raises.

        Raises:
            TimeoutError: it did not return in time; it may still be at it.
        """
        future: Future[Any] = Future()
        try:
            inbox = self._idle.pop()
        except IndexError:
            inbox = SimpleQueue()
            threading.Thread(target=self._serve, args=(inbox,), name=self._name, daemon=True).start()
        inbox.put((future, function))
        return future.result(timeout)

    def _serve(self, inbox: SimpleQueue[_Work]) -> None:
        while True:
            future, function = inbox.get()
            try:
                result = function()
            except BaseException as error:  # noqa: BLE001 - raised in the caller's thread
                self._idle.append(inbox)
                future.set_exception(error)
                result = None
            else:
                self._idle.append(inbox)
                future.set_result(result)
            del future, function, result  # nothing is held while waiting
