"""The state of a location as rows: one for each directory or file at its top level."""

from __future__ import annotations

import pyarrow as pa

from acidctl.location.snapshot import Child, Snapshot, children_of

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


def state_table(snapshot: Snapshot) -> pa.Table:
    """Return the children of a location in the order of ``acidctl ls``, with schema :data:`SCHEMA`."""
    return pa.Table.from_pylist(list(map(_record, children_of(snapshot))), SCHEMA)


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
