"""How the cost of each command grows: twice with inputs a factor of four apart, CPU time and memory of both.

    python tests/bench/bench_growth.py [--only TEXT] [--scale N] [--rounds N]

A line has the exponent of CPU time, and how many bytes of memory each further item takes. What a run costs with next to
nothing to do is taken off first: starting Python and importing modules. An exponent above 1.15 is marked, and so is
memory that follows the number of locations; the exit status is then 1. The listing of one location, and the footers of
its files, are in memory by design. Work below a quarter of a second, and below a second at the larger size, has no
exponent: the noise is as large.

With `--scale` all sizes are multiplied by a number.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from acidctl.acid import bucket as codec
from acidctl.acid.names import Kind, format_directory
from acidctl.demo.walkthrough import write_directory
from acidctl.orc.types import OrcType, arrow_type
from acidctl.orc.write.writer_settings import WriterSettings
from acidctl.rows.read.delete_set import Keys
from acidctl.rows.read.events import Ids, with_ids
from acidctl.storage.registry import open_location

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.metastore.fake_hive import FakeHive
from support.metastore.writable import writable

FACTOR, WORST, LEAST_SECONDS = 4, 1.15, 0.25
HELD_BYTES = 2048
"""Bytes for each location: its name and figures, and not what was read of it."""
LOCAL = ("--engine", "local", "--jobs", "1")
COMMITTED = "--assume-committed=0s"
CHANGING = {
    "clean", "compact", "delete", "erase", "insert", "merge", "nightly", "purge", "restore", "stream", "truncate",
    "update", "worker",
}  # fmt: skip
SCRIPTS = {
    "find": "import acidctl, sys; acidctl.find(sys.argv[1], assume_committed=0).to_table()",
    "spark": """
import sys
from acidctl.spark.datasource.hive_acid import HiveAcidDataSource
source = HiveAcidDataSource({"path": sys.argv[1], "assumecommitted": "0s"})
source.reader(source.schema()).partitions()
""",
    "stream": """
import os, sys
import acidctl.verbs.writing.stream as module
from acidctl.cli.main import main
module._CHUNK = module._MOST = 60
os.dup2(os.open(sys.argv[1], os.O_RDONLY), 0)
sys.argv[1:2] = ["stream", "hive:db.t", "--offset-key", "c0"]
main()
""",
}
"""What the command line has no command for; the stream has a transaction for each 60 bytes instead of each second."""
SETTINGS = WriterSettings.for_delta("zlib")

SMALL_PARENT = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(child.pid, 0)
child.returncode = os.waitstatus_to_exitcode(status)
print(child.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss)
"""
"""Starts a command: the peak memory of a process counts that of the one it was started by, and this one is large."""


def row_of(columns: int) -> OrcType:
    return OrcType("struct", children=(OrcType("int"),) * columns, names=tuple(f"c{i}" for i in range(columns)))


def batch(write_id: int, bucket: int, rows: int, row: OrcType, *, deletes: int = 0) -> pa.RecordBatch:
    """Inserts of a write id; or, with the write id of their rows, deletes."""
    original = deletes or write_id
    keys = Keys(np.full(rows, original), np.full(rows, codec.encode(bucket, 0)), np.arange(rows))
    ids = Ids(np.full(rows, 2 if deletes else 0), keys, np.full(rows, write_id))
    if deletes:
        return with_ids(ids, pa.nulls(rows, arrow_type(row)))
    values = pa.array(np.arange(rows), pa.int32())
    return with_ids(ids, pa.StructArray.from_arrays([values] * len(row.children), names=list(row.names)))


def write(table: Path, write_id: int, *, buckets: int = 1, rows: int = 4, columns: int = 1, deletes: int = 0) -> None:
    """A delta with rows in each bucket, or a delete delta."""
    fs, path = open_location(str(table))
    kind, row = (Kind.DELETE_DELTA if deletes else Kind.DELTA), row_of(columns)
    files = {number: [batch(write_id, number, rows, row, deletes=deletes)] for number in range(buckets)}
    write_directory(fs, f"{path}/{format_directory(kind, write_id, write_id, 0)}", files, row, SETTINGS)


def with_rows(table: Path, size: int) -> None:
    write(table, 1, rows=size)
    write(table, 2, rows=size // 8, deletes=1)


def with_columns(table: Path, size: int) -> None:
    for write_id in (1, 2):
        write(table, write_id, columns=size, rows=20)


def with_deltas(table: Path, size: int) -> None:
    for write_id in range(1, size + 1):
        write(table, write_id)


def with_delete_deltas(table: Path, size: int) -> None:
    write(table, 1, rows=size)
    for write_id in range(2, size + 2):
        write(table, write_id, rows=1, deletes=1)


def with_streams(table: Path, size: int) -> None:
    """Deltas of two write ids each, as streaming writers leave them."""
    with_deltas(table, size)
    for delta in table.glob("delta_*"):
        number = int(delta.name.split("_")[1]) * 2
        delta.rename(table / format_directory(Kind.DELTA, number - 1, number))


def with_buckets(table: Path, size: int) -> None:
    for write_id in (1, 2):
        write(table, write_id, buckets=size)
    for write_id in (3, 4, 5):
        write(table, write_id, buckets=size, rows=1, deletes=1)


def with_partitions(table: Path, size: int) -> None:
    """Each with twelve deltas, of which a compaction is due."""
    first = table / "day=0"
    for write_id in range(1, 13):
        write(first, write_id)
    for number in range(1, size):
        shutil.copytree(first, table / f"day={number}", copy_function=os.link)


def with_tables(folder: Path, size: int) -> None:
    write(folder / "t0", 1)
    for number in range(1, size):
        shutil.copytree(folder / "t0", folder / f"t{number}", copy_function=os.link)


def with_files(table: Path, size: int) -> None:
    """One directory of an insert-only table with many files."""
    from pyarrow import orc

    first = table / "delta_0000001_0000001_0000" / "000000_0"
    first.parent.mkdir(parents=True)
    orc.write_table(pa.table({"a": [1, 2, 3]}), str(first))
    for number in range(1, size):
        os.link(first, first.with_name(f"{number:06}_0"))
    shutil.copytree(first.parent, table / "delta_0000002_0000002_0000", copy_function=os.link)


def with_obsolete(table: Path, size: int) -> None:
    """Narrow deltas that a wide one holds: to be cleaned, and findings of a listing."""
    write(table, 1)
    first = table / "delta_0000001_0000001_0000"
    for number in range(2, size + 1):
        shutil.copytree(first, table / format_directory(Kind.DELTA, number, number, 0), copy_function=os.link)
    shutil.copytree(first, table / format_directory(Kind.DELTA, 1, size), copy_function=os.link)


def with_findings(table: Path, size: int) -> None:
    """Hive cannot read any of these names."""
    write(table, 1)
    for number in range(size):
        (table / f"delta_x{number}").mkdir()


def with_bases(table: Path, size: int) -> None:
    """Write a table that is overwritten again and again, and never cleaned."""
    write(table, 1)
    first = table / "delta_0000001_0000001_0000"
    for number in range(2, size + 1):
        shutil.copytree(first, table / format_directory(Kind.BASE, number, number), copy_function=shutil.copyfile)
    aged(table)


def aged(table: Path) -> None:
    """Let the directories have come one after the other within the last two days, half of them since yesterday."""
    found = sorted(table.iterdir())
    for place, directory in enumerate(found):
        moment = time.time() - 2 * 86400 * (1 - place / len(found))
        for path in (*directory.iterdir(), directory):
            os.utime(path, (moment, moment))


def with_overwritten(table: Path, size: int) -> None:
    """Write deltas of a day, and a wide one of Hive 3 after each tenth."""
    write(table, 1)
    first = table / "delta_0000001_0000001_0000"
    for number in range(2, size + 1):
        shutil.copytree(first, table / format_directory(Kind.DELTA, number, number, 0), copy_function=shutil.copyfile)
    for number in range(10, size + 1, 10):
        shutil.copytree(first, table / format_directory(Kind.DELTA, number - 9, number), copy_function=shutil.copyfile)
    aged(table)


def with_half_minors(table: Path, size: int) -> None:
    """Write pairs of deltas, and for each pair the one directory that a killed compaction of Hive 3 left."""
    with_deltas(table, 2 * size)
    for number in range(1, 2 * size, 2):
        wide = table / format_directory(Kind.DELETE_DELTA, number, number + 1)
        shutil.copytree(table / format_directory(Kind.DELTA, number, number, 0), wide, copy_function=os.link)


def with_trash(table: Path, size: int) -> None:
    """Fill the trash with many cleanings of two directories each."""
    with_obsolete(table, 2)
    clean = ["clean", "--yes", "--assume-committed=0s", "--older-than", "0", "--unsafe-retention", str(table)]
    subprocess.run([sys.executable, "-m", "acidctl", *clean], check=True, capture_output=True)
    (first,) = (table / ".acidctl-trash").iterdir()
    for number in range(size - 1):
        run = first.with_name(f"{first.name[:-8]}{number:08x}")
        shutil.copytree(first, run, copy_function=os.link)
        (run / "manifest.json").unlink()
        text = (first / "manifest.json").read_text().replace(first.name, run.name)
        (run / "manifest.json").write_text(text)


def nothing(table: Path, size: int) -> None:
    del table, size


def with_lines(table: Path, size: int) -> None:
    """Write an empty table, and lines for a stream of as many transactions."""
    table.with_name("source").write_text("".join(f'{{"c0": {number:51}}}\n' for number in range(1, size + 1)))


def with_source(table: Path, size: int) -> None:
    """Write a table of as many rows, and a file with half of them and as many new ones."""
    with_rows(table, size)
    parquet.write_table(
        pa.table({"c0": np.arange(size // 2, size * 3 // 2, dtype=np.int32)}), table.with_name("source")
    )


def with_source_of_partitions(table: Path, size: int) -> None:
    """Write partitions, and a file with a new row for each of them and for as many new ones."""
    with_partitions(table, size)
    days = [str(number) for number in range(2 * size)]
    parquet.write_table(
        pa.table({"c0": np.arange(100, 2 * size + 100, dtype=np.int32), "day": days}), table.with_name("source")
    )


def known(fake: FakeHive, table: Path, size: int, columns: str = "c0 int") -> None:
    """Let the metastore know the table `db.t`, and all write ids and partitions that are on disk."""
    del size
    partitions = [path.name for path in table.glob("day=*")]
    writable(fake, table, columns, "day string" if partitions else "")
    for name in partitions:
        fake.partition("db", "t", name)
    newest = max((int(path.name.split("_")[-2]) for path in table.rglob("*delta_*_0000")), default=0)
    fake.write_ids["db.t"] = list(fake.begin_many(newest))
    fake.txns.clear()
    fake.remembers = True


def queued(fake: FakeHive, table: Path, size: int) -> None:
    """Let a minor compaction of each partition wait."""
    known(fake, table, size)
    fake.entry("db", "t", "initiated", "day=0", type=1)
    fake.queue += [replace(fake.queue[0], id=number + 1, partition=f"day={number}") for number in range(1, size)]


def with_table_of_hive(table: Path, size: int) -> None:
    """Write the table that a metastore in this process knows; see :func:`busy`."""
    del size
    write(table, 1)


def busy(fake: FakeHive, table: Path, size: int) -> None:
    """Add so many open transactions with a lock each, as many aborted ones, and as many entries of the queue."""
    fake.table("sales", "orders", str(table))
    fake.write_ids["sales.orders"] = [fake.begin()]
    fake.end(1)
    for txn in fake.begin_many(size, ago=7200.0):
        fake.lock("sales", "orders", txn=txn, ago=7200.0)
    fake.begin_many(size, aborted=True)
    first = fake.entry("sales", "orders", "succeeded", enqueued=60.0, started=50.0, ended=40.0)
    fake.queue += [replace(fake.queue[0], id=first + number, partition=f"day={number}") for number in range(1, size)]


@dataclass(frozen=True)
class Case:
    """A command over one kind of input.

    Attributes:
        size: of the smaller input.
        words: the command, or "python" and a key of :data:`SCRIPTS`; TABLE is the path, SIZE the number.
        build: makes the input.
        item: what is counted.
        holds: memory may follow the number of items.
        hive: fills the metastore that the command asks.
    """

    @property
    def title(self) -> str:
        return f"{self.item}: {' '.join(self.words)}"

    @property
    def changes(self) -> bool:
        """Return whether the command changes the table, so that it needs one of its own."""
        return not CHANGING.isdisjoint(self.words[:2]) and "--dry-run" not in self.words

    def line(self, table: Path, size: int, source: Path, address: str = "") -> list[str]:
        """Return the command after `python`, with the paths and the numbers filled in."""
        aborted = ",".join(str(one) for one in range(2, size, 2))
        texts = {
            "TABLE": str(table),
            "SOURCE": str(source),
            "SIZE": str(size),
            "MAXL": str((1 << 63) - 1),
            "ABORTED": aborted,
        }
        words = list(self.words)
        for name, text in texts.items():
            words = [word.replace(name, text) for word in words]
        start = ["-c", SCRIPTS[words[1]], *words[2:]] if words[0] == "python" else ["-m", "acidctl", *words]
        return [*start, "--metastore", address] if address else start

    item: str
    size: int
    build: Callable[[Path, int], None]
    words: tuple[str, ...]
    holds: bool = False
    hive: Callable[[FakeHive, Path, int], None] | None = None


def cases() -> list[Case]:
    """Every command on every kind of input for which its cost may grow."""
    found: list[Case] = []

    def add(item: str, size: int, build: Callable[[Path, int], None], *lines: str, **more: Any) -> None:
        found.extend(Case(item, size, build, tuple(line.split()), **more) for line in lines)

    major = f"compact --major {COMMITTED} {' '.join(LOCAL)} TABLE"
    auto = f"compact --auto {COMMITTED} {' '.join(LOCAL)}"
    reads = ("cat --count TABLE", "cat -o jsonl TABLE")
    looks = ("ls TABLE", "ls -o jsonl TABLE", "status TABLE", f"clean --dry-run {COMMITTED} TABLE")
    checks = ("validate TABLE", "validate --footers TABLE")
    past = ("history TABLE", "blame TABLE 1:536870912:0", "diff --from 1 TABLE")
    sees = ("cat --where c0=999999 TABLE", "erasure --where c0=999999 TABLE")
    clean = f"clean --yes --older-than 0 --unsafe-retention {COMMITTED} TABLE"
    add(
        "rows",
        250_000,
        with_rows,
        *reads,
        *sees,
        "diff --from 1 TABLE",
        major,
        "validate --deep TABLE",
        "history TABLE",
        holds=True,
    )
    add("columns", 1000, with_columns, *reads, *sees, *past, major, *checks, "validate --deep TABLE", holds=True)
    add("deltas", 400, with_deltas, *looks, *checks, *past, *reads, *sees, "cat --at 5 --count TABLE")
    add("deltas", 400, with_deltas, "validate --deep TABLE", f"{auto} TABLE", holds=True)
    add("deltas", 400, with_deltas, major, f"{major} --dry-run", f"compact --minor --offline {major[16:]}", holds=True)
    add("streams", 400, with_streams, *past, "ls TABLE", major, holds=True)
    add("delete deltas", 400, with_delete_deltas, *past, *reads, *sees, major, f"{major} --dry-run", holds=True)
    add("delete deltas", 400, with_delete_deltas, "validate --deep TABLE", holds=True)
    add("buckets", 32, with_buckets, major, f"{major} --dry-run", *reads, *checks, *sees, *past, holds=True)
    add("buckets", 32, with_buckets, *looks, "validate --deep TABLE", holds=True)
    add(
        "partitions",
        500,
        with_partitions,
        *looks,
        *sees,
        *checks,
        "history TABLE",
        "report -o json TABLE",
        f"{auto} --dry-run TABLE",
    )
    add("partitions", 500, with_partitions, f"nightly --dry-run {COMMITTED} {' '.join(LOCAL)} TABLE", f"{auto} TABLE")
    add("partitions", 500, with_partitions, f"nightly --yes {COMMITTED} {' '.join(LOCAL)} TABLE", clean)
    add("tables", 500, with_tables, *looks, "report TABLE -o json", "erasure --where c0=999999 TABLE")
    insert_only = major.replace("TABLE", "--table-type insert-only TABLE")
    add("files", 1000, with_files, *looks, "validate TABLE", insert_only, "cat --count TABLE", holds=True)
    add(
        "obsolete",
        1000,
        with_obsolete,
        *looks,
        "validate TABLE",
        "why TABLE delta_0000002_0000002_0000",
        clean,
        holds=True,
    )
    add("bases", 1000, with_bases, *looks, "validate TABLE", clean, holds=True)
    add("minors", 1000, with_overwritten, *looks, "validate TABLE", "why TABLE", clean, holds=True)
    add("half minors", 400, with_half_minors, *looks, "validate TABLE", "cat --count TABLE", holds=True)
    add("trash runs", 500, with_trash, *looks, "validate TABLE", "purge --dry-run --older-than 0 TABLE", holds=True)
    add("trash runs", 500, with_trash, "purge --yes --older-than 0 TABLE", "restore TABLE", holds=True)
    add("findings", 1000, with_findings, "validate TABLE", "ls TABLE", holds=True)
    asked = tuple(f"hive {line}" for line in ("txns", "locks", "compactions", "housekeep -n", "cleaner --once -n"))
    asked += ("status hive:sales.orders", "ls hive:sales.orders", "clean --dry-run hive:sales.orders")
    add("transactions", 2500, with_table_of_hive, *asked, holds=True, hive=busy)
    one_row = ("update hive:db.t --yes --set c0=5 --where c0=1", "delete hive:db.t --yes --where c0=1")
    written = (
        "insert hive:db.t --yes SOURCE",
        "merge hive:db.t --yes --key c0 SOURCE",
        "delete hive:db.t --yes --keys SOURCE",
    )
    every_row = ("update hive:db.t --yes --set c0=c0+1 --where true", "truncate hive:db.t --yes")
    erase = f"erase hive:db.t --yes --where c0=1 --older-than 0 --unsafe-retention {' '.join(LOCAL)}"
    add("rows", 250_000, with_source, *written, *one_row, *every_row, erase, holds=True, hive=known)
    for build, size in ((with_deltas, 400), (with_delete_deltas, 400), (with_buckets, 32)):
        item = build.__name__[5:].replace("_", " ")
        add(item, size, build, *one_row, *every_row, erase, "python spark TABLE", holds=True, hive=known)
    of_partitions = with_source_of_partitions
    keyed = tuple(line.replace("--key c0", "--key c0,day") for line in written)
    add("partitions", 500, of_partitions, *keyed, *one_row, *every_row, erase, hive=known)
    add("partitions", 500, with_partitions, "hive initiator --once -n", "hive request --minor -n db.t", hive=known)
    add("partitions", 500, with_partitions, f"hive worker --once {' '.join(LOCAL)}", "hive compactions", hive=queued)
    add("partitions", 500, with_partitions, "python find TABLE", "python spark TABLE")
    add("batches", 100, with_lines, "python stream SOURCE", hive=known)
    for kind in ("string", "double", "decimal(20,2)", "bigint", "timestamp", "boolean"):
        add(
            f"rows as {kind}",
            250_000,
            with_rows,
            "cat -o jsonl hive:db.t",
            holds=True,
            hive=partial(known, columns=f"c0 {kind}"),
        )
    wide = "t:SIZE:MAXL::ABORTED"
    add("aborted ids", 2000, with_aborted, f"cat --count --snapshot {wide} TABLE", f"ls --snapshot {wide} TABLE")
    add("aborted ids", 2000, with_aborted, f"compact --major --snapshot {wide} {' '.join(LOCAL)} TABLE", holds=True)
    return found


def with_aborted(table: Path, size: int) -> None:
    """Many write ids, every other one aborted, in at most a hundred wide deltas."""
    count = min(100, size)
    for number in range(count):
        low = number * size // count + 1
        write(table, low)
        wide = format_directory(Kind.DELTA, low, (number + 1) * size // count)
        (table / format_directory(Kind.DELTA, low, low, 0)).rename(table / wide)


def measured(case: Case, size: int, rounds: int, inputs: Path) -> tuple[float, int]:
    """Return the CPU seconds and the peak memory in bytes, the least of some rounds."""
    original = inputs / f"{case.build.__name__}-{size}" / "t"
    if not original.exists():
        original.mkdir(parents=True)
        case.build(original, size)
    return min(_run(case, size, original) for _ in range(rounds))


def _run(case: Case, size: int, original: Path) -> tuple[float, int]:
    with tempfile.TemporaryDirectory(dir=original.parent) as folder:
        table = original
        if case.changes:
            table = Path(folder, "t")
            shutil.copytree(original, table, copy_function=os.link)
        with FakeHive() if case.hive else nullcontext() as fake:
            if fake and case.hive:
                case.hive(fake, table, size)
            line = case.line(table, size, original.with_name("source"), fake.address if fake else "")
            command = [sys.executable, "-S", "-c", SMALL_PARENT, sys.executable, *line]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        status, seconds, peak = done.stdout.split()
        if int(status) not in (0, 14, 15):
            raise RuntimeError(f"status {status}: {done.stderr[-2000:]}")
    return float(seconds), int(peak) << 10


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=1)
    args = parser.parse_args()
    chosen = [case for case in cases() if args.only in case.title]
    with tempfile.TemporaryDirectory() as folder:
        return judged(chosen, args.scale, args.rounds, Path(folder))


def judged(chosen: list[Case], scale: float, rounds: int, inputs: Path) -> int:
    """Run the cases and print a line for each; return 1 if one grows faster than its input."""
    failures = 0
    print(f"{'items':>22}  {'exponent':>8}  {'CPU s':>15}  {'memory':>16}  command", flush=True)
    for case in chosen:
        size = max(2, int(case.size * scale))
        try:
            (start, _), (few, low), (many, high) = (
                measured(case, one, rounds, inputs) for one in (max(2, size // 50), size, size * FACTOR)
            )
        except RuntimeError as problem:
            failures += 1
            print(f"{case.title}: {problem} <--", flush=True)
            continue
        is_told = few - start >= LEAST_SECONDS or many - start >= FACTOR * LEAST_SECONDS
        exponent = math.log((many - start) / max(few - start, 0.02)) / math.log(FACTOR) if is_told else 0.0
        each = (high - low) / (size * (FACTOR - 1))
        is_bad = exponent > WORST or (not case.holds and each > HELD_BYTES)
        failures += is_bad
        numbers = f"{size:,} to {size * FACTOR:,}"
        cpu = f"{few - start:.2f} to {many - start:.2f}"
        mark = " <--" if is_bad else ""
        shown = f"{exponent:.2f}" if is_told else "-"
        print(f"{numbers:>22}  {shown:>8}  {cpu:>15}  {each:8,.0f} B each  {case.title}{mark}", flush=True)
    return int(failures > 0)


if __name__ == "__main__":
    raise SystemExit(main())
