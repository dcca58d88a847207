"""Histories of a table that a real Hive writes by SQL, and its rows as Hive and as acidctl read them."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path

from acidctl import Location
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.validation.findings import Depth, Severity
from support.servers.hive_server import HiveServer
from support.tables import read_rows
from support.validating import check

Rows = list[tuple[tuple[int, int, int], tuple[str, ...]]]
"""ROW__ID, and the columns as Hive prints them."""


@dataclass
class History:
    """A table of Hive's, and statements that change it.

    Attributes:
        name: of the table, and of its directory.
        extra: clauses of its CREATE TABLE.
        folder: where a table lies that was made before; without it, it is made here.
        statements: what was run so far.
    """

    hive: HiveServer
    name: str
    seed: int
    extra: str = ""
    folder: Path | None = None
    statements: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._next = 0
        if self.folder is None:
            columns = "(id int, name string, score double)"
            properties = "tblproperties('transactional'='true')"
            self.run(f"create table {self.name} {columns} {self.extra} stored as orc {properties}")

    @property
    def path(self) -> Path:
        return self.folder or self.hive.warehouse / self.name

    def run(self, statement: str) -> None:
        """Run one, and remember it for messages."""
        self.statements.append(statement)
        self.hive.sql(statement)

    def aborted_step(self) -> None:
        """A random statement whose transaction Hive aborts when all of it is written."""
        with self.hive.aborting():
            self.step()
        self.statements[-1] += "  -- aborted"

    def step(self) -> None:
        """A random statement; the first one inserts enough rows for all others to meet some."""
        kinds = [self._insert, self._insert_many, self._update, self._delete, self._merge, self._copy]
        (self._random.choice(kinds) if self._next else self._insert_many)()

    def _values(self, count: int) -> str:
        rows = []
        for _ in range(count):
            name = self._random.choice(["'a'", "'b c'", "''", "null", "'ü'"])
            rows.append(f"({self._next}, {name}, {self._random.randrange(-4, 40) / 2})")
            self._next += 1
        return ", ".join(rows)

    def _insert(self) -> None:
        self.run(f"insert into {self.name} values {self._values(self._random.randrange(1, 6))}")

    def _insert_many(self) -> None:
        self.run(f"insert into {self.name} values {self._values(60)}")

    def _update(self) -> None:
        part = self._random.randrange(2, 5)
        self.run(f"update {self.name} set score = score + 1, name = 'u' where id % {part} = 1")

    def _delete(self) -> None:
        self.run(f"delete from {self.name} where id % {self._random.randrange(3, 9)} = 2")

    def _merge(self) -> None:
        source = f"select id + {self._random.randrange(3)} as id, name, score from {self.name} where id % 3 = 0"
        self.run(
            f"merge into {self.name} as t using (select max(id) as id, max(name) as name, max(score) as score"
            f" from ({source}) s group by id) as s on t.id = s.id when matched and s.id % 2 = 0 then delete"
            " when matched then update set name = 'm' when not matched then insert values (s.id, s.name, s.score)"
        )

    def _copy(self) -> None:
        self.run(f"insert into {self.name} select id + {self._next}, name, score from {self.name} where id % 4 = 0")

    def rows(self, where: str = "true") -> Rows:
        """As Hive reads them."""
        rows: Rows = []
        for text, *values in self.hive.sql(f"select ROW__ID, id, name, score from {self.name} where {where}"):
            key = json.loads(text)
            rows.append(((key["writeid"], key["bucketid"], key["rowid"]), tuple(values)))
        return sorted(rows)

    def lists(self) -> tuple[str, str]:
        """The write ids and the transactions that a reader may see who comes now, as Hive writes them."""
        return self.hive.write_ids(self.name), self.hive.transactions()

    def location(self) -> Location:
        """The table as acidctl sees it now, by Hive's own lists."""
        write_ids, transactions = self.lists()
        return Location(self.path, snapshot=f"{write_ids}\ntxns={transactions}")

    def judge(self) -> Rows:
        """Hive's rows, which are ours; and there is nothing to say of the table."""
        rows = self.rows()
        write_ids, transactions = self.lists()
        assert ours(self.path, write_ids, transactions) == rows, self.statements
        # Hive 3 does not read all that Hive 4 writes, and rule R2 says so.
        readers = ("hive3", "hive4")[self.hive.version > 3 :]
        for report in check(self.path, depth=Depth.DEEP, readers=readers, write_ids=write_ids, txns=transactions):
            # Remarks are right: obsolete directories, write ids of statements that met no row.
            told = [one for one in report.findings if one.severity is not Severity.INFO]
            assert not told, (told, self.statements)
        return rows


def ours(path: Path, write_ids: str = "", transactions: str = "") -> Rows:
    """The rows that acidctl reads; without lists all on disk counts as committed."""
    known = ValidWriteIds.parse(write_ids) if write_ids else None
    rows = read_rows(path, known, ValidTxns.parse(transactions) if transactions else None)
    return sorted((key, tuple(map(as_text, row.values()))) for key, row in rows)


def as_text(value: object) -> str:
    """A value as Hive prints it."""
    return "NULL" if value is None else str(value)
