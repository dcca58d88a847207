"""Statements that write rows: time, memory, bytes, against pyarrow's flat ORC and delta-rs where they do the like.

    PYTHONPATH=.:tests python tests/bench/bench_write.py [--scale X] [--rounds N] [--only TEXT] [--folder DIR]

The metastore is the fake one of the tests, in a process of its own, so commits cost what acidctl does and no more. Each
statement is a process of its own: the wall time of the work without imports, of it the time after all files are
staged, CPU time, peak memory. `--scale 0.1` makes tables and sources a tenth as large; numbers of partitions stay.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import dataset, orc
from support.metastore.fake_hive import FakeHive
from support.metastore.writable import writable

from acidctl.acid import bucket as codec
from acidctl.acid.names import Kind, format_directory, partition_name
from acidctl.demo.walkthrough import write_directory
from acidctl.metastore.client import Metastore
from acidctl.metastore.settings import find_settings
from acidctl.metastore.tables import HiveTable, get_table
from acidctl.orc.types import OrcType, row_type_of
from acidctl.orc.write.writer_settings import WriterSettings
from acidctl.rows.read.delete_set import Keys
from acidctl.rows.read.events import Ids, with_ids
from acidctl.storage.registry import open_location
from acidctl.writing.change import Change
from acidctl.writing.insert import Insert
from acidctl.writing.merge import Merge
from acidctl.writing.places import Places
from acidctl.writing.rows.bucket_hashes import buckets_of
from acidctl.writing.rows.key_filter import KeyFilter
from acidctl.writing.write import Write

WIDE = {
    "id": "bigint", "customer": "string", "city": "string", "amount": "decimal(10,2)", "score": "double", "day": "date",
    "updated": "timestamp", "quantity": "int", "note": "string", "flag": "boolean",
}  # fmt: skip
NARROW = {"id": "bigint", "value": "int", "kind": "string"}
LOGGED = {"id": "bigint", "value": "int", "name": "string"}
BATCH = 250_000
CITIES = pa.array(["Lisbon", "Oslo", "Kraków", "Nairobi", "Montréal", "Tbilisi"])
DAYS, BUCKETS = 30, 4
SPARK = ("spark_insert", "spark_partitions", "spark_merge", "spark_delete")
COLUMNS = {
    "wall s": "wall", "commit s": "commit", "its CPU s": "commit_cpu", "CPU s": "cpu", "peak MB": "peak",
    "written MB": "megabytes",
}  # fmt: skip


def wide(ids: np.ndarray, seed: int = 0) -> pa.RecordBatch:
    random, count = np.random.default_rng([seed, int(ids[0])]), len(ids)
    text = pa.array(random.integers(0, count, count)).cast(pa.string())
    columns = [
        pa.array(ids),
        pa.compute.binary_join_element_wise("customer ", text, ""),
        CITIES.take(pa.array(random.integers(0, len(CITIES), count))),
        pa.array(random.integers(0, 10**6, count)).cast(pa.decimal128(20, 0)).cast(pa.decimal128(10, 2)),
        pa.array(random.random(count)),
        pa.array((random.integers(0, 3650, count) + 15000).astype(np.int32)).cast(pa.date32()),
        pa.array(random.integers(1_500_000_000, 1_700_000_000, count) * 10**9).cast(pa.timestamp("ns")),
        pa.array(random.integers(0, 1000, count).astype(np.int32)),
        pa.compute.binary_join_element_wise("note on ", text, ""),
        pa.array(random.random(count) < 0.5),
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(WIDE))


def narrow(ids: np.ndarray) -> pa.RecordBatch:
    random, count = np.random.default_rng(int(ids[0])), len(ids)
    kinds = CITIES.take(pa.array(random.integers(0, len(CITIES), count)))
    values = pa.array(random.integers(0, 1000, count).astype(np.int32))
    return pa.RecordBatch.from_arrays([pa.array(ids), values, kinds], names=list(NARROW))


def logged(ids: np.ndarray) -> pa.RecordBatch:
    values = pa.array((ids % 1000).astype(np.int32))
    names = pa.compute.binary_join_element_wise("name ", pa.array(ids).cast(pa.string()), "")
    return pa.RecordBatch.from_arrays([pa.array(ids), values, names], names=list(LOGGED))


def events(batches: Iterator[pa.RecordBatch], number: int) -> Iterator[pa.RecordBatch]:
    row = 0
    for batch in batches:
        count = batch.num_rows
        row_ids = np.arange(row, row + count, dtype=np.int64)
        keys = Keys(np.full(count, 1, np.int64), np.full(count, codec.encode(number, 0), np.int64), row_ids)
        yield with_ids(Ids(np.zeros(count, np.int64), keys, keys.original), batch.to_struct_array())
        row += count


def write_base(path: Path, columns: dict[str, str], buckets: dict[int, Iterator[pa.RecordBatch]]) -> None:
    """A base of write id 1, with bloom filters on the column id."""
    fs, inner = open_location(str(path))
    settings = replace(WriterSettings.for_base(), bloom_columns=("id",), bloom_fpp=0.01)
    batches = {number: events(rows, number) for number, rows in buckets.items()}
    directory = f"{inner}/{format_directory(Kind.BASE, 1, 1)}"
    write_directory(fs, directory, batches, row_type_of(tuple(columns.items())), settings)


def batches_of(make: Callable[[np.ndarray], pa.RecordBatch], start: int, end: int) -> Iterator[pa.RecordBatch]:
    for first in range(start, end, BATCH):
        yield make(np.arange(first, min(end, first + BATCH), dtype=np.int64))


def quarters(make: Callable[[np.ndarray], pa.RecordBatch], rows: int) -> dict[int, Iterator[pa.RecordBatch]]:
    ends = [rows * at // 4 for at in range(5)]
    return {at: batches_of(make, ends[at], ends[at + 1]) for at in range(4)}


def sql(columns: dict[str, str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())


def day(at: int) -> date:
    return date(2026, 1, 1) + timedelta(at)


class Bench:
    """The tables and sources of one run.

    Args:
        folder: everything is written below it.
    """

    def __init__(self, folder: Path, scale: float, rounds: int, only: str) -> None:
        self.folder, self.scale, self.rounds, self.only = folder, scale, rounds, only
        self.source = folder / "source.parquet"

    def scaled(self, count: int) -> int:
        return max(int(count * self.scale), 1000)

    def run(self) -> None:
        print(f"{'case':58} " + " ".join(f"{heading:>10}" for heading in COLUMNS), flush=True)
        for name in (
            "insert",
            "merge",
            "delete",
            "delete_range",
            "delete_all",
            "log",
            "commit_one",
            "commit_many",
            *SPARK,
        ):
            if self.only in name:
                getattr(self, name)()

    def statement(self, title: str, case: str, prepare: Callable[[FakeHive], None], how: str = "statement") -> float:
        """Measure a statement on a new table each round; return the median of its wall time."""
        found = []
        for _ in range(self.rounds):
            with FakeHive(4) as hive:
                prepare(hive)
                first = hive.begin()
                hive.end(first)
                hive.write_ids["db.t"] = [first]
                found.append(child(how, case, hive.address, str(self.source)))
        return self.show(title, found)

    def show(self, title: str, found: list[dict[str, float]]) -> float:
        median = {key: statistics.median(each[key] for each in found) for key in found[0]}
        print(f"{title:58} " + " ".join(f"{median[key]:10.2f}" for key in COLUMNS.values()), flush=True)
        return median["wall"]

    def peer(self, title: str, case: str, path: Path, ours: float) -> None:
        """Measure a peer on the same source, which leaves `path` as it was for the next round."""
        found = []
        for _ in range(self.rounds):
            copy = Path(f"{path}-copy")
            if path.exists():
                shutil.copytree(path, copy)
            found.append(child(case, str(copy), str(self.source)))
            shutil.rmtree(copy, ignore_errors=True)
            copy.unlink(missing_ok=True)
        wall = self.show(title, found)
        print(f"{'':58} acidctl takes {ours / wall:.2f} times as long", flush=True)

    def empty(self, columns: dict[str, str], **more: Any) -> Callable[[FakeHive], None]:
        def prepare(hive: FakeHive) -> None:
            shutil.rmtree(self.folder / "t", ignore_errors=True)
            writable(hive, self.folder / "t", sql(columns), **more)

        return prepare

    def kept(self, path: Path, columns: dict[str, str]) -> Callable[[FakeHive], None]:
        def prepare(hive: FakeHive) -> None:
            for delta in path.glob("*delta_*"):
                shutil.rmtree(delta)
            writable(hive, path, sql(columns))

        return prepare

    def insert(self) -> None:
        rows = self.scaled(500_000)
        pq.write_table(pa.Table.from_batches(batches_of(wide, 0, rows)), self.source)
        ours = self.statement(f"insert {rows:,} rows of 10 columns", "insert", self.empty(WIDE))
        self.peer("  pyarrow, flat ORC, zlib", "flat", self.folder / "flat", ours)
        self.peer("  delta-rs append", "delta_append", self.folder / "appended", ours)

    def merge(self) -> None:
        rows, changes = self.scaled(10_000_000), self.scaled(500_000)
        path = self.folder / "merged"
        write_base(path, WIDE, quarters(wide, rows))
        random = np.random.default_rng(1)
        chosen = np.sort(random.choice(rows, changes * 9 // 10, replace=False))
        new = np.arange(rows, rows + changes - len(chosen))
        pq.write_table(pa.Table.from_batches([wide(np.concatenate([chosen, new]), 1)]), self.source)
        title = f"merge {changes:,} rows anywhere into {rows:,} by id"
        ours = self.statement(title, "merge", self.kept(path, WIDE))
        shutil.rmtree(path)
        delta = self.folder / "delta"
        child("delta_make", str(delta), str(rows))
        self.peer("  delta-rs merge", "delta_merge", delta, ours)
        shutil.rmtree(delta)

    def _narrow(self) -> Path:
        path, rows = self.folder / "narrow", self.scaled(100_000_000)
        if not path.exists():
            write_base(path, NARROW, quarters(narrow, rows))
        return path

    def delete(self) -> None:
        rows, keys = self.scaled(100_000_000), self.scaled(100_000)
        path = self._narrow()
        chosen = np.random.default_rng(1).choice(rows, keys, replace=False)
        pq.write_table(pa.table({"id": chosen}), self.source)
        self.statement(f"delete {keys:,} keys anywhere of {rows:,} rows", "delete", self.kept(path, NARROW))

    def delete_range(self) -> None:
        rows, keys = self.scaled(100_000_000), self.scaled(100_000)
        pq.write_table(pa.table({"id": np.arange(rows // 2, rows // 2 + keys)}), self.source)
        title = f"delete {keys:,} keys of a range of {rows:,} rows"
        self.statement(title, "delete", self.kept(self._narrow(), NARROW))

    def delete_all(self) -> None:
        rows, path = self.scaled(100_000_000), self._narrow()
        self.statement(f"delete all of {rows:,} rows", "delete_all", self.kept(path, NARROW))
        shutil.rmtree(path)

    def log(self) -> None:
        rows, changes = self.scaled(5_000_000), self.scaled(1_000_000)
        path = self.folder / "logged"
        for at in range(DAYS):
            ids = np.arange(at, rows, DAYS, dtype=np.int64)
            numbers = buckets_of([pa.array(ids)], [OrcType("bigint")], BUCKETS, 2)
            location = path / partition_name("day", str(day(at)))
            write_base(location, LOGGED, {b: iter([logged(ids[numbers == b])]) for b in range(BUCKETS)})
        random = np.random.default_rng(1)
        ids = random.integers(0, rows + rows // 20, changes)
        table = pa.table(logged(ids)).append_column("day", pa.array([day(int(at) % DAYS) for at in ids], pa.date32()))
        table = table.append_column("op", pa.array(random.choice(["i", "u", "u", "d"], changes)))
        pq.write_table(table.append_column("lsn", pa.array(np.arange(changes))), self.source)

        def prepare(hive: FakeHive) -> None:
            for delta in path.glob("*/*delta_*"):
                shutil.rmtree(delta)
            version = {"bucketing_version": "2"}
            writable(hive, path, sql(LOGGED), "day date", parameters=version, buckets=BUCKETS, bucket_columns=("id",))
            for at in range(DAYS):
                hive.partition("db", "t", f"day={day(at)}")

        title = f"a log of {changes:,} changes, {DAYS} days x {BUCKETS} buckets, {rows:,} rows"
        self.statement(title, "log", prepare)
        shutil.rmtree(path)

    def commit_one(self) -> None:
        self._commit(1)

    def commit_many(self) -> None:
        self._commit(10_000)

    def _commit(self, partitions: int) -> None:
        ids = np.arange(100_000)
        table = pa.table(logged(ids)).append_column("p", pa.array(ids % partitions))
        pq.write_table(table, self.source)
        title = f"insert 100,000 rows into {partitions:,} new partitions"
        self.statement(title, "insert", self.empty(LOGGED, keys="p bigint"))

    def spark_insert(self) -> None:
        rows = self.scaled(500_000)
        pq.write_table(_micros(pa.Table.from_batches(batches_of(wide, 0, rows))), self.source)
        self.statement(f"Spark: insert {rows:,} rows of 10 columns", "insert", self.empty(WIDE), "spark")

    def spark_partitions(self) -> None:
        for partitions in (int(2_500 * self.scale), int(10_000 * self.scale)):
            ids = np.arange(10 * partitions)
            pq.write_table(pa.table(logged(ids)).append_column("p", pa.array(ids % partitions)), self.source)
            title = f"Spark: insert {len(ids):,} rows into {partitions:,} new partitions"
            self.statement(title, "insert", self.empty(LOGGED, keys="p bigint"), "spark")

    def spark_merge(self) -> None:
        rows, changes = self.scaled(10_000_000), self.scaled(500_000)
        path = self.folder / "merged"
        write_base(path, WIDE, quarters(wide, rows))
        chosen = np.sort(np.random.default_rng(1).choice(rows, changes * 9 // 10, replace=False))
        new = np.arange(rows, rows + changes - len(chosen))
        pq.write_table(_micros(pa.Table.from_batches([wide(np.concatenate([chosen, new]), 1)])), self.source)
        title = f"Spark: merge {changes:,} rows anywhere into {rows:,} by id"
        self.statement(title, "merge", self.kept(path, WIDE), "spark")
        shutil.rmtree(path)

    def spark_delete(self) -> None:
        rows, keys = self.scaled(100_000_000), self.scaled(100_000)
        pq.write_table(pa.table({"id": np.random.default_rng(1).choice(rows, keys, replace=False)}), self.source)
        title = f"Spark: delete {keys:,} keys anywhere of {rows:,} rows"
        self.statement(title, "delete", self.kept(self._narrow(), NARROW), "spark")


# --- what is measured, each in a process of its own -----------------------------------------------------------------


def child(*command: str) -> dict[str, float]:
    done = subprocess.run([sys.executable, __file__, "--child", *command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout)
    return found


class Clock:
    """The time at which a statement has staged its files: it begins to publish them then."""

    def __init__(self) -> None:
        self.staged = self.cpu = 0.0
        real = Places.publish

        def publish(places: Places, *arguments: Any) -> None:
            self.staged, self.cpu = time.perf_counter(), time.process_time()
            real(places, *arguments)

        Places.publish = publish  # type: ignore[method-assign]


def statement(case: str, address: str, source: str) -> dict[str, float]:
    settings = find_settings({"uris": address, "timeout": "600"}, {})
    assert settings
    metastore, clock = Metastore(settings), Clock()
    table = get_table(metastore, "db", "t")
    began = time.perf_counter()
    written = _statement(case, metastore, table, source).run()
    ended, cpu = time.perf_counter(), time.process_time() - clock.cpu
    return {"wall": ended - began, "commit": ended - clock.staged, "commit_cpu": cpu, "megabytes": written.bytes / 1e6}


def _statement(case: str, metastore: Metastore, table: HiveTable, source: str) -> Write:
    if case == "insert":
        return Insert(metastore, table, dataset.dataset(source).scanner().to_reader())
    if case == "merge":
        return Merge(metastore, table, pq.read_table(source), ["id"])
    if case == "log":
        return Merge(metastore, table, pq.read_table(source), ["id", "day"], operation="op", order="lsn")
    if case == "delete_all":
        return Change(metastore, table, None)
    return Change(metastore, table, KeyFilter.of(table, pq.read_table(source)))


def spark(case: str, address: str, source: str) -> dict[str, float]:
    """Two executors' threads in one Java process; the results of all tasks may take 8 MB."""
    from pyspark.sql import SparkSession

    import acidctl.spark

    settings = {"spark.driver.memory": "1g", "spark.driver.maxResultSize": "8m", "spark.ui.enabled": "false"}
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session, clock = builder.getOrCreate(), Clock()
    rows = session.read.parquet(source)
    rows.count()
    to = {"table": "hive:db.t", "metastore": {"uris": address, "timeout": "600"}}
    began = time.perf_counter()
    if case == "insert":
        written = acidctl.spark.insert(rows, **to)
    elif case == "merge":
        written = acidctl.spark.merge(rows, key="id", **to)
    else:
        written = acidctl.spark.delete(rows, key="id", **to)
    ended, cpu = time.perf_counter(), time.process_time() - clock.cpu
    session.stop()
    return {"wall": ended - began, "commit": ended - clock.staged, "commit_cpu": cpu, "megabytes": written.bytes / 1e6}


def timed(action: Callable[[], object], size: Callable[[], int]) -> dict[str, float]:
    began = time.perf_counter()
    action()
    return {"wall": time.perf_counter() - began, "commit": 0.0, "commit_cpu": 0.0, "megabytes": size() / 1e6}


def size_of(path: str) -> int:
    return sum(file.stat().st_size for file in Path(path).rglob("*") if file.is_file())


def flat(path: str, source: str) -> dict[str, float]:
    def write() -> None:
        with orc.ORCWriter(path, compression="zlib") as writer:
            for batch in dataset.dataset(source).scanner().to_batches():
                writer.write(pa.Table.from_batches([batch]))

    return timed(write, lambda: Path(path).stat().st_size)


def delta_append(path: str, source: str) -> dict[str, float]:
    from deltalake import write_deltalake

    return timed(
        lambda: write_deltalake(path, _micros(dataset.dataset(source).to_table()), mode="append"),
        lambda: size_of(path),
    )


def _micros(table: pa.Table) -> pa.Table:
    """Delta and Spark know no nanoseconds."""
    at = table.schema.names.index("updated")
    return table.set_column(at, "updated", table["updated"].cast(pa.timestamp("us")))


def delta_make(path: str, rows: str) -> dict[str, float]:
    from deltalake import write_deltalake

    for start in range(0, int(rows), 4 * BATCH):
        batches = batches_of(wide, start, min(int(rows), start + 4 * BATCH))
        write_deltalake(path, _micros(pa.Table.from_batches(batches)), mode="append")
    return timed(lambda: None, lambda: 0)


def delta_merge(path: str, source: str) -> dict[str, float]:
    from deltalake import DeltaTable

    before = size_of(path)

    def merge() -> None:
        merger = DeltaTable(path).merge(
            _micros(pq.read_table(source)), predicate="t.id = s.id", source_alias="s", target_alias="t"
        )
        merger.when_matched_update_all().when_not_matched_insert_all().execute()

    return timed(merge, lambda: size_of(path) - before)


CASES = {each.__name__: each for each in (statement, spark, flat, delta_append, delta_make, delta_merge)}


def peak() -> float:
    """The most MB that this process held; ru_maxrss would count the process that started it, too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        before = resource.getrusage(resource.RUSAGE_SELF)
        found = CASES[sys.argv[2]](*sys.argv[3:])
        used = resource.getrusage(resource.RUSAGE_SELF)
        cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
        print(json.dumps({**found, "cpu": cpu, "peak": peak()}))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--folder", type=Path, help="where tables are written; the system's temporary directory")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        Bench(Path(folder), args.scale, args.rounds, args.only).run()


if __name__ == "__main__":
    main()
