"""Calls with a timeout from outside."""

from __future__ import annotations

import threading

import pytest

from acidctl.storage.hdfs.native import Callers


def test_one_thread_serves_calls_one_after_the_other() -> None:
    callers = Callers("x")
    threads = {callers.call(threading.get_ident, 10) for _ in range(20)}
    assert len(threads) == 1
    assert threading.get_ident() not in threads


def test_what_is_raised_is_raised_here() -> None:
    class Panic(BaseException): ...

    def panic() -> None:
        raise Panic

    callers = Callers("x")
    for _ in range(2):
        with pytest.raises(Panic):
            callers.call(panic, 10)
    assert callers.call(lambda: 1, 10) == 1


def test_a_call_that_does_not_return_is_left_behind() -> None:
    callers, end = Callers("x"), threading.Event()
    with pytest.raises(TimeoutError):
        callers.call(end.wait, 0.01)
    assert callers.call(lambda: 1, 10) == 1
    end.set()
    assert callers.call(lambda: 2, 10) == 2
