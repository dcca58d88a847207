"""Tables as objects of a store in memory, where nothing can be renamed."""

from __future__ import annotations

import uuid
from pathlib import Path

from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.location.snapshot import Snapshot, take_snapshot
from acidctl.storage.port import FileSystem, join
from acidctl.storage.registry import open_location
from support.files.acid_files import B0, write_acid
from support.tables import without_log

OBJECTS = {"objects": "true"}

COMPACTOR = ValidWriteIds().for_compactor()


def opened(url: str) -> tuple[FileSystem, str]:
    return open_location(url, OBJECTS)


def snapshot_at(url: str, txns: ValidTxns | None = None) -> Snapshot:
    return take_snapshot(*opened(url), COMPACTOR, txns)


def upload(table: Path) -> str:
    """The same table as objects."""
    url = f"memory://objects-{uuid.uuid4().hex}/t"
    fs, root = opened(url)
    for path in table.rglob("*"):
        if path.is_file():
            fs.write_bytes(join(root, path.relative_to(table).as_posix()), path.read_bytes())
    return url


def copy_of(url: str) -> str:
    again = f"memory://objects-{uuid.uuid4().hex}/t"
    (fs, source), (_, target) = opened(url), opened(again)
    for entry in fs.list_tree(source).entries:
        if not entry.is_dir:
            fs.write_bytes(join(target, entry.path), fs.read_bytes(join(source, entry.path)))
    return again


def names(url: str) -> set[str]:
    fs, path = opened(url)
    return without_log(entry.path for entry in fs.list_dir(path).entries)


def files(url: str, name: str) -> set[str]:
    fs, path = opened(url)
    return {entry.path for entry in fs.list_dir(f"{path}/{name}").entries}


def table_of_buckets(table: Path, buckets: int) -> Path:
    """Inserts, an update and a delete."""
    for write_id in (1, 2):
        for bucket in range(buckets):
            rows = ((0, write_id, B0 | bucket << 16, i, write_id, (i, i)) for i in range(3))
            write_acid(table / f"delta_{write_id}_{write_id}_0" / f"bucket_{bucket:05d}", *rows)
    write_acid(
        table / "delete_delta_0000003_0000003_0000" / "bucket_00000", (2, 1, B0, 2, 3, None), (2, 2, B0, 1, 3, None)
    )
    return table
