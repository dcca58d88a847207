"""What is asked again, how often, and what is not."""

from __future__ import annotations

import pytest

from acidctl.base.errors import NotFoundError, StorageError
from acidctl.storage.retry import PassingError, RetryPolicy


def failing(times: int, error: Exception, answer: str = "done") -> tuple[list[int], object]:
    asked: list[int] = []

    def question() -> str:
        asked.append(1)
        if len(asked) <= times:
            raise error
        return answer

    return asked, question


@pytest.mark.parametrize("fails", [0, 1, 3])
def test_a_passing_failure_is_asked_again(fails: int) -> None:
    asked, question = failing(fails, PassingError("no connection"))
    assert RetryPolicy(retries=3).call(question) == "done"  # type: ignore[arg-type]
    assert len(asked) == fails + 1


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_retries_end_after_their_number(retries: int) -> None:
    asked, question = failing(99, PassingError("no connection"))
    with pytest.raises(PassingError):
        RetryPolicy(retries=retries).call(question)  # type: ignore[arg-type]
    assert len(asked) == retries + 1


@pytest.mark.parametrize("error", [StorageError("full"), NotFoundError("no"), ValueError("bug")])
def test_what_will_not_pass_is_asked_once(error: Exception) -> None:
    asked, question = failing(99, error)
    with pytest.raises(type(error)):
        RetryPolicy().call(question)  # type: ignore[arg-type]
    assert len(asked) == 1


def test_it_waits_longer_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("acidctl.storage.retry._FIRST_WAIT", 0.2)
    monkeypatch.setattr("acidctl.storage.retry._JITTER", 0.2)
    monkeypatch.setattr("acidctl.storage.retry.time.sleep", waits.append)
    asked, question = failing(99, PassingError("no connection"))
    with pytest.raises(PassingError):
        RetryPolicy(retries=4).call(question)  # type: ignore[arg-type]
    assert len(asked) == 5
    assert [0.2 * 2**turn <= wait <= 0.2 * 2**turn + 0.21 for turn, wait in enumerate(waits)] == [True] * 4, waits
