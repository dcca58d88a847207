"""A nightly run: some of its time is kept for cleaning and purging, and each step says its part."""

from __future__ import annotations

import math

import pytest

from acidctl.outcome import Outcome, Result
from acidctl.verbs.nightly import Part, Step, time_to_compact


@pytest.mark.parametrize(("seconds", "kept"), [(600, 60), (4 * 3600, 1440), (12 * 3600, 1800), (0, 0)])
def test_some_time_is_left_for_cleaning(seconds: float, kept: float) -> None:
    assert time_to_compact(seconds) == pytest.approx(seconds - kept)


def test_without_an_end_compactions_have_none() -> None:
    assert time_to_compact(math.inf) == math.inf


def test_the_part_of_a_step_is_a_member_of_the_enum_for_python_and_a_word_in_json() -> None:
    of = Outcome(location="/t", result=Result.POSTPONED)
    step = Step(location="/t", result=of.result, part=Part.CLEAN, of=of, run="r")
    assert step.part is Part.CLEAN
    assert step.record()["part"] == "clean"
    assert of.part == ""
