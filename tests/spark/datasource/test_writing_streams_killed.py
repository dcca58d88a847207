"""A stream of ``format("hive_acid")`` whose driver is killed at any call goes on: each row is there once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.metastore.fake_hive import FakeHive
from support.metastore.writable import rows_of, writable
from support.paths import PYTHONPATH

from acidctl.metastore.interface import TxnState

pytest.importorskip("pyspark.sql.datasource", reason="PySpark older than 4.0")
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

DRIVER = """
import sys
from pathlib import Path
from support.spark_session import build_session
from acidctl.spark.datasource import register

spark, (address, folder, count) = build_session(), sys.argv[1:]
register(spark)
for number in range(int(count)):
    if not Path(f"{folder}/source/{number}/_SUCCESS").exists():
        rows = spark.range(number * 4, number * 4 + 4, numPartitions=2).selectExpr("int(id) AS a", "'x' AS b")
        rows.write.mode("overwrite").parquet(f"{folder}/source/{number}")
stream = spark.readStream.schema("a int, b string").option("maxFilesPerTrigger", 2).parquet(f"{folder}/source/*")
options = {"metastore": address, "checkpointLocation": f"{folder}/checkpoint"}
writer = stream.writeStream.format("hive_acid").options(**options).trigger(availableNow=True)
writer.start("hive:db.t").awaitTermination()
"""

KILLS = (
    (3, "commit_txn", False, "lives"),
    *(
        pytest.param(*kill, marks=pytest.mark.by_hand)  # each starts three Javas
        for kill in (
            (3, "lock", True, "lives"),
            (3, "heartbeat", True, "dies"),
            (3, "commit_txn", False, "dies"),
            (3, "commit_txn", True, "dies"),
            (4, "open_txns", True, "lives"),
            (4, "create_table", True, "dies"),
            (4, "commit_txn", False, "lives"),
            (4, "commit_txn", True, "dies"),
        )
    ),
)


@pytest.mark.parametrize(("version", "call", "is_done", "keeper"), KILLS)
def test_a_killed_driver_writes_no_epoch_twice(
    tmp_path: Path, version: int, call: str, is_done: bool, keeper: str
) -> None:
    with FakeHive(version, remembers=True, config={"metastore.txn.timeout": "5s"}) as hive:
        writable(hive, tmp_path / "t")
        mark = str(tmp_path)
        run(hive, tmp_path, 1)
        assert len(rows_of(hive)) == 4
        struck = threading.Event()

        def strike(name: str, now_done: bool) -> None:
            if (name, now_done) == (call, is_done) and not struck.is_set():
                struck.set()
                for process in processes(mark, with_keepers=keeper == "dies"):
                    os.kill(process, signal.SIGKILL)

        hive.at_call = strike
        status = run(hive, tmp_path, 3, fails=True)
        hive.at_call = lambda *_: None
        assert (struck.is_set(), status) == (True, -signal.SIGKILL)
        wait_for(lambda: not processes(mark, with_keepers=True))
        if keeper == "lives":
            assert TxnState.OPEN not in [txn.state for txn in hive.txns.values()]
        elif not (version == 3 and call == "commit_txn"):  # else the next run commits it, before the house keeper comes
            for txn in [txn for txn in hive.txns.values() if txn.state == TxnState.OPEN]:
                hive.end(txn.id, commit=False)
        run(hive, tmp_path, 3)
        assert [row[0] for row in sorted(rows_of(hive))] == list(range(12))
        assert not hive.locks


def run(hive: FakeHive, folder: Path, count: int, *, fails: bool = False) -> int:
    """Follow so many folders of the source in a driver of its own, and return its status."""
    line = [sys.executable, "-c", DRIVER, hive.address, str(folder), str(count)]
    environ = {**os.environ, "PYTHONPATH": PYTHONPATH, "ACIDCTL_TEST_FOLDER": str(folder)}
    done = subprocess.run(line, env=environ, stderr=subprocess.PIPE, text=True, timeout=400, check=False)
    assert fails or done.returncode == 0, done.stderr[-3000:]
    return done.returncode


def processes(mark: str, *, with_keepers: bool) -> list[int]:
    """Return the processes of a driver: Python, Java, workers, and those that hold transactions."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            is_ours = f"ACIDCTL_TEST_FOLDER={mark}\0".encode() in (folder / "environ").read_bytes() + b"\0"
            is_keeper = b"acidctl.spark.writing.keeper" in (folder / "cmdline").read_bytes()
            is_dead = (folder / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            continue
        if is_ours and not is_dead and (with_keepers or not is_keeper):
            found.append(int(folder.name))
    return found


def wait_for(condition: Callable[[], object]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    pytest.fail("it did not come about")
