"""What real servers read of the tables of the conformance set: both Hives, row by row and vectorised, and Trino."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from support.conformance.declared import TXNS, Case
from support.conformance.ours import line, of_hive, table_of
from support.engines.hive_text import asked_for
from support.engines.trino_text import of_trino
from support.servers.hive_server import HiveError, HiveServer
from support.servers.trino_server import TrinoError, TrinoServer

Reading = list[str] | str
"""The rows, or why there are none: ``! `` and the kind of the error."""
Readings = dict[str, Reading]
"""By the name of a reader: ``hive3 rows``, ``hive3 vectors``, ``hive4 rows``, ``hive4 vectors``, ``trino``."""
Copy = tuple[str, str]
"""The name of a case, and which copy of it: ``before``, ``minor`` or ``major``."""
Ask = Callable[[Sequence[Copy]], Iterable[tuple[str, str]]]
"""Gives the partition and the line of every row of some copies."""

_SETTINGS = {
    "fs.file.impl": "FlushedFileSystem",
    "hive.txn.timeout": "86400s",
    "metastore.txn.timeout": "86400s",
    "hive.stats.fetch.column.stats": "false",
    # Every change of a type is let through, as many sites have it.
    "hive.metastore.disallow.incompatible.col.type.changes": "false",
    "metastore.disallow.incompatible.col.type.changes": "false",
}


class Judge:
    """One Hive, and Trino where it is wanted, with all tables.

    Args:
        version: 3 or 4.
        directory: of the server.
        with_trino: Trino reads the tables by this Hive's metastore.
    """

    def __init__(self, version: int, directory: Path, cases: Sequence[Case], with_trino: bool) -> None:
        self.version = version
        self.cases = {case.name: case for case in cases}
        self._running = ExitStack()
        directory.mkdir(parents=True, exist_ok=True)
        try:
            self.hive = HiveServer(version, directory, more=_SETTINGS)
            self._running.callback(self.hive.stop)
            self.trino = TrinoServer(directory / "trino", {"hive": self.hive.metastore}) if with_trino else None
            if self.trino:
                self._running.callback(self.trino.stop)
            self._begin_transactions()
        except BaseException:
            self._running.close()
            raise

    def stop(self) -> None:
        """End the servers."""
        self._running.close()

    def read(self, table: str, copies: Mapping[Copy, Path]) -> dict[Copy, Readings]:
        """Make a table whose partitions are copies of cases, and read it in every way.

        Args:
            copies: where their files lie, which stay as they are.
        """
        found: dict[Copy, Readings] = {copy: {} for copy in copies}
        self._make(table, copies)
        for reader, read in self._readers().items():
            for copy, reading in read(list(copies), found).items():
                found[copy][reader] = reading
        return found

    def _begin_transactions(self) -> None:
        txn = 0
        while txn < len(TXNS):
            txn = self.hive.open_transaction()  # on a busy machine Hive 4 passes over a number
            state = TXNS[min(txn, len(TXNS)) - 1]
            if state != "o":
                self.hive.end_transaction(txn, commit=state == "c")

    def _make(self, table: str, copies: Mapping[Copy, Path]) -> None:
        case = self.cases[next(iter(copies))[0]]
        properties = "'transactional'='true'" + (", 'transactional_properties'='insert_only'" * case.insert_only)
        properties += "".join(f", '{name}'='{value}'" for name, value in case.properties)
        columns = case.was or case.columns
        declared = f"create table {table} ({columns}) partitioned by (p string) {case.extra} stored as {case.stored}"
        if case.ids and not case.converted:
            self.hive.sql(f"{declared} tblproperties({properties})")
        else:  # a table that is made transactional later has ten million write ids, all of them committed
            managed = "'EXTERNAL'='FALSE', " if self.version > 3 else ""
            self.hive.sql(declared, f"alter table {table} set tblproperties({managed}{properties})")
        folders = (self.hive.warehouse.parent / place / table for place in ("warehouse", "external"))
        folder = next(path for path in folders if path.exists())
        for state in case.ids:
            txn = self.hive.open_transaction()
            self.hive.allocate_write_id(txn, table)
            if state != "o":
                self.hive.end_transaction(txn, commit=state == "c")
        told = self.hive.write_ids(table).partition(":")[2]
        assert told == str(case.write_ids(table)).partition(":")[2], (table, told, str(case.write_ids(table)))
        for copy in copies:
            shutil.copytree(copies[copy], folder / f"p={_partition(copy)}", symlinks=True)
        partitions = " ".join(f"partition (p='{_partition(copy)}')" for copy in copies)
        self.hive.sql(f"alter table {table} add {partitions}", *(one.format(t=table) for one in case.alter))

    def _readers(self) -> Mapping[str, Callable[..., dict[Copy, Reading]]]:
        readers = {f"hive{self.version} rows": self._by_rows, f"hive{self.version} vectors": self._by_vectors}
        return readers | ({"trino": self._by_trino} if self.trino else {})

    def _by_rows(self, members: Sequence[Copy], _: object) -> dict[Copy, Reading]:
        with _set(self.hive, "hive.fetch.task.conversion", "more"):
            return self._all(members, self._ask_hive)

    def _by_vectors(self, members: Sequence[Copy], found: Mapping[Copy, Readings]) -> dict[Copy, Reading]:
        """In jobs; those that failed row by row are read one by one."""
        failed = [copy for copy in members if isinstance(found[copy][f"hive{self.version} rows"], str)]
        with _set(self.hive, "hive.fetch.task.conversion", "none"):
            readings = _bisected([copy for copy in members if copy not in failed], self._ask_hive)
            for copy in failed:
                readings |= _bisected([copy], self._ask_hive)
        return readings

    def _by_trino(self, members: Sequence[Copy], _: object) -> dict[Copy, Reading]:
        return self._all(members, self._ask_trino)

    def _all(self, members: Sequence[Copy], ask: Ask) -> dict[Copy, Reading]:
        """By one statement, but for copies on which a reader may well fail."""
        odd = [copy for copy in members if self.cases[copy[0]].is_odd]
        readings = _bisected([copy for copy in members if copy not in odd], ask)
        for copy in odd:
            readings |= _bisected([copy], ask)
        return readings

    def _ask_hive(self, members: Sequence[Copy]) -> Iterator[tuple[str, str]]:
        case = self.cases[members[0][0]]
        columns = [asked_for(name, kind) for name, kind in case.kinds.items()]
        asked = ", ".join(["p", *([] if case.insert_only else ["ROW__ID"]), *columns])
        for partition, *values in self.hive.sql(f"select {asked} from {_of(case, members)}"):
            key = None if case.insert_only else json.loads(values.pop(0))
            yield partition, line(key, case, of_hive(case, values))

    def _ask_trino(self, members: Sequence[Copy]) -> Iterator[tuple[str, str]]:
        """Trino has no ROW__ID to tell."""
        case = self.cases[members[0][0]]
        assert self.trino
        for partition, *values in self.trino.sql(
            "hive", f"select p, {', '.join(case.kinds)} from {_of(case, members)}"
        ):
            yield partition, line(None, case, list(map(of_trino, case.kinds.values(), values)))


def _bisected(members: Sequence[Copy], ask: Ask) -> dict[Copy, Reading]:
    """The rows of several partitions of a table by one statement; where it fails by one for each half, and so on."""
    if not members:
        return {}
    readings: dict[str, list[str]] = {_partition(copy): [] for copy in members}
    try:
        for partition, row in ask(members):
            readings[partition].append(row)
    except (HiveError, TrinoError) as error:
        if len(members) == 1:
            return {members[0]: _why(str(error))}
        half = len(members) // 2
        return _bisected(members[:half], ask) | _bisected(members[half:], ask)
    return {copy: sorted(readings[_partition(copy)]) for copy in members}


def _of(case: Case, members: Sequence[Copy]) -> str:
    """The table and its partitions, in SQL."""
    chosen = ", ".join(f"'{_partition(copy)}'" for copy in members)
    return f"{table_of(case)} where p in ({chosen})"


@contextmanager
def _set(hive: HiveServer, name: str, value: str) -> Iterator[None]:
    hive.set(name, value)
    yield
    hive.reset()


def _partition(copy: Copy) -> str:
    return f"{copy[0]}.{copy[1]}"


def _why(error: str) -> str:
    """The kind of an error, the innermost one that it names."""
    named = re.findall(r"\w+(?:Exception|Error)\b|[A-Z]+_[A-Z_]{4,}", error)
    return f"! {named[-1]}" if named else "! failed"
