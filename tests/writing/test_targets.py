"""The reads of statements: key columns first, the others of stripes with rows that change, no stripe in vain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.metastore.fake_hive import FakeHive
from support.metastore.writable import client, rows_of, table_of, writable

from acidctl.acid.bucket import encode
from acidctl.orc.read.reader import OrcFile
from acidctl.orc.types import row_type_of
from acidctl.orc.write.acid_writer import AcidWriter
from acidctl.orc.write.writer_settings import WriterSettings
from acidctl.rows.read.delete_set import Keys
from acidctl.rows.read.events import Ids, with_ids
from acidctl.storage.registry import open_location
from acidctl.writing.change import Change
from acidctl.writing.merge import Merge
from acidctl.writing.rows.deleted_keys import DeletedKeys
from acidctl.writing.rows.files import write_deletes
from acidctl.writing.rows.key_filter import KeyFilter
from acidctl.writing.rows.key_lookup import KeyLookup

COLUMNS = "id bigint, name string, value int"
NAMES = ("id", "name", "value")
ROW = row_type_of(tuple(zip(NAMES, ("bigint", "string", "int"), strict=True)))
IDS = ("operation", "originalTransaction", "bucket", "rowId", "currentTransaction")


def struct_of(ids: Sequence[int]) -> pa.StructArray:
    values = pa.array([number % 7 for number in ids], pa.int32())
    names = pa.array([f"n{number}" for number in ids])
    return pa.StructArray.from_arrays([pa.array(ids, pa.int64()), names, values], names=NAMES)


def write_stripes(location: Path, *stripes: Sequence[int], bloom: bool = False) -> None:
    """A delta of write id 1 with a stripe for each list of ids."""
    settings = WriterSettings.for_delta()
    if bloom:
        settings = replace(settings, bloom_columns=("id",), bloom_fpp=0.001)
    directory = location / "delta_0000001_0000001_0000"
    directory.mkdir(parents=True)
    with (directory / "bucket_00000").open("wb") as sink:
        writer, start = AcidWriter(sink, ROW, settings), 0
        for ids in stripes:
            count = len(ids)
            row_ids = np.arange(start, start + count, dtype=np.int64)
            keys = Keys(np.ones(count, np.int64), np.full(count, encode(0, 0), np.int64), row_ids)
            writer.write(with_ids(Ids(np.zeros(count, np.int64), keys, keys.original), struct_of(ids)))
            writer.flush()
            start += count
        writer.close()


@contextmanager
def hive_of(table: Path, keys: str = "") -> Iterator[FakeHive]:
    """A metastore whose table has one committed write id."""
    with FakeHive(4) as fake:
        writable(fake, table, COLUMNS, keys)
        first = fake.begin()
        fake.end(first)
        fake.write_ids["db.t"] = [first]
        yield fake


@pytest.fixture
def hive(tmp_path: Path) -> Iterator[FakeHive]:
    with hive_of(tmp_path / "t") as fake:
        yield fake


@pytest.fixture
def by_day(tmp_path: Path) -> Iterator[FakeHive]:
    """Two partitions with three rows each."""
    with hive_of(tmp_path / "t", "day string") as fake:
        for day in ("a", "b"):
            write_stripes(tmp_path / "t" / f"day={day}", [1, 2, 3])
            fake.partition("db", "t", f"day={day}")
        yield fake


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> dict[int, list[tuple[str, ...]]]:
    """The columns that were read of each stripe, one entry a read."""
    found: dict[int, list[tuple[str, ...]]] = defaultdict(list)
    real = OrcFile.read_stripe

    def read(self: OrcFile, stripe: int, columns: Sequence[str] | None = None) -> pa.RecordBatch:
        found[stripe].append(("all",) if columns is None else tuple(columns))
        return real(self, stripe, columns)

    monkeypatch.setattr(OrcFile, "read_stripe", read)
    return found


def run(hive: FakeHive, where: Any, assignments: str | None = None) -> Any:
    table = table_of(hive)
    where = where if isinstance(where, str) else KeyFilter.of(table, where)
    return Change(client(hive), table, where, assignments).run()


def test_a_delete_by_keys_reads_keys_first_and_row_ids_of_stripes_with_such_rows(
    hive: FakeHive, reads: dict[int, list[tuple[str, ...]]], tmp_path: Path
) -> None:
    write_stripes(tmp_path / "t", range(100), range(100, 200, 2), range(200, 300), range(300, 400))
    written = run(hive, pa.table({"id": [101, 250, 299, 250, None, 5000]}))
    assert (written.deleted, written.inserted) == (2, 0)
    assert reads == {1: [("row.id",)], 2: [("row.id",), IDS]}
    assert {row[0] for row in rows_of(hive)} == {*range(100), *range(100, 200, 2), *range(200, 400)} - {250, 299}


def test_bloom_filters_rule_out_stripes_whose_range_does_not(
    hive: FakeHive, reads: dict[int, list[tuple[str, ...]]], tmp_path: Path
) -> None:
    write_stripes(tmp_path / "t", range(0, 100, 2), range(1, 100, 2), bloom=True)
    assert run(hive, pa.table({"id": [50]})).deleted == 1
    assert list(reads) == [0]


def test_bloom_filters_serve_conditions_as_well(
    hive: FakeHive, reads: dict[int, list[tuple[str, ...]]], tmp_path: Path
) -> None:
    write_stripes(tmp_path / "t", range(0, 100, 2), range(1, 100, 2), bloom=True)
    assert run(hive, "id = 51").deleted == 1
    assert list(reads) == [1]


def test_an_update_reads_the_other_columns_of_stripes_where_the_condition_is_met(
    hive: FakeHive, reads: dict[int, list[tuple[str, ...]]], tmp_path: Path
) -> None:
    write_stripes(tmp_path / "t", [1, 5], [3, 8], [10, 1])
    written = run(hive, "value = 3", "name = name || '!'")
    assert (written.updated, written.inserted, written.deleted) == (2, 0, 0)
    assert [reads[stripe][0] for stripe in range(3)] == [("row.value",)] * 3
    assert [len(reads[stripe]) for stripe in range(3)] == [1, 2, 2]
    names = {row[0]: row[1] for row in rows_of(hive) if row[0] != 1}
    assert names == {5: "n5", 3: "n3!", 8: "n8", 10: "n10!"}


def test_a_merge_reads_columns_that_stay_of_stripes_with_its_keys(
    hive: FakeHive, reads: dict[int, list[tuple[str, ...]]], tmp_path: Path
) -> None:
    write_stripes(tmp_path / "t", range(100), range(100, 200, 2), range(200, 300))
    source = pa.table({"id": [101, 250, 1000], "name": ["a", "b", "c"]})
    written = Merge(client(hive), table_of(hive), source, ["id"]).run()
    assert (written.updated, written.inserted, written.deleted) == (1, 2, 0)
    assert list(reads) == [1, 2]
    assert reads[1] == [("row.id",)]
    assert reads[2] == [("row.id",), (*IDS, "row.id", "row.value")]
    found = rows_of(hive)
    assert (250, "b", 5) in found
    assert (1000, "c", None) in found


@pytest.mark.parametrize("by", ["keys", "condition"])
def test_a_partition_that_is_ruled_out_is_not_opened(by_day: FakeHive, tmp_path: Path, by: str) -> None:
    (tmp_path / "t/day=b/delta_0000001_0000001_0000/bucket_00000").write_bytes(b"no ORC")
    where = pa.table({"day": ["a", "c"], "id": [2, 2]}) if by == "keys" else "day = 'a' and id = 2"
    written = run(by_day, where)
    assert (written.deleted, written.partitions) == (1, ("day=a",))


def test_rows_are_looked_up_among_the_keys_of_their_partition(
    by_day: FakeHive, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    real = KeyLookup.__init__

    def init(self: KeyLookup, columns: Sequence[pa.Array]) -> None:
        sizes.append(len(columns[0]))
        real(self, columns)

    monkeypatch.setattr(KeyLookup, "__init__", init)
    source = pa.table({"day": ["a", "a", "b", "c"], "id": [1, 2, 3, 4], "name": ["k", "l", "m", "n"]})
    written = Merge(client(by_day), table_of(by_day), source, ["id", "day"]).run()
    assert (written.updated, written.inserted) == (3, 1)
    assert sorted(sizes) == [1, 2]
    names = {(row[0], row[3]): row[1] for row in rows_of(by_day)}
    assert (names[1, "a"], names[2, "a"], names[3, "b"], names[4, "c"]) == ("k", "l", "m", "n")
    assert len(names) == 7


def test_100_000_deletes_anywhere_take_less_than_2_mb(tmp_path: Path) -> None:
    row_ids = np.random.default_rng(1).choice(100_000_000, 100_000, replace=False)
    count = len(row_ids)
    keys = DeletedKeys()
    keys.add(Keys(np.ones(count, np.int64), np.full(count, encode(0, 0), np.int64), row_ids))
    fs, path = open_location(str(tmp_path))
    (file,) = write_deletes(lambda _: (fs, path), "", "delete_delta_0000002_0000002_0000", keys, row=ROW, write_id=2)
    assert file.rows == count
    assert file.bytes < 2_000_000
