"""Listing a large warehouse: `acidctl` against `find -ls` and `hdfs dfs -ls -R`, in one run.

    PYTHONPATH=.:tests python tests/bench/bench_list.py [--partitions N] [--rounds N] [--hdfs]

The warehouse: a table of 10,000 partitions with ten ACID directories each (a base, two obsolete deltas, seven current
ones), a bucket file and ``_orc_acid_version`` in each, so 100,000 directories and 210,000 files.  In one partition of a
hundred the deltas outweigh the base, so that `compact --auto` has something to plan.  Each command is a process of its
own; its figures are wall time, CPU time, peak memory and the time until the first byte of its output.

With ``--hdfs`` the same names lie on a NameNode that is started for it, listed over Hadoop's RPC and over WebHDFS.
"""

from __future__ import annotations

import argparse
import os
import selectors
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from acidctl.acid.names import METADATA_ACID
from acidctl.acid.sidefiles import METADATA_ACID_COMPACTED

BASE_BYTES = 1 << 20
"""The length of a base's file: sparse, since nothing but the listing looks at it."""

COMMANDS = (
    ("ls", "-o", "jsonl"),
    ("ls",),
    ("advise",),
    ("clean", "--dry-run", "-o", "jsonl"),
    ("compact", "--auto", "--dry-run", "-o", "jsonl"),
)


@dataclass(frozen=True)
class Run:
    """What one process took: seconds and megabytes."""

    wall: float
    cpu: float
    peak: float
    first: float


def measured(command: Sequence[str]) -> Run:
    """Run a command, its output thrown away as it comes."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    first = 0.0
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            selector.select()
            data = os.read(process.stdout.fileno(), 1 << 20)
            if not data:
                break
            first = first or time.perf_counter() - started
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in (0, 12), (command, process.returncode)
    wall = time.perf_counter() - started
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, first)


def names_of(number: int) -> tuple[str, list[str]]:
    """A partition and its ACID directories."""
    return f"sales.db/orders/year={2000 + number // 400}/day={number % 400:03d}", [
        "base_0000003",
        *(f"delta_{i:07d}_{i:07d}_0000" for i in range(2, 11)),
    ]


def build(root: Path, partitions: int) -> None:
    """Write the warehouse to the local disk."""
    from acidctl.demo.big import BigOptions, write_big
    from acidctl.storage.registry import open_location

    with tempfile.TemporaryDirectory() as folder:
        fs, path = open_location(str(Path(folder, "one")))
        write_big(fs, path, BigOptions(rows=20, write_ids=1, deletes=0))
        events = next(Path(path).glob("delta*/bucket_00000")).read_bytes()
    for number in range(partitions):
        partition, names = names_of(number)
        for name in names:
            path_of_it = root / partition / name
            path_of_it.mkdir(parents=True)
            (path_of_it / "_orc_acid_version").write_bytes(b"2")
            (path_of_it / "bucket_00000").write_bytes(events)
        base = root / partition / names[0]
        (base / METADATA_ACID).write_bytes(METADATA_ACID_COMPACTED)
        if number % 100:
            os.truncate(base / "bucket_00000", BASE_BYTES)


def build_remote(url: str, partitions: int) -> None:
    """Write the names of the warehouse to a store; its files are short, since nothing but the listing looks at them."""
    from acidctl.storage.registry import open_location

    fs, root = open_location(url)

    def one(number: int) -> None:
        partition, names = names_of(number)
        for name in names:
            fs.make_dirs(f"{root}/{partition}/{name}")
            fs.write_bytes(f"{root}/{partition}/{name}/_orc_acid_version", b"2")
            fs.write_bytes(f"{root}/{partition}/{name}/bucket_00000", b"x" * (2000 if name == names[0] else 10))
        fs.write_bytes(f"{root}/{partition}/{names[0]}/{METADATA_ACID}", METADATA_ACID_COMPACTED)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(partitions)))


def report(name: str, runs: Sequence[Run], peer: float | None) -> float:
    """One line of the table; the median wall time."""
    middle = Run(*(statistics.median(values) for values in zip(*(vars_of(run) for run in runs), strict=True)))
    ratio = "" if peer is None else f"{middle.wall / peer:.2f}"
    print(
        f"| {name} | {middle.wall:.2f} | {middle.cpu:.2f} | {middle.peak:.0f} | {middle.first:.2f} | {ratio} |",
        flush=True,
    )
    return middle.wall


def vars_of(run: Run) -> tuple[float, float, float, float]:
    return run.wall, run.cpu, run.peak, run.first


def compare(peer: str, peer_call: Sequence[str], place: str, rounds: int) -> None:
    """The table of all commands over one place."""
    print(f"| command | wall, s | CPU, s | peak MB | first output, s | wall / {peer} |")
    print("|---|---:|---:|---:|---:|---:|")
    wall = report(peer, [measured(peer_call) for _ in range(rounds)], None)
    for command in COMMANDS:
        call = [sys.executable, "-m", "acidctl", command[0], place, *command[1:]]
        report("acidctl " + " ".join(command), [measured(call) for _ in range(rounds)], wall)


def in_a_process(*arguments: str) -> None:
    """Do it elsewhere: the peak memory of a process that is started counts what its parent had."""
    subprocess.run([sys.executable, __file__, *arguments], check=True)


def on_hdfs(partitions: int, rounds: int) -> None:
    """The same over a NameNode, against Hadoop's own recursive listing."""
    from servers.hdfs_server import HdfsServer

    with tempfile.TemporaryDirectory() as folder:
        server = HdfsServer(Path(folder))
        try:
            in_a_process("--build", f"{server.rpc}/warehouse", "--partitions", str(partitions))
            hadoop = server._command("org.apache.hadoop.fs.FsShell", "-ls", "-R", "/warehouse", conf="conf")
            for url in (server.rpc, f"webhdfs://{server.authority}"):
                compare("hdfs dfs -ls -R", hadoop, f"{url}/warehouse", rounds)
        finally:
            server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--at", type=Path, help="where the warehouse lies, or is to be written and kept")
    parser.add_argument("--hdfs", action="store_true", help="on a NameNode")
    parser.add_argument("--build", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.build:
        build_remote(args.build, args.partitions) if "://" in args.build else build(Path(args.build), args.partitions)
        return
    if args.hdfs:
        on_hdfs(args.partitions, args.rounds)
        return
    root = args.at or Path(tempfile.mkdtemp())
    try:
        if not (root / "sales.db").exists():
            in_a_process("--build", str(root), "--partitions", str(args.partitions))
        compare("find -ls", ["find", str(root), "-ls"], str(root), args.rounds)
    finally:
        if not args.at:
            shutil.rmtree(root)


if __name__ == "__main__":
    main()
