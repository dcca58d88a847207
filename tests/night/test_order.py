"""What comes first in a night, how much is compacted together, and what time is left for cleaning."""

from __future__ import annotations

import math
import time
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidctl.compaction.request import Waiting
from acidctl.deadline import Deadline
from acidctl.night.order import Due, NightPlace, NightRequest, next_batch
from acidctl.night.policy import TablePolicy


def due(location: str, gain: float, priority: int | None = None, *, has_waited: bool = False, tasks: int = 1) -> Due:
    place = NightPlace(cast("Any", None), TablePolicy(priority=priority), ())
    return Due(place, Waiting(cast("Any", None), location, 0, 0, tasks, 0), gain, has_waited)


DUE = st.builds(
    due,
    location=st.text("abc", min_size=1, max_size=3),
    gain=st.floats(0, 9),
    priority=st.none() | st.integers(-1, 1),
    has_waited=st.booleans(),
    tasks=st.integers(1, 40),
)


@given(DUE, DUE)
def test_priority_then_what_has_waited_then_gain(one: Due, other: Due) -> None:
    first, second = sorted((one, other), key=lambda found: found.rank)
    a, b = first.place.policy.priority or 0, second.place.policy.priority or 0
    if a != b:
        assert a > b
    elif first.has_waited != second.has_waited:
        assert first.has_waited
    else:
        assert first.gain >= second.gain


@given(st.lists(DUE, max_size=80), st.integers(1, 4))
def test_batches_are_all_of_it_in_order_and_none_is_empty(every: list[Due], cores: int) -> None:
    left, batches = every, []
    while left:
        batches.append(next_batch(left, cores))
        left = left[len(batches[-1]) :]
    assert [one for batch in batches for one in batch] == every
    for batch in batches:
        *others, _ = batch
        assert sum(one.waiting.tasks for one in others) < 4 * cores
        assert len(batch) <= 50


@pytest.mark.parametrize(("seconds", "kept"), [(600, 60), (4 * 3600, 1440), (12 * 3600, 1800), (0, 0)])
def test_some_time_is_left_for_cleaning(seconds: float, kept: float) -> None:
    until = Deadline(time.monotonic() + seconds)
    assert until.at - NightRequest(until=until).until_cleaning().at == pytest.approx(kept, abs=1)


def test_without_an_end_nothing_is_kept() -> None:
    assert NightRequest().until_cleaning().at == math.inf
