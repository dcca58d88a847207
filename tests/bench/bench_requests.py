"""How much of a large file over the network is asked for: requests and bytes, beside what pyarrow's own reader asks.

    PYTHONPATH=.:tests python tests/bench/bench_requests.py [--megabytes N]

One base of one bucket: four columns, and one of random bytes that makes it large, in stripes of 64 MiB before
compression.  It lies on the local disk, but acidctl is told that it does not: every ranged read counts as one request,
and so does every call of the listing.  The peer is pyarrow, through a file object that counts: the first stripe of the
file, or one column of all stripes.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pyarrow import orc
from support.files.acid_files import acid_batch

from acidctl.cli.main import main as acidctl
from acidctl.orc.types import OrcType
from acidctl.orc.write.acid_writer import AcidWriter
from acidctl.orc.write.writer_settings import WriterSettings
from acidctl.storage import registry
from acidctl.storage.local.filesystem import LocalFileSystem
from acidctl.storage.ranged import RangedReader

KINDS = ("bigint", "string", "double", "date", "binary")
ROW = OrcType("struct", children=tuple(map(OrcType, KINDS)), names=("id", "customer", "score", "day", "noise"))
ROWS = 100_000
"""Rows that are made at a time."""
NOISE = 120
"""Random bytes in each."""


class Counted(LocalFileSystem):
    """The local disk as a store that has to be asked for everything."""

    requests: ClassVar[Counter[str]] = Counter()
    fetched = 0

    def local_path(self, path: str) -> None:  # type: ignore[override]
        return

    def read_bytes(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        data = super().read_bytes(path, offset, length)
        Counted.requests["reads"] += 1
        Counted.fetched += len(data)
        return data

    def open_input(self, path: str) -> Any:
        def fetch(start: int, end: int) -> bytes:
            return self.read_bytes(path, start, end - start)

        return RangedReader(fetch, Path(path).stat().st_size, path)

    def list_tree(self, path: str, top: Any = None) -> Any:
        Counted.requests["others"] += 1
        return super().list_tree(path, top)

    def list_dir(self, path: str) -> Any:
        Counted.requests["others"] += 1
        return super().list_dir(path)

    def stat(self, path: str) -> Any:
        Counted.requests["others"] += 1
        return super().stat(path)


class CountedFile(io.FileIO):
    """For pyarrow."""

    requests = fetched = 0

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(-1 if size is None else size)
        self.requests += 1
        self.fetched += len(data)
        return data


def build(table: Path, megabytes: int) -> Path:
    """The base; returns its file."""
    rng = np.random.default_rng(1)
    target = table / "base_0000001"
    target.mkdir(parents=True)
    (target / "_orc_acid_version").write_bytes(b"2")
    path = target / "bucket_00000"
    with path.open("wb") as sink:
        writer = AcidWriter(sink, ROW, WriterSettings("zstd"))
        first = 0
        while sink.tell() < megabytes << 20:
            writer.write(_batch(first, rng))
            first += ROWS
        writer.close()
    return path


def _batch(first: int, rng: np.random.Generator) -> pa.RecordBatch:
    ids = np.arange(first, first + ROWS)
    noise = pa.FixedSizeBinaryArray.from_buffers(pa.binary(NOISE), ROWS, [None, pa.py_buffer(rng.bytes(ROWS * NOISE))])
    rows = pa.StructArray.from_arrays(
        [
            pa.array(ids),
            pa.array([f"customer-{number:07d}" for number in rng.integers(0, 100_000, ROWS)]),
            pa.array(rng.random(ROWS)),
            pa.array(rng.integers(0, 20_000, ROWS), pa.int32()).cast(pa.date32()),
            noise.cast(pa.binary()),
        ],
        names=list(ROW.names),
    )
    return acid_batch(rows, first, write_id=1)


def run(*arguments: str) -> tuple[int, int, int]:
    """Reads, other requests and bytes of a command."""
    Counted.requests.clear()
    Counted.fetched = 0
    sys.stdout.flush()
    kept, null = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    try:
        with contextlib.suppress(SystemExit):
            acidctl(arguments)
    finally:
        os.dup2(kept, 1)
    return Counted.requests["reads"], Counted.requests["others"], Counted.fetched


def peer(path: Path, column: str | None) -> tuple[int, int]:
    """What pyarrow asks for."""
    file = CountedFile(path)
    reader = orc.ORCFile(pa.PythonFile(file, mode="r"))
    for stripe in range(reader.nstripes if column else 1):
        reader.read_stripe(stripe, columns=None if column is None else [f"row.{column}"])
    return file.requests, file.fetched


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1024)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-requests-") as folder:
        path = build(Path(folder, "t"), args.megabytes)
        stripes = orc.ORCFile(path).nstripes
        print(f"one file of {path.stat().st_size / 1e6:.0f} MB in {stripes} stripes")
        print("| command | ranged reads | other requests | MB | pyarrow: reads | MB |")
        print("|---|---:|---:|---:|---:|---:|")
        registry.open_file_system = Counted  # type: ignore[assignment]
        table, file = str(path.parent.parent), str(path)
        for arguments, column, has_peer in (
            (("dump", "--limit", "10", file), None, True),
            (("dump", "--columns", "rowId", "--limit", "10", file), None, False),
            (("cat", "--limit", "10", table), None, True),
            (("cat", "--columns", "score", "-o", "csv", table), "score", True),
            (("cat", "--columns", "score", "--limit", "10", table), None, False),
            (("cat", "--count", table), None, False),
            (("ls", "--rows", table), None, False),
            (("meta", file), None, False),
        ):
            reads, others, fetched = run(*arguments)
            shown = " ".join(("`acidctl", *(part for part in arguments if part not in (table, file)))) + "`"
            theirs = ("", "") if not has_peer else (str((p := peer(path, column))[0]), f"{p[1] / 1e6:.1f}")
            print(f"| {shown} | {reads} | {others} | {fetched / 1e6:.2f} | {theirs[0]} | {theirs[1]} |", flush=True)


if __name__ == "__main__":
    main()
