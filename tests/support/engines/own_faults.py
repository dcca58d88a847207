"""Statements over which a Hive itself stumbles, which aborts their transactions: what it logs tells them."""

from __future__ import annotations

from support.servers.hive_server import HiveError, HiveServer

_FAULTS = (
    '"this.finalPaths[idx]" is null',  # Hive 3: updates of several partitions in one job
    # Hive 4, seldom: it finds no attempt in its own id of a task; seen after a compaction by MapReduce.
    "FileSinkOperator.getAttemptIdFromTaskId",
)
"""What is said of statements that fail whatever acidctl did."""


def runs(hive: HiveServer, statement: str) -> bool:
    """Run one; False where Hive stumbled over itself.

    Raises:
        HiveError: it failed for another reason.
    """
    log = hive.warehouse.parent / "hive.log"
    before = log.stat().st_size
    try:
        hive.sql(statement)
    except HiveError as error:
        with log.open("rb") as file:
            file.seek(before)
            said = file.read().decode(errors="replace") + str(error)
        if not any(fault in said for fault in _FAULTS):
            raise
        return False
    return True
