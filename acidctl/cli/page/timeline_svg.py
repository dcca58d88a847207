"""The timeline of a location as SVG: the same lanes and heights as on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from markupsafe import Markup

from acidctl.cli.page.rendering import rendered, resource
from acidctl.overview.lanes import STEP, STEPS, LaneRow, Lanes, heights
from acidctl.wording import human_bytes, human_count, span

Text = tuple[float, float, str, str]
"""x, y, class, text."""

Line = tuple[float, float, float, float, str]
"""x1, y1, x2, y2, class."""

Box = tuple[float, float, float, float, str]
"""x, y, width, height, class."""

_COLUMNS = 320
_LEFT, _STATE, _WIDTH, _ROW, _GAP, _TOP, _MARGIN = 240, 58, 640, 26, 10, 22, 16


def timeline_document(location: str, lanes: Lanes) -> str:
    """Return the picture as a file of its own, with its style."""
    return _rendered(location, lanes, "timeline", is_alone=True)


def timeline_picture(location: str, lanes: Lanes, name: str) -> Markup:
    """Return the picture as an element of a page; its description says in words what it shows.

    Args:
        name: the prefix of its elements' ids, unique in the document.
    """
    return Markup(_rendered(location, lanes, name, is_alone=False))


def _rendered(location: str, lanes: Lanes, name: str, *, is_alone: bool) -> str:
    height = _TOP + len(lanes.rows) * (_ROW + _GAP) + 24
    columns = lanes.columns(_COLUMNS)
    drawn, highest = heights([lanes.amounts(row, columns) for row in lanes.rows])
    scale = _WIDTH / _COLUMNS if columns == _COLUMNS else min(_WIDTH / columns, 24)
    end = _LEFT + columns * scale
    foot = height - 8
    texts: list[Text] = [(0, 14, "quiet", "write ids"), (_LEFT, 14, "quiet", f"{lanes.low}")]
    if lanes.high > lanes.low:
        texts.append((end, 14, "quiet end", f"{lanes.high}"))
    texts.append((0, foot, "quiet", f"full height: {human_bytes(highest)}; an eighth lower: {STEP} times less"))
    lines: list[Line] = []
    boxes: list[Box] = []
    for number, (row, line) in enumerate(zip(lanes.rows, drawn, strict=True)):
        base = _TOP + number * (_ROW + _GAP) + _ROW
        texts += [
            (0, base - 6, "", row.lane.value),
            (_STATE, base - 6, "", f"{row.count:,} {row.state.value}"),
            (_LEFT - 14, base - 6, "quiet end", human_bytes(row.bytes)),
        ]
        lines.append((_LEFT, base + 0.5, end, base + 0.5, "axis"))
        boxes += _boxes(row, line, base, scale)
    if lanes.blocking is not None:
        x = _LEFT + scale * lanes.span(lanes.blocking, lanes.blocking, columns)[0]
        lines.append((x, _TOP - 4, x, height - 22, "blocking"))
        side, aside = ("end", -4) if x > _LEFT + _WIDTH / 2 else ("", 4)
        texts.append((x + aside, foot, f"quiet {side}".strip(), f"{lanes.blocking} is open: blocks compaction"))
    width, box = _LEFT + _WIDTH + 4, (0, 0, _LEFT + _WIDTH + 4, height)
    if is_alone:  # a margin around it, and its name above it
        texts.append((0, -14, "name", location))
        width, height = width + 2 * _MARGIN, height + 3 * _MARGIN
        box = (-_MARGIN, -2 * _MARGIN - 4, width, height)
    values = {
        "alone": is_alone, "style": resource("timeline.css"), "id": name, "location": location, "width": width,
        "height": height, "box": " ".join(map(str, box)), "description": described(lanes), "texts": texts,
        "lines": lines, "boxes": boxes,
    }  # fmt: skip
    return rendered("timeline.svg.j2", values)


def _boxes(row: LaneRow, line: list[int], base: float, scale: float) -> Iterator[Box]:
    at = 0
    gap = 1 if scale > 4 else 0
    for step, group in groupby(line):
        width = len(list(group))
        if step:
            tall = _ROW * step / STEPS
            yield _LEFT + at * scale, base - tall, width * scale - gap, tall, row.state.value
        at += width


def described(lanes: Lanes) -> str:
    """What a picture shows, in words."""
    rows = [
        f"{row.lane.value}, {row.state.value}: {row.count:,} ({human_bytes(row.bytes)}), "
        + human_count(len(row.runs), "run")
        + " of write ids "
        + ", ".join(span(run.low, run.high) for run in row.runs[:3])
        + (" and more" if len(row.runs) > 3 else "")
        for row in lanes.rows
    ]
    blocked = [] if lanes.blocking is None else [f"write id {lanes.blocking} is open and blocks compaction"]
    return ". ".join([*rows, *blocked]) + "."
