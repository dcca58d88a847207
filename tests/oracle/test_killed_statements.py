"""A MERGE of acidctl's that is killed at each of its steps: Hive 3.1.3 and 4.0.1 see old rows or new ones, for good.

Hive's own Initiator, Worker and Cleaner come by, and its next statements, because 3.1.3 once took rows of aborted
transactions for committed ones (HIVE-21052).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from support.paths import PYTHONPATH
from support.servers.hive_server import HiveServer

pytestmark = [pytest.mark.server, pytest.mark.timeout(900), pytest.mark.in_turn("real_hive")]

MERGING = """
import os, signal, sys
import pyarrow as pa
from acidctl.metastore.client import Metastore
from acidctl.metastore.settings import find_settings
from acidctl.metastore.tables import get_table
from acidctl.writing import places
from acidctl.writing.merge import Merge
from acidctl.writing.places import Places
from acidctl.writing.transaction import WriteTransaction

address, table, step, part = sys.argv[1:]

def die_after(owner, name, number=1):
    real, calls = getattr(owner, name), []
    def dying(*given, **more):
        answer = real(*given, **more)
        calls.append(name)
        if len(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer
    setattr(owner, name, dying)

where = {
    "write id": (WriteTransaction, "_allocate"), "lock": (WriteTransaction, "_begin"), "files": (Merge, "stage"),
    "partitions": (Places, "_add_partitions"), "components": (WriteTransaction, "register_partitions"),
    "statistics": (WriteTransaction, "give_up_statistics"), "one directory": (places, "show"),
    "all directories": (WriteTransaction, "check"), "commit": (WriteTransaction, "commit"),
}
if step in where:
    die_after(*where[step])
metastore = Metastore(find_settings({"uris": address}))
rows = pa.table({"id": [1, 2, 50], "name": ["new", "new", "new"], "p": [int(part), 1, 1]})
Merge(metastore, get_table(metastore, "default", table), rows, ["id"]).run()
"""
STEPS = (
    "write id", "lock", "files", "partitions", "components", "statistics", "one directory", "all directories", "commit",
)  # fmt: skip

SOME = STEPS if os.environ.get("ACIDCTL_EVERY_KILL") else ("components", "all directories", "commit")
"""All of them take three minutes; in these the metastore, or the disk, has the most that is not committed."""

Rows = list[tuple[str, ...]]


def test_rows_are_old_or_new_after_a_kill_at_any_step(real_hive: HiveServer) -> None:
    name = "killed_merge"
    real_hive.set("hive.stats.autogather", "true")
    real_hive.sql(
        f"create table {name} (id int, name string) partitioned by (p int) clustered by (id) into 2 buckets"
        " stored as orc tblproperties('transactional'='true')",
        f"insert into {name} partition (p) values (1, 'old', 1), (2, 'old', 1), (3, 'old', 2)",
    )
    for number, step in enumerate((*SOME, "")):
        before, part = rows_of(real_hive, name), str(10 + number)
        new = [*(row for row in before if row[0] not in ("1", "2", "50")), *merged(part)]
        status = merge(real_hive, name, step, part)
        assert status == (-signal.SIGKILL if step else 0), step
        expected = sorted(new) if step in ("commit", "") else before
        assert rows_of(real_hive, name) == expected, step
        for transaction in open_transactions(real_hive):  # as the house keeper does it after the time-out
            real_hive.end_transaction(transaction, commit=False)
        for thread in ("Initiator", "Worker", "Cleaner", "Initiator"):
            real_hive.round(thread)
        assert rows_of(real_hive, name) == expected, step
        real_hive.sql(f"insert into {name} partition (p) values ({100 + number}, 'hive', 1), ({200 + number}, 'h', 2)")
        real_hive.sql(f"update {name} set name = 'up' where id = {100 + number}")
        expected = sorted([*expected, (str(100 + number), "up", "1"), (str(200 + number), "h", "2")])
        assert rows_of(real_hive, name) == expected, step


def merged(part: str) -> Rows:
    return [("1", "new", part), ("2", "new", "1"), ("50", "new", "1")]


def merge(hive: HiveServer, name: str, step: str, part: str) -> int:
    """Merge in a process of its own; its status."""
    done = subprocess.run(
        [sys.executable, "-c", MERGING, hive.metastore, name, step, part],
        env={**os.environ, "PYTHONPATH": PYTHONPATH},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode > 0:
        pytest.fail(done.stderr)
    return done.returncode


def rows_of(hive: HiveServer, name: str) -> Rows:
    """The rows as Hive reads them, by batches and row by row, and counts them."""
    found = []
    for batches in ("true", "false"):
        hive.set("hive.fetch.task.conversion", "none")
        hive.set("hive.vectorized.execution.enabled", batches)
        found.append(sorted(tuple(row) for row in hive.sql(f"select id, name, p from {name}")))
    assert found[0] == found[1]
    assert hive.sql(f"select count(*) from {name}") == [[str(len(found[0]))]]
    return found[0]


def open_transactions(hive: HiveServer) -> list[int]:
    return [int(row[0]) for row in hive.sql("show transactions")[1:] if row[1] == "OPEN"]
