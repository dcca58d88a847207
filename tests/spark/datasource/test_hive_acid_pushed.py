"""Random filters pushed to the Spark data source: no row that meets them may be left out. No Java needed."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.files.acid_files import insert, write_acid, write_plain
from support.judge.hive import RowKey
from support.made.where_model import ADDED, SIGNS, TYPES, Row, random_table

pytest.importorskip("pyspark.sql.datasource", reason="PySpark older than 4.0")

from pyspark.sql import datasource as api

from acidctl.spark.datasource.hive_acid import HiveAcidDataSource

COLUMNS = {name: kind for name, kind in (TYPES | ADDED).items() if name not in ("st", "f", "d")}
COMPARISONS = {
    "=": api.EqualTo,
    "<": api.LessThan,
    "<=": api.LessThanOrEqual,
    ">": api.GreaterThan,
    ">=": api.GreaterThanOrEqual,
}


def load(table: Path, filters: list[Any], **options: str) -> list[pa.RecordBatch]:
    """What the tasks give for the filters."""
    source = HiveAcidDataSource({"path": str(table), **{name.lower(): value for name, value in options.items()}})
    reader: Any = source.reader(source.schema())
    assert list(reader.pushFilters(filters)) == filters  # Spark applies them all itself
    return [batch for one in reader.partitions() for batch in reader.read(one)]


def random_filter(luck: random.Random, rows: list[Row]) -> tuple[Any, Any]:
    """A filter of Spark's, and what it says of a row."""
    name = luck.choice(list(COLUMNS))
    known = [row[name] for row in luck.sample(rows, 6) if row[name] is not None] or [luck.choice(rows)[name]]
    dice, path = luck.random(), (name,)
    if dice < 0.1:
        return api.IsNull(path), lambda row: row[name] is None
    if dice < 0.2:
        return api.IsNotNull(path), lambda row: row[name] is not None
    if known[0] is None or COLUMNS[name] == "boolean":
        return api.IsNotNull(path), lambda row: row[name] is not None
    if dice < 0.4:
        given = tuple(known)
        return api.In(path, given), lambda row: None if row[name] is None else row[name] in given
    sign, wanted = luck.choice(list(COMPARISONS)), known[0]
    return (
        COMPARISONS[sign](path, wanted),
        lambda row: None if row[name] is None else SIGNS[sign](_bytes(row[name]), _bytes(wanted)),
    )


def _bytes(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


@pytest.mark.parametrize("seed", range(3))
def test_random_filters_lose_nothing(seed: int, tmp_path: Path) -> None:
    luck = random.Random(f"pushed {seed}")
    rows, _ = random_table(luck, tmp_path / "t")
    left_out = 0
    for _ in range(25):
        chosen = [random_filter(luck, rows) for _ in range(luck.randint(1, 2))]
        if luck.random() < 0.3:
            inner, truth = chosen[0]
            chosen[0] = (api.Not(inner), lambda row, truth=truth: None if truth(row) is None else not truth(row))
        batches = load(tmp_path / "t", [one for one, _ in chosen], rowId="true", targetBytes="2k")
        read = {(one["writeid"], one["rowid"]) for batch in batches for one in batch.column("ROW__ID").to_pylist()}
        want = {
            (row["ROW__ID.writeid"], row["ROW__ID.rowid"]) for row in rows if all(truth(row) for _, truth in chosen)
        }
        assert want <= read, f"{[one for one, _ in chosen]} lost {sorted(want - read)[:5]}"
        left_out += len(rows) - len(read)
    assert left_out, "no filter left a stripe out"


def test_originals_keep_their_ids_in_every_snapshot(tmp_path: Path) -> None:
    """A task sees part of the listing only, and numbers the originals as the whole of it says."""
    write_plain(tmp_path / "000001_0", (1, 2))
    write_acid(tmp_path / "delta_0000001_0000001_0000" / "bucket_00001", (0, 1, 1, 0, 1, (3, 4)))
    for write_ids in ("t:0:9223372036854775807::", "t:1:9223372036854775807::"):
        batches = load(tmp_path, [], rowId="true", snapshot=f"db.{tmp_path.name}{write_ids[1:]}")
        keys = [RowKey(*one.values()) for batch in batches for one in batch.column("ROW__ID").to_pylist()]
        assert RowKey(0, 1, 0) in keys


def test_a_filter_is_of_the_data_column_that_hides_a_partition_column(tmp_path: Path) -> None:
    write_acid(tmp_path / "t" / "a=7" / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (3, "x")))
    (batch,) = load(tmp_path / "t", [api.EqualTo(("a",), 3)])
    assert batch.column("a").to_pylist() == [3]
    assert load(tmp_path / "t", [api.EqualTo(("a",), 4)]) == []
