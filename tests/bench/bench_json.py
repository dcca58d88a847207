"""JSON lines against what else Python offers, in one run, so that the ratios hold on any machine.

Run: python tests/bench/bench_json.py [rows]
"""

from __future__ import annotations

import io
import json
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

from acidctl.rows.export.json_lines import json_buffers
from acidctl.rows.export.sinks import open_sink


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


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    pa.set_cpu_count(1)
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


if __name__ == "__main__":
    main()
