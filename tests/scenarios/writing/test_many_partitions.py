"""Statements that write to many partitions: few files are open at a time, and the metastore is asked by hundreds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.metastore.fake_hive import FakeHive
from support.metastore.writable import client, rows_of, table_of, writable

import acidctl
from acidctl.orc.read.reader import open_orc
from acidctl.orc.types import OrcType
from acidctl.orc.write.acid_writer import AcidFileResult, AcidWriter
from acidctl.storage.registry import open_location
from acidctl.writing.insert import Insert
from acidctl.writing.rows.bucket_hashes import buckets_of

PARTITIONS = 100
COLUMNS = ("id bigint, name string", "day string")


class CountedWriter(AcidWriter):
    """A writer of files that counts those that are open."""

    now = most = opened = 0

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        kind = type(self)
        kind.now, kind.opened = kind.now + 1, kind.opened + 1
        kind.most = max(kind.most, kind.now)

    def close(self) -> AcidFileResult:
        type(self).now -= 1
        return super().close()


def source(start: int = 0, count: int = 2 * PARTITIONS) -> pa.Table:
    ids = range(start, start + count)
    days = [f"d{at % PARTITIONS:03}" for at in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"n{at}" for at in ids], "day": days})


def test_few_files_are_open_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeHive(4) as hive:
        version = {"bucketing_version": "2"}
        writable(hive, tmp_path / "t", *COLUMNS, parameters=version, buckets=4, bucket_columns=("id",))
        writers = type("Writers", (CountedWriter,), {})
        monkeypatch.setattr("acidctl.writing.rows.files.AcidWriter", writers)
        rows = pa.concat_tables([source(), source(2 * PARTITIONS)])
        written = Insert(client(hive), table_of(hive), rows.to_reader(max_chunksize=150)).run()
        assert writers.most <= 32
        assert (written.inserted, writers.opened) == (rows.num_rows, written.files)
        assert written.files > PARTITIONS
        assert rows_of(hive) == sorted(zip(*rows.to_pydict().values(), strict=True), key=str)
        check_buckets(tmp_path / "t", 4)


def check_buckets(path: Path, count: int) -> None:
    """Every row lies in the file of its bucket."""
    for file in path.rglob("bucket_*"):
        with open_orc(*open_location(str(file))) as orc:
            (ids,) = orc.read_stripe(0, ["row.id"]).column("row").flatten()
        assert set(buckets_of([ids], [OrcType("bigint")], count, 2)) == {int(file.name[-5:])}


def calls_of(tmp_path: Path, partitions: int, *, exist: bool) -> Counter[str]:
    with FakeHive(4) as hive:
        writable(hive, tmp_path / f"t{partitions}", *COLUMNS)
        for at in range(partitions if exist else 0):
            hive.partition("db", "t", f"day=d{at:03}")
        before = len(hive.calls)
        rows = source(count=partitions)
        Insert(client(hive), table_of(hive), rows.to_reader()).run()
        return Counter(hive.calls[before:])


@pytest.mark.parametrize("exist", [True, False], ids=["old", "new"])
def test_the_metastore_is_asked_by_hundreds(tmp_path: Path, exist: bool) -> None:
    few, many = calls_of(tmp_path, 40, exist=exist), calls_of(tmp_path, 200, exist=exist)
    assert sum(many.values()) - sum(few.values()) <= 2


def test_rows_of_a_file_keep_their_order_when_they_wait_on_the_disk(tmp_path: Path) -> None:
    with FakeHive(4) as hive:
        writable(hive, tmp_path / "t", *COLUMNS)
        Insert(client(hive), table_of(hive), source(count=4 * PARTITIONS).to_reader(max_chunksize=90)).run()
        found = acidctl.open_table("hive:db.t", metastore=hive.address).scan().to_table().to_pylist()
        for day in ("d000", "d099"):
            ids = [row["id"] for row in found if row["day"] == day]
            assert ids == sorted(ids)
            assert len(ids) == 4
