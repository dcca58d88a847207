"""Hive's own compactor and cleaner, which run when a test says so."""

from __future__ import annotations

import time
from pathlib import Path

from pyarrow import orc

from acidctl.acid.names import NO_STATEMENT, parse_directory
from support.servers.hive_server import HiveError, HiveServer

READY = "ready for cleaning"
_BEFORE = "Compaction is already scheduled"
"""What Hive 4 says to a request where the entry of the one before waits for its cleaning."""


def compact_by_hive(hive: HiveServer, table: str, kind: str, partition: str = "") -> str:
    """Ask for a compaction, and let Hive's Worker do it; its state afterwards, ``refused`` where Hive takes none.

    Args:
        kind: as SQL has it: ``minor``, ``major``, ``rebalance``.
        partition: what stands in ``partition (...)``, where the table has some.
    """
    of = f" partition ({partition})" if partition else ""
    try:
        hive.sql(f"alter table {table}{of} compact '{kind}'")
    except HiveError as error:
        if _BEFORE not in str(error):
            raise
        return "refused"
    return work_by_hive(hive, table)


def work_by_hive(hive: HiveServer, table: str) -> str:
    """Let Hive's Worker work until it has done the newest compaction of a table; its state afterwards.

    It does one at each look, and others may wait before it.
    """
    for _ in range(30):
        hive.round("Worker")
        if (state := compactions(hive, table)[0]) != "initiated":
            return state
    raise AssertionError(f"Hive's Worker does not come to {table}: {hive.sql('show compactions')}")


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


def has_copied_deletes(path: Path) -> bool:
    """Whether a minor compaction of Hive 3 wrote each delete event of a table without buckets into several files."""
    for one in path.glob("delete_delta_*"):
        directory = parse_directory(one.name)
        if directory is None or directory.statement_id != NO_STATEMENT:
            continue
        found = [frozenset(keys) for keys in (_delete_keys(file) for file in one.glob("bucket_*"))]
        if len(found) > 1 and len(set(found)) < len(found):
            return True
    return False


def _delete_keys(file: Path) -> set[tuple[int, ...]]:
    opened = orc.ORCFile(file)
    # Hive 4's query-based compactor writes the names in lower case.
    table = opened.read(columns=[opened.schema.names[place] for place in (1, 2, 3)])
    return set(zip(*(column.to_pylist() for column in table.columns), strict=True))
