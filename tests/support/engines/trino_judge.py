"""A real Trino beside both Hives, on their metastores: the rows of a table as each of them and acidctl read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

from acidctl.validation.findings import Depth, Severity
from support.engines.real_hive import HiveTable
from support.engines.trino_text import of_trino
from support.servers.hive_server import HiveServer
from support.servers.metastore_server import MetastoreServer
from support.servers.trino_server import TrinoServer
from support.validating import check

ZONES = {3: "America/Los_Angeles", 4: "Asia/Kolkata"}
"""Java's default time zones of the Hives."""
TRINOS_ZONE = "Pacific/Apia"
_BY_PARTITION = {
    "metastore.expression.proxy": "org.apache.hadoop.hive.ql.optimizer.ppr.PartitionExpressionForMetastore"
}
"""Metastores choose partitions by Hive's conditions."""

Values = list[tuple[str, ...]]
"""Rows without ROW__ID, sorted, as :func:`support.engines.hive_text.printed` has their columns."""


class Engines:
    """Hive 3.1.3 and 4.0.1, each on a metastore of its own, and one Trino on both.

    Attributes:
        hives: by version.
        trino: its catalogs are ``hive3`` and ``hive4``.
        metastores: their addresses, by version.
    """

    def __init__(self, hives: Mapping[int, HiveServer], trino: TrinoServer, metastores: Mapping[int, str]) -> None:
        self.hives = hives
        self.trino = trino
        self.metastores = metastores

    def sql(self, hive: HiveServer, *statements: str) -> list[list[object]]:
        """What Trino answers to the last of some statements, on the tables of a Hive."""
        return self.trino.sql(f"hive{hive.version}", *statements)

    def rows(self, table: HiveTable, where: str = "true") -> Values:
        """A table as Trino reads it."""
        kinds = list(table.types.values())
        found = self.sql(table.hive, f"select {', '.join(table.types)} from {table.name} where {where}")
        return sorted(tuple(map(of_trino, kinds, row)) for row in found)

    def judge(self, table: HiveTable) -> Values:
        """Hive's rows, which acidctl reads; and Trino, too, unless ``validate --for trino`` says why not."""
        wanted = sorted(values for _, values in table.judge())
        told = warned_of(table)
        if not told:
            assert self.rows(table) == wanted, table.statements
        elif told == {"R2"}:
            missing = Counter(wanted) - Counter(self.rows(table))
            assert not missing, "rows may be back that were deleted, none are missing"
        return wanted

    def reset(self) -> None:
        """Every setting as it was at the start."""
        self.trino.reset()
        for hive in self.hives.values():
            hive.reset()


def warned_of(table: HiveTable) -> set[str]:
    """The rules by which ``validate --for trino`` finds errors in a table."""
    ids = table.write_ids
    reports = check(table.path, depth=Depth.FOOTERS, readers=("trino",), write_ids=ids and str(ids))
    found = (one for report in reports for one in report.findings)
    return {one.rule for one in found if one.rule.startswith("R") and one.severity is Severity.ERROR}


@contextmanager
def engines(directory: Path) -> Iterator[Engines]:
    """Started, and ended.

    Raises:
        ServerUnavailable: one of them cannot be had, or does not come up.
    """
    with ExitStack() as running:
        hives, addresses = {}, {}
        for version, zone in ZONES.items():
            place = directory / f"hive{version}"
            metastore = MetastoreServer(version, place, more=_BY_PARTITION)
            running.callback(metastore.stop)
            addresses[f"hive{version}"] = metastore.address
            with patch.dict("os.environ", TZ=zone):
                hives[version] = HiveServer(version, place, metastore.address, {"fs.file.impl": "FlushedFileSystem"})
            running.callback(hives[version].stop)
        trino = TrinoServer(directory / "trino", addresses, TRINOS_ZONE)
        running.callback(trino.stop)
        yield Engines(hives, trino, {version: addresses[f"hive{version}"] for version in hives})
