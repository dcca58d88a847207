"""A real Hive, 3.1.3 (MapReduce in its own process), 4.0.1 or 4.2.1 (Tez in theirs), that runs SQL from a test.

python -m support.servers.hive_server 4 DIRECTORY   # statements on lines of the input, rows as JSON
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from zipfile import ZipFile

from support.servers.hdfs_server import ServerUnavailable, free_ports
from support.servers.jars import fetch
from support.servers.java_of_version import java_for
from support.servers.jvm import Process, command, write_site
from support.servers.metastore_schema import database, prepare_schema

_ABORTING = ("hive.in.test", "hive.test.rollbacktxn")
_DRIVER = "org/apache/hadoop/hive/ql/exec/mr/ExecDriver.class"
_LOG4J = """status = ERROR
appender.err.type = Console
appender.err.name = err
appender.err.target = SYSTEM_ERR
appender.err.layout.type = PatternLayout
appender.err.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
rootLogger.level = WARN
rootLogger.appenderRefs = err
rootLogger.appenderRef.err.ref = err
"""


class HiveError(Exception):
    """What Hive said to a statement."""


class HiveServer:
    """One session, started by the constructor and ended by :meth:`stop`; a statement at a time.

    Args:
        version: 3, 4, or 42 for 4.2.1.
        directory: for the warehouse, scratch files, logs, and the metastore's database unless `metastore` is given.
        metastore: ``thrift://...`` of a server; without, Hive is its own metastore.
        more: properties, besides or instead of those that stand here.

    Attributes:
        version: as given.
        warehouse: the folder of managed tables.

    Raises:
        ServerUnavailable: its jars or a Java cannot be had, or it does not come up.
    """

    def __init__(
        self, version: int, directory: Path, metastore: str = "", more: Mapping[str, str] | None = None
    ) -> None:
        self.version = version
        self.warehouse = directory / "warehouse"
        folder = fetch(f"hive{version}")
        classes = fetch("hive4" if version == 42 else f"hive{version}") / "classes"
        if not metastore:
            prepare_schema(version, directory)
        conf = directory / "hive-conf"  # a metastore may have its own in `directory`
        write_site(conf / "hive-site.xml", _properties(version, directory, metastore) | dict(more or {}))
        # Tez looks only there.
        write_site(conf / "core-site.xml", {"fs.AbstractFileSystem.file.impl": "DiskContext"})
        (conf / "hive-log4j2.properties").write_text(_LOG4J)
        (conf / "log4j2.properties").write_text(_LOG4J)
        path = [conf, *_without_its_jar(version, folder, directory), classes, folder / "lib/*"]
        main = ["Sql"] if version > 3 else ["Launch", ":".join(str(part) for part in path), "Sql"]
        whole = path if version > 3 else [classes]
        line = command(whole, *main, heap="1g", home=directory, java=java_for(version), options=["-Xmn320m"])
        self._process = Process(line, directory / "hive.log", pipes=True)
        try:
            self._answer()
        except BaseException:
            self.stop()
            raise

    def sql(self, *statements: str) -> list[list[str]]:
        """Run statements; the rows of the last, each as its columns' texts (``NULL`` for none).

        Raises:
            HiveError: one failed; those after it did not run.
        """
        rows: list[str] = []
        for statement in statements:
            rows = self._ask(statement)
        return [row.split("\t") for row in rows]

    def set(self, name: str, value: str) -> None:
        """One of the session's settings, for the statements after it."""
        self.sql(f"set {name}={value}")

    def reset(self) -> None:
        """Every setting as it was at the start."""
        self._ask(["reset"])

    def round(self, thread: str) -> None:
        """Let Hive's own ``Initiator``, ``Worker`` or ``Cleaner`` look once at what there is to do, and do it."""
        self._ask(["round", thread])

    @contextmanager
    def threads(self, *names: str) -> Iterator[None]:
        """Meanwhile each ``Initiator``, ``Worker`` and ``Cleaner`` does what there is to do.

        What a Worker works on at the end fails.
        """
        self._ask(["start", *names])
        try:
            yield
        finally:
            self._ask(["stop"])

    @cached_property
    def metastore(self) -> str:
        """``thrift://127.0.0.1:PORT``: the metastore in this very process, for others; it begins to listen now."""
        port = free_ports(1)[0]
        self._ask(["serve", str(port)])
        self._process.wait_for(lambda: _is_open(port), 60)
        return f"thrift://127.0.0.1:{port}"

    def open_transaction(self) -> int:
        """A transaction of another client, open until :meth:`end_transaction`."""
        return int(self._ask(["open"])[0])

    def end_transaction(self, transaction: int, commit: bool) -> None:
        """Commit it, or abort it."""
        self._ask(["commit" if commit else "abort", str(transaction)])

    def allocate_write_id(self, transaction: int, table: str) -> int:
        """A write id of a table of the database ``default``."""
        return int(self._ask(["allocate", str(transaction), "default", table])[0])

    def write_ids(self, table: str) -> str:
        """What a reader may see who comes now, as Hive writes it: ``default.t:5:3::4``."""
        return self._ask(["write-ids", f"default.{table}"])[0]

    def transactions(self) -> str:
        """The transactions that a reader may see who comes now, as Hive writes them: ``12:12::``."""
        return self._ask(["transactions"])[0]

    @contextmanager
    def aborting(self) -> Iterator[None]:
        """Meanwhile the transactions of statements are aborted when all of it is written, as Hive's own tests do it."""
        try:
            for name in _ABORTING:
                self.set(name, "true")
            yield
        finally:
            for name in _ABORTING:
                self.set(name, "false")

    def _ask(self, request: str | list[str]) -> list[str]:
        assert self._process.popen.stdin
        self._process.popen.stdin.write(json.dumps(request) + "\n")
        self._process.popen.stdin.flush()
        answer = self._answer()
        if "error" in answer:
            raise HiveError(f"{request}: {answer['error']}")
        return answer["rows"]

    def _answer(self) -> dict[str, list[str]]:
        assert self._process.popen.stdout
        line = self._process.popen.stdout.readline()
        if not line:
            raise ServerUnavailable(f"Hive ended: {self._process.said()}")
        answer: dict[str, list[str]] = json.loads(line)
        return answer

    def stop(self) -> None:
        """End Hive."""
        self._process.stop()


def _without_its_jar(version: int, folder: Path, directory: Path) -> list[Path]:
    """Further parts of the class path, for Hive to copy no jar of its own, of 40 or 83 MB, for each of its jobs.

    Hive 3 takes the jar in which the class that runs a job is found first: one that has nothing else. Hive 4 takes
    ``hive.jar.path`` if the class whose place it asks for lies in a folder.
    """
    (jar,) = folder.glob("lib/hive-exec-*.jar")
    with ZipFile(jar) as opened:
        if version == 3:
            with ZipFile(directory / "driver.jar", "w") as made:
                made.writestr(_DRIVER, opened.read(_DRIVER))
            return [directory / "driver.jar"]
        names = [name for name in opened.namelist() if name.startswith("org/apache/hadoop/hive/ql/exec/tez/DagUtils")]
        opened.extractall(directory / "exec", names)
    ZipFile(directory / "empty.jar", "w").close()
    return [directory / "exec"]


def _is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def _properties(version: int, directory: Path, metastore: str) -> dict[str, str]:
    where = (
        {"hive.metastore.uris": metastore} if metastore else {"hive.metastore.uris": "", **database(directory, version)}
    )
    return {
        **where,
        "hive.metastore.warehouse.dir": f"{directory}/warehouse",
        "hive.metastore.warehouse.external.dir": f"{directory}/external",
        "hive.metastore.schema.verification": "true",
        "hive.metastore.event.db.notification.api.auth": "false",
        "hive.support.concurrency": "true",
        "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
        "hive.exec.dynamic.partition.mode": "nonstrict",
        "hive.stats.autogather": "false",
        "hive.query.results.cache.enabled": "false",
        "hive.server2.materializedviews.registry.impl": "DUMMY",
        "hive.create.as.acid": "false",
        "hive.compactor.crud.query.based": "true",
        "hive.exec.scratchdir": f"{directory}/scratch",
        "hive.exec.local.scratchdir": f"{directory}/local-scratch",
        "hive.querylog.location": f"{directory}/query-log",
        "hive.user.install.directory": f"{directory}/install",
        "hadoop.tmp.dir": f"{directory}/hadoop",
        "fs.defaultFS": "file:///",
        "fs.file.impl": "DiskFileSystem",
        "mapreduce.framework.name": "local",
        "mapreduce.client.completion.pollinterval": "50",  # milliseconds; a compaction's end is seen after 5 s else
        **(_TEZ if version > 3 else _MR),
        **({"hive.jar.path": f"file://{directory}/empty.jar"} if version > 3 else {}),
        "tez.staging-dir": f"{directory}/tez",
        "mapreduce.cluster.local.dir": f"{directory}/mapreduce",
        "mapreduce.jobtracker.staging.root.dir": f"{directory}/staging",
    }


_TEZ = {
    "hive.execution.engine": "tez",
    "hive.tez.container.size": "128",
    "tez.local.mode": "true",
    "tez.local.mode.without.network": "true",
    "tez.runtime.optimize.local.fetch": "true",
    "tez.ignore.lib.uris": "true",
    "tez.am.disable.client-version-check": "true",
    "hive.tez.dag.status.check.interval": "50ms",
}
_MR = {
    "hive.execution.engine": "mr",
    "hive.auto.convert.join": "false",
    "hive.exec.counters.pull.interval": "50",  # milliseconds: how often Hive looks whether a job is done
}


if __name__ == "__main__":
    server = HiveServer(int(sys.argv[1]), Path(sys.argv[2]).resolve())
    try:
        for line in sys.stdin:
            try:
                print(json.dumps(server.sql(line.strip().rstrip(";"))), flush=True)
            except HiveError as error:
                print(error, file=sys.stderr, flush=True)
    finally:
        server.stop()
