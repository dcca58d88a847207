"""Partitions that got the name of another one, and snapshots that are older than the copy."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest
from support.files.acid_files import delete, insert, write_acid, write_plain
from support.migrating import copy, rows

from acidctl.acid.assumed_commits import Assumption
from acidctl.acid.writeids import ValidWriteIds
from acidctl.base.errors import RefusedError
from acidctl.iceberg.catalogs.open_target import open_target
from acidctl.iceberg.copy import Partition
from acidctl.iceberg.proofs import digests, places
from acidctl.location.snapshot_resolver import SnapshotResolver, SnapshotSpec
from acidctl.outcome import Result

D1, D2 = "delta_0000001_0000001_0000", "delta_0000002_0000002_0000"


def at_once(table: Path) -> Path:
    """Give all files one time, as those of one statement may have it."""
    for path in table.rglob("*_0*"):
        os.utime(path, (1e9, 1e9))
    return table


def full(table: Path) -> Path:
    """Write what one INSERT into two partitions writes: the same names, ROW__IDs and sizes."""
    for part, text in (("p=1", "a"), ("p=2", "b")):
        write_acid(table / part / D1 / "bucket_00000", insert(1, 0, (1, text)), insert(1, 1, (2, text)))
    return at_once(table)


def insert_only(table: Path) -> Path:
    for part, text in (("p=1", "a"), ("p=2", "b")):
        write_plain(table / part / D1 / "000000_0", (1, text), (2, text))
    return at_once(table)


def compacted(part: Path) -> None:
    """Leave what a major compaction and a cleaning leave."""
    (part / D1).rename(part / "base_0000001")


@pytest.mark.parametrize("cleaned", [False, True])
@pytest.mark.parametrize("made", [full, insert_only])
def test_a_partition_with_the_name_of_a_dropped_one_is_copied_again(
    made: Callable[[Path], Path], cleaned: bool, tmp_path: Path
) -> None:
    table, to = made(tmp_path / "t"), tmp_path / "copy"
    copy(table, to)
    shutil.rmtree(table / "p=1")
    (table / "p=2").rename(table / "p=1")
    if cleaned:
        compacted(table / "p=1")
    done = copy(table, to)
    assert (done.rows, done.deleted) == (2, 4)
    assert rows(to) == [(1, "b", 1), (2, "b", 1)]
    again = copy(table, to, proof="full")
    assert (again.result, again.proof) == (Result.NOTHING_TO_DO, "all values of 2 rows compared")


@pytest.mark.parametrize("made", [full, insert_only])
def test_two_partitions_that_change_their_names_are_copied_again(made: Callable[[Path], Path], tmp_path: Path) -> None:
    table, to = made(tmp_path / "t"), tmp_path / "copy"
    for path in (table / "p=2").rglob("*_0*"):
        os.utime(path, (1e9, 2e9))
    copy(table, to)
    (table / "p=1").rename(table / "x=1")
    (table / "p=2").rename(table / "p=1")
    (table / "x=1").rename(table / "p=2")
    assert (copy(table, to).rows, rows(to)) == (4, [(1, "a", 2), (1, "b", 1), (2, "a", 2), (2, "b", 1)])


def test_rows_that_both_show_decide(tmp_path: Path) -> None:
    """The renamed partition has rows of its own besides, and lacks one that was copied."""
    table, to = full(tmp_path / "t"), tmp_path / "copy"
    write_acid(table / "p=2" / D2 / "bucket_00000", insert(2, 0, (3, "b")))
    write_acid(table / "p=2" / "delete_delta_0000003_0000003_0000" / "bucket_00000", delete(1, 0, 3))
    copy(table, to)
    shutil.rmtree(table / "p=1")
    (table / "p=2").rename(table / "p=1")
    assert (copy(table, to).rows, rows(to)) == (2, [(2, "b", 1), (3, "b", 1)])


@pytest.mark.parametrize("made", [full, insert_only])
def test_a_partition_that_was_cleaned_is_compared_once(
    made: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, to, counts = made(tmp_path / "t"), tmp_path / "copy", []
    copy(table, to)
    compacted(table / "p=1")
    real = digests.Digest.add

    def counted(self: digests.Digest, columns: dict[str, Any], count: int, keys: Any) -> list[int]:
        counts.append(count)
        return real(self, columns, count, keys)

    monkeypatch.setattr(digests.Digest, "add", counted)
    assert (copy(table, to).result, sum(counts)) == (Result.NOTHING_TO_DO, 2 * 2)
    write_plain(table / "p=3" / D2 / "000000_0", (3, "c"))
    assert (copy(table, to).rows, sum(counts)) == (1, 2 * 2 + 2 * 1)


def test_a_file_that_goes_while_it_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cleaner removes an obsolete file after the listing; then the values decide."""
    table, to = full(tmp_path / "t"), tmp_path / "copy"
    copy(table, to)
    write_acid(table / "p=1" / "base_0000001" / "bucket_00000", insert(1, 0, (1, "a")), insert(1, 1, (2, "a")))
    real = places._has_known_file

    def later(known: Collection[bytes], part: Partition) -> bool:
        shutil.rmtree(table / "p=1" / D1, ignore_errors=True)
        return real(known, part)

    monkeypatch.setattr(places, "_has_known_file", later)
    assert copy(table, to).result is Result.NOTHING_TO_DO


@pytest.mark.parametrize("marks", ["A", "é"])
def test_marks_that_somebody_has_changed_say_nothing(marks: str, tmp_path: Path) -> None:
    table, to = full(tmp_path / "t"), tmp_path / "copy"
    copy(table, to)
    found = open_target(str(to), {}, None, None).find()
    assert found
    found.remember(("0", marks))
    assert copy(table, to).result is Result.NOTHING_TO_DO


def ids(text: str) -> SnapshotResolver:
    return SnapshotResolver(SnapshotSpec(of_any_table=ValidWriteIds.parse(f"db.t:{text}")))


@pytest.mark.parametrize("older", ["1:1::", "2:2:2:", "2:9223372036854775807::2"])
def test_an_older_snapshot_is_refused(older: str, tmp_path: Path) -> None:
    """Also if it hides nothing but a delete."""
    table, to = full(tmp_path / "t"), tmp_path / "copy"
    write_acid(table / "p=1" / "delete_delta_0000002_0000002_0000" / "bucket_00000", delete(1, 0, 2))
    copy(table, to, resolver=ids("2:9223372036854775807::"))
    before = rows(to)
    with pytest.raises(RefusedError, match="newer than this snapshot"):
        copy(table, to, resolver=ids(older))
    assert rows(to) == before
    assert copy(table, to, resolver=ids("3:3:3:")).result is Result.NOTHING_TO_DO


def test_one_list_of_many_partitions_is_compared_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have thousands of aborted write ids, and a table thousands of partitions."""
    table, to, looked = full(tmp_path / "t"), tmp_path / "copy", []
    copy(table, to, resolver=ids("2:2::2"))
    real = ValidWriteIds.first_lost
    monkeypatch.setattr(ValidWriteIds, "first_lost", lambda *given: looked.append(given) or real(*given))
    copy(table, to, resolver=ids("3:3::2"))
    assert len(looked) == 1


@pytest.mark.parametrize("parts", ["p=1", "p=*"])
def test_a_longer_age_is_refused_if_it_hides_what_was_copied(parts: str, tmp_path: Path) -> None:
    table, to = full(tmp_path / "t"), tmp_path / "copy"
    for part in table.glob(parts):
        write_acid(part / "delete_delta_0000002_0000002_0000" / "bucket_00000", delete(1, 0, 2))
    copy(table, to)
    with pytest.raises(RefusedError, match="shows write id"):
        copy(table, to, resolver=SnapshotResolver(SnapshotSpec(assumption=Assumption(3600.0))))
