"""The constraints that Hive enforces when rows are written: NOT NULL, DEFAULT and CHECK, but no keys."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa

from acidctl.base.errors import BadDataError, RefusedError, UsageProblem
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import UnknownMethod
from acidctl.metastore.tables import HiveTable


@dataclass(frozen=True, slots=True)
class Constraints:
    """The enabled constraints of a table.

    Attributes:
        not_null, defaults: names of columns, in lower case.
        checks: conditions in HiveQL.
    """

    not_null: frozenset[str] = frozenset()
    defaults: frozenset[str] = frozenset()
    checks: tuple[str, ...] = ()

    @classmethod
    def of(cls, metastore: Metastore, table: HiveTable) -> Constraints:
        """Return the constraints that the metastore has; a version without constraints has none."""
        request = interface.ConstraintsRequest(database=table.database, table=table.name)
        try:
            not_null = metastore.call(interface.GET_NOT_NULL, request).constraints
            defaults = metastore.call(interface.GET_DEFAULTS, request).constraints
            checks = metastore.call(interface.GET_CHECKS, request).constraints
        except UnknownMethod:
            return cls()
        return cls(
            frozenset(constraint.column.lower() for constraint in not_null if constraint.is_enabled),
            frozenset(constraint.column.lower() for constraint in defaults if constraint.is_enabled),
            tuple(constraint.text for constraint in checks if constraint.is_enabled),
        )

    def refuse_checks(self, table: HiveTable) -> None:
        """Refuse to add rows to a table with conditions that acidctl cannot check as Hive does.

        Raises:
            RefusedError: the table has a CHECK constraint.
        """
        if self.checks:
            why = f"it has the constraint CHECK ({self.checks[0]})"
            raise RefusedError(f"will not write to {table.full_name}", why, "write it with Hive")

    def require_columns(self, names: Collection[str]) -> None:
        """Refuse rows without a column for which Hive would compute a default.

        Args:
            names: the columns of the rows, in lower case.

        Raises:
            UsageProblem: a column with a default is missing.
        """
        for name in sorted(self.defaults.difference(names)):
            why = "the table has a default for it, which Hive would compute"
            raise UsageProblem(
                f"the rows have no column {name}", why, "add the column to the rows; a NULL in it stays NULL"
            )

    def require_values(self, names: Sequence[str], columns: Sequence[pa.Array]) -> None:
        """Refuse a NULL in a column that is NOT NULL.

        Raises:
            BadDataError: a row has such a NULL.
        """
        for name, column in zip(names, columns, strict=True):
            if name in self.not_null and column.null_count:
                what = f"a row has no value in {name}"
                raise BadDataError(what, "the column is NOT NULL in the table", "nothing was written; correct the row")
