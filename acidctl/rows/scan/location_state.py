"""The state of a location as rows: one per directory or file at its top."""

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
"""Names are those of ``acidctl ls -o json``."""


class LocationState(ArrowRows):
    """What every directory and file of a location is, by one snapshot, and why.

    It is rows as well: one per child, which pyarrow, pandas and polars take as they are.

    Attributes:
        snapshot: the listing, the lists that count, and the state by them.
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
        """In the order of ``acidctl ls``."""
        return children_of(self.snapshot)

    @property
    def schema(self) -> pa.Schema:
        """See :data:`SCHEMA`."""
        return SCHEMA

    def to_batches(self, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """One batch."""
        records = [_record(child) for child in self.children[:limit]]
        yield pa.RecordBatch.from_pylist(records, SCHEMA)


def _record(child: Child) -> dict[str, object]:
    record = child.record()
    return {
        **record,
        "name": _text(record["name"]),
        "reason": _text(record["reason"]),
        "supersededBy": [_text(name) for name in record["supersededBy"]],
        "modified": None if record["modified"] is None else int(record["modified"] * 1_000_000),
    }


def _text(name: str) -> str:
    """A name of the file system as UTF-8; bytes that are none become U+FFFD."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
