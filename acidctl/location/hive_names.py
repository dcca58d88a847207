"""Names of tables in a metastore: ``hive:db.table/key=value``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from acidctl.acid.names import parse_partition, unescape
from acidctl.base.errors import NotFoundError, UsageProblem
from acidctl.location.arguments import HIVE

_FORM = "write hive:db.table, hive:db.table/key=value, hive:db.* or hive:*.*"


@dataclass(frozen=True, slots=True)
class HiveName:
    """A parsed name of one table, of several, or of partitions.

    Attributes:
        database, table: patterns with ``*`` and ``?`` if several are meant.
        partition: values by key, perhaps not of all keys; empty for all partitions.
    """

    database: str
    table: str
    partition: Mapping[str, str]

    @classmethod
    def parse(cls, text: str) -> HiveName:
        """Parse ``hive:db.table/key=value``.

        Raises:
            UsageProblem: the text is not such a name.
            NotFoundError: what follows the table is not a partition.
        """
        name, _, partition = text[len(HIVE) :].partition("/")
        database, dot, table = name.strip().lower().partition(".")
        if not dot or not database or not table or "." in table:
            raise UsageProblem(f"not the name of a table: {text}", "", _FORM)
        return cls(database, table, partition_values(partition))

    @property
    def is_pattern(self) -> bool:
        """Return whether the name may mean several tables."""
        return any(mark in self.database + self.table for mark in "*?[")


def partition_values(text: str) -> dict[str, str]:
    """Return the values of a partition specification, ``day=2026-11-20/hour=1``, unescaped as Hive does it.

    Raises:
        NotFoundError: a part of the text is not ``key=value``.
    """
    wanted: dict[str, str] = {}
    for part in filter(None, text.split("/")):
        parsed = parse_partition(part)
        if parsed is None:
            raise NotFoundError(f"{part} is not a partition", "", "write key=value, as Hive names its directory")
        wanted[parsed[0]] = unescape(parsed[1])
    return wanted
