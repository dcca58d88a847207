"""Read the rows that a reader of a snapshot would see."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

from acidctl.base.errors import UsageProblem
from acidctl.verbs.options import Kind, Options, option

if TYPE_CHECKING:
    from acidctl.rows.read.visibility import OnLoss
    from acidctl.rows.scan.table import Table
    from acidctl.rows.scan.table_scan import TableScan
    from acidctl.verbs.selection import Selection


def columns_option() -> Any:
    """Return the field for the columns that are read."""
    return option(None, "--columns", kind=Kind.NAMES, help="Only these columns, separated by commas, in this order.")


@dataclass(frozen=True, kw_only=True)
class CatOptions(Options):
    """The options of `acidctl cat`."""

    row_id: bool = option(False, "--row-id", help="Put ROW__ID first: writeid, bucketid, rowid.")
    columns: tuple[str, ...] | None = columns_option()
    where: str | None = option(
        None, "--where", typed=True, metavar="CONDITION", help="Only rows that meet a condition in SQL."
    )
    partition: tuple[tuple[str, str], ...] = option(
        (), "--partition", kind=Kind.COLUMNS, help="Only partitions of this value. Repeatable."
    )
    at: int | datetime | None = option(
        None, "--at", kind=Kind.MOMENT, help="The rows when this write id was the newest, or at a time in UTC."
    )
    deleted: bool = option(False, "--deleted", help="Print the rows that deletes and updates removed instead.")


def table_of(selection: Selection) -> Table:
    """Return the table that a selection names, or the location that it knows.

    Raises:
        NotLookedAtError: the place holds nothing.
    """
    from acidctl.location.find import require_any
    from acidctl.rows.scan.table import Table, table_at

    if selection.known is None:
        table = table_at(selection.places[0], selection.storage, selection.resolver, selection.table_type)
        tops = (replace(found, top=found.fs.list_dir(found.location.path)) for found in table.found if not found.hive)
        require_any(selection.places[0], chain((found for found in table.found if found.hive), tops))
        return table
    return Table(selection.known[0].shown, selection.known, selection.known[0].resolver)


def cat(
    selection: Selection, options: CatOptions, on_loss: OnLoss | None = None, *, with_ids: bool = False
) -> TableScan:
    """Return the rows of one table or location, which can be read any number of times.

    Args:
        on_loss: called for everything that cannot be read, which is then skipped; by default that is an error.
        with_ids: put ROW__ID first, whatever the options say.

    Raises:
        AcidctlError: see :meth:`acidctl.rows.scan.table.Table.scan`.
    """
    # Values are not those of directories' names, which are escaped.
    wanted: dict[str, str | int | None] = {}
    for key, value in options.partition:
        if wanted.setdefault(key, value) != value:
            raise UsageProblem(f"{key} cannot be both {wanted[key]} and {value}", "", "give each key once")
    return table_of(selection).scan(
        options.columns,
        options.where,
        at=options.at,
        row_id=options.row_id or with_ids,
        deleted=options.deleted,
        partition=wanted,
        on_loss=on_loss,
        skip_hint="--skip-bad-files (on_loss in Python) reads the rest",
    )
