"""Compare the rows of a table at two write ids."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from acidctl.verbs.options import REQUIRED, Kind, Options, option
from acidctl.verbs.reading.cat import columns_option, table_of

if TYPE_CHECKING:
    from acidctl.rows.past.diff import Difference
    from acidctl.verbs.selection import Selection


@dataclass(frozen=True, kw_only=True)
class DiffOptions(Options):
    """The options of `acidctl diff`."""

    start: int | datetime = option(REQUIRED, "--from", kind=Kind.MOMENT, help="Older write id, or a time in UTC.")
    end: int | datetime | None = option(
        None, "--to", kind=Kind.MOMENT, help="Newer write id, or a time in UTC (default: newest)."
    )
    key: tuple[str, ...] | None = option(
        None,
        "--key",
        kind=Kind.NAMES,
        metavar="COLUMNS",
        help="Key columns: a removed and an added row with the same key are shown as one update.",
    )
    row_id: bool = option(False, "--row-id", help="Put ROW__ID after the change.")
    columns: tuple[str, ...] | None = columns_option()


def diff(selection: Selection, options: DiffOptions) -> Difference:
    """Return the rows of one table or location that disappeared and appeared between two write ids.

    Raises:
        AcidctlError: see :func:`acidctl.rows.past.diff.table_difference`.
    """
    from acidctl.rows.past.diff import table_difference

    columns = options.columns
    if columns is not None:
        named = {name.lower() for name in columns}
        columns = (*(name for name in options.key or () if name.lower() not in named), *columns)
    return table_difference(table_of(selection), options.start, options.end, columns, row_id=options.row_id)
