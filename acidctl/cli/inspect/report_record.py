"""A report as an object: the JSON contract of `acidctl report`, from which its pages are made, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from acidctl import __version__
from acidctl.cli.inspect.status import status_record
from acidctl.overview.location_status import Use
from acidctl.overview.trend import FIGURES, PastReport
from acidctl.overview.warehouse_status import Condition, TableStats, WarehouseStatus, sum_of
from acidctl.wording import time_of

if TYPE_CHECKING:  # what it needs is there only where a metastore is used
    from acidctl.overview.queue_view import QueueView

Record = dict[str, Any]
LARGEST, WORST, BEFORE = 40, 15, 90
"""So many tables are named, by their size and by their score, and so many earlier reports."""


def report_record(
    where: Sequence[str],
    found: WarehouseStatus,
    queue: QueueView | None,
    verdict: Condition,
    older_than: float,
    before: Sequence[PastReport],
) -> Record:
    """What `docs/reference/json.md` says of it.

    Args:
        before: the reports of the same places before this one, the oldest first.
    """
    tables = found.largest
    slowest, others = found.slowest, sum_of(tables[LARGEST:])
    return {
        "at": time_of(found.now),
        "acidctl": __version__,
        "olderThan": older_than,
        **status_record(where, found, queue, verdict),
        "failed": found.failed,
        "sources": dict(sorted(found.sources.items())),
        "whole": _table(found.whole),
        "largest": [_table(table) for table in tables[:LARGEST]],
        "others": {"tables": len(tables) - LARGEST, **_table(others)} if len(tables) > LARGEST else None,
        "helped": len(slowest),
        "worst": [_table(table) for table in slowest[:WORST]],
        "days": [{"day": (time_of(day) or "")[:10], "deltas": count} for day, count in found.days()],
        "before": [{"at": time_of(one.at), **one.figures} for one in before[-BEFORE:]],
    }


def _table(table: TableStats) -> Record:
    advice = table.reading
    return {
        "table": table.name,
        "locations": table.locations,
        "bytes": table.bytes,
        **{use.value: table.uses[use] for use in Use},
        "deltas": table.deltas,
        "files": advice.files,
        "filesAfter": advice.files_after,
        "score": advice.score,
        "seconds": round(advice.seconds, 3),
        "secondsAfter": round(advice.seconds_after, 3),
        "compaction": advice.kind.value if advice.kind else None,
        "rewritten": advice.rewritten,
        "freeBytes": table.free,
        "soonBytes": table.soon,
        "due": table.due,
    }


def figures_of_report(record: Record) -> dict[str, int]:
    """What is kept of a report for those after it."""
    cleaning = record["cleaning"]
    found = {
        **record, **record["whole"], **cleaning, "trashBytes": record["trash"]["bytes"],
        "due": record["compaction"]["due"], "bytes": record["bytes"], "locations": record["locations"],
    }  # fmt: skip
    return {name: found[name] for name in FIGURES}
