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
import json
import os
import selectors
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from acidctl.acid.names import METADATA_ACID
from acidctl.acid.sidefiles import METADATA_ACID_COMPACTED

BASE_BYTES = 1 << 20
"""The length of a base's file: zeros behind the events, since nothing but the listing looks at it."""

COMMANDS = (
    ("ls", "-o", "jsonl"),
    ("ls",),
    ("clean", "--dry-run", "-o", "jsonl"),
    ("compact", "--auto", "--assume-committed=0s", "--dry-run", "-o", "jsonl"),
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


def contents() -> dict[str, bytes]:
    """What the files hold, by the name that :func:`files` gives it."""
    from support.made.big_tables import BigOptions, write_big

    from acidctl.storage.registry import open_location

    with tempfile.TemporaryDirectory() as folder:
        fs, path = open_location(str(Path(folder, "one")))
        write_big(fs, path, BigOptions(rows=20, write_ids=1, deletes=0))
        events = next(Path(path).glob("delta*/bucket_00000")).read_bytes()
    return {
        "events": events,
        "version": b"2",
        "metadata": METADATA_ACID_COMPACTED,
        "base": events.ljust(BASE_BYTES, b"\0"),
    }


def files(partitions: int) -> Iterator[tuple[str, str]]:
    """Every file of the warehouse and the name of its content."""
    for number in range(partitions):
        partition, names = names_of(number)
        for name in names:
            is_large = name == names[0] and number % 100
            yield f"{partition}/{name}/_orc_acid_version", "version"
            yield f"{partition}/{name}/bucket_00000", "base" if is_large else "events"
        yield f"{partition}/{names[0]}/{METADATA_ACID}", "metadata"


def build(root: Path, partitions: int) -> None:
    """Write the warehouse to the local disk."""
    held = contents()
    for path, content in files(partitions):
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(held["events" if content == "base" else content])
        if content == "base":
            os.truncate(target, BASE_BYTES)


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
    from support.servers.hdfs_filled import FilledHdfsServer

    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        named = ((f"/warehouse/{path}", content) for path, content in files(partitions))
        server = FilledHdfsServer(Path(folder), named, contents())
        try:
            hadoop = server._command("org.apache.hadoop.fs.FsShell", "-ls", "-R", "/warehouse", conf="conf")
            for url in (server.rpc, f"webhdfs://{server.authority}"):
                print(f"\n{url.partition(':')[0]}://\n", flush=True)
                in_a_process(*("--compare", f"{url}/warehouse", "--peer", json.dumps(hadoop)), "--rounds", str(rounds))
        finally:
            server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--at", type=Path, help="where the warehouse lies, or is to be written and kept")
    parser.add_argument("--hdfs", action="store_true", help="on a NameNode")
    for hidden in ("--build", "--compare", "--peer"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.compare:
        compare("hdfs dfs -ls -R", json.loads(args.peer), args.compare, args.rounds)
        return
    if args.build:
        build(Path(args.build), args.partitions)
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
