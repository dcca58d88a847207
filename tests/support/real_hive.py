"""A table of a real Hive, of any columns, beside what acidctl reads of its files: both must see the same rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from acidctl.acid.triggers import CompactionKind
from acidctl.orc.types import OrcType
from acidctl.rows.scan.scan import Scan
from acidctl.validation.findings import Depth, Severity
from support.compacting import run_compaction
from support.hive_text import asked_for, normal, printed, type_of
from support.servers.hdfs_server import ServerUnavailable
from support.servers.hive_server import HiveServer
from support.tables import json_rows, snapshot_of
from support.validating import check

Rows = list[tuple[tuple[int, int, int], tuple[str, ...]]]
"""ROW__ID, and the columns as :func:`support.hive_text.printed` has them."""

ACID = "stored as orc tblproperties('transactional'='true'{more})"


def started(version: int, directory: Path, more: Mapping[str, str] | None = None) -> HiveServer:
    """A Hive for a fixture, which stops it; without one the tests are skipped."""
    try:
        return HiveServer(version, directory, more=more)
    except ServerUnavailable as error:
        pytest.skip(f"no Hive {version} to judge: {error}")


@dataclass
class HiveTable:
    """A transactional table of Hive's.

    Attributes:
        name: of the table, and of its directory.
        columns: their types as Hive writes them, by name.
        extra: what stands between the columns and the format.
        properties: further table properties, ``, 'k'='v'``.
        statements: what was run so far.
    """

    hive: HiveServer
    name: str
    columns: Mapping[str, str]
    extra: str = ""
    properties: str = ""
    statements: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        declared = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        self.run(f"create table {self.name} ({declared}) {self.extra} {ACID.format(more=self.properties)}")

    @property
    def path(self) -> Path:
        """Its directory."""
        return self.hive.warehouse / self.name

    @property
    def types(self) -> dict[str, OrcType]:
        """Parsed types of the columns."""
        return {name: type_of(kind) for name, kind in self.columns.items()}

    def run(self, *statements: str) -> None:
        """Run some, and remember them for messages."""
        for statement in statements:
            self.statements.append(statement)
            self.hive.sql(statement)

    def rows(self, where: str = "true", name: str = "") -> Rows:
        """As Hive reads them.

        Args:
            where: a condition in SQL.
            name: of another table with the same columns.
        """
        kinds = list(self.types.values())
        asked = ", ".join(asked_for(column, kind) for column, kind in self.types.items())
        rows: Rows = []
        for text, *values in self.hive.sql(f"select ROW__ID, {asked} from {name or self.name} where {where}"):
            key = json.loads(text)
            found = tuple(normal(kind, value) for kind, value in zip(kinds, values, strict=True))
            rows.append(((key["writeid"], key["bucketid"], key["rowid"]), found))
        return sorted(rows)

    def ours(self, path: Path | None = None, where: str | None = None) -> Rows:
        """As acidctl reads them, of the table or of one partition."""
        return our_rows(path or self.path, self.types.values(), where)

    def judge(self) -> Rows:
        """Hive's rows, which are ours; and there is nothing to say of the table."""
        rows = self.rows()
        same(self.ours(), rows, self.statements)
        self.validate()
        return rows

    def validate(self) -> None:
        """Nothing is wrong with the table, for any Hive that reads what this one writes."""
        # Hive 3 does not read all that Hive 4 writes, and rule R2 says so.
        for report in check(self.path, depth=Depth.DEEP, readers=("hive3", "hive4")[self.hive.version - 3 :]):
            # Remarks are right: obsolete directories, write ids of statements that met no row.
            told = [one for one in report.findings if one.severity is not Severity.INFO]
            assert not told, self.statements

    def compacted(self, kind: CompactionKind) -> Rows:
        """Compact it, which changes nothing that Hive reads; its rows."""
        before = self.judge()
        run_compaction(self.path, kind)
        same(self.judge(), before, self.statements)
        return before


def same(ours: Rows, hives: Rows, statements: object = "") -> None:
    """Two lists of rows are the same; a message has what differs only, as rows may be long."""
    if ours == hives:
        return
    for one, other in zip(ours, hives, strict=False):
        if one != other:
            differing = [pair for pair in zip(one[1], other[1], strict=True) if pair[0] != pair[1]]
            raise AssertionError(f"{one[0]} or {other[0]}: {str(differing)[:500]} after {statements}")
    raise AssertionError(f"{len(ours)} rows, and {len(hives)} of Hive's, after {statements}")


def our_rows(path: Path, kinds: Iterable[OrcType], where: str | None = None) -> Rows:
    """The rows of a location as acidctl reads them."""
    rows: Rows = []
    for row in json_rows(Scan(snapshot_of(path), row_id=True, where=where)):
        key = row.pop("ROW__ID")
        found = tuple(printed(kind, value) for kind, value in zip(kinds, row.values(), strict=True))
        rows.append(((key["writeid"], key["bucketid"], key["rowid"]), found))
    return sorted(rows)
