"""The snapshot that a user chose: Hive's lists of write ids and transactions, or an assumption.

Write ids are numbered by table, so a list of another table would hide and show rows at random. Every list carries the
name of its table, which must be the name of the table that it is used for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from acidctl.acid.assumed_commits import Assumption
from acidctl.acid.writeids import ValidTxns, ValidWriteIds, WriteIdListError
from acidctl.base.arguments import require_type
from acidctl.base.errors import RefusedError
from acidctl.wording import some_of

_TXNS = "txns="
_FORM = "give one line for each table: db.table:hwm:minOpen:open:aborted"


@dataclass(frozen=True, slots=True)
class SnapshotSpec:
    """The snapshot that the user chose; empty if the user chose none.

    Attributes:
        by_table: lists by ``db.table`` in lower case; None if no text gave lists.
        of_any_table: a list without the name of a table, which only Python code can give: it applies to every table.
        txns: decides which ``_v`` directories count.
        assumption: decides what counts if no list does.
    """

    by_table: Mapping[str, ValidWriteIds] | None = None
    of_any_table: ValidWriteIds | None = None
    txns: ValidTxns | None = None
    assumption: Assumption | None = None

    @classmethod
    def of(cls, snapshot: str | ValidWriteIds | SnapshotSpec | None) -> SnapshotSpec:
        """Return the snapshot that an argument of the Python API means."""
        require_type(snapshot, (str, ValidWriteIds, cls), "snapshot", "give Hive's lists as text, or a SnapshotSpec")
        if snapshot is None:
            return cls()
        if isinstance(snapshot, str):
            return cls.parse(snapshot)
        if isinstance(snapshot, ValidWriteIds):
            return cls({snapshot.table.lower(): snapshot}) if snapshot.table else cls(of_any_table=snapshot)
        return snapshot

    @classmethod
    def parse(cls, text: str, shown: str = "the snapshot") -> SnapshotSpec:
        """Parse Hive's lists, as Hive 3 and 4 write them.

        Args:
            text: one list or ``txn$list$list...`` a line. A part or line ``txns=hwm:minOpen:open:aborted`` is the list
                of transactions. Lines that begin with ``#`` are comments.
            shown: the source of the text, for errors.

        Raises:
            WriteIdListError: a list is malformed, there are two lists for one table, or none at all.
        """
        by_table: dict[str, ValidWriteIds] = {}
        txns: ValidTxns | None = None
        for line in map(str.strip, text.splitlines()):
            parts = [] if line.startswith("#") else line.split("$")
            if len(parts) > 1 and parts[0].isdecimal():  # the id of the transaction that Hive took the lists for
                del parts[0]
            for part in filter(None, parts):
                if part.startswith(_TXNS):
                    if txns is not None:
                        raise WriteIdListError(f"there are two lists of transactions in {shown}", "", "give the newer")
                    txns = ValidTxns.parse(part.removeprefix(_TXNS))
                    continue
                ids = ValidWriteIds.parse(part)
                name = (ids.table or "null").lower()
                if name in by_table:
                    raise WriteIdListError(f"there are two write-id lists for the table {name}", "", "give the newer")
                by_table[name] = ids
        if not by_table and txns is None:
            raise WriteIdListError(f"{shown} holds no write-id list", "", _FORM)
        return cls(by_table or None, txns=txns)

    @property
    def has_write_ids(self) -> bool:
        """Return whether a list of write ids was given."""
        return self.by_table is not None or self.of_any_table is not None

    @property
    def age(self) -> float:
        """Return the age in seconds above which directories count as committed; 0 if no age decides."""
        return self.assumption.age if self.assumption else 0.0

    @property
    def is_of_one_table(self) -> bool:
        """Return whether the user's choice applies to one table only."""
        return self.by_table is not None and len(self.by_table) == 1

    def require_one_table(self, tables: Sequence[str], shown: str) -> None:
        """Refuse a second table if the user's choice applies to one table only.

        Args:
            tables: the names of the tables so far, the newest last.
            shown: the path of the newest table's location.

        Raises:
            RefusedError: there is a second table.
        """
        if self.by_table is None or len(set(tables)) < 2:
            return
        newest = tables[-1]
        bare = newest.lower().rpartition(".")[2]
        if bare in self.by_table:
            # Its list names no database, and would match a table of this name in any database.
            alike = next((table for table in tables[:-1] if table.lower().rpartition(".")[2] == bare), "")
            if alike:
                raise RefusedError(
                    f"it is not clear which table the write-id list for {newest} is for",
                    f"the list of {bare} names no database, and {alike} has that name, too",
                    "name the tables as Hive does: db.table:hwm:minOpen:open:aborted",
                )
        if len(self.by_table) == 1:
            raise RefusedError(
                "one write-id list cannot serve several tables",
                f"{shown} is of {newest}, not of {next(iter(self.by_table))}",
                "give one table, or the lists of all: --snapshot txn$list$list...",
            )

    def write_ids_for(self, table: str) -> ValidWriteIds | None:
        """Return the list for a table; None if no list was given.

        Args:
            table: ``db.table``, or only the table's name if its path shows no database.

        Raises:
            RefusedError: lists were given, but none, or more than one, matches this table.
        """
        if self.by_table is None:
            return self.of_any_table
        wanted = table.lower()
        matches = {name: ids for name, ids in self.by_table.items() if _is_name(wanted, name)}
        if len(matches) == 1:
            return next(iter(matches.values()))
        if matches:
            raise RefusedError(
                f"several write-id lists match the table {table}",
                f"there are lists for {', '.join(sorted(matches))}, and the path does not show the database",
                "give only the list of this table",
            )
        names = sorted(self.by_table)
        there_is = "there is only a list" if len(names) == 1 else "there are only lists"
        raise RefusedError(
            f"no write-id list is for the table {wanted}",
            f"{there_is} for {some_of(names)}: write ids are numbered by table",
            f"if one of them is the list of this directory's table, write {wanted} in it in place of the table's name",
        )


def _is_name(table: str, listed: str) -> bool:
    """Return whether two names mean one table; either may lack its database."""
    if "." in table:
        return table == listed or ("." not in listed and table.rpartition(".")[2] == listed)
    return table == listed.rpartition(".")[2]
