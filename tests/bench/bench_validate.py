"""What `acidctl validate --deep` costs, beside a loop that does nothing but read every row with pyarrow.

    python tests/bench/bench_validate.py [--rows N] [--rounds N] [--processes N]

One table: a base and nine insert deltas of as many rows, 1 % of the rows deleted anywhere. Each figure is of a process
of its own, with everything that it starts: seconds from start to end, CPU seconds, and the largest peak of one process
(``ru_maxrss``). The medians of the rounds, after one that does not count; ratios are of the same round.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

MAKE = """
import sys
from support.made.big_tables import write_big
from support.made.big_tables import BigOptions
from acidctl.storage.registry import open_location
rows = int(sys.argv[2])
write_big(*open_location(sys.argv[1]), BigOptions(rows=rows, write_ids=10, base=True, deletes=rows // 100))
"""
FLAT = """
import sys
from pathlib import Path
from pyarrow import orc
rows = 0
for file in sorted(Path(sys.argv[1]).rglob("bucket_*")):
    reader = orc.ORCFile(file)
    for stripe in range(reader.nstripes):
        rows += reader.read_stripe(stripe).num_rows
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one command: seconds, CPU seconds, and MB of its largest process."""

    wall: float
    cpu: float
    peak: float


def measure(*command: str) -> Cost:
    """Run it; what its own children took is counted when it has waited for them."""
    began = time.monotonic()
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}")
    return Cost(time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "table")
        # Not here: a process begins with the peak of the one that starts it.
        subprocess.run([sys.executable, "-c", MAKE, str(table), str(args.rows)], check=True)
        acidctl = ["-m", "acidctl", "validate"]
        commands = {
            "pyarrow, every row": ["-c", FLAT, str(table)],
            "--footers": [*acidctl, "--footers", str(table)],
            "--deep, 1 process": [*acidctl, "--deep", "--jobs", "1", str(table)],
            f"--deep, {args.processes} processes": [*acidctl, "--deep", "--jobs", str(args.processes), str(table)],
        }
        found: dict[str, list[Cost]] = {name: [] for name in commands}
        for number in range(args.rounds + 1):
            for name, command in commands.items():
                cost = measure(*command)
                if number:
                    found[name].append(cost)
    plain = found["pyarrow, every row"]
    print(f"{args.rows:,} rows of 7 columns, {args.rows // 100:,} deletes, zlib; medians of {args.rounds} rounds")
    print("| what | seconds | CPU seconds | peak MB of a process | seconds/pyarrow | CPU/pyarrow |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, costs in found.items():
        wall, cpu, peak = (statistics.median(getattr(cost, field) for cost in costs) for field in Cost.__slots__)
        over = statistics.median(cost.wall / base.wall for cost, base in zip(costs, plain, strict=True))
        more = statistics.median(cost.cpu / base.cpu for cost, base in zip(costs, plain, strict=True))
        print(f"| {name} | {wall:.2f} | {cpu:.2f} | {peak:.0f} | {over:.2f} | {more:.2f} |")


if __name__ == "__main__":
    main()
