"""Copies to Iceberg: CPU of each step, the bytes beside a plain copy, and the same rows encoded again by pyarrow.

    PYTHONPATH=.:tests python tests/bench/bench_migrate.py [--rows N] [--rounds N] [--folder DIR]

A table of one bucket and several write ids is copied for the first time; again with 5 % of its rows deleted; caught up
with nothing new, after a major compaction, and with 1 % new rows and 0.3 % deleted, by each proof.  A copy in Parquet
is measured beside pyarrow writing the same rows from memory, with its own settings.  CPU seconds of this process, the
least of the rounds.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import orc, parquet
from support.compacting import run_compaction
from support.files.acid_files import acid_batch, write_acid, write_deletes, write_delta

import acidctl
from acidctl.acid.compaction_kind import CompactionKind
from acidctl.iceberg.fields import fields_for
from acidctl.iceberg.orc_files.splice import Splice, file_columns
from acidctl.orc.types import OrcType, row_of
from acidctl.orc.write.writer_settings import WriterSettings
from acidctl.rows.read.events import EventFile
from acidctl.rows.read.visibility import open_sources
from acidctl.storage.registry import open_location
from acidctl.verbs.iceberg.options import Migrated

ROW = row_of(
    [
        ("id", OrcType("bigint")), ("customer", OrcType("string")), ("city", OrcType("string")),
        ("amount", OrcType("decimal", precision=10, scale=2)), ("score", OrcType("double")),
        ("day", OrcType("date")), ("quantity", OrcType("int")),
    ]
)  # fmt: skip
DELTAS = 3
CITIES = pa.array(["Lisbon", "Oslo", "Kraków", "Nairobi"])


def batch(start: int, count: int) -> pa.RecordBatch:
    random = np.random.default_rng(start)
    columns = [
        pa.array(np.arange(start, start + count)),
        pa.array(random.integers(0, count, count)).cast(pa.string()),
        CITIES.take(pa.array(random.integers(0, len(CITIES), count))),
        pa.array(random.integers(0, 10**6, count)).cast(pa.decimal128(20, 0)).cast(pa.decimal128(10, 2)),
        pa.array(random.random(count)),
        pa.array((random.integers(0, 3650, count) + 15000).astype(np.int32)).cast(pa.date32()),
        pa.array(random.integers(0, 1000, count).astype(np.int32)),
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(ROW.names))


def make(table: Path, rows: int, *, deletes: bool = False) -> None:
    each = rows // DELTAS
    for at in range(DELTAS):
        write_id = at + 1
        path = table / f"delta_{write_id:07}_{write_id:07}_0000" / "bucket_00000"
        parts = [
            acid_batch(batch(at * each + start, min(500_000, each - start)), start, write_id=write_id)
            for start in range(0, each, 500_000)
        ]
        write_acid(path, *parts, row=ROW, settings=WriterSettings(), calendar=2)
        if deletes:
            write_deletes(table, DELTAS + write_id, write_id, range(at, each, 20), row=ROW)


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    value = work()
    return time.process_time() - start, value


def report(name: str, seconds: list[float], rows: int, peer: float = 0.0) -> float:
    best = min(seconds)
    ratio = f"{best / peer:8.2f}" if peer else " " * 8
    print(f"{name:42}{best:9.3f} s {rows / best / 1e6:9.1f} M rows/s {ratio}", flush=True)
    return best


def copy(table: Path, to: Path, **options: Any) -> Migrated:
    options = {"proof": "none", **options}
    return acidctl.migrate(table, to, jobs=1, metastore="none", assume_committed=0, **options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        measure(Path(name), asked.rows, asked.rounds)


def measure(folder: Path, rows: int, rounds: int) -> None:
    table, changed, to = folder / "t", folder / "changed", folder / "copy"
    make(table, rows)
    make(changed, rows, deletes=True)
    found: dict[str, list[float]] = {}
    snapshot = acidctl.open_table(table, metastore="none").snapshots_at(None)[0]
    sources = open_sources(snapshot)
    print(f"{sum(source.tail.file_length for source in sources) / 1e6:.0f} MB, {rows:,} rows")

    def timed(what: str, work: Callable[[], Any]) -> Any:
        seconds, value = cpu(work)
        found.setdefault(what, []).append(seconds)
        return value

    for _ in range(rounds):
        shutil.rmtree(to, ignore_errors=True)
        to.mkdir()
        timed("cp", lambda: [shutil.copyfile(source.path, to / f"{at}.cp") for at, source in enumerate(sources)])
        timed("plain", lambda: [plain(source.path, to / f"{at}.plain") for at, source in enumerate(sources)])
        timed("splice", partial(splice, sources, to))
        shutil.rmtree(to)
        timed("first", lambda: copy(table, to))
        timed("as parquet", lambda: copy(table, folder / "parquet", format="parquet"))
        shutil.rmtree(folder / "parquet")
        timed("nothing", lambda: copy(table, to, catch_up=True))
        shutil.copytree(table, folder / "t2")
        shutil.rmtree(to)
        copy(folder / "t2", to)
        run_compaction(folder / "t2", CompactionKind.MAJOR)
        timed("after", lambda: copy(folder / "t2", to, catch_up=True))
        shutil.rmtree(folder / "t2")
        shutil.rmtree(to)
        timed("deletes", lambda: copy(changed, to))
        shutil.rmtree(to)
        timed("first, full", lambda: copy(table, to, proof="full"))
        shutil.copytree(to, proven := folder / "proven")
        shutil.copytree(table, more := folder / "more")
        for name in ("none", "new", "full"):
            for path in (to, table):
                shutil.rmtree(path)
            shutil.copytree(proven, to)
            shutil.copytree(more, table)
            write_delta(table, DELTAS + 1, batch(rows, rows // 100), row=ROW)
            write_deletes(table, DELTAS + 2, 1, range(0, rows // DELTAS, 100), row=ROW)
            timed(f"1 %, {name}", partial(copy, table, to, catch_up=True, proof=name))
        shutil.rmtree(to)
        shutil.rmtree(table)
        shutil.rmtree(proven)
        more.rename(table)
    rows_read = acidctl.open_table(table, metastore="none").scan().to_table()
    timed("parquet", lambda: parquet.write_table(rows_read, folder / "x.parquet", compression="zstd"))
    timed("orc", lambda: orc.write_table(rows_read, folder / "x.orc", compression="zlib"))
    report("cp (sendfile)", found["cp"], rows)
    peer = report("copy by read and write", found["plain"], rows)
    report("splice, written bytes read again", found["splice"], rows, peer)
    report("first copy, with commit", found["first"], rows, peer)
    report("first copy, 5 % deleted", found["deletes"], rows, peer)
    report("catch-up, nothing new", found["nothing"], rows, peer)
    report("catch-up after a major compaction", found["after"], rows, peer)
    report("first copy, proof full", found["first, full"], rows, peer)
    for name in ("none", "new", "full"):
        report(f"1 % new, 0.3 % deleted, proof {name}", found[f"1 %, {name}"], rows, peer)
    written = report("encoded again: Parquet, zstd", found["parquet"], rows, peer)
    report("encoded again: ORC, zlib", found["orc"], rows, peer)
    print("beside pyarrow's Parquet, zstd, from memory:")
    report("first copy in Parquet, with commit", found["as parquet"], rows, written)


def splice(sources: list[EventFile], to: Path) -> None:
    fs, root = open_location(str(to))
    for at, source in enumerate(sources):
        Splice(source, file_columns(source, ROW, fields_for(ROW))).write(fs, f"{root}/{at}.orc", {})


def plain(source: str, target: Path) -> None:
    with Path(source).open("rb", buffering=0) as read, target.open("wb", buffering=0) as written:
        while chunk := read.read(8 << 20):
            written.write(chunk)


if __name__ == "__main__":
    main()
