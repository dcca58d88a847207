"""The servers of a stress: a metastore that is killed and started again, and Hive with its own compactor's threads."""

from __future__ import annotations

import contextlib
import os
import random
import signal
from pathlib import Path
from urllib.parse import urlsplit

from support.servers.hive_server import HiveError, HiveServer
from support.servers.jvm import Process, write_site
from support.servers.metastore_schema import database
from support.servers.metastore_server import CONDITIONS, MetastoreServer
from support.servers.postgres_server import PostgresServer
from support.trouble.bad_line import BadLine


class Servers4:
    """A metastore 4.0.1 of its own process; Hive 4 is in others, which find it again when it was restarted.

    Args:
        txn_timeout: seconds without a heartbeat after which a transaction is dead.
        hives_cleaner: the metastore's own cleaner runs.
        hives_worker: there is a Hive of which :meth:`work` lets its Worker look once.
        postgres: the database of the metastore, instead of Derby.
    """

    version = 4

    def __init__(
        self,
        folder: Path,
        txn_timeout: int,
        *,
        hives_cleaner: bool,
        hives_worker: bool,
        postgres: PostgresServer | None = None,
    ) -> None:
        self._folder, self._txn_timeout, self._postgres = folder, txn_timeout, postgres
        self._properties = {
            "metastore.compactor.cleaner.on": str(hives_cleaner).lower(),
            "metastore.compactor.cleaner.run.interval": "7s",
            "metastore.txn.opentxn.timeout": "5s",  # on a busy machine
            "metastore.expression.proxy": CONDITIONS,
        }
        # Hive's cleaner does not read the metastore's own file.
        of_database = postgres.properties if postgres else database(folder)
        write_site(folder / "conf/hive-site.xml", {**of_database, **self._properties})
        self._server = self._start()
        self._running = contextlib.ExitStack()
        self._running.callback(self._stop)
        self._calm = self._running.enter_context(BadLine(self._server.address))
        self.hive = self._hive("hive", "300s")
        self._hives_worker = self._hive("hive-worker", f"{txn_timeout}s") if hives_worker else None

    def _start(self) -> MetastoreServer:
        return MetastoreServer(
            4,
            self._folder,
            txn_timeout=self._txn_timeout,
            keeps_house=True,
            more=self._properties,
            postgres=self._postgres,
        )

    def _hive(self, name: str, txn_timeout: str) -> HiveServer:
        (self._folder / name).mkdir(exist_ok=True)
        properties = {
            "hive.txn.timeout": txn_timeout,
            "hive.metastore.warehouse.dir": f"{self._folder}/warehouse",
        }
        hive = HiveServer(4, self._folder / name, self._calm.address, properties)
        self._running.callback(hive.stop)
        return hive

    def _stop(self) -> None:
        self._server.stop()

    @property
    def address(self) -> str:
        """Where the metastore is now."""
        return self._server.address

    @property
    def looks_at_queue(self) -> bool:
        """There is something to call :meth:`work` for."""
        return self._hives_worker is not None

    def work(self, chance: random.Random) -> bool:
        """Let Hive's own Worker take an entry, by queries or by MapReduce; whether it could."""
        assert self._hives_worker
        try:
            self._hives_worker.set("hive.compactor.crud.query.based", chance.choice(("true", "false")))
            self._hives_worker.round("Worker")
        except HiveError:  # the metastore is away
            return False
        return True

    def restart(self) -> None:
        """Kill the metastore, and start it on what it left."""
        _kill(self._server._process, self._folder)
        self._calm.hang_up()
        self._server = self._start()
        parts = urlsplit(self._server.address)
        self._calm._server = (parts.hostname or "", parts.port or 0)

    def stop(self) -> None:
        self._running.close()


class Servers3:
    """Hive 3.1.3 with its metastore, Initiator, Worker, Cleaner and house keeper in one process: they know no other."""

    version = 3
    looks_at_queue = False

    def __init__(self, folder: Path, txn_timeout: int, *, hives_compactor: bool) -> None:
        self._folder, self._threads = folder, ("Initiator", "Worker", "Cleaner") if hives_compactor else ()
        house = "org.apache.hadoop.hive.metastore.txn.AcidHouseKeeperService"
        self._properties = {
            "hive.txn.timeout": f"{txn_timeout}s",
            "metastore.task.threads.always": house,
            "metastore.timedout.txn.reaper.interval": "2s",
            "hive.compactor.check.interval": "20s",
            "hive.compactor.cleaner.run.interval": "3s",
        }
        self._start()

    def _start(self) -> None:
        self._running = contextlib.ExitStack()
        self.hive = HiveServer(3, self._folder, more=self._properties)
        self._running.callback(self.hive.stop)
        self.address = self.hive.metastore
        if self._threads:
            self._running.enter_context(self.hive.threads(*self._threads))

    def work(self, chance: random.Random) -> bool:
        """Its threads work of themselves."""
        raise NotImplementedError

    def restart(self) -> None:
        """Kill all of it, and start it on what it left."""
        _kill(self.hive._process, self._folder)
        with contextlib.suppress(BrokenPipeError):
            self._running.close()
        self._start()

    def stop(self) -> None:
        self._running.close()


def _kill(process: Process, folder: Path) -> None:
    os.killpg(process.popen.pid, signal.SIGKILL)
    process.popen.wait()
    for lock in folder.glob("database/*.lck"):
        lock.unlink()
