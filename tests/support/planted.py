"""Small tables with faults, written by another library than acidctl's own writer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyorc

from acidctl.acid.triggers import Thresholds
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.location.walk import find_locations
from acidctl.storage.registry import open_location
from acidctl.validation.findings import Depth
from acidctl.validation.model import Options, Place, Report
from acidctl.validation.run import validate
from acidctl.worker_pool import Limits

BUCKET = 536870912
"""Bucket 0 of statement 0."""

IDS = "operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint"
ACID = f"struct<{IDS},row:struct<a:int,b:string>>"
NOW = 1_800_000_000.0
QUIET = Thresholds(delta_count=1000, delta_ratio=1e9)

Event = tuple[Any, Any, Any, Any, Any, Any]


def insert(write_id: int, row: int, bucket: int = BUCKET, current: int | None = None) -> Event:
    """An insert event."""
    return 0, write_id, bucket, row, write_id if current is None else current, (row, f"row {row}")


def delete(original: int, row: int, current: int, bucket: int = BUCKET) -> Event:
    """A delete event."""
    return 2, original, bucket, row, current, None


def write_orc(path: Path, schema: str, rows: Iterable[Any], metadata: dict[str, str] | None = None, **kw: Any) -> Path:
    """An ORC file of anything."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as out, pyorc.Writer(out, schema, **kw) as writer:
        for row in rows:
            writer.write(row)
        if metadata:
            writer.set_user_metadata(**{key: value.encode() for key, value in metadata.items()})
    return path


def write_events(
    directory: Path,
    events: Sequence[Event],
    name: str = "bucket_00000",
    schema: str = ACID,
    marker: bytes | None = b"2",
    metadata: dict[str, str | None] | None = None,
    **kw: Any,
) -> Path:
    """A native file with the metadata that belongs to it; `metadata` changes it, None takes an entry away."""
    counts = [sum(event[0] == operation for event in events) for operation in (0, 1, 2)]
    last = ",".join(str(part) for part in events[-1][1:4]) + ";" if events else ""
    made: dict[str, str | None] = {
        "hive.acid.key.index": last,
        "hive.acid.stats": ",".join(map(str, counts)),
        "hive.acid.version": "2",
    }
    made |= metadata or {}
    path = write_orc(directory / name, schema, events, {k: v for k, v in made.items() if v is not None}, **kw)
    if marker is not None:
        (directory / "_orc_acid_version").write_bytes(marker)
    return path


def healthy(table: Path) -> Path:
    """Three rows, of which the second write id updates one."""
    write_events(table / "delta_0000001_0000001_0000", [insert(1, row) for row in range(3)])
    write_events(table / "delete_delta_0000002_0000002_0000", [delete(1, 2, 2)])
    write_events(table / "delta_0000002_0000002_0000", [insert(2, 0)])
    return table


def check(
    *tables: Path | str,
    depth: Depth = Depth.DEEP,
    write_ids: str | None = None,
    txns: str | None = None,
    seconds: float = 60.0,
    **options: Any,
) -> list[Report]:
    """Reports of every location at or below some paths, by default from this very process."""
    ids = None if write_ids is None else ValidWriteIds.parse(write_ids)
    known = None if txns is None else ValidTxns.parse(txns)
    places = []
    for table in tables:
        fs, path = open_location(str(table))
        for location, _ in find_locations(fs, path):
            places.append(Place(fs, location.path, ids, known, location.partition))
    options = {"thresholds": QUIET, "processes": 0, "now": NOW, "limits": Limits(seconds)} | options
    return list(validate(places, Options(depth, **options)))


def found(report: Report) -> set[str]:
    """What was found: ``V5`` for an error, ``V5 warning``, ``V5 info``."""
    return {
        finding.rule if finding.severity == "error" else f"{finding.rule} {finding.severity}"
        for finding in report.findings
    }
