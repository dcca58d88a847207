"""Scan speed against flat ORC: the performance table of the Presto article, re-measured, and beyond it.

    python tests/bench/bench_scan.py [--rows N] [--rounds N]

Each figure is the CPU time of reading everything, divided by that of reading the inserted rows from flat ORC files with
pyarrow in the same round; the median of the rounds. "all" reads every column, "narrow" one double.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyarrow import orc

from acidctl.acid.writeids import ValidWriteIds
from acidctl.demo.big import BigOptions, write_big
from acidctl.rows.scan import Scan
from acidctl.storage.registry import open_location
from acidctl.storage.snapshot import take_snapshot

SHAPES: dict[str, BigOptions] = {
    "base only": BigOptions(write_ids=1, deletes=0, base=True),
    "base + 1 delete delta (347 rows)": BigOptions(write_ids=1, deletes=347, delete_write_ids=1, base=True),
    "base + 1 insert + 1 delete (347)": BigOptions(write_ids=2, deletes=347, delete_write_ids=1, base=True),
    "base + 5 delete deltas (1355 rows)": BigOptions(write_ids=1, deletes=1355, delete_write_ids=5, base=True),
    "base + 5 inserts + 5 deletes (1355)": BigOptions(write_ids=6, deletes=1355, delete_write_ids=5, base=True),
    "base + 1 delete delta (1 million rows)": BigOptions(write_ids=1, deletes=1_000_000, delete_write_ids=1, base=True),
    "500 insert deltas": BigOptions(write_ids=500, deletes=0),
}


def cpu(read: Callable[[], int]) -> tuple[float, int]:
    gc.collect()
    started = time.process_time()
    rows = read()
    return time.process_time() - started, rows


def scan(table: Path, columns: list[str] | None) -> int:
    fs, path = open_location(str(table))
    return sum(batch.num_rows for batch in Scan(take_snapshot(fs, path), columns).batches())


def flat(path: Path, columns: list[str] | None) -> int:
    """The plain loop, with nothing around it."""
    rows = 0
    for file in sorted(path.iterdir()):
        reader = orc.ORCFile(file)
        for stripe in range(reader.nstripes):
            rows += reader.read_stripe(stripe, columns=columns).num_rows
    return rows


def write_flat(table: Path, target: Path, inserts: int) -> None:
    """All rows that were inserted, without ACID, in as many bytes a stripe."""
    target.mkdir()
    fs, path = open_location(str(table))
    scanned = Scan(take_snapshot(fs, path, ValidWriteIds(inserts)))
    with orc.ORCWriter(target / "rows.orc", compression="zlib", stripe_size=64 << 20) as writer:
        for batch in scanned.batches():
            writer.write(pa.Table.from_batches([batch]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    print(f"{args.rows:,} rows of 7 columns, zlib, {args.rounds} rounds; CPU time over flat ORC")
    print(f"{'':40} {'all':>6} {'narrow':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, shape) in enumerate(SHAPES.items()):
            table, plain = Path(folder, f"t{number}"), Path(folder, f"f{number}")
            fs, path = open_location(str(table))
            write_big(fs, path, BigOptions(**{**_fields(shape), "rows": args.rows}))
            write_flat(table, plain, shape.write_ids)
            ratios = []
            for columns in (None, ["score"]):
                measured = []
                for _ in range(args.rounds):
                    flat_time, flat_rows = cpu(lambda: flat(plain, columns))  # noqa: B023 - called at once
                    acid_time, acid_rows = cpu(lambda: scan(table, columns))  # noqa: B023
                    assert flat_rows == acid_rows + shape.deletes
                    measured.append(acid_time / flat_time)
                ratios.append(statistics.median(measured))
            print(f"{name:40} {ratios[0]:6.2f} {ratios[1]:7.2f}", flush=True)


def _fields(options: BigOptions) -> dict[str, object]:
    return {name: getattr(options, name) for name in BigOptions.__dataclass_fields__}


if __name__ == "__main__":
    main()
