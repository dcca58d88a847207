"""Treemaps: areas in proportion, nothing overlaps, all inside of the frame."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidctl.cli.page.treemap import Box, squarified

weights = st.lists(st.floats(1, 1e12), min_size=1, max_size=60).map(lambda found: sorted(found, reverse=True))
frames = st.builds(Box, st.floats(0, 50), st.floats(0, 50), st.floats(10, 2000), st.floats(10, 2000))


@given(weights, frames)
def test_areas_are_in_proportion_and_fill_the_frame(sizes: list[float], frame: Box) -> None:
    boxes = squarified(sizes, frame)
    whole = frame.width * frame.height
    assert len(boxes) == len(sizes)
    assert sum(box.width * box.height for box in boxes) == pytest.approx(whole, rel=1e-6)
    for size, box in zip(sizes, boxes, strict=True):
        assert box.width * box.height == pytest.approx(whole * size / sum(sizes), rel=1e-6, abs=whole * 1e-9)


@given(weights, frames)
def test_all_are_inside_and_none_overlap(sizes: list[float], frame: Box) -> None:
    boxes = squarified(sizes, frame)
    slack = 1e-6 * max(frame.width, frame.height)
    for box in boxes:
        assert box.width >= 0 <= box.height
        assert frame.x - slack <= box.x
        assert box.x + box.width <= frame.x + frame.width + slack
        assert frame.y - slack <= box.y
        assert box.y + box.height <= frame.y + frame.height + slack
    for place, one in enumerate(boxes):
        for other in boxes[place + 1 :]:
            across = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
            down = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
            assert across <= slack or down <= slack


def test_the_example_of_the_paper() -> None:
    """Bruls, Huizing, van Wijk: areas 6, 6, 4, 3, 2, 2, 1 in a frame of 6 by 4."""
    boxes = squarified([6, 6, 4, 3, 2, 2, 1], Box(0, 0, 6, 4))
    assert [(round(b.width, 2), round(b.height, 2)) for b in boxes] == [
        (3, 2), (3, 2), (1.71, 2.33), (1.29, 2.33), (1.2, 1.67), (1.2, 1.67), (0.6, 1.67),
    ]  # fmt: skip


def test_nothing_gives_nothing_and_equal_ones_are_alike() -> None:
    assert squarified([], Box(0, 0, 10, 10)) == []
    areas = [box.width * box.height for box in squarified([1] * 9, Box(0, 0, 30, 30))]
    assert all(one == pytest.approx(next_) for one, next_ in pairwise(areas))
