"""Validation in tests: a healthy table, and what a check of tables reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.base.worker_pool import Limits
from acidctl.location.walk import walk_locations
from acidctl.storage.registry import open_location
from acidctl.validation.findings import Depth
from acidctl.validation.report import CheckOptions, LocationToCheck, Report
from acidctl.validation.run import check_locations
from support.files.acid_files import B0, delete, insert, write_by_pyorc

NOW = 1_800_000_000.0
QUIET = frozenset({"V19"})
"""Rules of which tables of few rows are always found guilty: their deltas are large beside their base."""


def healthy(table: Path) -> Path:
    """Three rows, of which the second write id updates one."""
    write_by_pyorc(table / "delta_0000001_0000001_0000", [insert(1, row) for row in range(3)])
    write_by_pyorc(table / "delete_delta_0000002_0000002_0000", [delete(1, 2, 2)])
    write_by_pyorc(table / "delta_0000002_0000002_0000", [insert(2, 0)])
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
        for location, _ in walk_locations(fs, path):
            places.append(LocationToCheck(fs, location.path, ids, known, location.partition))
    options = {"ignored": QUIET, "processes": 0, "now": NOW, "limits": Limits(seconds)} | options
    return list(check_locations(places, CheckOptions(depth, **options)))


def found(report: Report) -> set[str]:
    """What was found: ``V5`` for an error, ``V5 warning``, ``V5 info``."""
    return {
        finding.rule if finding.severity == "error" else f"{finding.rule} {finding.severity}"
        for finding in report.findings
    }


def three_stripes(table: Path) -> Path:
    healthy(table)
    events = [insert(3, row, bucket=B0 | 1 << 16) for row in range(30_000)]
    directory = table / "delta_0000003_0000003_0000"
    path = write_by_pyorc(
        directory, events, "bucket_00001", stripe_size=1, batch_size=1000, metadata={"hive.acid.key.index": None}
    )
    write_by_pyorc(directory, [insert(3, 1)])  # a fault beside it, which must still be found
    return path
