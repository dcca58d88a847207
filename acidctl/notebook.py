"""HTML for notebooks: text is printable and escaped, names in it are anybody's."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from acidctl.base.printable import printable


def html_table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[object]], most: int | None = None) -> str:
    """Return a table of the first `most` rows; a last row says how many more there are."""
    shown = [_row(row, "td") for row in rows[:most]]
    if most is not None and len(rows) > most:
        shown.append(_row([f"and {len(rows) - most:,} more"], "td"))
    return f"<table><caption>{_text(caption)}</caption>{_row(heads, 'th')}{''.join(shown)}</table>"


def _row(cells: Sequence[object], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{_text(str(cell))}</{tag}>' for cell in cells)}</tr>"


def _text(text: str) -> str:
    return escape(printable(text))
