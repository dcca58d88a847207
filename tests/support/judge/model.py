"""The third opinion: what a table shows, computed from its changes in a few lines of Python (format section 4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from support.judge.hive import DELETE, INSERT, RowKey, row_key
from support.judge.txns import Txns


@dataclass(frozen=True, slots=True)
class Change:
    """One event as stored: `current` is the transaction that wrote it, `key` the ROW__ID it is about."""

    operation: int
    key: RowKey
    current: int
    statement: int = 0
    row: dict[str, Any] | None = None


def visible(changes: Iterable[Change], txns: Txns, version: int) -> dict[RowKey, dict[str, Any]]:
    """The rows that a reader with this transaction list sees, by ROW__ID."""
    valid = [c for c in changes if c.current == 0 or txns.is_valid(c.current)]
    if version == 2:
        # Section 4.2: an insert shows unless any valid delete event names its key, whichever came first.
        deleted = {c.key for c in valid if c.operation == DELETE}
        return {c.key: c.row or {} for c in valid if c.operation == INSERT and c.key not in deleted}
    # Section 4.1: the newest valid event of a key decides; updates keep the key.
    newest: dict[RowKey, Change] = {}
    for change in valid:
        best = newest.get(change.key)
        if best is None or (change.current, change.statement) > (best.current, best.statement):
            newest[change.key] = change
    return {key: c.row or {} for key, c in newest.items() if c.operation != DELETE}


def model_rows(changes: Iterable[Change], txns: Txns, version: int) -> list[tuple[RowKey, dict[str, Any]]]:
    """`visible`, in ROW__ID order."""
    return sorted(visible(changes, txns, version).items(), key=lambda item: row_key(item[0]))
