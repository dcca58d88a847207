"""Where commands look that look over a warehouse, and what its metastore knows besides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from acidctl.cli.report.outcomes import Visits
from acidctl.errors import AcidctlError, UsageProblem
from acidctl.location.lists import SnapshotLists
from acidctl.overview.warehouse_status import WarehouseStatus

if TYPE_CHECKING:  # what it needs is there only where a metastore is used
    from acidctl.overview.queue_view import QueueView


def everything(lists: SnapshotLists) -> tuple[str, ...]:
    """All tables of the metastore, for a command that was told no place.

    Raises:
        UsageProblem: there is no metastore.
    """
    if lists.warehouse is None:
        raise UsageProblem(
            "nothing says where to look",
            "no WHERE is given, and no metastore is known of which all tables could be meant",
            "give a table, a database or a warehouse; or give `metastore`",
        )
    return ("hive:*.*",)


def queue_seen(lists: SnapshotLists, status: WarehouseStatus, where: Sequence[str], visits: Visits) -> QueueView | None:
    """Return the metastore's view of these places; None without a metastore, or if it fails, which is reported."""
    if lists.warehouse is None:
        return None
    from acidctl.overview.queue_view import look_at_queue  # noqa: PLC0415 - with thrift: only for a metastore

    try:
        return look_at_queue(lists.warehouse.metastore, status, where)
    except AcidctlError as error:  # what the disk told is told all the same
        visits.failed("", error)
        return None
