"""Delete events that lie in files of other buckets, once or in each file: a minor compaction puts each to its own."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from support.compacting import run_compaction
from support.files.acid_files import delete, insert, write_acid
from support.files.orc_bytes import retailed
from support.tables import mark, read_rows
from support.validating import check

from acidctl.acid.bucket import decode, encode
from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.writeids import ValidWriteIds
from acidctl.orc import orc_pb2 as pb
from acidctl.rows.read.files_at_path import event_files_at
from acidctl.storage.registry import open_location
from acidctl.validation.findings import Depth


def deletes_of(path: Path) -> list[tuple[int, tuple[int, ...]]]:
    """The number of the file of each event, and the event."""
    fs, inner = open_location(str(path))
    found = []
    for source in event_files_at(fs, inner):
        for ids in source.stripe_ids():
            columns = (ids.keys.original, ids.keys.bucket, ids.keys.row_id, ids.current)
            rows = zip(*(column.tolist() for column in columns), strict=True)
            found += [(source.file.bucket, row) for row in rows]
    return sorted(found)


def without_index(footer: pb.Footer, _: pb.PostScript) -> None:
    """As minor compactions of Hive write it, which leave no statistics of stripes either."""
    footer.rowIndexStride = 0


@pytest.mark.parametrize("seed", range(12))
def test_each_event_goes_to_the_file_of_its_bucket_once(tmp_path: Path, seed: int) -> None:
    choice = random.Random(seed)
    buckets = [0, 1, 5]
    write_ids = ValidWriteIds.parse("t:4:9223372036854775807::3") if seed % 2 else None
    for number in buckets:
        rows = [insert(1, row, bucket=encode(number)) for row in range(20)]
        write_acid(tmp_path / "delta_0000001_0000003" / f"bucket_{number:05}", *rows)
    # Bucket 7 has no file, so that its events stay where they are.
    events = [
        delete(1, row, choice.choice([2, 3]), encode(number)) for number in (*buckets, 7) for row in range(20)
        if choice.random() < 0.5
    ]  # fmt: skip
    files = choice.choice([[0], buckets, [1, 5]])
    for number in files:
        kept = events if seed % 3 else [event for event in events if choice.random() < 0.7]
        write_acid(tmp_path / "delete_delta_0000001_0000003" / f"bucket_{number:05}", *kept)
    last = [delete(1, 19, 4, encode(number)) for number in buckets]
    write_acid(tmp_path / "delete_delta_0000004_0000004_0000" / "bucket_00005", *last)
    if seed % 4 > 1:
        for file in tmp_path.rglob("bucket_*"):
            file.write_bytes(retailed(file.read_bytes(), without_index))
    for directory in tmp_path.iterdir():
        mark(directory)
    written = {event for name in tmp_path.glob("delete*") for _, event in deletes_of(name)}
    wanted = {event for event in written if write_ids is None or write_ids.is_valid(event[3])}
    before = read_rows(tmp_path, write_ids)
    assert run_compaction(tmp_path, CompactionKind.MINOR, write_ids) is not None
    assert read_rows(tmp_path, write_ids) == before
    found = deletes_of(tmp_path / "delete_delta_0000001_0000004")
    assert {event for _, event in found} == wanted
    placed = [(number, event) for number, event in found if decode(event[1]).bucket in buckets]
    assert placed == sorted({(decode(event[1]).bucket, event) for _, event in placed})
    told = {one.rule for one in next(iter(check(tmp_path, depth=Depth.DEEP))).findings}
    assert ("V21" in told) == (len(placed) < len(found))


def test_with_rows_in_files_of_other_buckets_deletes_stay_beside_them(tmp_path: Path) -> None:
    """Readers look for the deletes of a file's rows in files of its number."""
    write_acid(tmp_path / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0), insert(1, 0, bucket=encode(1)))
    write_acid(tmp_path / "delta_0000002_0000002_0000" / "bucket_00001", insert(2, 0, bucket=encode(1)))
    write_acid(tmp_path / "delete_delta_0000003_0000003_0000" / "bucket_00000", delete(1, 0, 3, encode(1)))
    for directory in tmp_path.iterdir():
        mark(directory)
    assert run_compaction(tmp_path, CompactionKind.MINOR) is not None
    assert deletes_of(tmp_path / "delete_delta_0000001_0000003") == [(0, (1, encode(1), 0, 3))]
