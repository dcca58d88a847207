"""Two checkouts of acidctl, command by command: is the newer one slower?

    python tests/bench/compare_versions.py OLD NEW [--rows N] [--partitions N] [--rounds N] [--only TEXT]

OLD and NEW are folders with a package `acidctl` (``git worktree add ../old REVISION``).  One Python serves both, with
PYTHONPATH set to the checkout, so only the command line is used, and only what both of them know.  Each run is a
process of its own, in turn: OLD, NEW, OLD, NEW, ...; a first one of each, which compiles the modules and fills the
system's cache, does not count.  OLD makes the tables, in a temporary folder; each compaction gets links to the files.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from support.made.big_tables import big_table

COMPACT = ("compact", "--engine", "local", "--jobs", "1", "--assume-committed=0s")


@dataclass(frozen=True)
class Case:
    """A command, and the table it is given.

    Attributes:
        table: a key of :func:`tables`, or an empty string.
        changes: whether each run needs a table of its own.
    """

    name: str
    command: tuple[str, ...]
    table: str = ""
    changes: bool = False


CASES = (
    Case("start: --help", ("--help",)),
    Case("start: compact --help", ("compact", "--help")),
    Case("start: ls", ("ls",), "small"),
    Case("start: cat", ("cat",), "small"),
    Case("start: validate", ("validate",), "small"),
    Case("listing: ls", ("ls", "-o", "jsonl"), "partitions"),
    Case("listing: compact --dry-run", (*COMPACT, "--auto", "--dry-run", "-o", "jsonl"), "partitions"),
    Case("validate --footers", ("validate", "--footers"), "dirty"),
    Case("validate --deep", ("validate", "--deep", "--jobs", "1"), "dirty"),
    Case("scan: clean", ("cat", "-o", "arrow"), "clean"),
    Case("scan: deletes", ("cat", "-o", "arrow"), "dirty"),
    Case("scan: one column, deletes", ("cat", "-o", "arrow", "--columns", "score"), "dirty"),
    Case("compaction: minor", (*COMPACT, "--minor"), "deltas", changes=True),
    Case("compaction: major, clean", (*COMPACT, "--major"), "clean", changes=True),
    Case("compaction: major, dirty", (*COMPACT, "--major"), "dirty", changes=True),
)


def tables(rows: int, partitions: int) -> dict[str, dict[str, int | bool]]:
    """The shapes of the tables by name; that of `acidctl demo` has none."""
    return {
        "small": {},
        "partitions": {"rows": 20, "write_ids": 3, "deletes": 2, "partitions": partitions},
        "deltas": {"rows": rows, "write_ids": 10, "deletes": 0},
        "clean": {"rows": rows, "write_ids": 10, "deletes": 0, "base": True},
        "dirty": {"rows": rows, "write_ids": 1, "deletes": rows // 1000, "base": True},
    }


@dataclass(frozen=True)
class Run:
    """What one process, and those that it started, took, in seconds."""

    cpu: float
    wall: float


def run(checkout: Path, command: Sequence[str]) -> Run:
    """Run `acidctl` of a checkout, its output thrown away.

    Raises:
        RuntimeError: it failed.
    """
    with tempfile.TemporaryFile() as errors:
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "acidctl", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=environment(checkout),
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            errors.seek(0)
            said = errors.read().decode(errors="replace")
            raise RuntimeError(f"{checkout}: acidctl {' '.join(command)}: status {process.returncode}\n{said}")
    return Run(usage.ru_utime + usage.ru_stime, wall)


def environment(checkout: Path) -> Mapping[str, str]:
    """This one, with modules from the checkout, kept compiled as installed ones are, and no settings for acidctl."""
    dropped = ("ACIDCTL_", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return {**kept, "PYTHONPATH": str(checkout)}


def require_own_package(checkout: Path) -> None:
    """End when another acidctl would be run than that of the checkout."""
    code = "import acidctl; print(acidctl.__file__)"
    command = [sys.executable, "-P", "-c", code]
    found = subprocess.run(
        command, env=environment(checkout), check=True, capture_output=True, text=True
    ).stdout.strip()
    if Path(found).parent != checkout / "acidctl":
        sys.exit(f"{checkout} has no package acidctl: {found} would be run")


def measure(case: Case, checkout: Path, folder: Path) -> Run:
    """One run of a case."""
    if not case.table:
        return run(checkout, case.command)
    if not case.changes:
        return run(checkout, (*case.command, str(folder / case.table)))
    copy = folder / "copy"
    shutil.copytree(folder / case.table, copy, copy_function=os.link)
    try:
        return run(checkout, (*case.command, str(copy)))
    finally:
        shutil.rmtree(copy)


def line(name: str, old: Sequence[Run], new: Sequence[Run]) -> str:
    """A line of the table."""
    before, after = ([one.cpu for one in runs] for runs in (old, new))
    shown = [f"{1000 * pick(values):.0f}" for values in (before, after) for pick in (min, statistics.median)]
    paired = statistics.median(b / a for a, b in zip(before, after, strict=True))
    wall = min(one.wall for one in new) / min(one.wall for one in old)
    ratios = [f"{value:.2f}" for value in (min(after) / min(before), paired, wall)]
    return f"| {name} | {' | '.join(shown + ratios)} |"


def main() -> None:
    """Make the tables, run the cases, print a line each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--rows", type=int, default=2_000_000, help="of the tables that are scanned and compacted")
    parser.add_argument("--partitions", type=int, default=500, help="of the table that is listed")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", metavar="TEXT", help="cases with this in their names")
    asked = parser.parse_args()
    old, new = asked.old.resolve(), asked.new.resolve()
    for checkout in (old, new):
        require_own_package(checkout)
    cases = [case for case in CASES if asked.only in case.name]
    with tempfile.TemporaryDirectory(prefix="acidctl-bench-") as name:
        folder = Path(name)
        for table, shape in tables(asked.rows, asked.partitions).items():
            if shape and any(case.table == table for case in cases):
                big_table(folder / table, **shape)
            elif any(case.table == table for case in cases):
                run(old, ("demo", str(folder / table)))
        print("| CPU, ms | old min | old median | new min | new median | min | median of pairs | wall min |")
        print("|---|---:|---:|---:|---:|---:|---:|---:|")
        for case in cases:
            rounds = [[measure(case, checkout, folder) for checkout in (old, new)] for _ in range(asked.rounds + 1)]
            before, after = zip(*rounds[1:], strict=True)
            print(line(case.name, before, after), flush=True)


if __name__ == "__main__":
    main()
