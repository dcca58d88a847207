"""The entries of one location in lines; of many entries those of one state and reason are one line."""

from __future__ import annotations

from collections.abc import Sequence

from acidctl.cli.output.list_choice import BYTES, Record
from acidctl.cli.output.screen import STATE_STYLES, FittedTable, Row, ScreenColumn, fitted
from acidctl.wording import human_bytes, names_in_short

ENTRY_COLUMNS = {
    "location": "string", "name": "string", "kind": "string", "minWriteId": "bigint", "maxWriteId": "bigint",
    "statementId": "bigint", "visibilityTxnId": "bigint", "state": "string", "reason": "string", "files": "bigint",
    "bytes": BYTES, "rows": "bigint", "modified": "string",
}  # fmt: skip
"""What CSV has of an entry, and what `--where`, `--sort` and `--columns` go by."""

PLAIN_CODES = ("is-read",)
"""Reasons that nobody needs where they would take a line."""

MOST_ENTRIES = 20
"""So many have lines of their own."""


def folded_entries(entries: Sequence[Record], *, rows: bool) -> FittedTable:
    """``delta 1-40, delete_delta 4-40: current (77)``.

    Args:
        rows: they were counted.
    """
    groups: dict[tuple[str, str], list[Record]] = {}
    for entry in entries:
        groups.setdefault((entry["state"], entry["reason"]), []).append(entry)

    def row(group: list[Record], cells: tuple[str, ...]) -> Row:
        is_plain = group[0]["reasonCode"] in PLAIN_CODES
        return Row(cells, group[0]["reason"], is_plain, ((2, STATE_STYLES[group[0]["state"]]),))

    return fitted(
        [
            (ScreenColumn("names"), lambda group: names_in_short(entry["name"] for entry in group)),
            (ScreenColumn("entries", True), lambda group: f"{len(group):,}"),
            (ScreenColumn("state"), lambda group: group[0]["state"]),
            (ScreenColumn("files", True, 2, is_clear=False), lambda group: f"{_sum(group, 'files'):,}"),
            (ScreenColumn("size", True, 3), lambda group: human_bytes(_sum(group, "bytes"))),
            *([(ScreenColumn("rows", True, 1, is_clear=False), _rows)] * rows),
        ],
        "reason",
        groups.values(),
        row,
    )


def _rows(group: Sequence[Record]) -> str:
    return f"{_sum(group, 'rows'):,}" if any(entry["rows"] is not None for entry in group) else ""


def _sum(group: Sequence[Record], key: str) -> int:
    return sum(entry[key] or 0 for entry in group)
