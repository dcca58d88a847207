"""Broken files and directories, and repairs of them as the command line does them."""

from __future__ import annotations

import random
import string
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyorc
import pytest

from acidctl.orc import orc_pb2 as pb
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.codecs import encode_section
from acidctl.orc.tail import Tail, read_tail
from acidctl.repair import apply
from acidctl.repair.apply import apply_repair, plan_repair
from acidctl.repair.backup import RepairRun
from acidctl.repair.plan import RepairKind, RepairPlan, Scope
from acidctl.storage.local.filesystem import LocalFileSystem
from support.files.acid_files import B0, Event, write_by_pyorc
from support.tables import read_rows, snapshot_of
from support.validating import check, found

NOW = 2_000_000_000.0
"""Long after every file here was written."""

FS = LocalFileSystem()
CODECS = ("NONE", "ZLIB", "SNAPPY", "LZ4", "ZSTD")


def scope_of(*, now: float = NOW, force: bool = False) -> Scope:
    return Scope(now, force)


def planned(table: Path, kind: RepairKind, **scope: Any) -> RepairPlan:
    return plan_repair(snapshot_of(table), [kind], scope_of(**scope))


def repair(table: Path, kind: RepairKind, **scope: Any) -> RepairRun | None:
    return apply_repair(planned(table, kind, **scope))


def wide(write_id: int, count: int, bucket: int = B0, start: int = 0) -> list[Event]:
    """Inserts that fill several stripes."""
    letters = random.Random(write_id * 7 + bucket)
    return [
        (0, write_id, bucket, row, write_id, (row, "".join(letters.choices(string.printable, k=250))))
        for row in range(start, start + count)
    ]


def many_stripes(
    directory: Path, events: list[Event], name: str = "bucket_00000", codec: str = "ZLIB", **kw: Any
) -> Path:
    """A file of several stripes; its key index is the one that `write_events` makes: one entry, of the last row."""
    kind = getattr(pyorc.CompressionKind, codec)
    return write_by_pyorc(directory, events, name, stripe_size=1, batch_size=100, compression=kind, **kw)


def tail_of(path: Path, length: int | None = None) -> Tail:
    return read_tail(ByteSource(FS, str(path), length))


def stripes_of(path: Path, length: int | None = None) -> list[bytes]:
    content = path.read_bytes()
    return [
        content[s.offset : s.offset + s.indexLength + s.dataLength + s.footerLength]
        for s in tail_of(path, length).stripes
    ]


def rules(table: Path) -> set[str]:
    (report,) = check(table)
    return found(report)


def rows(table: Path) -> list[Any]:
    return read_rows(table)


def tree(table: Path) -> dict[str, bytes]:
    """Every file of a table but the backups and locks, with its bytes."""
    return {
        str(path.relative_to(table)): path.read_bytes()
        for path in sorted(table.rglob("*"))
        if path.is_file() and not any(part.startswith(".acidctl-") for part in path.parts)
    }


def streamed(path: Path, first: list[Event], second: list[Event], lengths: Iterable[int] | None = None) -> int:
    """A streaming writer's file: what it committed, then a stripe and a footer that nobody committed.

    Returns:
        the committed length.
    """
    one = write_by_pyorc(path.parent, first, "one", marker=None)
    two = write_by_pyorc(path.parent, second, "two", marker=None)
    committed = one.read_bytes()
    (stripe,), tail, extra = stripes_of(two), tail_of(one), tail_of(two)
    footer = pb.Footer()
    footer.CopyFrom(tail.footer)
    added = footer.stripes.add()
    added.CopyFrom(extra.stripes[0])
    added.offset = len(committed)
    footer.numberOfRows += added.numberOfRows
    metadata = pb.Metadata(stripeStats=[*tail.metadata.stripeStats, *extra.metadata.stripeStats]).SerializeToString()
    sections = [
        encode_section(raw, tail.compression, tail.block_size) for raw in (metadata, footer.SerializeToString())
    ]
    postscript = pb.PostScript()
    postscript.CopyFrom(tail.postscript)
    postscript.metadataLength, postscript.footerLength = map(len, sections)
    raw = postscript.SerializeToString()
    path.write_bytes(committed + stripe + b"".join(sections) + raw + bytes((len(raw),)))
    one.unlink()
    two.unlink()
    (path.parent / "_orc_acid_version").write_bytes(b"2")
    numbers = [0, len(committed)] if lengths is None else lengths
    path.with_name(path.name + "_flush_length").write_bytes(
        b"".join(n.to_bytes(8, "big", signed=True) for n in numbers)
    )
    return len(committed)


DELTA = "delta_0000001_0000001_0000"


def interrupted(table: Path) -> None:
    """A repair that prepared all and renamed nothing."""

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(apply, "finish", dies)
        with pytest.raises(KeyboardInterrupt):
            repair(table, RepairKind.KEY_INDEX)
