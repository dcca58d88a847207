"""What kills the rows of a load is read once by a process that does its tasks one after the other."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.files.acid_files import delete, insert, write_acid

pytest.importorskip("pyspark.sql.datasource", reason="PySpark older than 4.0")

from acidctl.acid.bucket import encode
from acidctl.orc.types import OrcType
from acidctl.rows.read.visibility import load_deletes
from acidctl.spark.datasource import task_deletes
from acidctl.spark.datasource.hive_acid import HiveAcidDataSource

ROWS, BUCKETS = 40, 2
ROW = OrcType("struct", children=(OrcType("int"), OrcType("string")), names=("id", "name"))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two buckets; four inserts, of whose rows a delete kills the first of each."""
    for write_id in range(1, 5):
        for bucket in range(BUCKETS):
            path = tmp_path / f"delta_{write_id:07d}_{write_id:07d}_0000" / f"bucket_{bucket:05d}"
            write_acid(path, *(insert(write_id, row, bucket=encode(bucket)) for row in range(ROWS // 4 // BUCKETS)))
    kill(tmp_path, 5, 0)
    return tmp_path


def kill(table: Path, write_id: int, *row_ids: int) -> None:
    """Delete rows of each insert."""
    for bucket in range(BUCKETS):
        path = table / f"delete_delta_{write_id:07d}_{write_id:07d}_0000" / f"bucket_{bucket:05d}"
        keys = [(of, row_id) for of in range(1, 5) for row_id in row_ids]
        write_acid(path, *(delete(of, row_id, write_id, encode(bucket)) for of, row_id in keys), row=ROW)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files each reading of deletes was of."""
    calls: list[int] = []

    def spy(sources: Any, *args: Any, **more: Any) -> Any:
        calls.append(len(sources))
        return load_deletes(sources, *args, **more)

    monkeypatch.setattr(task_deletes, "load_deletes", spy)
    monkeypatch.setattr(task_deletes, "_held", type(task_deletes._held)())
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


def test_tasks_of_a_load_read_what_kills_their_rows_once(table: Path, loaded: list[int]) -> None:
    read = planned(table)
    assert read() == ROWS - 4 * BUCKETS
    assert loaded == [1] * BUCKETS, "each bucket's delete file once, by four tasks each"
    assert read() == ROWS - 4 * BUCKETS
    assert len(loaded) == BUCKETS


def test_a_load_reads_by_its_own_snapshot_whatever_another_has_read(table: Path, loaded: list[int]) -> None:
    old = planned(table)
    old()
    kill(table, 6, 1)
    new = planned(table)
    at = planned(table, at="4")
    assert [new(), old(), at(), new()] == [ROWS - 8 * BUCKETS, ROWS - 4 * BUCKETS, ROWS, ROWS - 8 * BUCKETS]


def test_a_table_that_was_made_anew_has_its_own_deletes(table: Path, loaded: list[int]) -> None:
    """Of the same names: by them alone nobody can tell."""
    assert planned(table)() == ROWS - 4 * BUCKETS
    shutil.rmtree(table / "delete_delta_0000005_0000005_0000")
    kill(table, 5, 1, 2)
    assert planned(table)() == ROWS - 8 * BUCKETS


def test_of_large_sets_the_last_alone_is_held(table: Path, loaded: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_deletes, "MOST_BYTES", 4 * 8 - 1)
    read = planned(table)
    assert read() == read() == ROWS - 4 * BUCKETS
    assert len(task_deletes._held) == 1
    assert len(loaded) >= 2 * BUCKETS - 1, "the other bucket's was given up"
    monkeypatch.setattr(task_deletes, "MOST_BYTES", 4 * 8)
    read()
    assert len(task_deletes._held) == 2
