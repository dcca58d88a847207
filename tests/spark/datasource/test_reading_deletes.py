"""What kills the rows of a load is read once by a process that does its tasks one after the other."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.files.acid_files import delete, insert, write_acid

pytest.importorskip("pyspark.sql.datasource", reason="PySpark older than 4.0")

from acidctl.acid.bucket import encode
from acidctl.orc.types import OrcType
from acidctl.rows.read.visibility import load_deletes
from acidctl.spark.datasource import reading
from acidctl.spark.datasource.hive_acid import HiveAcidDataSource

ROWS, BUCKETS = 40, 2
ROW = OrcType("struct", children=(OrcType("int"), OrcType("string")), names=("id", "name"))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two buckets; four inserts, of whose rows a delete kills the first of each."""
    table = tmp_path / "t"
    for write_id in range(1, 5):
        for bucket in range(BUCKETS):
            path = table / f"delta_{write_id:07d}_{write_id:07d}_0000" / f"bucket_{bucket:05d}"
            write_acid(path, *(insert(write_id, row, bucket=encode(bucket)) for row in range(ROWS // 4 // BUCKETS)))
    kill(table, 5, 0)
    return table


def kill(table: Path, write_id: int, *row_ids: int) -> None:
    """Delete rows of each insert."""
    for bucket in range(BUCKETS):
        path = table / f"delete_delta_{write_id:07d}_{write_id:07d}_0000" / f"bucket_{bucket:05d}"
        keys = [(of, row_id) for of in range(1, 5) for row_id in row_ids]
        write_acid(path, *(delete(of, row_id, write_id, encode(bucket)) for of, row_id in keys), row=ROW)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Of which files each reading of deletes was."""
    calls: list[list[str]] = []

    def spy(sources: Any, *args: Any, **more: Any) -> Any:
        if sources:
            calls.append([source.path for source in sources])
        return load_deletes(sources, *args, **more)

    monkeypatch.setattr(reading, "load_deletes", spy)
    monkeypatch.setattr(reading, "_held", type(reading._held)())
    return calls


def planned(table: Path, **options: str) -> Callable[[], int]:
    """A load of a task for each file; what it returns does them all, as one process does, and counts the rows."""
    source = HiveAcidDataSource({"path": str(table), "targetbytes": "1", **options})
    reader: Any = source.reader(source.schema())  # type: ignore[arg-type]
    partitions, shipped = reader.partitions(), pickle.dumps(reader)
    assert len(partitions) >= 8
    return lambda: sum(
        batch.num_rows for one in partitions for batch in pickle.loads(shipped).read(pickle.loads(pickle.dumps(one)))
    )


def test_tasks_of_a_load_read_what_kills_their_rows_once(table: Path, loaded: list[list[str]]) -> None:
    read = planned(table)
    assert read() == ROWS - 4 * BUCKETS
    assert [len(one) for one in loaded] == [1] * BUCKETS, "each bucket's delete file once, by four tasks each"
    assert read() == ROWS - 4 * BUCKETS
    assert len(loaded) == BUCKETS


def test_a_load_reads_by_its_own_snapshot_whatever_another_has_read(table: Path, loaded: list[list[str]]) -> None:
    old = planned(table)
    old()
    kill(table, 6, 1)
    new = planned(table)
    at = planned(table, at="4")
    assert [new(), old(), at(), new()] == [ROWS - 8 * BUCKETS, ROWS - 4 * BUCKETS, ROWS, ROWS - 8 * BUCKETS]


def test_a_table_that_was_made_anew_has_its_own_deletes(table: Path, loaded: list[list[str]]) -> None:
    """Of the same names: by them alone nobody can tell."""
    assert planned(table)() == ROWS - 4 * BUCKETS
    shutil.rmtree(table / "delete_delta_0000005_0000005_0000")
    kill(table, 5, 1, 2)
    assert planned(table)() == ROWS - 8 * BUCKETS


def test_partitions_of_a_table_have_their_own(tmp_path: Path, table: Path, loaded: list[list[str]]) -> None:
    """Whose files have the same names."""
    for day, row_ids in (("day=1", (0,)), ("day=2", (1, 2))):
        shutil.copytree(table, tmp_path / "parts" / day)
        shutil.rmtree(tmp_path / "parts" / day / "delete_delta_0000005_0000005_0000")
        kill(tmp_path / "parts" / day, 5, *row_ids)
    assert planned(tmp_path / "parts")() == 2 * ROWS - 12 * BUCKETS
    assert len(loaded) == 2 * BUCKETS


def test_stores_have_their_own_at_the_same_path(loaded: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    sets = {name: SimpleNamespace(nbytes=8, name=name) for name in ("hdfs://a", "hdfs://b")}
    monkeypatch.setattr(reading, "load_deletes", lambda sources, _, **__: sets[sources[0].fs.url])

    def asked(url: str) -> Any:
        fs = SimpleNamespace(url=url, display=lambda path: url + path)
        source: Any = SimpleNamespace(
            is_delete=True, may_hold_moved=False, path="/t/delete_delta_0000002_0000002/bucket_00000", fs=fs, shown=url
        )
        snapshot: Any = SimpleNamespace(write_ids=None)
        return reading.deletes_of("load", snapshot, [source])

    assert [asked(url) for url in (*sets, *sets)] == [*sets.values()] * 2


def test_of_large_sets_the_last_alone_is_held(
    table: Path, loaded: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_BYTES", 4 * 8 - 1)
    read = planned(table)
    assert read() == read() == ROWS - 4 * BUCKETS
    assert [list(paths) for *_, paths in reading._held] == loaded[-1:]
    assert len(loaded) >= 2 * BUCKETS - 1, "the other bucket's was given up"
    monkeypatch.setattr(reading, "MOST_BYTES", 4 * 8)
    read()
    assert len(reading._held) == 2


def test_a_process_that_goes_on_for_days_holds_few_sets(
    table: Path, loaded: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_SETS", 3)
    for _ in range(3):
        assert planned(table)() == ROWS - 4 * BUCKETS
        assert planned(table, at="4")() == ROWS
    assert len(reading._held) == 3
    assert all(one.size for one in reading._held.values()), "where nothing kills there is nothing to hold"
