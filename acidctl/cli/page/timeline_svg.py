"""The timeline of a location as SVG: the same lanes and heights as on a terminal."""

from __future__ import annotations

from itertools import groupby

from acidctl.cli.output.console import human_bytes
from acidctl.cli.page.markup import Element, el, svg_document
from acidctl.overview.lanes import STEP, STEPS, LaneRow, Lanes, heights
from acidctl.wording import human_count, span

_COLUMNS = 320
_LEFT, _STATE, _WIDTH, _ROW, _GAP, _TOP, _MARGIN = 240, 58, 640, 26, 10, 22, 16

STYLE = """
svg.timeline{font:13px system-ui,sans-serif;background:#fff}
.timeline text{fill:#1c2430}.timeline .quiet{fill:#5a6473}.timeline .end{text-anchor:end}
.timeline .name{font-weight:600;font-size:15px}.timeline .axis{stroke:#c3cad4}
.timeline .current{fill:#1a7f5a}.timeline .obsolete{fill:#c98500}.timeline .aborted{fill:#c2302e}
.timeline .open{fill:#2a66c8}.timeline .ignored{fill:#858e9c}.timeline .blocking{stroke:#2a66c8;stroke-dasharray:3 3}
@media (prefers-color-scheme:dark){svg.timeline{background:#14181f}
.timeline text{fill:#e6e9ee}.timeline .quiet{fill:#a3adbb}.timeline .axis{stroke:#3b4452}
.timeline .current{fill:#3fb489}.timeline .obsolete{fill:#e0a63a}.timeline .aborted{fill:#ef6a66}
.timeline .open{fill:#6ea0f5}.timeline .ignored{fill:#8f99a8}.timeline .blocking{stroke:#6ea0f5}}
"""
"""Of a picture that stands alone."""


def timeline_document(location: str, lanes: Lanes) -> str:
    """A file of its own."""
    picture = timeline_picture(location, lanes, "timeline")
    picture.insert(0, el("style", STYLE.replace("\n", "")))
    picture.append(el("text", location, x=0, y=-14, class_="name"))
    width, height = (float(picture.get(name, "0")) for name in ("width", "height"))
    picture.set("viewBox", f"{-_MARGIN} {-2 * _MARGIN - 4} {width + 2 * _MARGIN:g} {height + 3 * _MARGIN:g}")
    picture.set("width", f"{width + 2 * _MARGIN:g}")
    picture.set("height", f"{height + 3 * _MARGIN:g}")
    return svg_document(picture)


def timeline_picture(location: str, lanes: Lanes, name: str) -> Element:
    """The picture; what it shows is in its description, too.

    Args:
        name: of its elements, which is to be unique in the document.
    """
    height = _TOP + len(lanes.rows) * (_ROW + _GAP) + 24
    columns = lanes.columns(_COLUMNS)
    drawn, highest = heights([lanes.amounts(row, columns) for row in lanes.rows])
    scale = _WIDTH / _COLUMNS if columns == _COLUMNS else min(_WIDTH / columns, 24)
    end = _LEFT + columns * scale
    parts = [
        el("title", f"Write ids of {location}", id=f"{name}-title"),
        el("desc", described(lanes), id=f"{name}-desc"),
        el("text", "write ids", x=0, y=14, class_="quiet"),
        el("text", f"{lanes.low}", x=_LEFT, y=14, class_="quiet"),
        el("text", f"{lanes.high}", x=end, y=14, class_="quiet end") if lanes.high > lanes.low else None,
    ]
    for number, (row, line) in enumerate(zip(lanes.rows, drawn, strict=True)):
        parts += _row(row, line, _TOP + number * (_ROW + _GAP), scale, end)
    if lanes.blocking is not None:
        x = _LEFT + scale * lanes.span(lanes.blocking, lanes.blocking, columns)[0]
        parts.append(el("line", x1=x, x2=x, y1=_TOP - 4, y2=height - 22, class_="blocking"))
        side = "end" if x > _LEFT + _WIDTH / 2 else ""
        said = f"{lanes.blocking} is open: blocks compaction"
        parts.append(el("text", said, x=x + (-4 if side else 4), y=height - 8, class_=f"quiet {side}".strip()))
    legend = f"full height: {human_bytes(highest)}; an eighth lower: {STEP} times less"
    parts.append(el("text", legend, x=0, y=height - 8, class_="quiet"))
    return el(
        "svg",
        parts,
        class_="timeline",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
        viewBox=f"0 0 {_LEFT + _WIDTH + 4} {height}",
        width=_LEFT + _WIDTH + 4,
        height=height,
    )


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


def _row(row: LaneRow, line: list[int], y: float, scale: float, end: float) -> list[Element]:
    base = y + _ROW
    parts = [
        el("text", row.lane.value, x=0, y=base - 6),
        el("text", f"{row.count:,} {row.state.value}", x=_STATE, y=base - 6),
        el("text", human_bytes(row.bytes), x=_LEFT - 14, y=base - 6, class_="quiet end"),
        el("line", x1=_LEFT, x2=end, y1=base + 0.5, y2=base + 0.5, class_="axis"),
    ]
    at = 0
    for step, group in groupby(line):
        width = len(list(group))
        if step:
            tall = _ROW * step / STEPS
            gap = 1 if scale > 4 else 0
            parts.append(
                el(
                    "rect",
                    x=round(_LEFT + at * scale, 2),
                    y=base - tall,
                    width=round(width * scale - gap, 2),
                    height=tall,
                    class_=row.state.value,
                )
            )
        at += width
    return parts
