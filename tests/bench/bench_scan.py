"""Scan speed against flat ORC: the performance table of the Presto article, re-measured, and beyond it.

    python tests/bench/bench_scan.py [--rows N] [--rounds N] [--peers]

Each figure is the CPU time of reading everything, divided by that of reading the inserted rows from flat ORC files with
pyarrow in the same round; the median of the rounds, after one that does not count. With ``--peers`` also the CPU that
Hive 2.3's own reader takes for the same table, row by row (a loop inside the JVM), a loop over pyorc's rows of the flat
file, and what the vectorised reader of Hive 4.0.1 and Trino 476 take to count the values of the columns, less what the
same query takes over a table of ten rows.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyorc
from pyarrow import orc
from support.made.big_tables import ROW, BigOptions, write_big

from acidctl.acid.writeids import ValidWriteIds
from acidctl.location.snapshot import take_snapshot
from acidctl.orc.types import hive_type
from acidctl.orc.write.writer_settings import WriterSettings
from acidctl.rows.export.sinks import OrcSink
from acidctl.rows.scan.scan import Scan
from acidctl.storage.registry import open_location

SHAPES: dict[str, BigOptions] = {
    "base only": BigOptions(write_ids=1, deletes=0, base=True),
    "base + 1 delete delta (347 rows)": BigOptions(write_ids=1, deletes=347, delete_write_ids=1, base=True),
    "base + 1 insert + 1 delete (347)": BigOptions(write_ids=2, deletes=347, delete_write_ids=1, base=True),
    "base + 5 delete deltas (1355 rows)": BigOptions(write_ids=1, deletes=1355, delete_write_ids=5, base=True),
    "base + 5 inserts + 5 deletes (1355)": BigOptions(write_ids=6, deletes=1355, delete_write_ids=5, base=True),
    "base + 1 delete delta (1 million rows)": BigOptions(write_ids=1, deletes=1_000_000, delete_write_ids=1, base=True),
    "500 insert deltas": BigOptions(write_ids=500, deletes=0),
}

PYORC_ROWS = 200_000
"""Python loops are slow: the figure for all rows is scaled from this many."""


def cpu(read: Callable[[], int]) -> tuple[float, int]:
    gc.collect()
    started = time.process_time()
    rows = read()
    return time.process_time() - started, rows


def scan(table: Path, columns: list[str] | None) -> int:
    fs, path = open_location(str(table))
    return sum(batch.num_rows for batch in Scan(take_snapshot(fs, path), columns).batches())


def flat(path: Path, columns: list[str] | None) -> int:
    """The plain loop over batches, with nothing around it; like ours, it lets go of a batch once the next is there."""

    def batches() -> Iterator[pa.RecordBatch]:
        for file in sorted(path.iterdir()):
            reader = orc.ORCFile(file)
            for stripe in range(reader.nstripes):
                yield reader.read_stripe(stripe, columns=columns)

    return sum(batch.num_rows for batch in batches())


def write_flat(table: Path, target: Path, inserts: int, *, files: bool) -> None:
    """All rows that were inserted, without ACID, by the same encoder: pyarrow's defaults make no dictionaries.

    Args:
        files: one for each insert, with stripes of its size, as a flat table would get them; else one for all rows.
    """
    target.mkdir()
    fs, path = open_location(str(table))
    for first, last in [(i, i) for i in range(1, inserts + 1)] if files else [(1, inserts)]:
        scanned = Scan(
            take_snapshot(fs, path, ValidWriteIds(inserts)), where=f"ROW__ID.writeid between {first} and {last}"
        )
        settings = WriterSettings.for_base("zlib") if first == 1 else WriterSettings.for_delta("zlib")
        with (target / f"{first:06d}_0").open("wb") as file:
            sink = OrcSink(file, scanned.output_type, settings)
            for batch in scanned.batches():
                sink.write(batch)
            sink.close()


class Peers:
    """What else can read the table, or at least its rows: readers of Hive, a loop over those of pyorc, and Trino."""

    def __init__(self, folder: Path) -> None:
        from java_peers import JavaPeers
        from server_peers import ServerPeers

        self.hive = JavaPeers()
        self.servers = ServerPeers(trino=True)
        few = BigOptions(rows=10, write_ids=1, deletes=0, base=True)
        write_big(*open_location(str(folder / "few")), few)
        self._few = self.know(folder / "few", few)
        self._rows = few.rows

    def know(self, table: Path, shape: BigOptions) -> str:
        """Let the servers know a table; its name."""
        return self.servers.table(table, ROW, shape.write_ids + shape.delete_write_ids)

    def server_times(self, name: str, rows: int, columns: list[str] | None) -> dict[str, float]:
        """CPU of Hive 4 and Trino, less that of the query itself."""
        counted = columns or list(ROW.names)
        whole = self.servers.scan(name, counted, rows)
        few = self.servers.scan(self._few, counted, self._rows)
        return {engine: whole[engine][0] - few[engine][0] for engine in whole}

    def close(self) -> None:
        """End them."""
        self.hive.close()
        self.servers.close()

    def hive_time(self, table: Path, shape: BigOptions, rows: int, columns: list[str] | None) -> float:
        """CPU of the JVM; the list of write ids says that all count."""
        found = self.hive.rows(table, hive_type(ROW), shape.write_ids + shape.delete_write_ids, columns)
        assert found.rows == rows
        return found.cpu

    @staticmethod
    def pyorc_time(path: Path, columns: list[str] | None, rows: int) -> float:
        """CPU of a loop over the flat rows, which have no deletes, from the first of them: scaled to all."""
        some = min(rows, PYORC_ROWS)

        def loop() -> int:
            with next(path.iterdir()).open("rb") as file:
                return sum(1 for _ in itertools.islice(pyorc.Reader(file, column_names=columns), some))

        seconds, read = cpu(loop)
        return seconds * rows / read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000, help="the article's table had 8.6 billion")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", action="store_true", help="Hive's readers, Trino and pyorc, in the same rounds")
    args = parser.parse_args()
    if not args.peers:
        measure_all(args.rows, args.rounds, None)
        return
    with tempfile.TemporaryDirectory() as folder, closing(Peers(Path(folder))) as peers:
        measure_all(args.rows, args.rounds, peers)


def measure_all(rows: int, rounds: int, peers: Peers | None) -> None:
    """The table."""
    print(f"{rows:,} rows of 7 columns, zlib; medians of {rounds} rounds; CPU time")
    print("acid/flat: over flat ORC, a file for each insert; acid/one: over all rows in one flat file;")
    print("hive 2.3, pyorc, hive 4 and trino: how many times our CPU they take")
    print("| layout | columns | ns a row | acid/flat | acid/one | hive 2.3 | pyorc | hive 4 | trino |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    for name, shape in SHAPES.items():
        if shape.deletes >= rows:  # none would be left
            continue
        with tempfile.TemporaryDirectory() as folder:
            table, plain = Path(folder, "acid"), Path(folder, "flat")
            fs, path = open_location(str(table))
            write_big(fs, path, replace(shape, rows=rows))
            write_flat(table, plain, shape.write_ids, files=True)
            write_flat(table, Path(folder, "one"), shape.write_ids, files=False)
            known = peers.know(table, shape) if peers else ""
            for columns in (None, ["score"]):
                measure(name, known, shape, (table, plain, Path(folder, "one")), columns, rounds, peers)


def measure(
    name: str,
    known: str,
    shape: BigOptions,
    places: tuple[Path, Path, Path],
    columns: list[str] | None,
    rounds: int,
    peers: Peers | None,
) -> None:
    """One line of the table. The first round warms up: caches of the system, and the JVMs' compilers.

    Args:
        known: by what name servers know the table.
    """
    table, plain, one = places
    found: dict[str, list[float]] = {key: [] for key in ("ns", "flat", "one", "hive", "pyorc", "hive4", "trino")}
    for number in range(rounds + 1):
        flat_time, flat_rows = cpu(lambda: flat(plain, columns))
        acid_time, acid_rows = cpu(lambda: scan(table, columns))
        one_time, _ = cpu(lambda: flat(one, columns))
        assert flat_rows == acid_rows + shape.deletes
        measured = {"ns": acid_time / acid_rows * 1e9, "flat": acid_time / flat_time, "one": acid_time / one_time}
        if peers:
            measured["hive"] = peers.hive_time(table, shape, acid_rows, columns) / acid_time
            measured["pyorc"] = peers.pyorc_time(one, columns, flat_rows) / acid_time
            for engine, seconds in peers.server_times(known, acid_rows, columns).items():
                measured[engine] = seconds / acid_time
        if number:
            for key, value in measured.items():
                found[key].append(value)
    ns, over, single, *others = (statistics.median(values) if values else None for values in found.values())
    shown = [
        f"{ns:.0f}",
        f"{over:.2f}",
        f"{single:.2f}",
        *("" if value is None else f"{value:.1f}" for value in others),
    ]
    print(f"| {name} | {'all' if columns is None else 'score'} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
