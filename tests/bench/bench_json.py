"""JSON lines against what else Python offers, in one run, so that the ratios hold on any machine.

    python tests/bench/bench_json.py [--rows N] [--peers]

First the encoder alone, over rows in memory; then `acidctl cat -o jsonl` and `acidctl dump` as processes over a bucket
file, their start taken off.  The peers take fewer rows.  With ``--peers`` Hive's own JSON of a row in a JVM as well.
"""

from __future__ import annotations

import argparse
import io
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyorc
from pyarrow import orc
from support.made.big_tables import BigOptions, write_big

from acidctl.rows.export.json_lines import json_buffers
from acidctl.rows.export.sinks import open_sink
from acidctl.storage.registry import open_location


def flat_rows(rows: int, nulls: bool) -> pa.RecordBatch:
    """Seven columns: int, bigint, short string, double, date, timestamp in microseconds, decimal(12,2)."""
    rng = np.random.default_rng(1)
    mask = (rng.random(rows) < 0.05) if nulls else None
    words = pa.array([f"word{n:04d}" for n in range(10_000)])
    cents = pa.array(rng.integers(-(10**9), 10**9, rows), mask=mask)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(rng.integers(0, 1 << 20, rows).astype(np.int32), mask=mask),
            pa.array(rng.integers(0, 1 << 40, rows), mask=mask),
            words.take(pa.array(rng.integers(0, len(words), rows), mask=mask)),
            pa.array(rng.normal(size=rows), mask=mask),
            pa.array(rng.integers(0, 20_000, rows).astype(np.int32), pa.date32(), mask=mask),
            pa.array(rng.integers(0, 10**15, rows) * 1000, pa.timestamp("ns"), mask=mask),
            pc.multiply(cents.cast(pa.decimal128(19, 0)), pa.scalar(Decimal("0.01"))),
        ],
        names=["id", "key", "word", "value", "day", "moment", "amount"],
    )


def best(work: Callable[[], Any], times: int = 3) -> float:
    """Seconds of CPU, the least of several runs."""
    least = float("inf")
    for _ in range(times):
        start = time.process_time()
        work()
        least = min(least, time.process_time() - start)
    return least


def in_memory(rows: int) -> None:
    """The encoder, against what Python offers."""
    few = rows // 10
    for name, batch in (("no nulls", flat_rows(rows, False)), ("5 % nulls", flat_rows(rows, True))):
        head = batch.slice(0, few)
        ours = best(lambda batch=batch: sum(len(lines) for lines in json_buffers(batch))) / rows

        def to_pylist(head: pa.RecordBatch = head) -> None:
            for row in head.to_pylist():
                json.dumps(row, default=str)

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.orc"
            orc.write_table(pa.Table.from_batches([head]), path)

            def through_pyorc(path: Path = path) -> None:
                with path.open("rb") as file:
                    for row in pyorc.Reader(file, struct_repr=pyorc.StructRepr.DICT):
                        json.dumps(row, default=str)

            peers = {
                "to_pylist + json": best(to_pylist, 1) / few,
                "pyorc + json": best(through_pyorc, 1) / few,
            }
        print(f"JSON lines, {name}: {1e-6 / ours:.2f} M rows/s a core")
        for peer, seconds in peers.items():
            print(f"  {seconds / ours:6.1f} x as fast as {peer}")

        def to_csv(batch: pa.RecordBatch = batch) -> None:
            sink = open_sink("csv", io.BytesIO())
            sink.write(batch)
            sink.close()

        ours = best(to_csv) / rows
        peer = best(lambda batch=batch: pyarrow.csv.write_csv(batch, io.BytesIO())) / rows
        print(f"CSV, {name}: {1e-6 / ours:.2f} M rows/s a core; {peer / ours:.2f} x as fast as pyarrow.csv")


def process_cpu(*arguments: str) -> float:
    """CPU seconds of an acidctl process whose output is thrown away."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "acidctl", *arguments], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def processes(rows: int, peers: bool) -> None:
    """The commands over a base of one file, decoding included."""
    with tempfile.TemporaryDirectory() as folder:
        fs, path = open_location(str(Path(folder, "table")))
        write_big(fs, path, BigOptions(rows=rows, write_ids=1, deletes=0, base=True))
        bucket = next(Path(path, "base_0000001").glob("bucket_*"))
        _, tiny = open_location(str(Path(folder, "tiny")))
        write_big(fs, tiny, BigOptions(rows=10, write_ids=1, deletes=0, base=True))
        for name, options in (("cat", ["-o", "jsonl"]), ("dump", [])):
            taken = [process_cpu(name, path, *options) - process_cpu(name, tiny, *options) for _ in range(3)]
            seconds = statistics.median(taken)
            print(f"acidctl {name}: {rows / seconds / 1e6:.2f} M rows/s a core (start taken off)", flush=True)
        few = rows // 20
        with bucket.open("rb") as file:
            started = time.process_time()
            for row, _ in zip(pyorc.Reader(file, struct_repr=pyorc.StructRepr.DICT), range(few), strict=False):
                json.dumps(row, default=str)
            print(f"  pyorc + json over the same file: {few / (time.process_time() - started) / 1e6:.3f} M rows/s")
        if peers:
            from java_peers import JavaPeers

            java = JavaPeers()
            java.json(bucket, few)
            found = java.json(bucket, few)
            print(f"  Hive's getJSONString over the same file: {found.rows / found.cpu / 1e6:.3f} M rows/s")
            java.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--peers", action="store_true")
    args = parser.parse_args()
    pa.set_cpu_count(1)
    in_memory(args.rows)
    processes(args.rows, args.peers)


if __name__ == "__main__":
    main()
