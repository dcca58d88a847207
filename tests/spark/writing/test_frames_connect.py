"""A session of Spark Connect writes tables as a classic one does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.metastore.fake_hive import FakeHive
from support.metastore.writable import rows_of, writable
from support.paths import PYTHONPATH

from acidctl.metastore.interface import TxnState

status = pytest.importorskip("grpc_status", reason="the packages of pyspark[connect] are not installed")
pytestmark = [pytest.mark.spark, pytest.mark.slow]

CLIENT = """
import sys
from pyspark.sql import SparkSession
import acidctl.spark
from acidctl.base.errors import BadDataError

address, folder = sys.argv[1:]
spark = SparkSession.builder.remote("local[2]").getOrCreate()
assert type(spark).__module__.startswith("pyspark.sql.connect")
where = {"metastore": address}

def frame(first, last, b="string(id)"):
    return spark.range(first, last, numPartitions=2).selectExpr("int(id) AS a", f"{b} AS b", "int(id % 2) AS p")

done = acidctl.spark.insert(frame(0, 10), "hive:db.t", **where)
assert (done.inserted, done.partitions) == (10, ("p=0", "p=1")), done
done = acidctl.spark.insert(frame(0, 4).drop("p"), "hive:db.t", partition={"p": "7"}, overwrite=True, **where)
assert done.inserted == 4
assert acidctl.spark.delete(frame(0, 2), "hive:db.t", key=["a", "p"], **where).deleted == 2
assert acidctl.spark.update(frame(2, 4, "'u'"), "hive:db.t", key=["a", "p"], **where).updated == 2
merged = acidctl.spark.merge(frame(9, 11, "'m'"), "hive:db.t", key=["a", "p"], **where)
assert (merged.updated, merged.inserted) == (1, 1)
try:
    acidctl.spark.insert(frame(0, 1, "'xxxxxxxxxxx'"), "hive:db.t", **where)
except BadDataError as error:
    print(error)
else:
    raise AssertionError("a text of 11 letters is too long")

print("written", flush=True)
"""


def test_every_statement(tmp_path: Path) -> None:
    with FakeHive(4, remembers=True) as hive:
        writable(hive, tmp_path / "t", "a int, b varchar(10)", "p int", bucket_columns=("a",), buckets=2)
        line = [sys.executable, "-c", CLIENT, hive.address, str(tmp_path)]
        path = os.pathsep.join([PYTHONPATH, str(Path(status.__file__).parents[1])])
        environ = {**os.environ, "PYTHONPATH": path, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
        done = subprocess.run(line, env=environ, capture_output=True, text=True, timeout=600, check=False)
        assert done.stdout.endswith("written\n"), done.stderr[-3000:]
        expected = {number: str(number) for number in range(4, 9)} | {
            2: "u",
            3: "u",
            9: "m",
            10: "m",
        }
        other = [(number, str(number), 7) for number in range(4)]
        assert rows_of(hive) == sorted([*((a, b, a % 2) for a, b in expected.items()), *other], key=str)
        assert TxnState.OPEN not in [txn.state for txn in hive.txns.values()]
        assert not hive.locks
