"""A stream of Spark is written by ``foreachBatch``, each epoch exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.metastore.fake_hive import FakeHive
from support.metastore.writable import rows_of, writable

import acidctl.spark
from acidctl.base.errors import ConflictError

pytestmark = pytest.mark.spark


@pytest.fixture(params=[3, 4], ids=["hive-3", "hive-4"])
def hive(request: pytest.FixtureRequest) -> Iterator[FakeHive]:
    with FakeHive(request.param, remembers=True) as made:
        yield made


def batch(spark: Any, first: int) -> Any:
    return spark.range(first, first + 3).selectExpr("int(id) AS a", "string(id) AS b")


@pytest.mark.sampled(2)
def test_an_epoch_that_comes_again_is_passed_over(spark: Any, hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path)
    write = acidctl.spark.sink("hive:db.t", name="orders", metastore=hive.address)
    write(batch(spark, 0), 0)
    write(batch(spark, 3), 1)
    write(batch(spark, 3), 1)  # Spark repeats the epoch at which it ended
    assert [row[0] for row in rows_of(hive)] == list(range(6))
    with pytest.raises(ConflictError, match="is at epoch 1"):
        write(batch(spark, 100), 0)  # a new checkpoint
    acidctl.spark.sink("hive:db.t", name="others", metastore=hive.address)(batch(spark, 6), 0)
    assert [row[0] for row in rows_of(hive)] == list(range(9))
    told = [(one.verb, one.run, one.facts["transactions"]) for one in acidctl.Location(tmp_path).log()]
    assert told == [("stream", "others", 1), ("stream", "orders", 2)]


@pytest.mark.sampled(2)
def test_two_queries_of_one_name_are_refused(spark: Any, hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path)
    first, second = (acidctl.spark.sink("hive:db.t", name="orders", metastore=hive.address) for _ in range(2))
    first(batch(spark, 0), 0)
    second(batch(spark, 0), 0)  # as after a restart
    second(batch(spark, 3), 1)
    with pytest.raises(ConflictError, match="another query"):
        first(batch(spark, 100), 1)
    assert [row[0] for row in rows_of(hive)] == list(range(6))


@pytest.mark.sampled(2)
def test_a_stream_goes_on_after_an_end_between_the_commit_and_sparks_note(
    spark: Any, hive: FakeHive, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    table, source = tmp_path / "t", tmp_path / "source"
    writable(hive, table)
    write = acidctl.spark.sink("hive:db.t", name="orders", metastore=hive.address)
    ends = iter([True, False, False])

    def ending(rows: Any, epoch: int) -> None:
        write(rows, epoch)
        if next(ends):
            raise RuntimeError("killed here")

    def follow(checkpoint: str = "checkpoint") -> None:
        stream = spark.readStream.schema("a int, b string").parquet(str(source))
        query = stream.writeStream.foreachBatch(ending).option("checkpointLocation", str(tmp_path / checkpoint))
        query.trigger(availableNow=True).start().awaitTermination()

    batch(spark, 0).write.parquet(str(source))
    with pytest.raises(Exception, match="killed here"):
        follow()
    follow()
    batch(spark, 3).write.mode("append").parquet(str(source))
    with pytest.raises(Exception, match="is the name of another query"):
        follow("a new one")  # at epoch 0, as the table
    follow()
    with pytest.raises(Exception, match="is the name of another query"):
        follow("a new one")
    assert [row[0] for row in rows_of(hive)] == list(range(6))
    capfd.readouterr()
