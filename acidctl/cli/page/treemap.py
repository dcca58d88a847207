"""Squarified treemaps (Bruls, Huizing, van Wijk, 2000): rectangles with given areas, as square as they can be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Box(NamedTuple):
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float


def squarified(weights: Sequence[float], frame: Box) -> list[Box]:
    """A rectangle for each weight: they fill the frame, do not overlap, and have areas in proportion.

    Args:
        weights: above 0, best from the largest to the smallest.
    """
    total = sum(weights)
    scale = frame.width * frame.height / total if total else 0.0
    areas = [weight * scale for weight in weights]
    boxes: list[Box] = []
    start = 0
    while start < len(areas):
        side = min(frame.width, frame.height)
        end = start + 1
        while end < len(areas) and _worst(areas[start : end + 1], side) <= _worst(areas[start:end], side):
            end += 1
        strip, frame = _strip(areas[start:end], frame, is_last=end == len(areas))
        boxes += strip
        start = end
    return boxes


def _worst(areas: Sequence[float], side: float) -> float:
    """The worst ratio of sides when these lie along a side together."""
    total = sum(areas)
    if not (total and side):
        return float("inf")
    return max(side * side * max(areas) / total**2, total**2 / (side * side * min(areas)))


def _strip(areas: Sequence[float], frame: Box, *, is_last: bool) -> tuple[list[Box], Box]:
    """The boxes along the shorter side of a frame, and what is left of it."""
    boxes: list[Box] = []
    x, y, total = frame.x, frame.y, sum(areas)
    is_wide = frame.width >= frame.height
    side, length = (frame.height, frame.width) if is_wide else (frame.width, frame.height)
    depth = length if is_last else min(length, total / side) if side else 0.0
    for area in areas:
        part = side * area / total if total else 0.0
        boxes.append(Box(x, y, depth, part) if is_wide else Box(x, y, part, depth))
        x, y = (x, y + part) if is_wide else (x + part, y)
    if is_wide:
        return boxes, Box(frame.x + depth, frame.y, frame.width - depth, frame.height)
    return boxes, Box(frame.x, frame.y + depth, frame.width, frame.height - depth)
