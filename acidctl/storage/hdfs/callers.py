"""Time out calls that have no timeout of their own, in threads that are left behind if they do not return."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

_Work = tuple["Future[Any]", Callable[[], Any]]


class Callers:
    """Threads that run calls, as many as there are calls at once, and that do not keep the process from ending.

    A thread serves one call after the other, since starting a thread takes longer than a short call.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._idle: list[SimpleQueue[_Work]] = []

    def call(self, function: Callable[[], Any], timeout: float) -> Any:
        """Return or raise the result of the function.

        Raises:
            TimeoutError: the function did not return in time; it may still be running.
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
            del future, function, result  # hold no objects while waiting
