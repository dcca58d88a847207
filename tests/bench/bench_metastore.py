"""A large metastore: what acidctl asks of it, against the same asked by Thrift's library alone, and by other clients.

    PYTHONPATH=.:tests python tests/bench/bench_metastore.py [--partitions N] [--open N] [--aborted N] [--rounds N]
        [--pymetastore FOLDER]

The metastore is one of this repository, in a process of its own: a table of 100,000 partitions, each sent with the
twenty columns of its table as Hive sends them; 10,000 open transactions with a lock each and 100,000 aborted ones, all
of which have written to one table. Each measurement is a process of its own: CPU time and peak memory without what an
empty one takes that has imported the same, wall time of the work alone, and how many calls the server saw.

Peers: Thrift's own library with the same structs, read by its Python code as clients without its accelerator do; asked
for one by one, for a hundredth of them, times a hundred; and with --pymetastore its stubs, where
`pip install --no-deps --target FOLDER pymetastore` has put them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

from support.metastore.fake_metastore import FakeMetastore, FakeTables, java_bits

from acidctl.location.arguments import HiveName
from acidctl.location.warehouse import Warehouse
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore, batches
from acidctl.metastore.settings import find_settings
from acidctl.metastore.tables import BATCH
from acidctl.metastore.transactions import Transactions

COLUMNS = tuple(interface.FieldSchema(f"column_{number}", "decimal(38,10)", "what it is") for number in range(20))


def _state(is_open: bool) -> int:
    return interface.TxnState.OPEN if is_open else interface.TxnState.ABORTED


def serve(pipe: Pipe, partitions: int, opened: int, aborted: int) -> None:
    """The metastore; says its address, then on every word how many calls it saw since the last."""
    tables = FakeTables()
    tables.add("db.t", "file:/warehouse/db.db/t", "day", "hour")
    tables.add("db.written", "file:/warehouse/db.db/written")
    tables.partitions["db", "t"] = {
        (
            f"day-{number // 24:06}",
            str(number % 24),
        ): f"file:/warehouse/db.db/t/day=day-{number // 24:06}/hour={number % 24}"
        for number in range(partitions)
    }
    names = dict(zip(tables._names("db", "t"), tables.partitions["db", "t"], strict=True))
    serde = interface.SerDeInfo("", "org.apache.hadoop.hive.ql.io.orc.OrcSerde", {"serialization.format": "1"})

    def whole(name: str) -> interface.PartitionWithFiles:
        place = tables.partitions["db", "t"][names[name]]
        files = interface.PartitionFiles(COLUMNS, place, "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat", serde)
        return interface.PartitionWithFiles(names[name], files, {"transient_lastDdlTime": "1700000000"})

    total = opened + aborted
    tables.high_watermark = total + 1
    states = [number % (total // opened) == 0 and number // (total // opened) < opened for number in range(total)]
    now = int(time.time() * 1000)
    infos = tuple(
        interface.TxnInfo(number, state, "etl", "host7", "Unknown", None, None, now, now)
        for number, state in enumerate(map(_state, states), 1)
    )
    ids, bits = tuple(range(1, total + 1)), java_bits([not is_open for is_open in states])
    written = interface.TableWriteIds("db.written", total + 1, ids, 1, bits)
    locks = tuple(
        interface.LockInfo(at, "db", "t", None, 1, 1, at + 1, now, now, "etl", "host7", 0, f"query-{at}", None, None, 1)
        for at, is_open in enumerate(states, 1)
        if is_open
    )
    answers = tables.answers() | {
        "get_partition_names": lambda *_: tuple(names),
        "get_partitions_by_names": lambda database, table, some: tuple(map(whole, some)),
        "get_open_txns": lambda: interface.OpenTxns(total + 1, ids, 1, bits),
        "get_open_txns_req": lambda request: interface.OpenTxns(total + 1, ids, 1, bits),
        "get_open_txns_info": lambda: interface.OpenTxnsInfo(total + 1, infos),
        "get_valid_write_ids": lambda request: interface.ValidWriteIdsResponse((written,) if request.tables else ()),
        "show_locks": lambda request: interface.ShowLocksResponse(locks),
        "show_compact": lambda request: interface.ShowCompactResponse(),
    }
    from support.metastore import fake_metastore  # the method of two that reads more sends more

    fake_metastore.METHODS["get_partitions_by_names"] = interface.GET_PARTITIONS_WITH_FILES
    server = FakeMetastore(answers)
    pipe.send(server.address)
    while pipe.recv():
        pipe.send(len(server.calls))
        server.calls.clear()


# --- what is measured, each in a process of its own -----------------------------------------------------------------


def client(address: str) -> Metastore:
    settings = find_settings({"uris": address}, {})
    assert settings
    return Metastore(settings)


def names_of(metastore: Metastore) -> list[str]:
    return list(metastore.call(interface.GET_PARTITION_NAMES, "db", "t", -1))


def nothing(address: str, peer: str) -> int:
    client(address)
    return 1


def places(address: str, peer: str) -> int:
    return sum(1 for _ in Warehouse(client(address)).places(HiveName.parse("hive:db.t"), {}))


def places_without_accelerator(address: str, peer: str) -> int:
    metastore = client(address)
    connection = metastore.connection()
    connection._protocol = connection._loose  # Thrift's Python code
    found = 0
    for some in batches(names_of(metastore), BATCH):
        found += len(connection.call(interface.GET_PARTITIONS_BY_NAMES, "db", "t", tuple(some)))
    return found


def places_one_by_one(address: str, peer: str) -> int:
    metastore = client(address)
    names = names_of(metastore)[::100]
    return sum(len(metastore.call(interface.GET_PARTITIONS_BY_NAMES, "db", "t", (name,))) for name in names)


def places_of_pymetastore(address: str, peer: str) -> int:
    sys.path.insert(0, peer)
    from pymetastore.hive_metastore.ThriftHiveMetastore import Client
    from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
    from thrift.transport.TSocket import TSocket
    from thrift.transport.TTransport import TBufferedTransport

    transport = TBufferedTransport(TSocket("127.0.0.1", int(address.rpartition(":")[2])))
    other = Client(TBinaryProtocolAccelerated(transport))
    transport.open()
    names = other.get_partition_names("db", "t", -1)
    return sum(len(other.get_partitions_by_names("db", "t", list(some))) for some in batches(names, BATCH))


def snapshot(address: str, peer: str) -> int:
    return len(Transactions(client(address)).write_ids("db.written").exceptions)


def snapshot_without_accelerator(address: str, peer: str) -> int:
    connection = client(address).connection()
    connection._protocol = connection._loose
    connection.call(interface.GET_OPEN_TXNS_REQ, interface.GetOpenTxnsRequest())
    request = interface.ValidWriteIdsRequest(("db.written",), "")
    return len(connection.call(interface.GET_VALID_WRITE_IDS, request).tables[0].invalid)


def infos_without_accelerator(address: str, peer: str) -> int:
    connection = client(address).connection()
    connection._protocol = connection._loose
    found = len(connection.call(interface.GET_OPEN_TXNS_INFO).txns)
    connection.call(interface.SHOW_LOCKS, interface.ShowLocksRequest())
    return found


def command(*line: str) -> Callable[[str, str], int]:
    def run(address: str, peer: str) -> int:
        from acidctl.cli.main import main

        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
        try:
            main([*line, "--metastore", address])
        except SystemExit as stop:
            return 1 - int(stop.code or 0)
        return 1

    return run


@dataclass(frozen=True)
class Task:
    """What is measured, with its peers: their names, and by how much their figures count."""

    do: str
    peers: Mapping[str, tuple[str, int]]


TASKS = {
    "places of all partitions": Task(
        "places",
        {
            "Thrift's Python code": ("places_without_accelerator", 1),
            "one by one": ("places_one_by_one", 100),
            "pymetastore's stubs": ("places_of_pymetastore", 1),
        },
    ),
    "lists of transactions and write ids": Task(
        "snapshot", {"Thrift's Python code": ("snapshot_without_accelerator", 1)}
    ),
    "acidctl hive txns -o jsonl": Task("txns", {"Thrift's Python code": ("infos_without_accelerator", 1)}),
    "acidctl hive txns --blocking": Task("blocking", {}),
    "acidctl hive compactions --stuck": Task("stuck", {}),
}
WORK: dict[str, Callable[[str, str], int]] = {
    one.__name__: one
    for one in (
        nothing, places, places_without_accelerator, places_one_by_one, places_of_pymetastore, snapshot,
        snapshot_without_accelerator, infos_without_accelerator,
    )
} | {
    "txns": command("hive", "txns", "-o", "jsonl"),
    "blocking": command("hive", "txns", "--blocking"),
    "stuck": command("hive", "compactions", "--stuck"),
}  # fmt: skip


@dataclass(frozen=True)
class Run:
    """Seconds, megabytes, and calls."""

    wall: float
    cpu: float
    peak: float
    calls: int


def measured(name: str, address: str, peer: str, pipe: Pipe) -> Run:
    """One process that does it."""
    line = [sys.executable, __file__, "--do", name, "--address", address, "--pymetastore", peer]
    process = subprocess.Popen(line, stdout=subprocess.PIPE)
    assert process.stdout
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{name} failed")
    pipe.send("how many?")
    return Run(float(said.split()[-1]), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, pipe.recv())


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--open", type=int, default=10_000)
    parser.add_argument("--aborted", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pymetastore", default="")
    parser.add_argument("--do", help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.do:
        started = time.perf_counter()
        assert WORK[given.do](given.address, given.pymetastore) > 0
        os.write(1, f"{time.perf_counter() - started}\n".encode())
        return
    here, there = multiprocessing.get_context("spawn").Pipe()
    arguments = (there, given.partitions, given.open, given.aborted)
    server = multiprocessing.get_context("spawn").Process(target=serve, args=arguments, daemon=True)
    server.start()
    address = here.recv()

    def median(name: str, times: int = 1) -> Run:
        runs = [measured(name, address, given.pymetastore, here) for _ in range(given.rounds)]
        own = [base.cpu for base in empty]
        return Run(
            times * statistics.median(run.wall for run in runs),
            times * (statistics.median(run.cpu for run in runs) - statistics.median(own)),
            statistics.median(run.peak for run in runs) - statistics.median(base.peak for base in empty),
            runs[0].calls,
        )

    empty = [measured("nothing", address, "", here) for _ in range(given.rounds)]
    print("| what | by | s | CPU s | MB | calls | CPU, against acidctl |\n|---|---|---:|---:|---:|---:|---:|")
    for what, task in TASKS.items():
        ours = median(task.do)
        print(f"| {what} | acidctl | {ours.wall:.2f} | {ours.cpu:.2f} | {ours.peak:.0f} | {ours.calls} | |", flush=True)
        for peer, (name, times) in task.peers.items():
            if name == "places_of_pymetastore" and not given.pymetastore:
                continue
            run = median(name, times)
            calls = f"{run.calls * times:,}"
            ratio = f"{run.cpu / max(ours.cpu, 0.01):.1f}"
            print(f"| | {peer} | {run.wall:.2f} | {run.cpu:.2f} | {run.peak:.0f} | {calls} | {ratio} |", flush=True)
    here.send(None)


if __name__ == "__main__":
    main()
