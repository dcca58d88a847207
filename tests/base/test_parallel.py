"""Threads over many items: results in order, errors where they belong, and an end at a safe point."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from acidctl.base.deadline import Deadline
from acidctl.base.errors import StorageError, UnexpectedError
from acidctl.base.parallel import each, in_order, results


def test_results_come_in_the_order_of_the_items() -> None:
    def slow_first(item: int) -> int:
        time.sleep(0.05 if item == 0 else 0)
        return item * item

    assert list(results(slow_first, range(20), jobs=4)) == [item * item for item in range(20)]
    assert list(results(slow_first, [])) == []


def test_a_single_item_and_quick_ones_need_no_thread() -> None:
    def name(_: str) -> str:
        return threading.current_thread().name

    names = {*results(name, ["a"]), *(name for _, name in in_order("abc", name, is_quick=lambda _: True))}
    assert names == {threading.current_thread().name}


def test_only_some_items_are_taken_before_their_results_are() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for item in range(100):
            taken.append(item)
            yield item

    found = results(lambda item: item, items(), jobs=2, ahead=3)
    assert next(found) == 0
    assert len(taken) <= 5


def test_an_error_ends_the_rest() -> None:
    done: list[int] = []

    def work(item: int) -> None:
        if item == 3:
            raise StorageError("no")
        time.sleep(0.01)
        done.append(item)

    with pytest.raises(StorageError):
        list(results(work, range(1000), jobs=2))
    assert len(done) < 20


def test_each_item_has_its_error_or_its_result() -> None:
    def work(item: int) -> int:
        if item % 2:
            raise StorageError(str(item))
        return item

    found = dict(each(range(4), work, 2, Deadline()))
    assert (found[0], found[2]) == (0, 2)
    assert isinstance(found[1], StorageError)
    stopped = Deadline()
    stopped.end_now()
    assert dict(each(range(2), work, 2, stopped)) == {0: None, 1: None}


@pytest.mark.parametrize("asks", [True, False])
def test_after_an_interrupt_what_is_at_work_ends_and_the_rest_is_left_out(
    asks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work that is told when to end is done for all; other work that has no thread yet is not begun."""
    began, may_end = threading.Event(), threading.Event()
    done: list[int] = []

    def work(item: int) -> int:
        began.set()
        may_end.wait(10)
        done.append(item)
        return item

    waits = Future.result

    def interrupted(future: Future[int], timeout: float | None = None) -> int:
        monkeypatch.setattr(Future, "result", waits)
        began.wait(10)
        threading.Timer(0.05, may_end.set).start()
        raise KeyboardInterrupt

    monkeypatch.setattr(Future, "result", interrupted)
    found: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        for item, _ in in_order(range(4), work, 1, Deadline() if asks else None):
            found.append(item)
    assert found == ([0, 1, 2] if asks else [0]), "3 was not taken yet"
    assert done == found


def test_a_bug_in_one_item_is_the_error_of_that_item() -> None:
    def work(item: int) -> int:
        if item == 1:
            raise ValueError("odd")
        return item

    first, bug, last = (result for _, result in each(range(3), work, 2, Deadline()))
    assert (first, last) == (0, 2)
    assert isinstance(bug, UnexpectedError)
    assert "in work" in bug.trace
