"""Calls with a timeout from outside."""

from __future__ import annotations

import threading

import pytest

from acidctl.storage.hdfs.native import call_within


def test_a_call_runs_in_a_thread_of_its_own() -> None:
    assert call_within(10, threading.get_ident) != threading.get_ident()


def test_what_is_raised_is_raised_here() -> None:
    class Panic(BaseException): ...

    def panic() -> None:
        raise Panic

    with pytest.raises(Panic):
        call_within(10, panic)


def test_a_call_that_does_not_return_is_left_behind() -> None:
    end = threading.Event()
    with pytest.raises(TimeoutError):
        call_within(0.01, end.wait)
    assert call_within(10, lambda: 1) == 1
    end.set()
