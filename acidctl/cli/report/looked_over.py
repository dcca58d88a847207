"""Where commands look that look over a warehouse."""

from __future__ import annotations

from acidctl.errors import UsageProblem
from acidctl.location.lists import SnapshotLists


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
