"""Compaction against `cp`, against Hive's own compactor, and against pyarrow decoding everything and encoding it again.

    python tests/bench/bench_compact.py [--rows N] [--rounds N] [--only TEXT] [--verify LEVEL ...] [--peers]

Each figure is the CPU time of a fresh process from the listing to the published directory, its imports excluded (and
measured apart); the median of the rounds, after one that does not count.  In the same rounds, on the same file system:
`cp` of the input directories, after which every file is fsynced, as acidctl does with what it writes (CPU of both,
starting them included); pyarrow, which reads all stripes of the inputs and writes them into one file of the same
codec; and with ``--peers`` Hive 4.0.1's own compactors in a JVM that lives through all rounds, by MapReduce and by
queries on Tez, both in its process, from Hive's worker taking the compaction to its end; with ``--peers 2`` the
CompactorMR of Hive 2.3 (bases in the table's codec, while it neither compresses a delta nor gives it an index).
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from java_peers import JavaPeers
    from server_peers import ServerPeers
    from support.made.big_tables import BigOptions

SMALL = 20
"""Rows of each of the many small deltas."""


@dataclass(frozen=True)
class Case:
    """A table and how it is compacted; `shape` are fields of BigOptions."""

    name: str
    kind: str
    shape: dict[str, Any]
    targets: dict[str, str] = field(default_factory=dict)
    is_small: bool = False

    def options(self, rows: int) -> BigOptions:
        """What the generator makes."""
        from support.made.big_tables import BigOptions

        shape = {"deletes": 0, **self.shape}
        if self.is_small:
            rows = SMALL * self.shape["write_ids"]
        return replace(BigOptions(**shape), rows=rows, deletes=rows // shape["deletes"] if shape["deletes"] else 0)


# "deletes" says here: one of so many rows, anywhere, so that no stripe is left clean.
CASES = (
    Case("minor, 10 deltas", "minor", {"write_ids": 10}, {"cp": "<= 2", "wall_cp": "<= 2", "hive": ">= 10"}),
    Case(
        "major, clean",
        "major",
        {"write_ids": 10, "base": True},
        {"cp": "<= 1.5", "wall_cp": "<= 2", "hive": ">= 10"},
    ),
    Case(
        "major, all dirty, zlib",
        "major",
        {"write_ids": 1, "base": True, "deletes": 1000},
        {"speed": ">= 1.2", "peak": "<= 1200", "hive": ">= 3"},
    ),
    Case(
        "major, all dirty, zstd",
        "major",
        {"write_ids": 1, "base": True, "deletes": 1000, "compression": "zstd"},
        {"speed": ">= 1.8", "peak": "<= 1200", "hive": ">= 3"},
    ),
    Case("major, 500 deltas of 20 rows", "major", {"write_ids": 500}, {"cpu": "<= 0.25"}, is_small=True),
)

COLUMNS = {
    "cpu": ("acidctl, s", ".3f"),
    "wall": ("wall, s", ".3f"),
    "imports": ("imports, s", ".2f"),
    "speed": ("M rows/s/core", ".2f"),
    "peak": ("peak MB", ".0f"),
    "cp_cpu": ("cp, s", ".3f"),
    "cp_wall": ("cp wall, s", ".3f"),
    "cp": ("acidctl/cp", ".1f"),
    "wall_cp": ("wall/cp wall", ".1f"),
    "pyarrow_cpu": ("pyarrow, s", ".2f"),
    "pyarrow": ("pyarrow/acidctl", ".1f"),
    "hive_cpu": ("hive, s", ".2f"),
    "hive_wall": ("hive wall, s", ".2f"),
    "hive": ("hive/acidctl", ".1f"),
    "mr_cpu": ("Hive 4, MR, s", ".2f"),
    "mr_wall": ("wall, s", ".2f"),
    "mr": ("MR/acidctl", ".1f"),
    "wall_mr": ("wall", ".1f"),
    "query_cpu": ("Hive 4, query, s", ".2f"),
    "query_wall": ("wall, s", ".2f"),
    "query": ("query/acidctl", ".1f"),
    "wall_query": ("wall", ".1f"),
}


# --- in a process of its own


def peak_megabytes() -> float:
    """The most memory of this process; `ru_maxrss` would begin with that of the process that forked it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def timed(work: Callable[[], dict[str, Any]], late: list[str]) -> dict[str, Any]:
    """CPU and wall time of `work`, with the modules that it would import on its way imported before."""
    gc.set_threshold(100_000)  # as the command does, see cli/main.py
    for name in late:
        __import__(name)
    modules, imports, begun = set(sys.modules), time.process_time(), time.perf_counter()
    result = work()
    cpu, wall = time.process_time() - imports, time.perf_counter() - begun
    found = sorted(set(sys.modules) - modules)
    return {**result, "cpu": cpu, "wall": wall, "imports": imports, "peak": peak_megabytes(), "late": found}


def compact_here(table: str, kind: str, verify: str, late: list[str]) -> dict[str, Any]:
    """Compact with acidctl, all of it in this process."""
    from support.compacting import plan_compaction

    from acidctl.acid.compaction_kind import CompactionKind
    from acidctl.acid.writeids import ValidWriteIds
    from acidctl.base.imports import leave_out_pandas
    from acidctl.compaction.output_settings import Writing
    from acidctl.compaction.proof.checksum import Verify
    from acidctl.compaction.run import compact
    from acidctl.location.snapshot import take_snapshot
    from acidctl.storage.registry import open_location

    leave_out_pandas()  # as the command does

    def work() -> dict[str, Any]:
        fs, path = open_location(table)
        snapshot = take_snapshot(fs, path, ValidWriteIds().for_compactor())
        writing = Writing(verify=Verify(verify))
        plan = plan_compaction(snapshot, CompactionKind(kind), f"_tmp_{uuid.uuid4()}", writing=writing)
        (outcome,) = compact([plan], offline=True)
        if outcome.error:
            raise outcome.error
        return {
            "made": list(outcome.published),
            "rows": outcome.rows,
            "read": outcome.rows + outcome.rows_dropped,
            "stripes": list(outcome.stripes),
        }

    return timed(work, late)


def encode_here(table: str, target: str, codec: str, late: list[str]) -> dict[str, Any]:
    """Decode all stripes and encode them again with plain pyarrow; deletes stay deletes."""
    import pyarrow as pa
    from pyarrow import orc

    def work() -> dict[str, Any]:
        rows = 0
        with Path(target).open("xb") as file:
            with orc.ORCWriter(file, compression=codec) as writer:
                for path in sorted(Path(table).glob("*/bucket_*")):
                    reader = orc.ORCFile(path)
                    for stripe in range(reader.nstripes):
                        batch = reader.read_stripe(stripe)
                        rows += batch.num_rows
                        writer.write(pa.Table.from_batches([batch]))
            file.flush()
            os.fsync(file.fileno())
        return {"read": rows}

    return timed(work, late)


def child(function: Callable[..., dict[str, Any]], **arguments: Any) -> dict[str, Any]:
    """What `function` returns in a new Python."""
    call = [sys.executable, __file__, "--child", function.__name__, json.dumps(arguments)]
    done = subprocess.run(call, check=False, stdout=subprocess.PIPE, text=True)  # what it says of a failure is seen
    done.check_returncode()
    result: dict[str, Any] = json.loads(done.stdout)
    return result


# --- measuring


def children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def copied(table: Path, target: Path) -> dict[str, float]:
    """`cp` of every directory, really copying, then fsync of every file."""
    target.mkdir()
    inputs = [str(path) for path in sorted(table.iterdir())]
    cpu, begun = children_cpu(), time.perf_counter()
    subprocess.run(["cp", "-r", "--reflink=never", "--sparse=never", *inputs, str(target)], check=True)
    files = [str(path) for path in target.rglob("*") if path.is_file()]
    subprocess.run(["sync", *files], check=True)
    return {"cp_cpu": children_cpu() - cpu, "cp_wall": time.perf_counter() - begun}


def hive_compacts(peers: JavaPeers, table: Path, case: Case, options: BigOptions, rows: int) -> dict[str, float]:
    """Hive's compactor, which must write as many `rows`; what it made is removed again."""
    from pyarrow import orc
    from support.judge.txns import Txns
    from support.made.big_tables import ROW

    from acidctl.orc.types import hive_type

    txns = Txns(options.write_ids + options.delete_write_ids)
    cpu, begun = peers.cpu(), time.perf_counter()
    made = peers.compact(table, hive_type(ROW), case.kind, txns, options.compression)
    measured = {"hive_cpu": peers.cpu() - cpu, "hive_wall": time.perf_counter() - begun}
    files = [orc.ORCFile(path) for name in made for path in (table / name).glob("bucket_*")]
    assert rows == sum(file.nrows for file in files), case.name
    # Hive 2.3 does not compress deltas.
    wanted = options.compression.upper() if case.kind == "major" else "UNCOMPRESSED"
    assert {file.compression for file in files} == {wanted}, case.name
    for name in made:
        path = table / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return measured


def hive_4_compacts(peers: ServerPeers, write_ids: int, table: Path, case: Case, rows: int) -> dict[str, float]:
    """Both compactors of Hive 4, as :func:`hive_compacts`."""
    from pyarrow import orc
    from support.made.big_tables import ROW

    measured = {}
    for way in ("mr", "query"):
        name = peers.table(table, ROW, write_ids)  # another one each time: a queue takes a compaction once
        cpu, wall, made = peers.compact(name, table, case.kind, by_query=way == "query")
        measured |= {f"{way}_cpu": cpu, f"{way}_wall": wall}
        found = sum(orc.ORCFile(path).nrows for one in made for path in (table / one).glob("bucket_*"))
        assert rows == found, (case.name, way, made, rows, found)
        for one in made:
            shutil.rmtree(table / one)
    return measured


def one_round(
    case: Case,
    verify: str,
    table: Path,
    peers: JavaPeers | None,
    hive_4: tuple[ServerPeers, int] | None,
    options: BigOptions,
    late: dict[str, Any],
) -> Any:
    """All contestants once, on the same files."""
    ours = child(compact_here, table=str(table), kind=case.kind, verify=verify, late=late.get("acidctl", []))
    for name in ours["made"]:
        shutil.rmtree(table / name)
    late.setdefault("acidctl", ours["late"])
    figures = {key: ours[key] for key in ("cpu", "wall", "imports", "peak")}
    figures["speed"] = ours["read"] / ours["cpu"] / 1e6
    with tempfile.TemporaryDirectory(dir=table.parent) as folder:
        figures |= copied(table, Path(folder, "copy"))
    figures["cp"] = figures["cpu"] / figures["cp_cpu"]
    figures["wall_cp"] = figures["wall"] / figures["cp_wall"]
    with tempfile.TemporaryDirectory(dir=table.parent) as folder:
        encoded = child(
            encode_here,
            table=str(table),
            target=str(Path(folder, "rows.orc")),
            codec=options.compression,
            late=late.get("pyarrow", []),
        )
    late.setdefault("pyarrow", encoded["late"])
    figures["pyarrow_cpu"] = encoded["cpu"]
    figures["pyarrow"] = encoded["cpu"] / ours["cpu"]
    if peers:
        figures |= hive_compacts(peers, table, case, options, ours["rows"])
        figures["hive"] = figures["hive_cpu"] / ours["cpu"]
    if hive_4:
        figures |= hive_4_compacts(*hive_4, table, case, ours["rows"])
        for way in ("mr", "query"):
            figures[way] = figures[f"{way}_cpu"] / ours["cpu"]
            figures[f"wall_{way}"] = figures[f"{way}_wall"] / ours["wall"]
    return figures, ours


def measure(
    case: Case, verify: str, rows: int, rounds: int, peers: JavaPeers | None, servers: ServerPeers | None
) -> None:
    """The lines of one case."""
    from support.made.big_tables import write_big

    from acidctl.storage.registry import open_location

    options = case.options(rows)
    late: dict[str, Any] = {}
    found: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="bench-compact-") as folder:
        table = Path(folder, "table")
        write_big(*open_location(str(table)), options)
        size = sum(path.stat().st_size for path in table.rglob("*") if path.is_file())
        hive_4 = None
        if servers:
            hive_4 = servers, options.write_ids + options.delete_write_ids
        os.sync()
        for number in range(rounds + 1):
            figures, ours = one_round(case, verify, table, peers, hive_4, options, late)
            if number:
                found.append(figures)
    whole, encoded = ours["stripes"]
    print(f"\n{case.name}, --verify {verify}: {ours['read']:,} rows in {size / 1e6:.1f} MB", end=" ")
    print(f"become {ours['rows']:,} rows, {whole} stripes copied, {encoded} encoded")
    shown = [key for key in COLUMNS if key in found[0]]
    print(f"| {' | '.join(COLUMNS[key][0] for key in shown)} |")
    print("|" + "---:|" * len(shown))
    print(f"| {' | '.join(format(statistics.median(f[key] for f in found), COLUMNS[key][1]) for key in shown)} |")
    print(f"| {' | '.join(case.targets.get(key, '') for key in shown)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3_000_000, help="deltas are one tenth; few rows make small stripes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", metavar="TEXT", help="the cases with this in their names")
    parser.add_argument("--verify", nargs="+", default=["bytes"], metavar="LEVEL", help="keys, bytes, full")
    parser.add_argument(
        "--peers",
        nargs="?",
        type=int,
        const=4,
        choices=[2, 4],
        help="Hive's compactors, of this version, in the same rounds",
    )
    args = parser.parse_args()
    peers = servers = None
    if args.peers == 2:
        from java_peers import JavaPeers

        peers = JavaPeers()
    elif args.peers:
        from server_peers import ServerPeers

        servers = ServerPeers()
    print(f"{args.rows:,} rows of 7 columns; medians of {args.rounds} rounds; CPU seconds where it does not say wall;")
    print("the last line of each table are targets")
    with ExitStack() as running:
        for one in filter(None, (peers, servers)):
            running.callback(one.close)
        for case in (case for case in CASES if args.only in case.name):
            for verify in args.verify:
                measure(case, verify, args.rows, args.rounds, peers, servers)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        work = {function.__name__: function for function in (compact_here, encode_here)}[sys.argv[2]]
        print(json.dumps(work(**json.loads(sys.argv[3]))))
    else:
        main()
