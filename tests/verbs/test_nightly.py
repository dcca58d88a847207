"""The time of a nightly run: some of it is kept for cleaning and purging."""

from __future__ import annotations

import math

import pytest

from acidctl.verbs.nightly import time_to_compact


@pytest.mark.parametrize(("seconds", "kept"), [(600, 60), (4 * 3600, 1440), (12 * 3600, 1800), (0, 0)])
def test_some_time_is_left_for_cleaning(seconds: float, kept: float) -> None:
    assert time_to_compact(seconds) == pytest.approx(seconds - kept)


def test_without_an_end_compactions_have_none() -> None:
    assert time_to_compact(math.inf) == math.inf
