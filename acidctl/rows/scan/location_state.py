"""The state of a location as rows: one for each directory or file at its top level."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import pyarrow as pa

from acidctl.location.snapshot import Child, Snapshot, children_of
from acidctl.rows.scan.arrow_rows import ArrowRows

SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("kind", pa.string()),
        ("minWriteId", pa.int64()),
        ("maxWriteId", pa.int64()),
        ("statementId", pa.int32()),
        ("visibilityTxnId", pa.int64()),
        ("state", pa.string()),
        ("reasonCode", pa.string()),
        ("reason", pa.string()),
        ("supersededBy", pa.list_(pa.string())),
        ("files", pa.int64()),
        ("bytes", pa.int64()),
        ("modified", pa.timestamp("us", "UTC")),
    ]
)
"""The names are those of ``acidctl ls -o json``."""


class LocationState(ArrowRows):
    """The state of every directory and file of a location in one snapshot, and the reason.

    It can also be read as rows, one per child, which pyarrow, pandas and polars accept directly.

    Attributes:
        snapshot: the listing, the write-id lists, and the state they determine.
        path: as a user would type it.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.path = snapshot.fs.display(snapshot.path)

    def __repr__(self) -> str:
        states = [child.verdict.state.value for child in self.children]
        counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
        return f"<acidctl state of {self.path}: {counts or 'empty'}>"

    @cached_property
    def children(self) -> list[Child]:
        """Return the children in the order of ``acidctl ls``."""
        return children_of(self.snapshot)

    @property
    def schema(self) -> pa.Schema:
        """Return :data:`SCHEMA`."""
        return SCHEMA

    def to_batches(self, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield one batch."""
        records = [_record(child) for child in self.children[:limit]]
        yield pa.RecordBatch.from_pylist(records, SCHEMA)


def _record(child: Child) -> dict[str, object]:
    record = child.record()
    return {
        **record,
        "name": _as_utf8(record["name"]),
        "reason": _as_utf8(record["reason"]),
        "supersededBy": [_as_utf8(name) for name in record["supersededBy"]],
        "modified": None if record["modified"] is None else int(record["modified"] * 1_000_000),
    }


def _as_utf8(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
