"""Changes by the Spark data source: what it plans and reads (no Java needed), and what Spark's streams make of it."""

from __future__ import annotations

import os
import pickle
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.compacting import run_compaction
from support.files.acid_files import insert, write_acid, write_deletes, write_delta
from support.made.random_tables import Made, make_table, write
from support.metastore.fake_hive import FakeHive

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.location.snapshot import list_location
from acidctl.orc.types import OrcType

pytest.importorskip("pyspark.sql.datasource", reason="PySpark older than 4.0")

from acidctl.spark.datasource.hive_acid import HiveAcidDataSource, HiveAcidError, explain

WRONG = OrcType("struct", children=(OrcType("int"),), names=("_Change",))
Change = tuple[int, str, int]


def source_of(path: Path | str, **options: str) -> tuple[HiveAcidDataSource, Any]:
    """The source with its schema, as Spark sends it to who plans."""
    source = HiveAcidDataSource({"path": str(path), **{name.lower(): value for name, value in options.items()}})
    schema = source.schema()
    return pickle.loads(pickle.dumps(source)), schema


def read(reader: Any, partitions: Any) -> list[Change]:
    """(write id, change, id) of each change, sorted."""
    sent = pickle.loads(pickle.dumps(reader))
    rows = [row for one in pickle.loads(pickle.dumps(partitions)) for b in sent.read(one) for row in b.to_pylist()]
    assert all(list(row)[:2] == ["_change", "_write_id"] for row in rows)
    return sorted((row["_write_id"], row["_change"], list(row.values())[2]) for row in rows)


def loaded(path: Path | str, **options: str) -> list[Change]:
    source, schema = source_of(path, **options)
    reader = source.reader(schema)
    return read(reader, reader.partitions())


def expected(made: Made, after: int, upto: int) -> list[Change]:
    rows = []
    for write_id in range(after + 1, upto + 1):
        before, now = made.rows_at(write_id - 1), made.rows_at(write_id)
        rows += [(write_id, "delete", row["id"]) for key, row in before.items() if key not in now]
        rows += [(write_id, "insert", row["id"]) for key, row in now.items() if key not in before]
    return sorted(rows)


def fill(made: Made, choice: random.Random, steps: int) -> None:
    for kind in choice.choices(["insert", "update", "delete", "mixed", "minor", "major"], k=steps):
        if kind in ("minor", "major"):
            run_compaction(made.path, CompactionKind(kind))
        else:
            write(made, choice, kind)


@pytest.mark.parametrize("seed", range(8))
def test_changes_of_a_load_are_those_of_the_written_past(tmp_path: Path, seed: int) -> None:
    made, choice = make_table(tmp_path / "t", seed, 0), random.Random(seed)
    write(made, choice, "insert")
    fill(made, choice, 8)
    after, upto = sorted(choice.choices(range(made.last + 1), k=2))
    for bytes_ in ("1", "64m"):
        found = loaded(made.path, changesFrom=str(after), changesTo=str(upto), targetBytes=bytes_)
        assert found == expected(made, after, upto)
    assert loaded(made.path, changesFrom=str(after)) == expected(made, after, made.last)


@pytest.mark.parametrize("seed", range(4))
def test_a_stream_gives_every_change_once_across_compactions_and_restarts(tmp_path: Path, seed: int) -> None:
    made, choice = make_table(tmp_path / "t", seed, 0), random.Random(seed)
    write(made, choice, "insert")
    options = {"changesFrom": "0", "assumeCommitted": "0"}
    source, schema = source_of(made.path, **options)
    reader = source.streamReader(schema)
    offset, found = reader.initialOffset(), []
    for _ in range(6):
        newest = reader.latestOffset()
        batch = read(reader, reader.partitions(offset, newest))
        fill(made, choice, choice.randint(0, 3))
        if choice.random() < 0.5:  # another process goes on, and is asked for the same batch
            source, schema = source_of(made.path, **options)
            reader = source.streamReader(schema)
            assert read(reader, reader.partitions(offset, newest)) == batch
        found += batch
        offset = newest
    assert sorted(found) == expected(made, 0, offset["write_id"])


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeHive]:
    with FakeHive(4) as one:
        one.table("s", "t", f"file:{tmp_path}/t")
        yield one


def test_a_stream_of_a_metastore_ends_below_what_is_open(fake: FakeHive, tmp_path: Path) -> None:
    def wrote(write_id: int) -> None:
        write_acid(
            tmp_path / f"t/delta_{write_id:07}_{write_id:07}_0000/bucket_00000", insert(write_id, 0, (write_id,))
        )

    txns = []
    for write_id in (1, 2, 3):
        txns.append(fake.begin())
        fake.write_ids.setdefault("s.t", []).append(txns[-1])
        wrote(write_id)
    fake.end(txns[0])
    fake.end(txns[2])
    source, schema = source_of("hive:s.t", metastore=fake.address, changesFrom="0")
    reader = source.streamReader(schema)
    start, one = reader.initialOffset(), reader.latestOffset()
    assert (start, one) == ({"write_id": 0}, {"write_id": 1}), "2 is open"
    assert [row[:2] for row in read(reader, reader.partitions(start, one))] == [(1, "insert")]
    assert fake.address.encode() not in pickle.dumps(reader), "tasks know nothing of the metastore"
    fake.end(txns[1], commit=False)
    two = reader.latestOffset()
    assert two == {"write_id": 3}
    assert [row[:2] for row in read(reader, reader.partitions(one, two))] == [(3, "insert")], "2 was aborted"
    assert reader.partitions(two, two) == []
    new, schema = source_of("hive:s.t", metastore=fake.address, changesFrom="newest")
    assert new.streamReader(schema).initialOffset() == two


def test_changes_up_to_what_is_open_are_refused(fake: FakeHive, tmp_path: Path) -> None:
    write_acid(tmp_path / "t/delta_0000001_0000001_0000/bucket_00000", insert(1, 0, (1,)))
    done = fake.begin()
    fake.end(done)
    fake.write_ids["s.t"] = [done, fake.begin()]
    options = {"metastore": fake.address, "changesFrom": "0"}
    assert [row[:2] for row in loaded("hive:s.t", **options, changesTo="1")] == [(1, "insert")]
    with pytest.raises(HiveAcidError, match=r"up to write id 2(?s:.*)2 is open(?s:.*)changesTo may be 1"):
        loaded("hive:s.t", **options, changesTo="2")
    listed = {"snapshot": "s.t:3:2:2:", "changesFrom": "0", "changesTo": "3", "metastore": "none"}
    with pytest.raises(HiveAcidError, match="2 is open"):
        loaded(tmp_path / "t", **listed)
    with pytest.raises(HiveAcidError, match="2 is open"):
        loaded(tmp_path / "t", **listed, assumeCommitted="0")


def test_a_stream_of_a_path_that_the_metastore_does_not_know_is_refused(fake: FakeHive, tmp_path: Path) -> None:
    write_delta(tmp_path / "other", 1, small(1))
    source, schema = source_of(tmp_path / "other", metastore=fake.address, changesFrom="0")
    reader = source.streamReader(schema)
    with pytest.raises(HiveAcidError, match="must be told which write ids are committed"):
        reader.latestOffset()


def test_a_load_lists_each_location_once_more_than_its_schema_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in ("day=1", "day=2"):
        write_delta(tmp_path / day, 1, small(1))
    source, schema = source_of(tmp_path, changesFrom="0", changesTo="1")
    looked: list[str] = []
    real = list_location

    def look(fs: Any, path: str, *args: Any) -> Any:
        looked.append(path)
        return real(fs, path, *args)

    monkeypatch.setattr("acidctl.location.table_location.list_location", look)
    reader = source.reader(schema)
    assert len(read(reader, reader.partitions())) == 2
    assert sorted(looked) == [str(tmp_path / "day=1"), str(tmp_path / "day=2")]


def test_what_is_too_young_for_the_assumption_waits(tmp_path: Path) -> None:
    for write_id in (1, 2):
        write_delta(tmp_path, write_id, small(write_id))
    os.utime(tmp_path / "delta_0000001_0000001_0000", (1, 1))
    os.utime(tmp_path / "delta_0000001_0000001_0000/bucket_00000", (1, 1))
    source, schema = source_of(tmp_path, changesFrom="0", assumeCommitted="1h")
    assert source.streamReader(schema).latestOffset() == {"write_id": 1}


def test_partitions_that_come_later_are_followed(tmp_path: Path) -> None:
    write_delta(tmp_path / "day=1", 1, small(1))
    source, schema = source_of(tmp_path, changesFrom="0", assumeCommitted="0")
    reader = source.streamReader(schema)
    first = reader.latestOffset()
    write_delta(tmp_path / "day=2", 2, small(2))
    write_deletes(tmp_path / "day=1", 3, 1, [0])
    last = reader.latestOffset()
    assert (first, last) == ({"write_id": 1}, {"write_id": 3})
    assert read(reader, reader.partitions(first, last)) == [(2, "insert", 2), (3, "delete", 1)]
    rows = [row for one in reader.partitions(first, last) for b in reader.read(one) for row in b.to_pylist()]
    assert Counter(row["day"] for row in rows) == {1: 1, 2: 1}


def test_history_that_was_compacted_away_is_told(tmp_path: Path) -> None:
    made, choice = make_table(tmp_path / "t", 1, 0), random.Random(1)
    write(made, choice, "insert")
    write(made, choice, "update")
    run_compaction(made.path, CompactionKind.MAJOR)
    for path in made.path.glob("*delta_*"):
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
    with pytest.raises(HiveAcidError, match=r"\[history\] changes of .* above write id 0 cannot be told") as caught:
        loaded(made.path, changesFrom="0")
    said = str(caught.value)
    assert "why: the rows at write id 1 are gone" in said
    assert "hint: read its rows again with at=2, and go on with changesFrom=2; a stream needs a new checkpoint" in said
    write(made, choice, "update")
    assert loaded(made.path, changesFrom="2") == expected(made, 2, 3)


def test_a_stream_that_cannot_tell_what_an_overwrite_took_the_place_of_says_how_to_go_on(tmp_path: Path) -> None:
    for write_id in (1, 2):
        write_delta(tmp_path, write_id, small(write_id))
    options = {"changesFrom": "0", "assumeCommitted": "0"}
    source, schema = source_of(tmp_path, **options)
    reader = source.streamReader(schema)
    write_delta(tmp_path, 4, small(7, 8), base=True)  # of 3 nothing is there: it was aborted, or cleaned
    with pytest.raises(HiveAcidError, match="above write id 2 cannot be told") as caught:
        reader.partitions({"write_id": 2}, reader.latestOffset())
    assert "with at=4, and go on with changesFrom=4; a stream needs a new checkpoint" in str(caught.value)
    assert loaded(tmp_path, changesFrom="4") == []
    write_delta(tmp_path, 5, small(9))
    assert loaded(tmp_path, changesFrom="4") == [(5, "insert", 9)]


def small(*numbers: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": pa.array(numbers, pa.int32())})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"changesTo": "3"}, "changesTo is given without changesFrom"),
        ({"changesFrom": "soon"}, "changesFrom cannot be 'soon'"),
        ({"changesFrom": "3", "changesTo": "2"}, "changesTo cannot be '2'"),
        ({"changesFrom": "3", "at": "2"}, "at and changesFrom"),
        ({"changesFrom": "0", "assumeCommitted": "soon"}, "assumeCommitted cannot be 'soon'"),
    ],
)
def test_options_that_cannot_be_used_are_refused(tmp_path: Path, options: dict[str, str], said: str) -> None:
    write_delta(tmp_path, 1, small(1))
    with pytest.raises(HiveAcidError, match=said):
        source_of(tmp_path, **options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "not said from where on"),
        ({"changesFrom": "0"}, "must be told which write ids are committed"),
        ({"changesFrom": "0", "snapshot": f"TABLE:1:{2**63 - 1}::"}, "of one moment"),
    ],
)
def test_streams_that_cannot_be_followed_are_refused(tmp_path: Path, options: dict[str, str], said: str) -> None:
    write_delta(tmp_path, 1, small(1))
    named = {name: value.replace("TABLE", tmp_path.name) for name, value in options.items()}
    source, schema = source_of(tmp_path, **named)
    with pytest.raises(HiveAcidError, match=said) as caught:
        source.streamReader(schema)
    assert explain(caught.value) or said in str(caught.value)


def test_a_column_with_the_name_of_ours_is_refused(tmp_path: Path) -> None:
    write_delta(tmp_path, 1, pa.RecordBatch.from_pydict({"_Change": pa.array([1], pa.int32())}), row=WRONG)
    with pytest.raises(HiveAcidError, match=r"it has a column _[Cc]hange of its own"):
        source_of(tmp_path, changesFrom="0")
