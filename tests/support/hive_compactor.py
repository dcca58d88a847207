"""Hive's own compactor and cleaner, which run when a test says so."""

from __future__ import annotations

import time
from pathlib import Path

from support.servers.hive_server import HiveServer

READY = "ready for cleaning"


def compact_by_hive(hive: HiveServer, table: str, kind: str, partition: str = "") -> str:
    """Ask for a compaction, and let Hive's Worker do it; its state afterwards.

    Args:
        kind: as SQL has it: ``minor``, ``major``, ``rebalance``.
        partition: what stands in ``partition (...)``, where the table has some.
    """
    of = f" partition ({partition})" if partition else ""
    hive.sql(f"alter table {table}{of} compact '{kind}'")
    hive.round("Worker")
    return compactions(hive, table)[0]


def compactions(hive: HiveServer, table: str) -> list[str]:
    """The states of the table's compactions, the newest first."""
    head, *entries = hive.sql("show compactions")
    found = [dict(zip(head, entry, strict=True)) for entry in entries]
    mine = [entry for entry in found if entry["Table"] == table]
    return [entry["State"] for entry in sorted(mine, key=lambda entry: -int(entry["CompactionId"]))]


def clean_by_hive(hive: HiveServer, table: str) -> None:
    """Let Hive's Cleaner run to its end."""
    time.sleep(1.2)  # Hive 4's Cleaner does not look at what happened in the last second
    for _ in range(4):
        if READY in compactions(hive, table):
            hive.round("Cleaner")
    assert READY not in compactions(hive, table)


def names(path: Path) -> set[str]:
    """The directories of a location that hold rows."""
    return {child.name for child in path.iterdir() if not child.name.startswith((".", "_"))}
