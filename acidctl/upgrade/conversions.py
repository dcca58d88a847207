"""What Hive's own tools make of managed tables that are not transactional when they convert a warehouse.

PreUpgradeTool and UpgradeTool of Hive 3 [AcidUtils.canBeMadeAcid]: full ACID where the files are ORC and rows are not
sorted, else insert-only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from acidctl.acid.listing import TableType
from acidctl.location.given import is_hive_name
from acidctl.location.hive_names import HiveName
from acidctl.location.lists import SnapshotLists
from acidctl.rows.foreign.format import Format

if TYPE_CHECKING:  # what these need is there only where a metastore is used
    from acidctl.metastore.tables import HiveTable


@dataclass(frozen=True, slots=True)
class Conversion:
    """A table that Hive's tools would convert.

    Attributes:
        becomes: what it can be.
    """

    table: str
    becomes: TableType

    @property
    def statement(self) -> str:
        """What they would run."""
        insert_only = ", 'transactional_properties'='insert_only'" if self.becomes is TableType.INSERT_ONLY else ""
        return f"ALTER TABLE {self.table} SET TBLPROPERTIES ('transactional'='true'{insert_only});"


def conversions(given: Sequence[str], lists: SnapshotLists) -> Iterator[Conversion]:
    """The tables that names of a metastore mean, and that are not transactional yet.

    Raises:
        MetastoreError: it cannot be reached, or failed.
    """
    for one in given:
        if is_hive_name(one) and (name := HiveName.parse(one)).is_pattern:
            for table in lists.require_warehouse(one).not_transactional(name):
                yield Conversion(table.full_name, _becomes(table))


def _becomes(table: HiveTable) -> TableType:
    can_be_full = table.format == Format.ORC and not table.sort_columns
    return TableType.FULL_ACID if can_be_full else TableType.INSERT_ONLY
