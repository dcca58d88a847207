"""Which write ids count: the lists that a user gives, each checked against the table that it is for.

Write ids are numbered by table, so a list of another table would hide and show rows at random. Every list carries the
name of its table, which must be the name of the table that it is used for.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from acidctl.acid.assumed_commits import Assumed, Assumption, assume
from acidctl.acid.listing import Listing
from acidctl.acid.names import AcidDirectory
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.unfinished import is_overtaken, unseen_results
from acidctl.acid.writeids import Form, ValidTxns, ValidWriteIds, WriteIdListError
from acidctl.base.deadline import Deadline
from acidctl.base.errors import AcidctlError, RefusedError, UsageProblem
from acidctl.location.hive_names import HiveName
from acidctl.location.metastore_schema import TableProperties
from acidctl.location.snapshot import EVERYTHING, GIVEN, DirectoryListing, SnapshotSource
from acidctl.storage.os_errors import mapped
from acidctl.wording import some_of

if TYPE_CHECKING:
    from acidctl.location.warehouse import Warehouse
    from acidctl.metastore.interface import CompactionInfo
    from acidctl.metastore.tables import HiveTable

_MOST_BYTES = 64 << 20
_A_LINE = "give one line for each table: db.table:hwm:minOpen:open:aborted"


@dataclass(frozen=True, slots=True)
class SnapshotSpec:
    """The snapshot that the user chose; empty if the user chose none.

    Attributes:
        by_table: lists by ``db.table`` in lower case; None if none was given.
        of_all: a list of global transaction ids, as Hive had them before version 3: good for every table.
        txns: decides which ``_v`` directories count.
        table: the name of the table in the lists, if its path does not show it.
        assumption: decides what counts if no list does.
        warehouse: the metastore that decides what counts if the user does not, and that resolves the names of tables.
    """

    by_table: Mapping[str, ValidWriteIds] | None = None
    of_all: ValidWriteIds | None = None
    txns: ValidTxns | None = None
    table: str | None = None
    assumption: Assumption | None = None
    warehouse: Warehouse | None = None

    @property
    def has_write_ids(self) -> bool:
        """Return whether a list of write ids was given."""
        return self.by_table is not None or self.of_all is not None

    @property
    def is_of_one_table(self) -> bool:
        """Return whether the user's choice is good for one table only."""
        return self.table is not None or (self.by_table is not None and len(self.by_table) == 1)

    @property
    def is_told(self) -> bool:
        """Return whether a list, a metastore or an assumption decides which write ids count."""
        return self.has_write_ids or self.assumption is not None or self.warehouse is not None

    @property
    def asks_metastore(self) -> bool:
        """Return whether the metastore decides what counts, because the user did not."""
        return self.warehouse is not None and not self.has_write_ids and self.assumption is None

    def begun(self) -> SnapshotSpec:
        """Take the transactions of the metastore now, so that directories listed from here on include them all."""
        if self.asks_metastore and self.warehouse and not self.warehouse.read_lock:
            _ = self.warehouse.transactions
        return self

    def end_by(self, until: Deadline) -> None:
        """Limit every call to the metastore to the deadline of the run."""
        if self.warehouse:
            self.warehouse.metastore.until = until

    def renewed(self, asked_again: bool = False) -> SnapshotSpec:
        """Return a copy that queries the metastore again.

        Args:
            asked_again: the copy is needed because directories were newer than the lists.
        """
        return replace(self, warehouse=self.warehouse.renewed(asked_again)) if self.warehouse else self

    def unseen(self, listing: Listing, lists: ResolvedSnapshot) -> tuple[AcidDirectory, ...]:
        """Return the directories that may have replaced others between these lists of a metastore and the listing."""
        if not self.asks_metastore or self.txns or lists.write_ids is None or lists.txns is None:
            return ()
        return unseen_results(listing, lists.write_ids, lists.txns)

    def is_overtaken(self, unseen: Sequence[AcidDirectory], hive: HiveTable) -> bool:
        """Return whether one of these directories has replaced others, by these lists, taken after the listing."""
        return self.warehouse is not None and is_overtaken(unseen, *self.warehouse.lists(hive, may_clean=False))

    def expect(self, names: Sequence[str], *, partitions: bool = False) -> None:
        """Query a metastore at once for many names that are resolved one by one later.

        Args:
            partitions: query the named partitions, too; all of them are kept in memory.
        """
        if self.warehouse and len(names) > 1:
            parsed = []
            for name in names:
                with suppress(AcidctlError):  # it is reported when its turn comes
                    parsed.append(HiveName.parse(name))
            self.warehouse.expect(parsed, partitions=partitions)

    def require_warehouse(self, name: str) -> Warehouse:
        """Return the metastore that resolves a name.

        Raises:
            UsageProblem: no metastore is configured.
        """
        if self.warehouse is None:
            raise UsageProblem(
                f"{name} names a table of a metastore, and none is known",
                "",
                "give `metastore`, or set HIVE_CONF_DIR to where hive-site.xml says where it is",
            )
        return self.warehouse

    @property
    def age(self) -> float:
        """Return the age in seconds above which directories count as committed; 0 if no age decides."""
        return self.assumption.age if self.assumption else 0.0

    def assuming(self, assumption: Assumption) -> SnapshotSpec:
        """Return a copy with an assumption that the user agreed to, unless there already was one."""
        return replace(self, assumption=self.assumption or assumption)

    def wishes_of(self, table: HiveTable | None) -> TableProperties:
        """Return the properties that owners set on a table and its database; empty without a metastore."""
        return self.warehouse.wishes(table) if self.warehouse and table else TableProperties()

    def require_same(self, table: HiveTable | None) -> None:
        """Refuse to change a table by the lists of another one that had its name; call it after the listing.

        Raises:
            NotFoundError: the table is gone.
            ConflictError: the table was dropped and created again since the metastore gave the lists, or has moved.
        """
        if self.asks_metastore and self.warehouse and table:
            self.warehouse.table_again(table)

    def changed(self, tables: Sequence[HiveTable | None]) -> list[AcidctlError | None]:
        """Return the error of :meth:`require_same` for each of many tables, or None."""
        if not (self.asks_metastore and self.warehouse):
            return [None] * len(tables)
        problems = iter(self.warehouse.changed([table for table in tables if table]))
        return [next(problems) if table else None for table in tables]

    def compaction_of(self, table: HiveTable | None, partition: Sequence[tuple[str, str]]) -> CompactionInfo | None:
        """Return an entry of Hive's queue for a location that is being or will be compacted, if there is one."""
        return self.warehouse.compaction_of(table, partition) if self.warehouse and table else None

    def urls_of(self, name: str) -> list[str]:
        """Return the URLs of the locations that a name in a metastore means.

        Raises:
            UsageProblem: no metastore is configured, or the name is malformed.
            NotFoundError: there is no such table or partition.
        """
        return list(self.require_warehouse(name).urls(HiveName.parse(name)))

    def require_one_table(self, tables: Sequence[str], shown: str) -> None:
        """Refuse a second table if the user's choice is good for one only.

        Args:
            tables: the names of the tables so far, the newest last.
            shown: the path of the newest table's location.

        Raises:
            RefusedError: there is a second table.
        """
        if len(set(tables)) < 2:
            return
        if alike := self._alike(tables):
            raise RefusedError(
                f"the write-id list of {tables[-1]} cannot be told",
                f"that for {tables[-1].rpartition('.')[2]} names no database, and {alike} is there, too",
                "name the tables as Hive does: db.table:hwm:minOpen:open:aborted",
            )
        if self.table is not None:
            raise RefusedError(
                "one name of a table was given, and there are several tables",
                f"{shown} is of {tables[-1]}, not of {tables[0]}",
                "give one table, or move the directories to where their names are those of the tables",
            )
        if self.by_table is not None and len(self.by_table) == 1:
            raise RefusedError(
                "one write-id list cannot serve several tables",
                f"{shown} is of {tables[-1]}, not of {next(iter(self.by_table))}",
                "give one table, or the lists of all: `write_ids='txn$list$list...'` or `write_ids_from=FILE`",
            )

    def _alike(self, tables: Sequence[str]) -> str:
        """Return another table that the newest one's list, which names no database, would match as well; else empty."""
        name = tables[-1].lower().rpartition(".")[2]
        if self.table is not None or name not in (self.by_table or {}):
            return ""
        return next((table for table in tables[:-1] if table.lower().rpartition(".")[2] == name), "")

    def write_ids_of(self, table: str) -> ValidWriteIds | None:
        """Return the list for a table; None if no list was given.

        Args:
            table: ``db.table``, or only the table's name if its path shows no database.

        Raises:
            RefusedError: lists were given, but none, or more than one, matches this table.
        """
        if self.by_table is None:
            return self.of_all
        wanted = (self.table or table).lower()
        matches = {name: ids for name, ids in self.by_table.items() if _is_name(wanted, name)}
        if len(matches) == 1:
            return next(iter(matches.values()))
        if matches:
            raise RefusedError(
                f"the write-id list of the table {table} cannot be told",
                f"there are lists for {', '.join(sorted(matches))}, and the path does not show the database",
                "say which it is: `table='db.table'`",
            )
        names = sorted(self.by_table)
        there_is = "there is only a list" if len(names) == 1 else "there are only lists"
        raise RefusedError(
            f"no write-id list is for the table {wanted}",
            f"{there_is} for {some_of(names) or 'no table'}: write ids are numbered by table",
            "if the table has another name than its directory, say it: `table='db.table'`",
        )

    def of(
        self, look: DirectoryListing, table: str, now: float, hive: HiveTable | None = None, *, may_clean: bool = True
    ) -> ResolvedSnapshot:
        """Return the lists that apply to one location.

        Args:
            table: see :meth:`write_ids_of`.
            now: seconds since the epoch.
            hive: its table in the metastore.
            may_clean: these lists may decide what is removed.
        """
        if self.asks_metastore and self.warehouse:
            if hive is None:
                return ResolvedSnapshot(
                    None, self.txns, said=reason(Code.NOT_IN_METASTORE, server=self.warehouse.metastore.shown)
                )
            ids, txns = self.warehouse.lists(hive, may_clean=may_clean)
            return ResolvedSnapshot(ids, self.txns or txns, said=self.warehouse.note, source=self.warehouse.source)
        write_ids = self.write_ids_of(table)
        if self.assumption is None or (write_ids is not None and self.txns is not None):
            return ResolvedSnapshot(write_ids, self.txns, source=EVERYTHING if write_ids is None else GIVEN)
        assumed = assume(look.listing, look.base_formats, self.assumption, now)
        if write_ids is None:
            return ResolvedSnapshot(
                assumed.write_ids, self.txns or assumed.txns, assumed, source=SnapshotSource("assumption")
            )
        beside = replace(assumed, undecided=(), of_write_ids=False)
        return ResolvedSnapshot(write_ids, assumed.txns, beside, source=GIVEN)


@dataclass(frozen=True, slots=True)
class ResolvedSnapshot:
    """The lists that apply to one location, for :func:`acidctl.location.snapshot.take_snapshot`.

    Attributes:
        assumed: the assumption that the lists were made from; None if they were given.
        said: a note for users about the origin of the lists; None if there is nothing to say.
        source: the origin of the lists.
    """

    write_ids: ValidWriteIds | None = None
    txns: ValidTxns | None = None
    assumed: Assumed | None = None
    said: Reason | None = None
    source: SnapshotSource = EVERYTHING


def _is_name(table: str, listed: str) -> bool:
    """Return whether two names mean one table; either may lack its database."""
    if "." in table:
        return table == listed or ("." not in listed and table.rpartition(".")[2] == listed)
    return table == listed.rpartition(".")[2]


def read_lists(
    write_ids: str | None = None,
    *,
    write_ids_from: str | None = None,
    valid_txns: str | None = None,
    form: Form = Form.HIVE3,
    table: str | None = None,
    assumption: Assumption | None = None,
    warehouse: Warehouse | None = None,
) -> SnapshotSpec:
    """Parse the lists that a user gives.

    Args:
        write_ids: one list, or ``txn$list$list...``.
        write_ids_from: a file with one list per line, in either form, or ``-`` for standard input; lines that begin
            with ``#`` do not count.
        valid_txns: the list of transactions.
        form: the form of `write_ids`; lists of the old forms do not name their table.
        table: the name of the table in the lists.

    Raises:
        WriteIdListError: a string is malformed, or there are two lists for one table.
        UsageProblem: both a list and a file were given, or a name for lists that have none.
        NotFoundError, AccessError: the file cannot be read.
    """
    if write_ids is not None and write_ids_from is not None:
        raise UsageProblem("lists of write ids were given twice", "", "give `write_ids` or `write_ids_from`")
    if form is not Form.HIVE3 and (write_ids is None or table is not None):
        raise UsageProblem(
            f"a list of the form {form.value} is given by itself, and has no name of a table",
            "",
            "give `write_ids` without `table`",
        )
    by_table: dict[str, ValidWriteIds] | None = None
    of_all = None
    if write_ids_from is not None:
        by_table = _from_lines(_lines_of(write_ids_from), write_ids_from)
    elif write_ids is not None and form is not Form.HIVE3:
        of_all = ValidWriteIds.parse(write_ids, form)
    elif write_ids is not None:
        by_table = _by_name([write_ids])
    if table is not None and by_table is None:
        raise UsageProblem("the name of a table was given for a write-id list, and no list", "", "leave it out")
    txns = None if valid_txns is None else ValidTxns.parse(valid_txns)
    return SnapshotSpec(by_table, of_all, txns, table, assumption, warehouse)


def lists_of(write_ids: ValidWriteIds, table: str | None = None) -> SnapshotSpec:
    """Return a parsed list as the user's choice; a list without the name of a table applies to every table."""
    if write_ids.table is None:
        return SnapshotSpec(of_all=write_ids)
    return SnapshotSpec({write_ids.table.lower(): write_ids}, table=table)


def _by_name(texts: Sequence[str]) -> dict[str, ValidWriteIds]:
    by_name: dict[str, ValidWriteIds] = {}
    for text in texts:
        for ids in ValidWriteIds.parse_multi(text).values() if "$" in text else (ValidWriteIds.parse(text),):
            name = (ids.table or "null").lower()
            if name in by_name:
                raise WriteIdListError(f"there are two write-id lists for the table {name}", "", "give the newer one")
            by_name[name] = ids
    return by_name


def _from_lines(lines: Sequence[str], shown: str) -> dict[str, ValidWriteIds]:
    texts = [text for line in lines if (text := line.strip()) and not text.startswith("#")]
    if not texts:
        raise WriteIdListError(f"there is no write-id list in {shown}", "", _A_LINE)
    return _by_name(texts)


def _lines_of(path: str) -> list[str]:
    try:
        if path == "-":
            return sys.stdin.read(_MOST_BYTES).splitlines()
        with mapped("read", path), Path(path).open("rb") as file:
            data = file.read(_MOST_BYTES)
        return data.decode().splitlines()
    except UnicodeDecodeError as error:
        raise WriteIdListError(f"cannot use {path}", "it is not text", _A_LINE) from error
