"""Which write ids count: Hive's lists as a user gives them, checked against the tables that they are for.

Write ids are numbered by table, so a list of another table hides and shows rows at random. Every list carries the name
of its table, and it must be the name of the table that it is used for.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from acidctl.acid.assumption import Assumed, Assumption, assume
from acidctl.acid.listing import Listing
from acidctl.acid.names import AcidDirectory
from acidctl.acid.overtaken import is_overtaken, unseen_results
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.writeids import Form, ValidTxns, ValidWriteIds, WriteIdListError
from acidctl.deadline import Deadline
from acidctl.errors import AcidctlError, RefusedError, UsageProblem
from acidctl.location.hive_names import HiveName
from acidctl.location.snapshot import EVERYTHING, GIVEN, Look, SnapshotSource
from acidctl.location.wishes import Wishes
from acidctl.storage.os_errors import mapped
from acidctl.wording import some_of

if TYPE_CHECKING:
    from acidctl.location.warehouse import Warehouse
    from acidctl.metastore.interface import CompactionInfo
    from acidctl.metastore.tables import HiveTable

_MOST_BYTES = 64 << 20
_A_LINE = "give one line for each table: db.table:hwm:minOpen:open:aborted"


@dataclass(frozen=True, slots=True)
class SnapshotLists:
    """What a user said of the snapshot; nothing of it where nothing was said.

    Attributes:
        by_table: lists by ``db.table`` in lower case; None without any.
        of_all: a list of global transaction ids, as Hive had them before version 3: good for every table.
        txns: which ``_v`` directories count.
        table: the name that the lists have for the table, where its path does not show it.
        assumption: what counts where no list says it.
        warehouse: the metastore that is asked where nothing of it was said, and that knows the names of tables.
    """

    by_table: Mapping[str, ValidWriteIds] | None = None
    of_all: ValidWriteIds | None = None
    txns: ValidTxns | None = None
    table: str | None = None
    assumption: Assumption | None = None
    warehouse: Warehouse | None = None

    @property
    def has_write_ids(self) -> bool:
        """Whether a list of write ids was given."""
        return self.by_table is not None or self.of_all is not None

    @property
    def is_of_one_table(self) -> bool:
        """Whether what was given is good for one table alone."""
        return self.table is not None or (self.by_table is not None and len(self.by_table) == 1)

    @property
    def is_told(self) -> bool:
        """Whether it is known which write ids count, from a list, a metastore, or by what the user assumes."""
        return self.has_write_ids or self.assumption is not None or self.warehouse is not None

    @property
    def asks_metastore(self) -> bool:
        """Whether the metastore says what counts, as the user did not."""
        return self.warehouse is not None and not self.has_write_ids and self.assumption is None

    def begun(self) -> SnapshotLists:
        """The same, with the transactions of a metastore taken by now: what is listed from here on holds them all."""
        if self.asks_metastore and self.warehouse and not self.warehouse.read_lock:
            _ = self.warehouse.transactions
        return self

    def end_by(self, until: Deadline) -> None:
        """Let no call to the metastore last beyond the deadline of the run."""
        if self.warehouse:
            self.warehouse.metastore.until = until

    def renewed(self, asked_again: bool = False) -> SnapshotLists:
        """The same, for who looks again: a metastore is asked anew.

        Args:
            asked_again: because what was found was newer than its lists.
        """
        return replace(self, warehouse=self.warehouse.renewed(asked_again)) if self.warehouse else self

    def unseen(self, listing: Listing, lists: Lists) -> tuple[AcidDirectory, ...]:
        """What may have replaced some of a location since a metastore gave these lists, before it was listed."""
        if not self.asks_metastore or self.txns or lists.write_ids is None or lists.txns is None:
            return ()
        return unseen_results(listing, lists.write_ids, lists.txns)

    def is_overtaken(self, unseen: Sequence[AcidDirectory], hive: HiveTable) -> bool:
        """Whether one of them has, by these lists, which were taken after the listing."""
        return self.warehouse is not None and is_overtaken(unseen, *self.warehouse.lists(hive, may_clean=False))

    def expect(self, names: Sequence[str], *, partitions: bool = False) -> None:
        """Ask a metastore at once for what many names will be asked for one by one.

        Args:
            partitions: for those that are named, too, all of which are held then.
        """
        if self.warehouse and len(names) > 1:
            parsed = []
            for name in names:
                with suppress(AcidctlError):  # which says so when its turn comes
                    parsed.append(HiveName.parse(name))
            self.warehouse.expect(parsed, partitions=partitions)

    def require_warehouse(self, name: str) -> Warehouse:
        """The metastore that knows a name.

        Raises:
            UsageProblem: none was named.
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
        """Seconds after which what lies there counts as committed; 0 where no age decides."""
        return self.assumption.age if self.assumption else 0.0

    def assuming(self, assumption: Assumption) -> SnapshotLists:
        """The same, where a user has agreed to what nobody said before."""
        return replace(self, assumption=self.assumption or assumption)

    def wishes_of(self, table: HiveTable | None) -> Wishes:
        """What the owners of a table and of its database wish; nothing without a metastore."""
        return self.warehouse.wishes(table) if self.warehouse and table else Wishes()

    def require_same(self, table: HiveTable | None) -> None:
        """Refuse to change a table by the lists of another one that had its name: to be asked when it was listed.

        Raises:
            NotFoundError: it is gone.
            ConflictError: it was dropped and created again since the metastore was asked for the lists, or lies
                elsewhere.
        """
        if self.asks_metastore and self.warehouse and table:
            self.warehouse.table_again(table)

    def changed(self, tables: Sequence[HiveTable | None]) -> list[AcidctlError | None]:
        """The same of many at once: of each its error, or None."""
        if not (self.asks_metastore and self.warehouse):
            return [None] * len(tables)
        problems = iter(self.warehouse.changed([table for table in tables if table]))
        return [next(problems) if table else None for table in tables]

    def compaction_of(self, table: HiveTable | None, partition: Sequence[tuple[str, str]]) -> CompactionInfo | None:
        """An entry of Hive's queue that is at work in a location, or about to be; None without a metastore, too."""
        return self.warehouse.compaction_of(table, partition) if self.warehouse and table else None

    def urls_of(self, name: str) -> list[str]:
        """Where the locations lie that a name of a metastore's tables means.

        Raises:
            UsageProblem: no metastore is known, or the name is not one.
            NotFoundError: there is no such table or partition.
        """
        return list(self.require_warehouse(name).urls(HiveName.parse(name)))

    def require_one_table(self, tables: Sequence[str], shown: str) -> None:
        """Refuse a second table where what was given is good for one.

        Args:
            tables: the names of those found so far, the newest last.
            shown: the path of the newest.

        Raises:
            RefusedError: there is a second one.
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
        """A table that would take the list of the newest, which names no database, as well; empty without one."""
        name = tables[-1].lower().rpartition(".")[2]
        if self.table is not None or name not in (self.by_table or {}):
            return ""
        return next((table for table in tables[:-1] if table.lower().rpartition(".")[2] == name), "")

    def write_ids_of(self, table: str) -> ValidWriteIds | None:
        """The list for a table; None when none was given.

        Args:
            table: ``db.table``, or only the table's name where its path shows no database.

        Raises:
            RefusedError: lists were given, but none for this table, or more than one that could be.
        """
        if self.by_table is None:
            return self.of_all
        wanted = (self.table or table).lower()
        found = {name: ids for name, ids in self.by_table.items() if _is_name(wanted, name)}
        if len(found) == 1:
            return next(iter(found.values()))
        if found:
            raise RefusedError(
                f"the write-id list of the table {table} cannot be told",
                f"there are lists for {', '.join(sorted(found))}, and the path does not show the database",
                "say which it is: `table='db.table'`",
            )
        known = sorted(self.by_table)
        said = "there is only a list" if len(known) == 1 else "there are only lists"
        raise RefusedError(
            f"no write-id list is for the table {wanted}",
            f"{said} for {some_of(known) or 'no table'}: write ids are numbered by table",
            "if the table has another name than its directory, say it: `table='db.table'`",
        )

    def of(self, look: Look, table: str, now: float, hive: HiveTable | None = None, *, may_clean: bool = True) -> Lists:
        """What counts in one location.

        Args:
            look: at the location.
            table: as :meth:`write_ids_of` takes it.
            now: seconds since the epoch.
            hive: its table, as the metastore has it.
            may_clean: by these lists it may be decided what is removed.
        """
        if self.asks_metastore and self.warehouse:
            if hive is None:
                return Lists(None, self.txns, said=reason(Code.NOT_IN_METASTORE, server=self.warehouse.metastore.shown))
            ids, txns = self.warehouse.lists(hive, may_clean=may_clean)
            return Lists(ids, self.txns or txns, said=self.warehouse.note, source=self.warehouse.source)
        write_ids = self.write_ids_of(table)
        if self.assumption is None or (write_ids is not None and self.txns is not None):
            return Lists(write_ids, self.txns, source=EVERYTHING if write_ids is None else GIVEN)
        assumed = assume(look.listing, look.base_formats, self.assumption, now)
        if write_ids is None:
            return Lists(assumed.write_ids, self.txns or assumed.txns, assumed, source=SnapshotSource("assumption"))
        beside = replace(assumed, undecided=(), of_write_ids=False)
        return Lists(write_ids, assumed.txns, beside, source=GIVEN)


@dataclass(frozen=True, slots=True)
class Lists:
    """The lists of one location, as :func:`acidctl.location.snapshot.take_snapshot` takes them.

    Attributes:
        assumed: what they were made from, where nobody gave them.
        said: where they are from, where that is to be said.
        source: who gave them.
    """

    write_ids: ValidWriteIds | None = None
    txns: ValidTxns | None = None
    assumed: Assumed | None = None
    said: Reason | None = None
    source: SnapshotSource = EVERYTHING


def _is_name(table: str, listed: str) -> bool:
    """Whether a list of one name is for a table of another, which may lack its database."""
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
) -> SnapshotLists:
    """Read what a user gives.

    Args:
        write_ids: one list, or ``txn$list$list...``.
        write_ids_from: a file with one list per line, in either form, or ``-`` for standard input; lines that begin
            with ``#`` do not count.
        valid_txns: the list of transactions.
        form: of `write_ids`; the old ones have no name of a table.
        table: the name that the lists have for the table.

    Raises:
        WriteIdListError: not such strings, or two lists for one table.
        UsageProblem: both a list and a file, or a name where no list has one.
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
    return SnapshotLists(by_table, of_all, txns, table, assumption, warehouse)


def lists_of(write_ids: ValidWriteIds, table: str | None = None) -> SnapshotLists:
    """The same of a parsed list; without a name of a table it is for whatever it is used for."""
    if write_ids.table is None:
        return SnapshotLists(of_all=write_ids)
    return SnapshotLists({write_ids.table.lower(): write_ids}, table=table)


def _by_name(texts: Sequence[str]) -> dict[str, ValidWriteIds]:
    found: dict[str, ValidWriteIds] = {}
    for text in texts:
        for ids in ValidWriteIds.parse_multi(text).values() if "$" in text else (ValidWriteIds.parse(text),):
            name = (ids.table or "null").lower()
            if name in found:
                raise WriteIdListError(f"there are two write-id lists for the table {name}", "", "give the newer one")
            found[name] = ids
    return found


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
