"""A real Trino 476, with a catalog of its Hive connector for each metastore that it is given, on loopback.

python -m support.servers.trino_server DIRECTORY   # with Hive 4 beside it: lines `hive ...` and `trino ...` of SQL
"""

from __future__ import annotations

import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.servers.hdfs_server import free_ports
from support.servers.hive_server import HiveError, HiveServer
from support.servers.jars import fetch
from support.servers.java_of_version import java_of
from support.servers.jvm import Process, command
from support.servers.metastore_server import MetastoreServer

_JAVA = 24
_CATALOG = {
    "connector.name": "hive",
    # Trino's own local file system lists `local:///...` in tables that lie at `file:/...`, and then refuses them.
    "fs.hadoop.enabled": "true",
    "hive.timestamp-precision": "NANOSECONDS",
    "hive.parquet.time-zone": "UTC",
    # Predicates are to be pushed down to rows, too, however little there is to read.
    "hive.orc.bloom-filters.enabled": "true",
}


_ICEBERG = {"connector.name": "iceberg", "iceberg.catalog.type": "hive_metastore", "fs.hadoop.enabled": "true"}


_STARTING = (": nodes is empty", ": No nodes available to run query")


class TrinoError(Exception):
    """What Trino said to a statement."""


class TrinoServer:
    """Started by the constructor, ended by :meth:`stop`.

    Args:
        directory: for its configuration, its data and its log.
        catalogs: the addresses of metastores, ``thrift://...``, by name.
        zone: Java's default time zone in it.
        iceberg: the addresses of metastores whose Iceberg tables it reads, by the names of further catalogs.

    Attributes:
        address: ``http://127.0.0.1:PORT``.
        stats: what Trino says of the last statement: ``processedRows``, ``cpuTimeMillis`` and others.

    Raises:
        ServerUnavailable: its jars or a Java 24 cannot be had, or it does not come up.
    """

    def __init__(
        self,
        directory: Path,
        catalogs: Mapping[str, str],
        zone: str = "UTC",
        *,
        iceberg: Mapping[str, str] | None = None,
    ) -> None:
        java = java_of(_JAVA)
        folder = fetch("trino476")
        port = free_ports(1)[0]
        self.address = f"http://127.0.0.1:{port}"
        self.stats: dict[str, Any] = {}
        self._session: dict[str, str] = {}
        every = {name: {**_CATALOG, "hive.metastore.uri": uri} for name, uri in catalogs.items()}
        every |= {name: {**_ICEBERG, "hive.metastore.uri": uri} for name, uri in (iceberg or {}).items()}
        _configure(directory, folder, port, every)
        path = [next(folder.glob("trino-server-*")) / "lib/*"]
        program = command(path, "io.trino.server.TrinoServer", heap="1200m", home=directory, java=java)
        options = ["--enable-native-access=ALL-UNNAMED", "-XX:+EnableDynamicAgentLoading", f"-Duser.timezone={zone}"]
        options += [f"-Dconfig={directory}/etc/config.properties", f"-Dlog.levels-file={directory}/etc/log.properties"]
        self._process = Process([program[0], *options, *program[1:]], directory / "trino.log")
        try:
            self._process.wait_for(self._is_up, 180)
        except BaseException:
            self.stop()
            raise

    def set(self, name: str, value: str) -> None:
        """A property of the session, ``CATALOG.NAME`` or ``NAME``, for the statements after it."""
        self._session[name] = value

    def reset(self) -> None:
        """No property of the session is set any more."""
        self._session.clear()

    def sql(self, catalog: str, *statements: str) -> list[list[Any]]:
        """Run statements in the schema ``default`` of a catalog; the rows of the last, as its JSON has them.

        Raises:
            TrinoError: one failed; those after it did not run.
        """
        rows: list[list[Any]] = []
        for statement in statements:
            for wait in (1, 2, 4, 8, 0):
                try:
                    rows = self._run(catalog, statement)
                    break
                except TrinoError as error:
                    # It finds itself to be a node of its catalogs some seconds after it is up.
                    if not str(error).endswith(_STARTING) or not wait:
                        raise
                    time.sleep(wait)
        return rows

    def _run(self, catalog: str, statement: str) -> list[list[Any]]:
        headers = {
            "X-Trino-User": "tests",
            "X-Trino-Catalog": catalog,
            "X-Trino-Schema": "default",
            "X-Trino-Time-Zone": "UTC",
            "X-Trino-Client-Capabilities": "PARAMETRIC_DATETIME",
            "X-Trino-Session": ",".join(f"{name}={value}" for name, value in self._session.items()),
        }
        asked = urllib.request.Request(f"{self.address}/v1/statement", statement.encode(), headers)
        rows: list[list[Any]] = []
        while True:
            with urllib.request.urlopen(asked, timeout=120) as answer:
                said = json.load(answer)
            if error := said.get("error"):
                raise TrinoError(f"{statement}: {error.get('errorName')}: {error.get('message')}")
            rows += said.get("data") or []
            self.stats = said.get("stats") or {}
            if not (following := said.get("nextUri")):
                return rows
            asked = urllib.request.Request(following)

    def _is_up(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.address}/v1/info", timeout=5) as answer:
                return not json.load(answer)["starting"]
        except (OSError, urllib.error.URLError, ValueError):
            return False

    def stop(self) -> None:
        """End it."""
        self._process.stop()


def _configure(directory: Path, folder: Path, port: int, catalogs: Mapping[str, Mapping[str, str]]) -> None:
    plugins = directory / "plugin"
    plugins.mkdir(parents=True)
    # None of those that come with the server, but what the catalogs need.
    for name in {one["connector.name"] for one in catalogs.values()}:
        (plugins / name).symlink_to(next(folder.glob(f"trino-server-*/plugin/{name}")))
    main = {
        "coordinator": "true",
        "node-scheduler.include-coordinator": "true",
        "http-server.http.port": str(port),
        "discovery.uri": f"http://127.0.0.1:{port}",
        "node.bind-ip": "127.0.0.1",
        "node.internal-address": "127.0.0.1",
        "node.environment": "tests",
        "plugin.dir": str(plugins),
        "catalog.config-dir": f"{directory}/etc/catalog",
        "query.max-memory-per-node": "300MB",
        "task.concurrency": "2",
    }
    _write(directory / "etc/config.properties", main)
    _write(directory / "etc/log.properties", {"io.trino": "WARN", "": "WARN"})
    for name, properties in catalogs.items():
        _write(directory / f"etc/catalog/{name}.properties", properties)


def _write(path: Path, properties: Mapping[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))


def _by_hand(directory: Path) -> None:
    metastore = MetastoreServer(4, directory)
    try:
        hive = HiveServer(4, directory, metastore.address)
        try:
            trino = TrinoServer(directory / "trino", {"hive": metastore.address})
            try:
                print(trino.address, flush=True)
                for line in sys.stdin:
                    _answer(hive, trino, line.strip().rstrip(";"))
            finally:
                trino.stop()
        finally:
            hive.stop()
    finally:
        metastore.stop()


def _answer(hive: HiveServer, trino: TrinoServer, line: str) -> None:
    whose, _, statement = line.partition(" ")
    try:
        rows = hive.sql(statement) if whose == "hive" else trino.sql("hive", statement)
        print(json.dumps(rows, ensure_ascii=False), flush=True)
    except (HiveError, TrinoError) as error:
        print(error, file=sys.stderr, flush=True)


if __name__ == "__main__":
    _by_hand(Path(sys.argv[1]).resolve())
