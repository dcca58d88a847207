"""The snapshot that a user chose, or a metastore's, and the lists to which it resolves for one location.

Write ids are numbered by table, so a list of another table would hide and show rows at random. Every list carries the
name of its table, which must be the name of the table that it is used for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from acidctl.acid.assumed_commits import Assumed, Assumption, assume
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.writeids import ValidTxns, ValidWriteIds, WriteIdListError
from acidctl.base.arguments import require_type
from acidctl.base.deadline import Deadline
from acidctl.base.errors import AcidctlError, RefusedError, UsageProblem
from acidctl.location.arguments import HiveName, is_hive_name, open_metastore
from acidctl.location.snapshot import EVERYTHING, GIVEN, DirectoryListing, SnapshotSource
from acidctl.wording import some_of

if TYPE_CHECKING:
    from acidctl.location.warehouse import Warehouse
    from acidctl.metastore.tables import HiveTable

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


@dataclass(frozen=True, slots=True)
class ResolvedSnapshot:
    """The lists that apply to one location.

    Attributes:
        assumed: the assumption that the lists were made from; None if they were given.
        note: a note for users about the origin of the lists; None if there is nothing to say.
        source: the origin of the lists.
    """

    write_ids: ValidWriteIds | None = None
    txns: ValidTxns | None = None
    assumed: Assumed | None = None
    note: Reason | None = None
    source: SnapshotSource = EVERYTHING


@dataclass(frozen=True, slots=True)
class SnapshotResolver:
    """Everything that can decide which write ids count.

    Attributes:
        spec: the snapshot that the user chose.
        warehouse: the metastore that decides if the user did not, and that resolves the names of tables.
    """

    spec: SnapshotSpec = field(default_factory=SnapshotSpec)
    warehouse: Warehouse | None = None

    @property
    def decides(self) -> bool:
        """Return whether a list, a metastore or an assumption decides which write ids count."""
        return self.spec.has_write_ids or self.spec.assumption is not None or self.warehouse is not None

    @property
    def asks_metastore(self) -> bool:
        """Return whether the metastore decides what counts, because the user did not."""
        return self.warehouse is not None and not self.spec.has_write_ids and self.spec.assumption is None

    def assuming(self, assumption: Assumption) -> SnapshotResolver:
        """Return a copy with an assumption that the user agreed to."""
        return replace(self, spec=replace(self.spec, assumption=assumption))

    def limited(self, until: Deadline) -> AbstractContextManager[None]:
        """Limit every call to the metastore within a block to the deadline of the run."""
        return self.warehouse.metastore.limited(until) if self.warehouse else nullcontext()

    def opened(self, places: Sequence[str] = ()) -> SnapshotResolver:
        """Read the transactions of the metastore now, so that directories listed from here on include them all.

        Args:
            places: paths and names whose locations are found next; the tables of several names are queried at once.
        """
        if self.asks_metastore and self.warehouse and not self.warehouse.read_lock:
            _ = self.warehouse.transactions
        self.prefetch([place for place in places if is_hive_name(place)])
        return self

    def refreshed(self, *, is_retry: bool = False) -> SnapshotResolver:
        """Return a copy that queries the metastore again.

        Args:
            is_retry: the copy is needed because directories were newer than the lists.
        """
        return replace(self, warehouse=self.warehouse.refreshed(is_retry=is_retry)) if self.warehouse else self

    def require_warehouse(self, name: str) -> Warehouse:
        """Return the metastore that resolves a name.

        Raises:
            UsageProblem: no metastore is configured.
        """
        if self.warehouse is None:
            raise UsageProblem(
                f"{name} names a table of a metastore, and none is known",
                "",
                "give --metastore, or set HIVE_CONF_DIR to where hive-site.xml says where it is",
            )
        return self.warehouse

    def prefetch(self, names: Sequence[str], *, partitions: bool = False) -> None:
        """Query a metastore at once for many names that are resolved one by one later.

        Args:
            partitions: query the named partitions, too; all of them are kept in memory.
        """
        if self.warehouse and len(names) > 1:
            parsed = []
            for name in names:
                with suppress(AcidctlError):  # it is reported when its turn comes
                    parsed.append(HiveName.parse(name))
            self.warehouse.prefetch(parsed, partitions=partitions)

    def changed(self, tables: Sequence[HiveTable | None]) -> list[AcidctlError | None]:
        """Return for each table an error if the metastore's lists are not its own any more, else None.

        A table that was dropped and created again counts its write ids from 1; one that has moved has other files.
        """
        if not (self.asks_metastore and self.warehouse):
            return [None] * len(tables)
        problems = iter(self.warehouse.changed([table for table in tables if table]))
        return [next(problems) if table else None for table in tables]

    def resolve(
        self, look: DirectoryListing, table: str, now: float, hive: HiveTable | None = None, *, may_clean: bool = True
    ) -> ResolvedSnapshot:
        """Return the lists that apply to one location.

        Args:
            table: see :meth:`SnapshotSpec.write_ids_for`.
            now: seconds since the epoch.
            hive: its table in the metastore.
            may_clean: these lists may decide what is removed.
        """
        given = self.spec.txns
        if self.asks_metastore and self.warehouse:
            if hive is None:
                note = reason(Code.NOT_IN_METASTORE, server=self.warehouse.metastore.shown)
                return ResolvedSnapshot(None, given, note=note)
            ids, txns = self.warehouse.lists(hive, may_clean=may_clean)
            return ResolvedSnapshot(ids, given or txns, note=self.warehouse.note, source=self.warehouse.source)
        write_ids = self.spec.write_ids_for(table)
        if self.spec.assumption is None or (write_ids is not None and given is not None):
            return ResolvedSnapshot(write_ids, given, source=EVERYTHING if write_ids is None else GIVEN)
        assumed = assume(look.listing, look.base_formats, self.spec.assumption, now)
        if write_ids is None:
            source = SnapshotSource("assumption")
            return ResolvedSnapshot(assumed.write_ids, given or assumed.txns, assumed, source=source)
        of_txns = replace(assumed, undecided=(), of_write_ids=False)
        return ResolvedSnapshot(write_ids, assumed.txns, of_txns, source=GIVEN)


def open_warehouse(
    metastore: str | Mapping[str, str] | None, exclude: Sequence[str] = (), *, read_lock: bool = False
) -> Warehouse | None:
    """Open the metastore as a source of names and snapshots; None as for :func:`open_metastore`.

    Args:
        exclude: patterns of names of tables that patterns do not match.
        read_lock: see :class:`acidctl.location.warehouse.Warehouse`.
    """
    client = open_metastore(metastore)
    if client is None:
        return None
    from acidctl.location.warehouse import Warehouse  # noqa: PLC0415 - with thrift: only for a metastore

    return Warehouse(client, exclude, read_lock=read_lock)
