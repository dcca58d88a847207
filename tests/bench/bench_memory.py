"""How much memory reading takes: a scan that holds many deletes, and JSON lines of a large file.

    python tests/bench/bench_memory.py [--rows N] [--deletes N]

Each line is the peak of a process of its own (``ru_maxrss``). The base has narrow rows of one bucket; the deletes fall
anywhere, in four delete deltas.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from acidctl.acid import bucket as codec
from acidctl.acid.names import METADATA_ACID, Kind, format_directory
from acidctl.acid.sidefiles import METADATA_ACID_COMPACTED
from acidctl.demo.walkthrough import write_directory
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.tail import read_tail
from acidctl.orc.types import OrcType, arrow_type
from acidctl.orc.write.writer_settings import WriterSettings
from acidctl.rows.read.delete_set import Keys
from acidctl.rows.read.events import Ids, with_ids
from acidctl.storage.registry import open_location

ROW = OrcType("struct", children=(OrcType("bigint"),), names=("value",))
BATCH = 1_000_000
READ = """
from acidctl.rows.scan.scan import Scan
from acidctl.storage.registry import open_location
from acidctl.location.snapshot import take_snapshot
fs, path = open_location({path!r})
print(sum(batch.num_rows for batch in Scan(take_snapshot(fs, path)).batches()))
"""


def keys(row_ids: np.ndarray) -> Keys:
    count = len(row_ids)
    return Keys(np.full(count, 1, np.int64), np.full(count, codec.encode(0, 0), np.int64), row_ids)


def inserts(rows: int) -> Iterator[pa.RecordBatch]:
    random = np.random.default_rng(1)
    for start in range(0, rows, BATCH):
        row_ids = np.arange(start, min(rows, start + BATCH), dtype=np.int64)
        mine = keys(row_ids)
        values = random.integers(0, 1 << 40, len(row_ids))
        ids = Ids(np.zeros(len(row_ids), np.int64), mine, mine.original)
        yield with_ids(ids, pa.StructArray.from_arrays([pa.array(values)], names=["value"]))


def deletes(row_ids: np.ndarray, write_id: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(row_ids), BATCH):
        part = row_ids[start : start + BATCH]
        ids = Ids(np.full(len(part), 2, np.int64), keys(part), np.full(len(part), write_id, np.int64))
        yield with_ids(ids, pa.nulls(len(part), arrow_type(ROW)))


def write_table(path: Path, rows: int, count: int, delete_deltas: int = 4) -> None:
    """A base of `rows` rows, and `count` of them deleted by some write ids."""
    fs, inner = open_location(str(path))
    base = f"{inner}/{format_directory(Kind.BASE, 1, 1)}"
    write_directory(fs, base, {0: inserts(rows)}, ROW, WriterSettings.for_base("zlib"))
    fs.write_bytes(f"{base}/{METADATA_ACID}", METADATA_ACID_COMPACTED)
    if not count:
        return
    # So that neither an order nor a range says which: all of them shuffled, and dealt out.
    chosen = np.random.default_rng(0).permutation(rows)[:count]
    for number, part in enumerate(np.array_split(chosen, delete_deltas)):
        name = format_directory(Kind.DELETE_DELTA, number + 2, number + 2, 0)
        batches = {0: deletes(np.sort(part), number + 2)}
        write_directory(fs, f"{inner}/{name}", batches, ROW, WriterSettings.for_delta("zlib"))


def peak(*command: str) -> tuple[int, str]:
    """(MB at the most, last line of output) of a process; the output may be large, it is counted only."""
    wrapper = (
        "import resource, subprocess, sys\n"
        "process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)\n"
        "size, tail = 0, b''\n"
        "while block := process.stdout.read(1 << 20):\n"
        "    size, tail = size + len(block), block[-100:]\n"
        "assert process.wait() == 0\n"
        "last = tail.decode().strip() if size < 100 else f'{size:,} bytes'\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, last)\n"
    )
    done = subprocess.run([sys.executable, "-c", wrapper, *command], capture_output=True, check=True, text=True)
    size, _, last = done.stdout.strip().partition(" ")
    return int(size), last


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--deletes", type=int, default=16_000_000)
    args = parser.parse_args()
    cat = [sys.executable, "-m", "acidctl", "cat"]
    with tempfile.TemporaryDirectory() as folder:
        write_table(Path(folder, "plain"), args.rows, 0)
        write_table(Path(folder, "deleted"), args.rows, args.deletes)
        file = next(Path(folder, "plain", "base_0000001").glob("bucket_*"))
        tail = read_tail(ByteSource(*open_location(str(file))))
        most = max(stripe.numberOfRows for stripe in tail.stripes)
        size = file.stat().st_size >> 20
        print(f"{args.rows:,} rows of one bigint in {size} MB, {len(tail.stripes)} stripes of at most {most:,} rows;")
        print(f"{args.deletes:,} of them deleted", flush=True)
        baseline, _ = peak(sys.executable, "-c", "from acidctl.rows.scan.scan import Scan")
        print(f"{baseline:5} MB: the modules, nothing read")
        for name in ("plain", "deleted"):
            path = str(Path(folder, name))
            size, rows = peak(sys.executable, "-c", READ.format(path=path))
            print(f"{size:5} MB: reading all rows of '{name}', {int(rows):,} come out", flush=True)
            size, rows = peak(*cat, path, "--count")
            print(f"{size:5} MB: acidctl cat --count '{name}', {int(rows):,}", flush=True)
            size, text = peak(*cat, path, "-o", "jsonl")
            print(f"{size:5} MB: acidctl cat -o jsonl '{name}', {text}", flush=True)


if __name__ == "__main__":
    main()
