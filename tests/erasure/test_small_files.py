"""Which files a proof of erasure leaves out: those whose whole content is what acidctl, Hive or Hadoop writes."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
from support.files.acid_files import OrcType, insert, struct, write_acid, write_plain

from acidctl import Location
from acidctl.acid.listing import Entry
from acidctl.acid.writeids import ValidWriteIds
from acidctl.erasure.small_files import is_small_file
from acidctl.location.change.lock import Locking
from acidctl.location.change.own_files import Owner
from acidctl.location.change.work_log import LogEntry, log_done
from acidctl.storage.registry import open_location

AB = struct(a=OrcType("int"), b=OrcType("int"))
DATA = b"x" * 1300
RUN = ".acidctl-trash/20260101T000000.000Z-aa"


def longs(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(8, "big") for number in numbers)


def sums(data: bytes, step: int = 512) -> bytes:
    pieces = (data[start : start + step] for start in range(0, len(data), step))
    return b"crc\0" + step.to_bytes(4, "big") + b"".join(zlib.crc32(piece).to_bytes(4, "big") for piece in pieces)


def lock() -> bytes:
    return json.dumps({**asdict(Owner.this()), "id": "a"}).encode()


def log() -> bytes:
    line = LogEntry("clean", "cleaned", at=1.5, id="x", facts={"files": 3}).line().encode()
    return line + b"\n" + line + b"\n\n"


WRITTEN: dict[str, Callable[[], bytes]] = {
    ".acidctl-lock": lock,
    ".acidctl-log-20260101T000000.000Z-aa.jsonl": log,
    "delta_0000002_0000002/_orc_acid_version": lambda: b"2",
    "_orc_acid_version": lambda: bytes(4),
    "delta_0000002_0000002/bucket_00000_flush_length": lambda: longs(0, 700, 1300),
    "delta_0000002_0000002/.bucket_00000.crc": lambda: sums(DATA),
    "base_0000001/_metadata_acid": lambda: b'{"thisFileVersion":"0","dataFormat":"compacted"}',
    f"{RUN}/manifest.json": lambda: json.dumps({"version": 1, "names": ["delta_1_1"], "bytes": 3}, indent=1).encode(),
    f"{RUN}/done.json": lambda: b"{}",
    "_tmp_0a/_owner.json": lambda: Owner.this().to_bytes(),
    "_tmp_0a/_publish.json": lambda: b'{"names": ["base_5"]}',
}


def small(folder: Path, name: str, content: bytes) -> bool:
    fs, location = open_location(str(folder))
    for path, data in {"delta_0000002_0000002/bucket_00000": DATA, name: content}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    sizes = {"delta_0000002_0000002/bucket_00000": len(DATA), name: len(content)}
    return is_small_file(fs, location, Entry(name, is_dir=False, size=len(content), modified=None), sizes)


@pytest.mark.parametrize("name", WRITTEN)
def test_a_small_file_is_left_out_and_with_any_byte_more_it_is_not(tmp_path: Path, name: str) -> None:
    content = WRITTEN[name]()
    write_plain(tmp_path / "plain", (3, 3), row=AB)
    assert small(tmp_path, name, content)
    for behind in (b"\n", b" 777 secret", b"secret777", (tmp_path / "plain").read_bytes()):
        assert not small(tmp_path, name, content + behind), behind
    assert not small(tmp_path, name, b" " + content)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (".acidctl-lock", b'{"pid": 1}'),
        (".acidctl-lock", b'{"x": "777 secret"}'),
        ("_tmp_0a/_publish.json", b'{"names": ["base_5"], "rows": "777 secret"}'),
        ("_tmp_0a/_publish.json", b'{"rows": "777 secret", "names": 1, "names": 2}'),
        (f"{RUN}/done.json", b'{"a": "777 secret"}'),
        (f"{RUN}/_torn.json", b'{"names": ["777 sec'),
        ("base_0000001/_metadata_acid", b'{"thisFileVersion":"0","dataFormat":"compacted","a":"777"}'),
        ("delta_0000002_0000002/_orc_acid_version", b"777"),
        ("delta_0000002_0000002/bucket_00000_flush_length", longs(0, 1400)),
        ("delta_0000002_0000002/bucket_00000_flush_length", longs(700, 0)),
        ("delta_0000002_0000002/bucket_00009_flush_length", longs(0)),
        ("delta_0000002_0000002/.bucket_00000.crc", sums(DATA)[:-12] + b"777 secret  "),
        ("delta_0000002_0000002/.bucket_00000.crc", b"crc\0secret"),
        ("delta_0000002_0000002/.bucket_00009.crc", sums(b"")),
        (".acidctl-log-20260101T000000.000Z-aa.jsonl", b'{"version": 1}\n\n'),
    ],
)
def test_other_content_under_the_name_of_a_small_file_may_hold_rows(tmp_path: Path, name: str, content: bytes) -> None:
    assert not small(tmp_path, name, content)


def test_what_acidctl_writes_today_is_left_out(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for write_id in (1, 2):
        write_acid(
            table / f"delta_{write_id:07}_{write_id:07}_0000" / "bucket_00000", insert(write_id, 0, (1, 1)), row=AB
        )
    lists = ValidWriteIds.parse("t:2:9223372036854775807::")
    location = Location(table, snapshot=lists)
    location.compact("major")
    location.clean()
    fs, path = open_location(str(table))
    log_done(fs, path, LogEntry("clean", "cleaned", facts={"names": ["a", "b"], "bytes": 3}))
    with Locking(hold=True).at(fs, path):
        found = Location(table, snapshot=lists).erasure("a = 3")
    assert (found.is_known, found.events) == (True, 0)


@pytest.mark.parametrize(
    ("name", "content"),
    [(".acidctl-lock", b'{"pid": 1}\n'), ("_orc_acid_version", b"2 777 secret"), ("_metadata_acid", b"{")],
)
def test_a_proof_stays_open_with_unknown_bytes_in_a_small_file(tmp_path: Path, name: str, content: bytes) -> None:
    table = tmp_path / "t"
    write_acid(table / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (1, 1)), row=AB)
    (table / name).write_bytes(content)
    found = Location(table, snapshot=ValidWriteIds.parse("t:1:9223372036854775807::")).erasure("a = 3")
    assert not found.is_known
