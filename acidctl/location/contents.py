"""The children of a location, each with its verdict and its size."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any, NamedTuple


from acidctl.acid.state import Verdict
from acidctl.location.snapshot import Snapshot
from acidctl.wording import text_of


class Amount(NamedTuple):
    """How much there is below one child, side files included.

    Attributes:
        modified: the newest time in it, seconds since the epoch; None if the store gives none.
    """

    files: int = 0
    bytes: int = 0
    modified: float | None = None


class Child(NamedTuple):
    """One directory or file at the top of a location."""

    verdict: Verdict
    amount: Amount

    def record(self) -> dict[str, Any]:
        """Return the keys of ``acidctl ls -o json`` for this child; `modified` is in seconds since the epoch."""
        verdict, directory = self.verdict, self.verdict.directory
        return {
            "name": verdict.name,
            "kind": verdict.kind.value,
            "minWriteId": directory.min_write_id if directory else None,
            "maxWriteId": directory.max_write_id if directory else None,
            "statementId": directory.statement_id if directory and directory.statement_id >= 0 else None,
            "visibilityTxnId": directory.visibility_txn or None if directory else None,
            "state": verdict.state.value,
            "reason": text_of(verdict.reason),
            "reasonCode": verdict.reason.code,
            "supersededBy": list(verdict.reason.by),
            "files": self.amount.files,
            "bytes": self.amount.bytes,
            "modified": self.amount.modified,
        }


def children_of(snapshot: Snapshot) -> list[Child]:
    """Return the children of a location in the order of their verdicts, without opening any file."""
    amounts = _amounts_by_child(snapshot)
    return [Child(verdict, amounts.get(verdict.name, Amount())) for verdict in snapshot.state.verdicts]


def _amounts_by_child(snapshot: Snapshot) -> Mapping[str, Amount]:
    amounts: dict[str, Amount] = {}
    for name, below in groupby(snapshot.listing.entries, lambda entry: entry.path.partition("/")[0]):
        before = amounts.get(name, Amount())  # a listing need not have a child's entries side by side
        files, size, newest = before.files, before.bytes, before.modified
        for _, length, modified, is_dir in below:
            if not is_dir:
                files += 1
                size += length
            if modified is not None and (newest is None or modified > newest):
                newest = modified
        amounts[name] = Amount(files, size, newest)
    return amounts
