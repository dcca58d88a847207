"""The timeline of a location on a terminal: lanes over the write ids, with a line for each state in a lane."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

from acidctl.cli.output.screen import STATE_STYLES
from acidctl.overview.timeline import STEP, LaneRow, Lanes, heights
from acidctl.wording import human_bytes

BLOCKS, _ASCII_BLOCKS = " ▁▂▃▄▅▆▇█", " .:-=+*%#"
"""Characters for columns of rising height."""

_POINTER, _ASCII_POINTER = "▲", "^"
_STYLES = {**STATE_STYLES, "open": "cyan"}
_GAP = 2
_NARROWEST = 20
"""If fewer columns are left beside the labels, the picture goes below them."""


def can_show(text: str, encoding: str) -> bool:
    """Return whether an encoding has all characters of a text."""
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def timeline(lanes: Lanes, width: int, encoding: str = "utf-8") -> Iterator[Text]:
    """Yield the lines of the picture; only the line with the lowest and highest write id may be wider than `width`.

    A location without write ids has no lines.

    Args:
        encoding: the encoding of the output; without block elements, other characters are used.
    """
    if not lanes.rows:
        return
    is_plain = not can_show(BLOCKS + _POINTER, encoding)
    blocks, pointer = (_ASCII_BLOCKS, _ASCII_POINTER) if is_plain else (BLOCKS, _POINTER)
    words = _labels(lanes.rows)
    indent = max(len(words[0]), len("write ids")) + _GAP
    is_beside = width - indent >= _NARROWEST
    left = indent if is_beside else _GAP
    columns = lanes.columns(max(1, width - left))
    drawn, highest = heights([lanes.amounts(row, columns) for row in lanes.rows])
    yield Text(("write ids".ljust(left) if is_beside else " " * left) + _ends(lanes, columns), "dim")
    for row, line, heads in zip(lanes.rows, drawn, words, strict=True):
        if not is_beside:
            yield Text(heads.rstrip())
        text = Text((heads if is_beside else "").ljust(left))
        text.append("".join(blocks[step] for step in line).rstrip(), _STYLES[row.state.value])
        yield text
    if lanes.blocking is not None:
        yield _marked(lanes, columns, left, width, pointer)
    legend = f"{blocks[-1]} {human_bytes(highest)}; a step lower is {STEP} times less"
    yield Text((" " * left if left + len(legend) <= width else "") + legend, "dim")


def _labels(rows: Sequence[LaneRow]) -> list[str]:
    cells = [(row.lane.value, f"{row.count:,}", row.state.value, human_bytes(row.bytes)) for row in rows]
    widths = [max(cell_len(cell[i]) for cell in cells) for i in range(4)]
    return [
        f"{lane:<{widths[0]}}  {count:>{widths[1]}} {state:<{widths[2]}}  {size:>{widths[3]}}"
        for lane, count, state, size in cells
    ]


def _ends(lanes: Lanes, columns: int) -> str:
    low, high = str(lanes.low), str(lanes.high)
    if lanes.low == lanes.high:
        return low
    return low + high.rjust(max(columns - len(low), len(high) + 1))


def _marked(lanes: Lanes, columns: int, left: int, width: int, pointer: str) -> Text:
    """Return the line that marks up to where the lanes can be compacted."""
    assert lanes.blocking is not None
    label = f"{lanes.blocking} is open: blocks compaction"
    at, _ = lanes.span(lanes.blocking, lanes.blocking, columns)
    fits_behind = left + at + len(pointer) + 1 + len(label) <= width
    if at > len(label) or (not fits_behind and left + at > len(label)):
        return Text(f"{label} ".rjust(left + at) + pointer, "yellow")
    return Text(" " * (left + at) + f"{pointer} {label}", "yellow")
