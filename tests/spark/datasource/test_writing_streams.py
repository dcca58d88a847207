"""``writeStream.format("hive_acid")`` in a real Spark session: each epoch is one transaction, and none comes twice."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.metastore.fake_hive import FakeHive
from support.metastore.writable import rows_of, writable

from acidctl.base.errors import BadDataError, ConflictError, UsageProblem
from acidctl.location.walk import is_log
from acidctl.metastore.interface import TxnState
from acidctl.spark.datasource import explain, register
from acidctl.spark.writing.keeper import WriteRequest

pytest.importorskip("pyspark.sql.datasource", reason="PySpark older than 4.0")

from acidctl.spark.datasource.writing import HiveAcidStreamWriter

pytestmark = pytest.mark.spark


@dataclass
class Followed:
    """A folder that a stream follows into the table ``db.t``.

    Attributes:
        added: the number of rows that came to the folder.
    """

    spark: Any
    hive: FakeHive
    folder: Path
    added: int = 0

    @property
    def table(self) -> Path:
        return self.folder / "t"

    def add(self, b: str = "string(id)") -> None:
        rows = self.spark.range(self.added, self.added + 3, numPartitions=2).selectExpr("int(id) AS a", f"{b} AS b")
        rows.write.mode("append").parquet(str(self.folder / "source"))
        self.added += 3

    def start(self, checkpoint: str = "checkpoint", mode: str = "append", **options: str) -> Any:
        stream = self.spark.readStream.schema("a int, b string").parquet(str(self.folder / "source"))
        if mode == "complete":
            stream = stream.groupBy("a", "b").count().drop("count")
        options = {"metastore": self.hive.address, "checkpointLocation": str(self.folder / checkpoint), **options}
        writer = stream.writeStream.format("hive_acid").options(**options).outputMode(mode)
        return writer.trigger(availableNow=True).start("hive:db.t")

    def follow(self, checkpoint: str = "checkpoint", mode: str = "append", **options: str) -> None:
        self.start(checkpoint, mode, **options).awaitTermination()

    def forget(self, *notes: str) -> None:
        """Remove the last note of the checkpoint, as if the driver had died before it made it."""
        for note in notes:
            last = max((self.folder / "checkpoint" / note).glob("[0-9]*"), key=lambda path: int(path.name))
            last.unlink()
            (last.parent / f".{last.name}.crc").unlink(missing_ok=True)

    @property
    def numbers(self) -> list[int]:
        return sorted(row[0] for row in rows_of(self.hive))

    @property
    def states(self) -> list[TxnState]:
        return [TxnState(txn.state) for txn in self.hive.txns.values()]


@pytest.fixture(params=[3, 4], ids=["hive-3", "hive-4"])
def followed(spark: Any, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Followed]:
    register(spark)
    with FakeHive(request.param, remembers=True) as hive:
        made = Followed(spark, hive, tmp_path)
        writable(hive, made.table)
        made.add()
        yield made


@pytest.mark.sampled(2)
def test_each_epoch_is_written_once(followed: Followed) -> None:
    followed.follow()
    followed.add()
    followed.follow()
    assert followed.numbers == list(range(6))
    followed.forget("commits")
    followed.follow()
    assert followed.numbers == list(range(6))
    followed.add()
    followed.follow()
    assert followed.numbers == list(range(9))
    assert not {TxnState.OPEN, TxnState.ABORTED}.intersection(followed.states)
    assert not followed.hive.locks
    assert not [
        path for path in followed.table.iterdir() if path.name.startswith((".", "_tmp")) and not is_log(path.name)
    ]


@pytest.mark.slow
def test_a_new_checkpoint_is_another_stream(followed: Followed) -> None:
    followed.follow()
    followed.follow("another")  # at the same epoch
    assert followed.numbers == [0, 0, 1, 1, 2, 2]


@pytest.mark.slow
def test_an_older_copy_of_a_checkpoint_is_refused(followed: Followed, capfd: pytest.CaptureFixture[str]) -> None:
    followed.follow()
    shutil.copytree(followed.folder / "checkpoint", followed.folder / "copy")
    for _ in range(2):
        followed.add()
        followed.follow()
    followed.add()
    with pytest.raises(Exception, match="is at epoch 2") as raised:
        followed.follow("copy")
    assert isinstance(explain(raised.value), ConflictError)
    assert followed.numbers == list(range(9))
    assert TxnState.OPEN not in followed.states
    capfd.readouterr()


@pytest.mark.slow
def test_a_failing_epoch_leaves_the_table_as_it_was(followed: Followed, capfd: pytest.CaptureFixture[str]) -> None:
    followed.follow()
    bad = "x" * 20
    followed.hive.tables["db", "t"] = changed_type(followed.hive, "varchar(5)")
    followed.add(f"'{bad}'")
    with pytest.raises(Exception, match="HiveAcidError") as raised:
        followed.follow()
    assert isinstance(explain(raised.value), BadDataError)
    assert followed.numbers == [0, 1, 2]
    wait_for(lambda: TxnState.OPEN not in followed.states)
    assert not followed.hive.locks
    followed.hive.tables["db", "t"] = changed_type(followed.hive, "string")
    followed.follow()
    assert followed.numbers == list(range(6))
    capfd.readouterr()


def changed_type(hive: FakeHive, kind: str) -> Any:
    table = hive.tables["db", "t"]
    columns = (table.storage.columns[0], replace(table.storage.columns[1], type=kind))
    return replace(table, storage=replace(table.storage, columns=columns))


@pytest.mark.slow
def test_a_stopped_query_leaves_no_transaction(followed: Followed, capfd: pytest.CaptureFixture[str]) -> None:
    followed.follow()
    followed.add()
    stream = followed.spark.readStream.schema("a int, b string").parquet(str(followed.folder / "source"))

    began = str(followed.folder / "began")

    def stuck(batches: Any) -> Any:
        import time
        from pathlib import Path

        Path(began).touch()
        time.sleep(600)
        yield from batches

    options = {"metastore": followed.hive.address, "checkpointLocation": str(followed.folder / "stuck")}
    writer = stream.mapInArrow(stuck, "a int, b string").writeStream.format("hive_acid").options(**options)
    query = writer.start("hive:db.t")  # no task will have given a message
    wait_for(Path(began).exists)
    assert TxnState.OPEN in followed.states
    query.stop()
    wait_for(lambda: TxnState.OPEN not in followed.states)
    assert not followed.hive.locks
    assert followed.numbers == [0, 1, 2]
    capfd.readouterr()


@pytest.mark.sampled(2)
def test_two_queries_whose_options_are_the_same_leave_each_other_alone(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed, "spark", followed.spark.newSession())
    register(followed.spark)
    followed.spark.conf.set("spark.sql.streaming.checkpointLocation", str(followed.folder / "checkpoints"))

    def meeting(own: str, other: str) -> Callable[[Any], Any]:
        def meet(batches: Any) -> Any:
            import time
            from pathlib import Path

            Path(own).touch()
            while not Path(other).exists():
                time.sleep(0.1)
            yield from batches

        return meet

    began = [str(followed.folder / f"began-{place}") for place in range(2)]
    queries = []
    for own, other in (began, reversed(began)):
        stream = followed.spark.readStream.schema("a int, b string").parquet(str(followed.folder / "source"))
        rows = stream.coalesce(1).mapInArrow(meeting(own, other), "a int, b string")
        writer = rows.writeStream.format("hive_acid").option("metastore", followed.hive.address)
        queries.append(writer.trigger(availableNow=True).start("hive:db.t"))
    for query in queries:
        query.awaitTermination()
    assert followed.numbers == [0, 0, 1, 1, 2, 2]
    assert not {TxnState.OPEN, TxnState.ABORTED}.intersection(followed.states)
    assert not followed.hive.locks


def test_an_epoch_whose_keeper_cannot_be_noted_leaves_no_transaction(tmp_path: Path) -> None:
    with FakeHive(4, remembers=True) as hive:
        writable(hive, tmp_path / "t")
        schema = pa.schema({"a": pa.int32(), "b": pa.string()})
        request = WriteRequest("hive:db.t", hive.address, schema, False, {}, 5.0, os.getpid())
        with pytest.raises(Exception, match="No such file"):
            HiveAcidStreamWriter(request, tmp_path / "none" / "note").__getstate__()
        assert [txn.state for txn in hive.txns.values()] == [TxnState.ABORTED]


@pytest.mark.sampled(2)
def test_what_cannot_be_written_is_told_in_words_of_acidctl(
    followed: Followed, capfd: pytest.CaptureFixture[str]
) -> None:
    for mode, options, words in (
        ("complete", {}, "can only add rows"),
        ("append", {"at": "7"}, "no option 'at'"),
        ("append", {"wait": "soon"}, "option wait cannot be"),
    ):
        with pytest.raises(Exception, match=words) as raised:
            followed.follow(f"checkpoint of {words}", mode, **options)
        assert isinstance(explain(raised.value), UsageProblem)
    followed.hive.tables["db", "t"] = changed_type(followed.hive, "uniontype<int,string>")
    with pytest.raises(Exception, match="union") as raised:
        followed.follow()
    assert explain(raised.value)
    assert "open_txns" not in followed.hive.calls
    capfd.readouterr()


def wait_for(condition: Callable[[], object]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    pytest.fail("it did not come about")
