"""``df.write.format("hive_acid")`` and SQL's INSERT INTO a view, in a real Spark session."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.metastore.fake_hive import FakeHive
from support.metastore.writable import rows_of, writable
from support.paths import PYTHONPATH

from acidctl.base.errors import UsageProblem
from acidctl.location.walk import is_log
from acidctl.metastore.interface import TxnState
from acidctl.spark.datasource import explain, register

pytest.importorskip("pyspark.sql.datasource", reason="PySpark older than 4.0")
pytestmark = pytest.mark.spark


@pytest.fixture
def hive(spark: Any) -> Iterator[FakeHive]:
    register(spark)
    with FakeHive(4, remembers=True) as made:
        yield made


def save(hive: FakeHive, rows: Any, mode: str = "append", **options: str) -> None:
    options = {"metastore": hive.address, **options}
    rows.write.format("hive_acid").mode(mode).options(**options).save("hive:db.t")


def frame(spark: Any, count: int) -> Any:
    return spark.range(count, numPartitions=3).selectExpr("int(id) AS a", "concat('n', id) AS b")


def states(hive: FakeHive) -> list[TxnState]:
    return [TxnState(txn.state) for txn in hive.txns.values()]


def test_append_and_overwrite(spark: Any, hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path)
    save(hive, frame(spark, 10))
    assert rows_of(hive) == [(i, f"n{i}") for i in range(10)]
    save(hive, frame(spark, 1), "overwrite")
    assert rows_of(hive) == [(0, "n0")]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith((".", "_tmp")) and not is_log(path.name)]
    assert not [state for state in states(hive) if state != TxnState.COMMITTED]


def test_insert_into_a_view(spark: Any, hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path, keys="p int", buckets=2, bucket_columns=("a",))
    options = f"(path 'hive:db.t', metastore '{hive.address}')"
    save(hive, frame(spark, 4).selectExpr("*", "1 AS p"))
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW written USING hive_acid OPTIONS {options}")
    spark.sql("INSERT INTO written SELECT 7, 'x', 2 UNION ALL SELECT 8, 'y', 1")
    assert rows_of(hive)[-2:] == [(7, "x", 2), (8, "y", 1)]
    assert len(rows_of(hive)) == 6


def test_a_failing_job_leaves_the_table_as_it_was(
    spark: Any, hive: FakeHive, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    writable(hive, tmp_path)
    with pytest.raises(Exception, match="no such luck"):
        save(hive, spark.range(9).selectExpr("int(id) AS a", "if(id = 8, raise_error('no such luck'), 'b') AS b"))
    assert TxnState.OPEN not in states(hive)
    assert not hive.locks
    assert not list(tmp_path.iterdir())
    capfd.readouterr()


def test_errors_are_told_in_words_of_acidctl(
    spark: Any, hive: FakeHive, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    writable(hive, tmp_path)
    for rows, options, words in (
        (spark.range(1), {}, "no column id"),
        (frame(spark, 1), {"at": "7"}, "no option 'at'"),
        (frame(spark, 1), {"wait": "soon"}, "option wait cannot be"),
    ):
        with pytest.raises(Exception, match=words) as raised:
            save(hive, rows, **options)
        assert isinstance(explain(raised.value), UsageProblem)
    assert "open_txns" not in hive.calls
    capfd.readouterr()


DRIVER = """
import sys
from pathlib import Path
from support.spark_session import build_session
from acidctl.spark.datasource import register

spark, (address, mark) = build_session(), sys.argv[1:]
register(spark)

def stuck(batches):
    import time
    yield from batches
    Path(mark).touch()
    time.sleep(600)

rows = spark.range(9).selectExpr("int(id) AS a", "'x' AS b").mapInArrow(stuck, "a int, b string")
rows.write.format("hive_acid").mode("append").option("metastore", address).save("hive:db.t")
"""


@pytest.mark.slow
def test_a_killed_driver_leaves_the_table_as_it_was(hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path / "t")
    line = [sys.executable, "-c", DRIVER, hive.address, str(tmp_path / "mark")]
    environ = {**os.environ, "PYTHONPATH": PYTHONPATH}
    with subprocess.Popen(line, env=environ, stderr=subprocess.DEVNULL, start_new_session=True) as driver:
        wait_for((tmp_path / "mark").exists)
        assert TxnState.OPEN in states(hive)
        assert list((tmp_path / "t").iterdir())
        os.killpg(driver.pid, signal.SIGKILL)  # Python and Java
    wait_for(lambda: TxnState.OPEN not in states(hive))
    wait_for(lambda: not list((tmp_path / "t").iterdir()))


def wait_for(condition: Callable[[], object]) -> None:
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.1)
    pytest.fail("it did not come about")
