"""A table of a real Hive, of any columns, beside what acidctl reads of its files: both must see the same rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

import pytest

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.writeids import ValidWriteIds
from acidctl.orc.types import OrcType
from acidctl.rows.scan.scan import Scan
from acidctl.validation.findings import Depth, Severity
from support.compacting import run_compaction
from support.engines.hive_text import asked_for, normal, printed, type_of
from support.servers.hdfs_server import ServerUnavailable
from support.servers.hive_server import HiveServer
from support.tables import json_rows, snapshot_of
from support.validating import check

Row = tuple[tuple[int, int, int], tuple[str, ...]]
Rows = list[Row]
"""ROW__ID, and the columns as :func:`support.engines.hive_text.printed` has them."""

ACID = "stored as orc tblproperties('transactional'='true'{more})"


def started(version: int, directory: Path, more: Mapping[str, str] | None = None) -> HiveServer:
    """Start a Hive whose flushed bytes are visible at once; the caller stops it. Skips tests if there is no Hive."""
    try:
        return HiveServer(version, directory, more={"fs.file.impl": "FlushedFileSystem", **(more or {})})
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
        by_lists: which write ids count is asked of the metastore; otherwise all do.
        statements: what was run so far.
        exists: it was made already.
    """

    hive: HiveServer
    name: str
    columns: Mapping[str, str]
    extra: str = ""
    properties: str = ""
    by_lists: bool = False
    statements: list[str] = field(default_factory=list)
    exists: bool = False

    def __post_init__(self) -> None:
        if self.exists:
            return
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

    @property
    def write_ids(self) -> ValidWriteIds | None:
        """What a reader who comes now is told, where the metastore is to be asked."""
        if not self.by_lists:
            return None
        return ValidWriteIds.parse(self.hive.write_ids(self.name))

    def ours(self, path: Path | None = None, where: str | None = None) -> Rows:
        """As acidctl reads them, of the table or of one partition."""
        return our_rows(path or self.path, self.types.values(), where, self.write_ids)

    def locations(self) -> dict[str, Path]:
        """The conditions of the partitions, and their directories; of a table without there is one, that is true."""
        if "partitioned by" not in self.extra:
            return {"true": self.path}
        return {condition_of(path.name): path for path in sorted(self.path.iterdir()) if "=" in path.name}

    def judge(self) -> Rows:
        """Hive's rows, which are ours; and there is nothing to say of the table."""
        rows = [row for found in self.rows_by_location().values() for row in found]
        self.validate()
        return rows

    def rows_by_location(self) -> dict[str, Rows]:
        """Hive's rows, which are ours, by the conditions of :meth:`locations`."""
        rows = {}
        for where, path in self.locations().items():
            rows[where] = self.rows(where)
            same(self.ours(path), rows[where], self.statements)
        return rows

    def validate(self) -> None:
        """Nothing is wrong with the table, for any Hive that reads what this one writes."""
        # Hive 3 does not read all that Hive 4 writes, and rule R2 says so.
        ids = self.write_ids
        readers = ("hive3", "hive4")[self.hive.version > 3 :]
        for report in check(self.path, depth=Depth.DEEP, readers=readers, write_ids=ids and str(ids)):
            # Remarks are right: obsolete directories, write ids of statements that met no row; streams have no index.
            told = [one for one in report.findings if one.severity is not Severity.INFO and one.rule != "R15"]
            assert not told, (told, self.statements)

    def compacted(self, kind: CompactionKind) -> Rows:
        """Compact it, which changes nothing that Hive reads; its rows."""
        before = self.judge()
        for path in self.locations().values():
            run_compaction(path, kind, self.write_ids)
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


def condition_of(directory: str) -> str:
    """The SQL of a partition of text by the name of its directory."""
    name, _, value = directory.partition("=")
    return f"{name} = '{unquote(value)}'"


def our_rows(
    path: Path, kinds: Iterable[OrcType], where: str | None = None, write_ids: ValidWriteIds | None = None
) -> Rows:
    """The rows of a location as acidctl reads them."""
    rows: Rows = []
    for row in json_rows(Scan(snapshot_of(path, write_ids), row_id=True, where=where)):
        key = row.pop("ROW__ID")
        found = tuple(printed(kind, value) for kind, value in zip(kinds, row.values(), strict=True))
        rows.append(((key["writeid"], key["bucketid"], key["rowid"]), found))
    return sorted(rows)
