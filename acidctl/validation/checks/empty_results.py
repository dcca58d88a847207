"""Rule V43, on compactions that lost rows: reads files only if a result is empty."""

from __future__ import annotations

from collections.abc import Iterator

from acidctl.location.snapshot import Snapshot
from acidctl.rows.read.lost_rows import find_lost_rows
from acidctl.validation.findings import Finding
from acidctl.validation.rules import ERROR, LISTING, Rule
from acidctl.wording import lost_events

V43 = Rule(
    "V43", ERROR, LISTING, "A compaction's result has no file, while what it replaced has rows that nobody deleted.",
    "Readers do not see these rows, and Hive's cleaner removes them for good. Hive 4 loses them where the path of a "
    "partition is not ASCII and it compacts by MapReduce.",
    "Run `repair('empty-result')` before a cleaner does its work, and let Hive compact by queries.", "10",
)  # fmt: skip


def lost_by_compactions(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the findings of rule V43."""
    for lost in find_lost_rows(snapshot):
        result = lost.result
        evidence = {
            "rows": lost.rows,
            "deletes": lost.deletes,
            "replaced": list(result.replaced),
            "isRead": result.is_read,
        }
        yield V43.finding(result.name, lost_events(lost.rows, lost.deletes), evidence)
