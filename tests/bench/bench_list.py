"""Listing a large warehouse: `acidctl` against `find -ls` and `hdfs dfs -ls -R`, in one run.

    python tests/bench/bench_list.py [--partitions N] [--rounds N] [--hdfs]

The warehouse: a table of 10,000 partitions with ten ACID directories each (a base, two obsolete deltas, seven current
ones), a bucket file and ``_orc_acid_version`` in each, so 100,000 directories and 210,000 files.  In one partition of a
hundred the deltas outweigh the base, so that `compact --auto` has something to plan.  Each command is a process of its
own; its figures are wall time, CPU time, peak memory and the time until the first byte of its output.
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
from dataclasses import dataclass
from pathlib import Path

from acidctl.demo.write import write_directory
from acidctl.orc.encode import WriterSettings
from acidctl.storage.registry import open_location

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


def event_file(folder: Path) -> bytes:
    """A bucket file of a few rows."""
    from acidctl.demo.big import ROW, BigOptions, write_big

    fs, path = open_location(str(folder / "one"))
    write_big(fs, path, BigOptions(rows=20, write_ids=1, deletes=0))
    assert write_directory and WriterSettings and ROW
    return next(Path(path).glob("delta*/bucket_00000")).read_bytes()


def build(root: Path, partitions: int) -> None:
    """Write the warehouse."""
    with tempfile.TemporaryDirectory() as folder:
        events = event_file(Path(folder))
    table = root / "sales.db" / "orders"
    for number in range(partitions):
        partition = table / f"year={2000 + number // 400}" / f"day={number % 400:03d}"
        names = ["base_0000003"] + [f"delta_{i:07d}_{i:07d}_0000" for i in range(2, 11)]
        for name in names:
            path = partition / name
            path.mkdir(parents=True)
            (path / "_orc_acid_version").write_bytes(b"2")
            bucket = path / "bucket_00000"
            bucket.write_bytes(events)
        base = partition / "base_0000003"
        (base / "_metadata_acid").write_bytes(b'{"thisFileVersion":"0","dataFormat":"compacted"}')
        if number % 100:
            os.truncate(base / "bucket_00000", BASE_BYTES)


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--at", type=Path, help="where the warehouse lies, or is to be written and kept")
    args = parser.parse_args()
    root = args.at or Path(tempfile.mkdtemp())
    if not (root / "sales.db").exists():
        build(root, args.partitions)
    try:
        print("| command | wall, s | CPU, s | peak MB | first output, s | wall / find |")
        print("|---|---:|---:|---:|---:|---:|")
        find = report("find -ls", [measured(["find", str(root), "-ls"]) for _ in range(args.rounds)], None)
        for command in COMMANDS:
            call = [sys.executable, "-m", "acidctl", command[0], str(root), *command[1:]]
            report("acidctl " + " ".join(command), [measured(call) for _ in range(args.rounds)], find)
    finally:
        if not args.at:
            shutil.rmtree(root)


if __name__ == "__main__":
    main()
