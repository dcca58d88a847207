"""A queue of 1,000 entries over 10,000 partitions: workers of acidctl, its cleaner, and Hive 4.0.1's own Workers.

    python tests/bench/bench_worker.py [--entries N] [--partitions N] [--twins N] [--tables N] [--workers N]
                                       [--at-once N] [--hive-entries N] [--counted N] [--slow-rows N] [--at DIR]

A metastore 4.0.1 of its own process has some tables in many partitions, and their twins for Hive. Each partition that
stands in the queue has three inserts and a delete of a few rows, so that what is measured is the protocol and not the
merging of rows. Two workers of acidctl, each a process, take all entries; among them are a table that is damaged, one
that is gone, and one that is large, which hold up one worker and not the other. Then its cleaner takes what is ready
for cleaning. Hive's Workers, as many, take the same entries of the twins, in one JVM: the first ones do not count.

Calls are counted by a line between them and the metastore, in a run of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.files.acid_files import delete, insert, write_acid
from support.servers.hive_server import HiveServer
from support.servers.jvm import Process
from support.servers.metastore_server import CONDITIONS, MetastoreServer

from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.metastore.interface import ALLOCATE_WRITE_IDS, AllocateWriteIdsRequest
from acidctl.metastore.queue import Wish, find_compactions, request_compaction
from acidctl.metastore.settings import find_settings

_TICK = os.sysconf("SC_CLK_TCK")
_WARM = 6
"""Entries that Hive's Workers have done before they are measured."""

_ACID = "stored as orc tblproperties ('transactional'='true')"


# --- the warehouse


class Bench:
    """Servers, tables and their partitions; started by the constructor, ended by :meth:`close`."""

    def __init__(self, folder: Path, tables: int, partitions: int, of_twins: int) -> None:
        # The last word, unlike the options of the tests: both compilers, and memory for two compactions at once.
        os.environ["_JAVA_OPTIONS"] = "-XX:TieredStopAtLevel=4 -Xmx2500m"
        self.folder = folder
        self._servers = ExitStack()
        more = {"metastore.compactor.cleaner.on": "false", "metastore.expression.proxy": CONDITIONS}
        self.server = MetastoreServer(4, folder, more=more)
        self._servers.callback(self.server.stop)
        (folder / "hive").mkdir()
        properties = {"hive.metastore.warehouse.dir": f"{folder}/warehouse"}
        self.hive = HiveServer(4, folder / "hive", self.server.address, properties)
        self._servers.callback(self.hive.stop)
        settings = find_settings({"uris": self.server.address, "timeout": "600"}, {})
        assert settings
        self.metastore = Metastore(settings)
        self.tables, self._days = tables, {"ours": partitions // tables, "theirs": of_twins // tables}
        self._model = folder / "model"
        self._rows()
        for whose, days in self._days.items():
            for number in range(tables if days else 0):
                self._table(f"{whose}_{number}", days)

    def close(self) -> None:
        self.metastore.close()
        self._servers.close()

    def _rows(self) -> None:
        """What every partition holds."""
        for write_id in (1, 2, 3):
            rows = [insert(write_id, row, {"id": 10 * write_id + row, "name": f"n{row}"}) for row in range(8)]
            write_acid(self._model / f"delta_{write_id:07d}_{write_id:07d}_0000" / "bucket_00000", *rows)
        write_acid(self._model / "delete_delta_0000004_0000004_0000" / "bucket_00000", delete(2, 3, 4))

    def _table(self, name: str, days: int) -> None:
        self.hive.sql(f"create table {name} (id int, name string) partitioned by (day int) {_ACID}")
        for first in range(0, days, 500):
            some = range(first, min(first + 500, days))
            self.hive.sql(f"alter table {name} add " + " ".join(f"partition (day={day})" for day in some))
        self.written(name, 4)

    def written(self, name: str, count: int) -> None:
        """So many write ids of a table are committed."""
        asked = interface.OpenTxnRequest(count, "writer", "writers", txn_type=interface.TxnType.DEFAULT)
        txns = tuple(self.metastore.call(interface.OPEN_TXNS, asked).txn_ids)
        self.metastore.call(ALLOCATE_WRITE_IDS, AllocateWriteIdsRequest("default", name, txns))
        for txn in txns:
            self.metastore.call(interface.COMMIT_TXN, interface.CommitTxnRequest(txn))

    def fill(self, whose: str, first: int, count: int) -> list[Wish]:
        """Files in so many partitions, spread over all tables, from one place on; what is to be asked for."""
        wishes = []
        for at in range(first, first + count):
            name, day = f"{whose}_{at % self.tables}", (at // self.tables * 7919) % self._days[whose]
            shutil.copytree(self._model, self.folder / f"warehouse/{name}/day={day}", dirs_exist_ok=True)
            wishes.append(Wish("default", name, f"day={day}", "major"))
        return wishes

    def ask(self, wishes: Sequence[Wish]) -> None:
        for wish in wishes:
            assert request_compaction(self.metastore, wish).accepted, wish

    def bad_tables(self, slow_rows: int) -> list[Wish]:
        """One that is damaged, one that is gone when its turn comes, and one that takes long."""
        from support.made.big_tables import BigOptions, write_big

        from acidctl.storage.registry import open_location

        names = ("damaged", "gone", "slow")
        for name in names:
            self.hive.sql(f"create table {name} (id int) {_ACID}")
            self.written(name, 12)
        warehouse = self.folder / "warehouse"
        shutil.copytree(self._model, warehouse / "damaged", dirs_exist_ok=True)
        for file in warehouse.glob("damaged/delta_*/bucket_*"):
            file.write_bytes(b"ORC" + bytes(2000))
        options = BigOptions(rows=slow_rows, write_ids=10, deletes=slow_rows // 1000)
        write_big(*open_location(str(warehouse / "slow")), options)
        return [Wish("default", name, "", "major") for name in names]

    def states(self, prefix: str) -> Counter[str]:
        """Of the entries of some tables; of failures the reasons."""
        found = [one for one in find_compactions(self.metastore) if one.table.startswith(prefix)]
        return Counter(f"failed: {one.error[:200]}" if one.state == "failed" else one.state for one in found)


# --- a line that counts


class CountingLine:
    """A line on which calls are counted by method: a connection asks one question at a time, so each begins a call."""

    def __init__(self, server: str) -> None:
        parts = urlsplit(server)
        self._server = (parts.hostname or "", parts.port or 0)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"thrift://127.0.0.1:{self._listener.getsockname()[1]}"
        self.calls: Counter[str] = Counter()
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                threading.Thread(target=self._carry, args=(client, server), daemon=True).start()

    def _carry(self, client: socket.socket, server: socket.socket) -> None:
        answered = threading.Event()
        answered.set()

        def back() -> None:
            with suppress(OSError):
                while data := server.recv(1 << 16):
                    answered.set()
                    client.sendall(data)
                client.shutdown(socket.SHUT_WR)

        threading.Thread(target=back, daemon=True).start()
        with suppress(OSError):
            while data := client.recv(1 << 16):
                if answered.is_set():  # a new question: version and type, the length of the name, the name
                    answered.clear()
                    size = int.from_bytes(data[4:8], "big")
                    self.calls[data[8 : 8 + size].decode("ascii", "replace")] += 1
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)


# --- measuring


@dataclass
class Run:
    """What processes of acidctl took, and what they said."""

    wall: float = 0.0
    cpu: float = 0.0
    server_cpu: float = 0.0
    peaks: list[float] = field(default_factory=list)
    said: list[tuple[float, int, dict[str, object]]] = field(default_factory=list)


def acidctl(bench: Bench, lines: Sequence[Sequence[str]], address: str = "") -> Run:
    """Run lines of acidctl beside each other, to the end of all."""
    run = Run()
    before, begun = cpu_of(bench.server._process), time.perf_counter()
    address = address or bench.server.address
    command = [sys.executable, "-m", "acidctl"]
    children = [
        subprocess.Popen([*command, *line, "-o", "jsonl", "--metastore", address], stdout=subprocess.PIPE, text=True)
        for line in lines
    ]

    def listen(number: int, child: subprocess.Popen[str]) -> None:
        assert child.stdout
        for text in child.stdout:
            run.said.append((time.perf_counter() - begun, number, json.loads(text)))

    threads = [threading.Thread(target=listen, args=pair) for pair in enumerate(children)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for child in children:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        run.cpu += usage.ru_utime + usage.ru_stime
        run.peaks.append(usage.ru_maxrss / 1024)
    run.wall = time.perf_counter() - begun
    run.server_cpu = cpu_of(bench.server._process) - before
    return run


def cpu_of(process: Process) -> float:
    """Seconds that a process has taken so far."""
    words = Path(f"/proc/{process.popen.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / _TICK


def peak_of(process: Process) -> float:
    """Megabytes that a process has held at most."""
    status = Path(f"/proc/{process.popen.pid}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def by_hive(bench: Bench, wishes: Sequence[Wish], workers: int, *, by_query: bool) -> tuple[float, float, float]:
    """Wall seconds, and CPU seconds of Hive and of the metastore, until Hive's Workers have done all of it."""
    bench.hive.set("hive.compactor.crud.query.based", str(by_query).lower())
    bench.hive.set("hive.compactor.worker.sleep.time", "100ms")
    with bench.hive.threads(*["Worker"] * workers):
        for some in (wishes[:_WARM], wishes[_WARM:]):
            begun, cpu, server = time.perf_counter(), cpu_of(bench.hive._process), cpu_of(bench.server._process)
            bench.ask(some)
            while any(find_compactions(bench.metastore, state=state) for state in ("initiated", "working")):
                time.sleep(0.2)
    return (
        time.perf_counter() - begun,
        cpu_of(bench.hive._process) - cpu,
        cpu_of(bench.server._process) - server,
    )


WORKER = ("hive", "worker", "--once", "--engine", "local", "--jobs", "1")
CLEANER = ("hive", "cleaner", "--once", "--yes", "--older-than", "0", "--unsafe-retention")


def counted(bench: Bench, wishes: Sequence[Wish], what: str, line: Sequence[str]) -> None:
    """Calls for each entry, by method."""
    counting = CountingLine(bench.server.address)
    run = acidctl(bench, [line], counting.address)
    counting.close()
    total = sum(counting.calls.values())
    print(f"{what}: {total} calls, {total / len(run.said):.1f} for each of {len(run.said)} entries:", flush=True)
    for name, count in counting.calls.most_common():
        print(f"    {count / len(run.said):6.2f}  {name}")


def told(what: str, run: Run) -> float:
    """Print it; seconds for each entry."""
    count = len(run.said)
    results = dict(Counter(str(one["result"]) for _, _, one in run.said))
    peaks = ", ".join(f"{peak:.0f}" for peak in run.peaks)
    print(
        f"{what}: {count} entries in {run.wall:.1f} s, {count / run.wall:.1f} a second; for each "
        f"{1000 * run.cpu / count:.1f} ms CPU, and {1000 * run.server_cpu / count:.1f} ms of the metastore; "
        f"peak {peaks} MB; {results}",
        flush=True,
    )
    return run.wall / count


def slow_one(run: Run) -> None:
    """What became of the bad tables, and what the others did meanwhile."""
    for end, number, one in run.said:
        if any(str(one["on"]).endswith(name) for name in ("damaged", "gone", "slow")):
            took = float(str(one["seconds"]))
            begun = end - took
            others = sum(begun <= at <= end for at, who, _ in run.said if who != number)
            print(f"    {one['on']}: {one['result']} after {took:.2f} s; the other workers ended {others} meanwhile")


@contextmanager
def folder_at(at: Path | None) -> Iterator[Path]:
    """A folder to work in: kept where it was named."""
    if at:
        at.mkdir(parents=True)
        yield at.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="bench-worker-") as folder:
        yield Path(folder)


def main() -> None:
    """From the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--entries", type=int, default=1000)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--twins", type=int, help="partitions of Hive's twins; without it as many")
    parser.add_argument("--tables", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2, help="processes of acidctl, and threads of Hive")
    parser.add_argument("--at-once", type=int, default=1, help="entries of each worker of acidctl")
    parser.add_argument("--hive-entries", type=int, default=100, help="the first ones of the same queue; 0 for none")
    parser.add_argument("--counted", type=int, default=50, help="entries whose calls are counted")
    parser.add_argument("--slow-rows", type=int, default=3_000_000)
    parser.add_argument("--at", type=Path, help="a folder to work in, which is kept")
    asked = parser.parse_args()
    with folder_at(asked.at) as folder:
        begun = time.perf_counter()
        twins = asked.partitions if asked.twins is None else asked.twins
        bench = Bench(folder, asked.tables, asked.partitions, twins)
        try:
            took = time.perf_counter() - begun
            print(
                f"{asked.partitions} partitions of {asked.tables} tables, {twins} of their twins: {took:.0f} s",
                flush=True,
            )
            measure(bench, asked)
        finally:
            bench.close()


def measure(bench: Bench, asked: argparse.Namespace) -> None:
    """All of it."""
    if asked.counted:
        wishes = bench.fill("ours", asked.entries, asked.counted)
        bench.ask(wishes)
        counted(bench, wishes, "a worker", WORKER)
        time.sleep(11)  # so long a transaction may be there that is not seen
        counted(bench, wishes, "the cleaner", CLEANER)
    wishes = bench.fill("ours", 0, asked.entries)
    bad = bench.bad_tables(asked.slow_rows)
    wishes[len(wishes) // 4 : len(wishes) // 4] = bad
    bench.ask(wishes)
    bench.hive.sql("drop table gone")
    run = acidctl(bench, [(*WORKER, "--max-parallel", str(asked.at_once))] * asked.workers)
    ours = told(f"{asked.workers} workers of acidctl", run)
    slow_one(run)
    print(f"    {dict(bench.states(''))}", flush=True)
    time.sleep(11)
    cleaned = acidctl(bench, [CLEANER])
    told("its cleaner", cleaned)
    print(f"    {dict(bench.states(''))}", flush=True)
    for by_query in (True, False) if asked.hive_entries else ():
        first = 0 if by_query else asked.hive_entries
        theirs = bench.fill("theirs", first, asked.hive_entries)
        wall, cpu, server = by_hive(bench, theirs, asked.workers, by_query=by_query)
        count = len(theirs) - _WARM
        print(
            f"{asked.workers} Workers of Hive, by {'queries' if by_query else 'MapReduce'}: {count} entries in "
            f"{wall:.1f} s, {count / wall:.1f} a second; for each {1000 * cpu / count:.1f} ms CPU, and "
            f"{1000 * server / count:.1f} ms of the metastore; peak {peak_of(bench.hive._process):.0f} MB; "
            f"{dict(bench.states('theirs'))}; acidctl is {wall / count / ours:.1f} times as fast, and takes "
            f"{cpu / count / (run.cpu / len(run.said)):.1f} times less CPU",
            flush=True,
        )


if __name__ == "__main__":
    main()
