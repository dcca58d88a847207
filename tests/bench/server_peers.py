"""Servers as peers: Hive 4's own compactors and its vectorised reader, and Trino, by the servers of the tests.

Their Javas use both compilers here, and what they take is the CPU time of the whole process: its compiler and its
collector count, as do the plans of queries.  What a query over hardly any rows takes is measured apart.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.servers.hive_server import HiveServer
from support.servers.jvm import Process
from support.servers.metastore_server import MetastoreServer
from support.servers.trino_server import TrinoServer

from acidctl.orc.types import OrcType, hive_type

_TICK = os.sysconf("SC_CLK_TCK")


class ServerPeers:
    """Started by the constructor, ended by :meth:`close`.

    Args:
        trino: a Trino, too, on the same metastore.
    """

    def __init__(self, *, trino: bool = False) -> None:
        os.environ["_JAVA_OPTIONS"] = "-XX:TieredStopAtLevel=4 -Xmx2500m"  # the last word, unlike those of the tests
        self._servers = ExitStack()
        folder = Path(self._servers.enter_context(tempfile.TemporaryDirectory(prefix="bench-peers-")))
        metastore = MetastoreServer(4, folder / "hive")
        self._servers.callback(metastore.stop)
        self._hive = HiveServer(4, folder / "hive", metastore.address)
        self._servers.callback(self._hive.stop)
        self._trino = TrinoServer(folder / "trino", {"hive4": metastore.address}) if trino else None
        if self._trino:
            self._servers.callback(self._trino.stop)
        self._tables = 0

    def close(self) -> None:
        """End them."""
        self._servers.close()

    def table(self, path: Path, row: OrcType, write_ids: int) -> str:
        """Let Hive know a table: a link from its warehouse, and so many write ids that are committed; its name.

        Args:
            row: the struct of its columns.
        """
        self._tables += 1
        columns = ", ".join(f"{name} {hive_type(kind)}" for name, kind in zip(row.names, row.children, strict=True))
        name = f"bench_{self._tables}"
        self._hive.sql(f"create table {name} ({columns}) stored as orc tblproperties ('transactional'='true')")
        place = self._hive.warehouse / name
        place.rmdir()
        place.symlink_to(path)
        for _ in range(write_ids):
            transaction = self._hive.open_transaction()
            self._hive.allocate_write_id(transaction, name)
            self._hive.end_transaction(transaction, commit=True)
        return name

    def compact(self, table: str, path: Path, kind: str, *, by_query: bool) -> tuple[float, float, list[str]]:
        """One round of Hive's worker: CPU and wall seconds, and the directories that it made.

        Args:
            path: of the table.
            by_query: on Tez, which is the default of Hive 4; else by MapReduce.
        """
        self._hive.set("hive.compactor.crud.query.based", str(by_query).lower())
        before = {one.name for one in path.iterdir()}
        self._hive.sql(f"alter table {table} compact '{kind}'")
        cpu, wall, _ = self._timed(self._hive._process, lambda: self._hive.round("Worker"))
        return cpu, wall, sorted({one.name for one in path.iterdir() if one.name[0] not in "._"} - before)

    def scan(self, table: str, columns: list[str], rows: int) -> dict[str, tuple[float, float]]:
        """CPU and wall seconds of counting the values of columns, by engine.

        Args:
            rows: that are to be seen.
        """
        counts = ", ".join(f"count({column})" for column in columns)
        query = f"select count(*), {counts} from {table}"
        asked: dict[str, tuple[Process, Callable[[], list[list[str]]]]] = {
            "hive4": (self._hive._process, lambda: self._hive.sql(query))
        }
        if trino := self._trino:
            asked["trino"] = (trino._process, lambda: trino.sql("hive4", query))
        found = {}
        for engine, (process, ask) in asked.items():
            cpu, wall, answer = self._timed(process, ask)
            assert int(answer[0][0]) == rows, (engine, table)
            found[engine] = cpu, wall
        return found

    @staticmethod
    def _timed(process: Process, work: Callable[[], list[list[str]] | None]) -> tuple[float, float, list[list[str]]]:
        cpu, wall = _cpu(process), time.perf_counter()
        answer = work()
        return _cpu(process) - cpu, time.perf_counter() - wall, answer or []


def _cpu(process: Process) -> float:
    """Seconds that a process has taken so far."""
    words = Path(f"/proc/{process.popen.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / _TICK
