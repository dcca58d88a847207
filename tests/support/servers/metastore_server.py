"""A Hive metastore, 2.3.10, 3.1.3, 4.0.1, 4.1.0 or 4.2.1, of its own process, on Derby, that speaks thrift.

python -m support.servers.metastore_server 4 DIRECTORY   # prints its address; ends with the input
python -m support.servers.metastore_server 4 DIRECTORY kerberos=privacy tls     # ways of `metastore_ways`: WAYS
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from support.servers import metastore_of_pyspark
from support.servers.hdfs_server import free_ports
from support.servers.jars import fetch
from support.servers.java_of_version import java_for
from support.servers.jvm import Process, command, write_site
from support.servers.metastore_schema import class_path, database, make_schema, prepare_schema
from support.servers.metastore_ways import Way, way
from support.servers.postgres_server import PostgresServer

_MAIN = "org.apache.hadoop.hive.metastore.HiveMetaStore"
_EVENTS = "org.apache.hadoop.hive.metastore.events.EventCleanerTask"
CONDITIONS = "org.apache.hadoop.hive.ql.optimizer.ppr.PartitionExpressionForMetastore"
"""As ``metastore.expression.proxy``: it understands conditions on partitions, and takes Hive's own classes."""

_TIME_OUTS = "org.apache.hadoop.hive.metastore.txn.AcidHouseKeeperService"


class MetastoreServer:
    """Started by the constructor, ended by :meth:`stop`.

    Args:
        version: 2, 3, 4, 41 for 4.1.0, or 42 for 4.2.1.
        directory: for its database, its log, and the warehouse: a :class:`HiveServer` on it has the same.
        ways: how it is reached, when not by plain thrift: see `metastore_ways`.
        txn_timeout: seconds without a heartbeat after which a transaction or a lock is dead.
        keeps_house: its own house keeper ends what is dead, every two seconds; in Hive 2 it comes with an initiator and
            a cleaner of compactions.
        standalone: without Hive's own classes, as it is installed beside Trino or Spark: it has no compactor, and
            refuses to make full-ACID tables. Of 2, 41 and 42 there is one kind, with Hive's classes.
        more: properties, besides or instead of those that stand here.
        postgres: its database, instead of Derby.

    Attributes:
        version, directory: as given.
        address: ``thrift://127.0.0.1:PORT``, or as its ways have it.
        port: of it.
        client: the properties with which Java's client reaches it.

    Raises:
        ServerUnavailable: its jars or a Java cannot be had, or it does not come up.
    """

    def __init__(
        self,
        version: int,
        directory: Path,
        *ways: Way,
        txn_timeout: int = 300,
        keeps_house: bool = False,
        standalone: bool = False,
        more: Mapping[str, str] | None = None,
        postgres: PostgresServer | None = None,
    ) -> None:
        if lacking := [type(way).__name__ for way in ways if not way.oldest <= version <= way.newest]:
            raise ValueError(f"a metastore of Hive {version} has no {', '.join(lacking)}")
        self.version, self.directory = version, directory
        (directory / "warehouse").mkdir(parents=True, exist_ok=True)  # others than Hive do not make it
        if postgres:
            make_schema(version, directory / "schema", postgres.properties, "postgres", postgres.driver)
        elif version > 2:
            prepare_schema(version, directory)
        self.port = free_ports(1)[0]
        self.address = f"{_other(ways, 'scheme')}://{_other(ways, 'host')}:{self.port}"
        properties = {
            **(postgres.properties if postgres else database(directory, version)),
            "metastore.thrift.uris": self.address,
            "metastore.thrift.port": str(self.port),
            "metastore.thrift.bind.host": "127.0.0.1",
            "metastore.warehouse.dir": f"file:{directory}/warehouse",
            "metastore.warehouse.external.dir": f"file:{directory}/external",
            "metastore.schema.verification": "true",
            "metastore.event.db.notification.api.auth": "false",
            "metastore.expression.proxy": "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
            "metastore.stats.autogather": "false",
            "metastore.txn.timeout": f"{txn_timeout}s",
            "metastore.timedout.txn.reaper.interval": "2s",
            "metastore.acid.housekeeper.interval": "2s",
            "metastore.compactor.initiator.on": str(keeps_house and version == 2).lower(),
            "metastore.compactor.cleaner.on": "false",  # on by default since Hive 4; older ones have no such switch
            "metastore.housekeeping.threads.on": str(keeps_house and version > 3).lower(),
            # The defaults name classes that a metastore without Hive does not have.
            "metastore.task.threads.always": f"{_EVENTS},{_TIME_OUTS}" if keeps_house and version == 3 else _EVENTS,
        }
        for one in ways:
            properties |= one.both() | one.server()
        properties |= dict(more or {})
        core = {name: value for way in ways for name, value in way.core().items()}
        if core:
            write_site(directory / "conf/core-site.xml", core)
        self.client = {"metastore.thrift.uris": self.address, **core}
        for one in ways:
            self.client |= one.both() | one.client()
        options = [option for way in ways for option in way.jvm()]
        path, main, arguments = _program(version, directory, str(self.port), properties, standalone)
        path += [postgres.driver] if postgres else []
        arguments = command(
            path, main, *arguments, heap="512m", home=directory, java=java_for(version), options=options
        )
        self._ways = ways
        self._process = Process(arguments, directory / "metastore.log")
        try:
            self._process.wait_for(self._is_up)
        except BaseException:
            self.stop()
            raise

    def _is_up(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1):
                return all(one.is_open(self.port) for one in self._ways)
        except OSError:
            return False

    def stop(self) -> None:
        """End it."""
        self._process.stop()


def _program(
    version: int, directory: Path, port: str, properties: Mapping[str, str], standalone: bool
) -> tuple[list[Path], str, list[str]]:
    """Class path, main class and arguments of a version, whose properties are written."""
    if version == 2:
        write_site(directory / "conf/hive-site.xml", metastore_of_pyspark.properties(properties))
        main, arguments = metastore_of_pyspark.MAIN, [str(directory / "database"), port]
        return [directory / "conf", *metastore_of_pyspark.class_path()], main, arguments
    write_site(directory / "conf/metastore-site.xml", properties)
    whole = not standalone and version in (3, 4)
    classes = [fetch(f"hive{version}") / "lib/*"] if whole else class_path(version)
    return [directory / "conf", *classes], _MAIN, ["-p", port]


def _other(ways: Sequence[Way], attribute: str) -> str:
    """What one of the ways has in place of the usual, else the usual."""
    values = [getattr(way, attribute) for way in ways]
    usual: str = getattr(Way, attribute)
    return next((value for value in values if value != usual), usual)


def main(version: int, directory: Path, names: Sequence[str]) -> None:
    """Start one, say how it is reached, and end it at the end of the input."""
    with ExitStack() as started:
        ways = [way(name, directory, started) for name in names]
        server = MetastoreServer(version, directory, *ways)
        started.callback(server.stop)
        print(server.address)
        for one in ways:
            for name, value in one.said().items():
                print(f"{name}={value}")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]).resolve(), sys.argv[3:])
