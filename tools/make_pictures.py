"""The pictures of docs/explanation/layout.md: ``python tools/make_pictures.py`` writes docs/pictures/*.svg.

They have a ground of their own and follow `prefers-color-scheme`, so that they can be read on light and on dark pages.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
FOLDER = REPO / "docs" / "pictures"
COMMAND = "python tools/make_pictures.py"
WIDTH = 720

_STYLE = """
text{font:14px system-ui,sans-serif;fill:#1f2328}.name{font-family:ui-monospace,monospace;font-size:13px}
.soft{fill:#59636e;font-size:13px}.small{fill:#59636e;font-size:12px}.in{fill:#fff;font-weight:600;text-anchor:middle}.mid{text-anchor:middle}
.paper{fill:#fff;stroke:#d1d9e0}.line{stroke:#8c959f;stroke-width:1.5;fill:none}.head{fill:#8c959f}
.row{fill:#0969da}.dead{fill:#bc4c00}.seen{fill:#1a7f37}.gone{fill:#6e7781}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.soft,.small{fill:#9198a1}.in{fill:#fff}
.paper{fill:#0d1117;stroke:#3d444d}.row{fill:#1f6feb}.dead{fill:#bd561d}.seen{fill:#238636}.gone{fill:#545d68}}
""".strip().replace("\n", "")


def text(x: float, y: float, said: str, kind: str = "") -> str:
    """A line of text from `x` on, or around it."""
    return f'<text x="{x:g}" y="{y:g}"{f" class={kind!r}" if kind else ""}>{escape(said)}</text>'.replace("'", '"')


def box(x: float, y: float, width: float, said: str, kind: str) -> str:
    """A filled box with a word in its middle; `y` is its upper edge."""
    shape = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="26" rx="4" class="{kind}"/>'
    return shape + (text(x + width / 2, y + 18, said, "in") if said else "")


def boxes(x: float, y: float, said: str, kind: str) -> str:
    """A small box for each word."""
    return "".join(box(x + 38 * at, y, 34, word, kind) for at, word in enumerate(said.split()))


def arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    """A line with a head."""
    return f'<path d="M{x:g} {y:g}L{to_x:g} {to_y:g}" class="line" marker-end="url(#head)"/>'


def picture(height: float, title: str, parts: Sequence[str]) -> str:
    """The whole file."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" '
            f'height="{height:g}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{_STYLE}</style>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
            'orient="auto"><path d="M0 0L8 4L0 8z" class="head"/></marker></defs>',
            f'<rect x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1:g}" rx="8" class="paper"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _growth() -> str:
    """Which directory each statement leaves, and what readers see after it."""
    columns = (190, 370, 550)
    said = ("INSERT 3 rows", "UPDATE 1 row", "DELETE 1 row")
    parts = [text(24, 34, "write id", "soft")]
    for number, (x, what) in enumerate(zip(columns, said, strict=True), 1):
        parts += [text(x, 34, str(number)), text(x, 54, what, "soft")]
    lanes = (
        ("delta_1_1", 0, "a b c", "row"),
        ("delta_2_2", 1, "b2", "row"),
        ("delete_delta_2_2", 1, "b", "dead"),
        ("delete_delta_3_3", 2, "c", "dead"),
    )
    for at, (name, column, rows, kind) in enumerate(lanes):
        y = 72 + 36 * at
        parts += [text(24, y + 18, name, "name"), boxes(columns[column], y, rows, kind)]
    parts += [f'<path d="M24 222H{WIDTH - 24}" class="line"/>', text(24, 254, "readers see")]
    parts += [boxes(x, 236, rows, "seen") for x, rows in zip(columns, ("a b c", "a b2 c", "a b2"), strict=True)]
    return picture(280, "A table after an INSERT, an UPDATE and a DELETE", parts)


def _read() -> str:
    """How rows and delete events become what a query returns."""
    parts = [text(24, 34, "rows, sorted by key", "soft"), text(24, 138, "keys of dead rows", "soft")]
    for y, name, rows in ((48, "delta_1_1", "a b c"), (82, "delta_2_2", "b2")):
        parts += [text(24, y + 18, name, "name"), boxes(180, y, rows, "row")]
    for y, name, rows in ((152, "delete_delta_2_2", "b"), (186, "delete_delta_3_3", "c")):
        parts += [text(24, y + 18, name, "name"), boxes(180, y, rows, "dead")]
    parts += [arrow(310, 78, 366, 110), arrow(310, 182, 366, 142)]
    parts += [box(372, 112, 160, "drop dead rows", "gone"), arrow(536, 125, 580, 125)]
    parts += [text(588, 98, "a query returns", "soft"), boxes(588, 112, "a b2", "seen")]
    return picture(232, "A reader leaves out the rows whose keys are among the delete events", parts)


def _snapshot() -> str:
    """Which write ids a list lets a reader see."""
    states = ("committed", "committed", "aborted", "committed", "open", "committed", "newer")
    parts = [
        text(24, 34, "write id", "soft"),
        text(24, 66, "its transaction", "soft"),
        text(24, 102, "a reader", "soft"),
    ]
    for at, state in enumerate(states):
        x = 176 + 76 * at
        is_read = state == "committed"
        word = "reads" if is_read else "skips"
        parts += [text(x, 34, str(at + 1), "mid"), text(x, 66, state, "small mid")]
        parts.append(box(x - 30, 84, 60, word, "seen" if is_read else "gone"))
    x = 176 + 76 * 5 + 38
    parts += [f'<path d="M{x} 20V122" class="line" stroke-dasharray="4 3"/>']
    parts.append(text(x, 142, "high watermark 6", "soft mid"))
    return picture(160, "High watermark 6, write id 5 open, 3 aborted: a reader reads 1, 2, 4 and 6", parts)


def _compactions() -> str:
    """What a minor and what a major compaction make of the same four directories."""
    parts = [text(24, 34, "before", "soft"), text(24, 116, "minor", "soft"), text(24, 178, "major", "soft")]
    before = (
        (110, "delta_1_1", "a b c", "row"),
        (262, "delta_2_2", "b2", "row"),
        (414, "delete_delta_2_2", "b", "dead"),
        (566, "delete_delta_3_3", "c", "dead"),
    )
    for x, name, rows, kind in before:
        parts += [text(x, 34, name, "name"), boxes(x, 44, rows, kind)]
    parts += [text(110, 116, "delta_1_3", "name"), boxes(262, 98, "a b c b2", "row")]
    parts += [text(436, 116, "delete_delta_1_3", "name"), boxes(580, 98, "b c", "dead")]
    parts += [text(110, 178, "base_3", "name"), boxes(262, 160, "a b2", "seen")]
    return picture(206, "A minor compaction keeps rows and delete events, a major one applies the deletes", parts)


def _obsolete() -> str:
    """Which directories a base makes superfluous."""
    lanes = (
        ("base_3", 1, 3, "current", "seen"),
        ("delta_1_1", 1, 1, "obsolete", "gone"),
        ("delta_2_2", 2, 2, "obsolete", "gone"),
        ("delete_delta_2_2", 2, 2, "obsolete", "gone"),
        ("delete_delta_3_3", 3, 3, "obsolete", "gone"),
        ("delta_4_4", 4, 4, "current", "seen"),
    )
    parts = [text(24, 34, "write id", "soft")]
    parts += [text(150 + 90 * write_id, 34, str(write_id), "mid") for write_id in range(1, 5)]
    for at, (name, first, last, state, kind) in enumerate(lanes):
        y = 48 + 34 * at
        parts += [text(24, y + 18, name, "name"), text(572, y + 18, state, "soft")]
        parts.append(box(108 + 90 * first, y, 90 * (last - first) + 84, "", kind))
    return picture(268, "base_3 holds what the four directories of write ids 1 to 3 hold", parts)


PICTURES: dict[str, Callable[[], str]] = {
    "growth.svg": _growth,
    "read.svg": _read,
    "snapshot.svg": _snapshot,
    "compactions.svg": _compactions,
    "obsolete.svg": _obsolete,
}


def main() -> int:
    """Write them all."""
    FOLDER.mkdir(exist_ok=True)
    for name, make in PICTURES.items():
        (FOLDER / name).write_text(make(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
