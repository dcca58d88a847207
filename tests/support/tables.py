"""Reading tables in tests: the rows of a scan as plain Python values."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyarrow import orc

from acidctl.acid.names import ACID_PREFIXES
from acidctl.acid.sidefiles import METADATA_ACID_COMPACTED
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.location.snapshot import Snapshot, take_snapshot
from acidctl.location.walk import is_log
from acidctl.rows.read.events import EventReader
from acidctl.rows.scan.scan import Scan
from acidctl.storage.registry import open_location
from support.files.json_text import encode_json_lines

Row = tuple[tuple[int, int, int], dict[str, Any]]


def snapshot_of(table: Path | str, write_ids: ValidWriteIds | None = None, txns: ValidTxns | None = None) -> Snapshot:
    """The snapshot of a table on the local disk."""
    fs, path = open_location(str(table))
    return take_snapshot(fs, path, write_ids, txns)


def json_rows(scan: Scan) -> list[dict[str, Any]]:
    """Every row of a scan, through the JSON lines that `cat` prints."""
    return [
        json.loads(line)
        for batch in scan.batches()
        for line in encode_json_lines(batch, scan.output_type).decode().splitlines()
    ]


def read_rows(table: Path | str, write_ids: ValidWriteIds | None = None, txns: ValidTxns | None = None) -> list[Row]:
    """(ROW__ID, row) of every row a reader sees, sorted by ROW__ID."""
    rows = []
    for row in json_rows(Scan(snapshot_of(table, write_ids, txns), row_id=True)):
        key = row.pop("ROW__ID")
        rows.append(((key["writeid"], key["bucketid"], key["rowid"]), row))
    return sorted(rows, key=lambda item: item[0])


def whole(write_ids: str) -> str:
    """A write-id list with all five parts, as Hive writes it; its unit tests leave empty ones at the end out."""
    return write_ids + ":" * (4 - write_ids.count(":"))


def without_log(names: Iterable[str]) -> set[str]:
    """Names, or paths, but that of the log in which acidctl writes down what it did."""
    return {name for name in names if not is_log(name.rpartition("/")[2])}


CLEAN_NOW = ("clean", "--yes", "--older-than", "0", "--unsafe-retention")
"""`acidctl clean` for tables that nothing else reads: what it may take goes at once."""


def age(table: Path | str, hours: float, *names: str) -> None:
    """Set the times of some children of a table, or of all, to so long ago."""
    then = time.time() - hours * 3600
    for child in [Path(table) / name for name in names] or list(Path(table).iterdir()):
        for path in [*child.rglob("*"), child]:
            os.utime(path, (then, then), follow_symlinks=False)


def make(table: Path, *names: str) -> Path:
    """A table of entries with ten bytes in each, and the side files of Hive 3.

    A name with a slash, or of an original file, is that of a file.
    """
    for name in names:
        path = table / name if "/" in name or name[0].isdigit() else table / name / "bucket_00000"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 10)
        mark(table / name.partition("/")[0])
    return table


def mark(directory: Path) -> None:
    """Give an ACID directory the side files that Hive 3 gives it; a base is one that a compaction made."""
    if not directory.name.startswith(ACID_PREFIXES):
        return
    (directory / "_orc_acid_version").write_bytes(b"2")
    if directory.name.startswith("base_") and "_v" not in directory.name:
        (directory / "_metadata_acid").write_bytes(METADATA_ACID_COMPACTED)


def on_terminal(command: list[str], answer: str) -> tuple[int, str]:
    """Run it on a terminal of its own, and type an answer."""
    main, side = pty.openpty()
    with subprocess.Popen(command, stdin=side, stdout=subprocess.PIPE, stderr=side, text=True) as process:
        os.close(side)
        os.write(main, answer.encode())
        out, _ = process.communicate(timeout=60)
    os.close(main)
    return process.returncode, out


def pairs_of(table: Path, write_ids: ValidWriteIds | None = None) -> dict[tuple[int, int, int], tuple[int, int]]:
    return {key: (row["a"], row["b"]) for key, row in read_rows(table, write_ids)}


def ids_in(path: Path) -> list[tuple[int, int, int, int, int]]:
    table = orc.read_table(path)
    names = ("operation", "originalTransaction", "bucket", "rowId", "currentTransaction")
    return list(zip(*(table.column(name).to_pylist() for name in names), strict=True))


def spied_reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """What is read of files of rows from now on: the method of the reader, and the number of the stripe."""
    read: list[tuple[str, int]] = []

    def spy(name: str) -> None:
        real = getattr(EventReader, name)

        def call(self: EventReader, stripe: int, *args: Any, **options: Any) -> Any:
            if not self.source.is_delete:
                read.append((name, stripe))
            return real(self, stripe, *args, **options)

        monkeypatch.setattr(EventReader, name, call)

    for name in ("ids", "rows", "ids_with_rows"):
        spy(name)
    return read
