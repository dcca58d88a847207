"""The pictures of a report, as SVG in parts of a hundred: texts stay as large as they are on any screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from acidctl.cli.output.console import human_bytes
from acidctl.cli.page.markup import Element, el, safe
from acidctl.cli.page.treemap import Box, squarified
from acidctl.wording import human_count

USES = {
    "current": "what readers read", "obsolete": "nobody needs it any more", "aborted": "writes that were rolled back",
    "ignored": "open, or of work that goes on", "trash": "of earlier cleanings",
}  # fmt: skip
"""What bytes are for, with its meaning; the order is that in the pictures."""

_FRAMES = {"wide": (940.0, 420.0), "middle": (590.0, 420.0), "narrow": (298.0, 460.0)}
"""Pictures of one treemap, each with the least size at which it is shown: what has room there has room."""

_LETTER, _PADDING = 7.4, 18.0
_LINE, _TWO_LINES = 24.0, 44.0
_LEAST = 0.0004
"""A part of the picture that is smaller than this could not be seen."""

_HATCHED = {"obsolete": "M-2,2 l4,-4 M0,8 l8,-8 M6,10 l4,-4", "aborted": "M0,0 l8,8 M8,0 l-8,8"}
"""Colours are not all that tells them apart."""


def treemap_pictures(tables: Sequence[Mapping[str, Any]], others: Mapping[str, Any] | None) -> list[Element]:
    """The bytes of tables by what they are for, for wide screens and for narrow ones.

    Args:
        tables: the largest first; each leads to the row of its name below the picture.
        others: all smaller ones.
    """
    parts = [(number, table) for number, table in enumerate(tables) if table["bytes"]]
    total = sum(table["bytes"] for _, table in parts) + (others["bytes"] if others else 0)
    shown = [(number, table) for number, table in parts if table["bytes"] >= total * _LEAST]
    left = total - sum(table["bytes"] for _, table in shown)
    if left and others:
        rest = {use: others[use] + sum(t[use] for _, t in parts[len(shown) :]) for use in USES}
        count = others["tables"] + len(parts) - len(shown)
        shown.append((-1, {"table": human_count(count, "smaller table"), "bytes": left, **rest}))
    return [_treemap(shown, name, Box(0, 0, *size)) for name, size in _FRAMES.items()] if shown else []


def _treemap(shown: Sequence[tuple[int, Mapping[str, Any]]], name: str, frame: Box) -> Element:
    boxes = squarified([table["bytes"] for _, table in shown], frame)
    placed = list(zip(shown, boxes, strict=True))
    cells = [_cell(number, table, box, frame, name) for (number, table), box in placed]
    labels = [_label(table, box, frame) for (_, table), box in placed]
    hatches = [
        el(
            "pattern",
            el("path", d=lines, class_="hatch"),
            id=f"{name}-{use}",
            width=8,
            height=8,
            patternUnits="userSpaceOnUse",
        )
        for use, lines in _HATCHED.items()
    ]
    drawn = el("g", labels, class_="labels", aria_hidden="true")
    return el("svg", el("defs", hatches), cells, drawn, class_=f"map {name}", role="group", aria_label="Tables")


def _cell(number: int, table: Mapping[str, Any], box: Box, frame: Box, name: str) -> Element:
    said = f"{table['table']}: {human_bytes(table['bytes'])}"
    uses = ", ".join(f"{use} {human_bytes(table[use])}" for use in USES if table[use])
    edge = el("rect", width="100%", height="100%", class_="edge")
    inside = el("svg", _slices(table, name, is_wide=box.width >= box.height), edge, **_placed(box, frame))
    target = f"#table-{number + 1}" if number >= 0 else "#tables"
    return el("a", el("title", f"{said} ({uses})"), inside, href=target, aria_label=f"{said}; {uses}")


def _placed(box: Box, frame: Box) -> dict[str, str]:
    return {
        "x": _part(box.x, frame.width), "y": _part(box.y, frame.height), "width": _part(box.width, frame.width),
        "height": _part(box.height, frame.height),
    }  # fmt: skip


def _slices(table: Mapping[str, Any], name: str, *, is_wide: bool) -> list[Element]:
    parts: list[Element] = []
    at = 0.0
    for use in USES:
        share = 100 * table[use] / table["bytes"]
        if share:
            place: dict[str, str | float] = (
                {"x": f"{at:.3f}%", "width": f"{share:.3f}%", "height": "100%"}
                if is_wide
                else {"y": f"{at:.3f}%", "width": "100%", "height": f"{share:.3f}%"}
            )
            parts.append(el("rect", class_=use, **place))
            if use in _HATCHED:
                parts.append(el("rect", fill=f"url(#{name}-{use})", **place))
        at += share
    return parts


def _label(table: Mapping[str, Any], box: Box, frame: Box) -> Element | None:
    """Name and size where they have room."""
    name, size = short_name(safe(table["table"])), human_bytes(table["bytes"])
    room = int((box.width - _PADDING) / _LETTER)
    name = name if len(name) <= room else name.rpartition("/")[2]
    if box.height < _LINE or room < len(size) or room < min(len(name), 6):
        return None
    text = name if len(name) <= room else f"{name[: room - 1]}…"
    second = el("text", size, x=9, y=38) if box.height >= _TWO_LINES else None
    return el("svg", el("text", text, x=9, y=20, class_="name"), second, **_placed(box, frame))


def short_name(name: str) -> str:
    """The end of a path, which tells tables apart."""
    return "/".join(name.rstrip("/").rsplit("/", 2)[-2:]) if "/" in name else name


def legend(whole: Mapping[str, Any]) -> Element:
    """What the colours are, with the bytes of each."""

    def swatch(use: str) -> Element:
        hatch = el("path", d="M0,14 l14,-14", class_="hatch") if use == "obsolete" else None
        cross = el("path", d="M0,14 l14,-14 M0,0 l14,14", class_="hatch") if use == "aborted" else None
        square = el("rect", width=14, height=14, rx=3, class_=use)
        return el("svg", square, hatch, cross, width=14, height=14, aria_hidden="true")

    return el(
        "ul",
        [
            el("li", swatch(use), f"{use} {human_bytes(whole[use])}: {meaning}")
            for use, meaning in USES.items()
            if whole[use]
        ],
        class_="legend",
    )


def meter(part: float, class_: str = "fill", width: int = 64) -> Element:
    """A part of one as a bar; the number stands beside it."""
    filled = max(0.0, min(1.0, part))
    return el(
        "svg",
        el("rect", width=width, height=8, rx=4, class_="track"),
        el("rect", width=f"{100 * filled:.1f}%", height=8, rx=4, class_=class_) if filled else None,
        class_="meter",
        width=width,
        height=8,
        aria_hidden="true",
    )


def column_chart(values: Sequence[int], label: str) -> Element:
    """A column for each; the highest is as high as the picture.

    Args:
        label: what it shows, for who cannot see it.
    """
    highest, width = max(values, default=0) or 1, 100 / max(1, len(values))
    columns = [
        el(
            "rect",
            x=f"{place * width + width * 0.12:.3f}%",
            y=f"{100 - 100 * value / highest:.3f}%",
            width=f"{width * 0.76:.3f}%",
            height=f"{100 * value / highest:.3f}%",
            rx=2,
            class_="column",
        )
        for place, value in enumerate(values)
        if value
    ]
    ground = el("rect", y="99.2%", width="100%", height="0.8%", class_="track")
    return el("svg", ground, columns, class_="chart", role="img", aria_label=label)


def curve(points: Sequence[tuple[float, int]], label: str) -> Element:
    """A line through points, over time; the ground of the picture is zero.

    Args:
        points: time and value, the times ascending.
    """
    first, last = points[0][0], points[-1][0]
    highest = max(value for _, value in points) or 1
    placed = [
        (100 * (at - first) / (last - first) if last > first else 100.0 * place, 40 - 38 * value / highest)
        for place, (at, value) in enumerate(points)
    ]
    path = " ".join(f"{x:.2f},{y:.2f}" for x, y in placed)
    return el(
        "svg",
        el("polygon", points=f"{placed[0][0]:.2f},40 {path} {placed[-1][0]:.2f},40", class_="under"),
        el("polyline", points=path, class_="curve"),
        class_="chart small",
        role="img",
        aria_label=label,
        viewBox="0 0 100 40",
        preserveAspectRatio="none",
    )


def _part(length: float, whole: float) -> str:
    return f"{100 * length / whole:.4f}%"
