"""Loads with a key, judged by Hive 3.1.3 and 4.0.1: killed at each step and run again, their rows are there once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.paths import PYTHONPATH
from support.servers.hive_server import HiveServer

pytestmark = [pytest.mark.server, pytest.mark.timeout(900), pytest.mark.in_turn("real_hive")]

LOADING = """
import os, signal, sys
from acidctl.cli.main import main
from acidctl.metastore.client import Metastore
from acidctl.metastore.txn.transaction import LockedTransaction
from acidctl.writing import once
from acidctl.writing.places import Places
from acidctl.writing.transaction import WriteTransaction

step, *words = sys.argv[1:]

def die_after(owner, name):
    real = getattr(owner, name)
    def dying(*given, **more):
        real(*given, **more)
        os.kill(os.getpid(), signal.SIGKILL)
    setattr(owner, name, dying)

for ledger in (once._ParameterLedger, once._IntentLedger):
    where = {
        "record": (ledger, "prepare"), "lock": (WriteTransaction, "_begin"), "intent": (ledger, "intend"),
        "all directories": (WriteTransaction, "check"), "commit": (LockedTransaction, "commit"),
        "settled": (ledger, "settle"), "ended": (WriteTransaction, "commit"),
    }
    if step in where:
        die_after(*where[step])
main(words)
"""
STEPS = ("record", "lock", "all directories", "intent", "commit", "settled", "ended")
FINAL = ("intent", "commit", "settled", "ended")
"""After these steps Hive 3 has everything that the commit needs; Hive 4 from the second on."""


def test_a_killed_load_is_made_once_by_the_next_run(real_hive: HiveServer, tmp_path: Path) -> None:
    name = "loaded_lines"
    real_hive.sql(
        f"create table {name} (id int, name string) partitioned by (p int) stored as orc"
        " tblproperties('transactional'='true')"
    )
    expected: list[list[str]] = []
    for number, step in enumerate(STEPS):
        file = tmp_path / f"{number}.jsonl"
        file.write_text("".join(f'{{"id": {number}, "name": "{step}", "p": {part}}}\n' for part in (1, 2)))
        words = ["insert", f"hive:default.{name}", str(file), "--once", f"day {number}", "--yes"]
        assert run(real_hive, words, step) == -signal.SIGKILL, step
        is_final = step in FINAL[real_hive.version - 3 :]
        new = [[str(number), step, part] for part in ("1", "2")]
        if real_hive.version == 4 or step not in FINAL:
            left = sorted(expected + new * is_final)
            assert rows(real_hive, name) == left, step
            assert real_hive.sql(f"select count(*) from {name}") == [[str(len(left))]], step
            end_transactions(real_hive)
        expected = sorted([*expected, *new])
        for _ in range(2):
            assert run(real_hive, words) == 0
            assert rows(real_hive, name) == expected, step
        assert real_hive.sql(f"select count(*) from {name}") == [[str(len(expected))]], step
    for thread in ("Initiator", "Worker", "Cleaner"):
        real_hive.round(thread)
    real_hive.sql(f"alter table {name} partition (p=1) compact 'major'")
    for thread in ("Worker", "Cleaner"):
        real_hive.round(thread)
    for number in range(len(STEPS)):
        words = [
            "insert",
            f"hive:default.{name}",
            str(tmp_path / f"{number}.jsonl"),
            "--once",
            f"day {number}",
            "--yes",
        ]
        assert run(real_hive, words) == 0
    assert rows(real_hive, name) == expected
    assert real_hive.sql(f"select count(*) from {name}") == [[str(len(expected))]]
    real_hive.sql(f"drop table {name}")


def run(hive: HiveServer, words: list[str], step: str = "") -> int:
    """Run a line in a process of its own, which is killed after a step; its status."""
    done = subprocess.run(
        [sys.executable, "-c", LOADING, step, *words, "--metastore", hive.metastore],
        env={**os.environ, "PYTHONPATH": PYTHONPATH},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode > 0:
        pytest.fail(done.stderr)
    return done.returncode


def rows(hive: HiveServer, name: str) -> list[list[str]]:
    return sorted(hive.sql(f"select id, name, p from {name}"))


def end_transactions(hive: HiveServer) -> None:
    """Abort what is open, as the house keeper does it after the time-out."""
    for row in hive.sql("show transactions")[1:]:
        if row[1] == "OPEN":
            hive.end_transaction(int(row[0]), commit=False)


def test_a_stream_that_is_killed_goes_on_and_is_compacted_beside(real_hive: HiveServer) -> None:
    name = "loaded_stream"
    real_hive.sql(f"create table {name} (id int, name string) stored as orc tblproperties('transactional'='true')")
    for until in (6, 14):
        with streaming(real_hive, name) as process:  # each time the producer begins again
            for number in range(until):
                give(process, f'{{"id": {number}, "name": "x", "n": {number}}}\n')
                wait_for(real_hive, name, number + 1)
            process.kill()
        end_transactions(real_hive)
    directory = real_hive.warehouse / name
    assert len(list(directory.glob("delta_*"))) == 14, "a transaction for each interval"
    for _ in range(10):  # entries of other tables may come first in Hive's queue
        for thread in ("Initiator", "Worker", "Cleaner"):
            real_hive.round(thread)
        if (left := len([path for path in directory.iterdir() if path.name.startswith(("delta_", "base_"))])) <= 2:
            break
    assert left <= 2
    with streaming(real_hive, name) as process:
        give(process, "".join(f'{{"id": {number}, "name": "x", "n": {number}}}\n' for number in range(16)))
        process.stdin.close()
        assert process.wait(120) == 0
    found = sorted(int(row[0]) for row in real_hive.sql(f"select id from {name}"))
    assert found == list(range(16))
    assert real_hive.sql(f"select count(*), min(id), max(id) from {name}") == [["16", "0", "15"]]
    real_hive.sql(f"drop table {name}")


@contextmanager
def streaming(hive: HiveServer, name: str) -> Iterator[subprocess.Popen[str]]:
    """The command with a pipe to it; killed at the end if it still runs."""
    words = ["stream", f"hive:default.{name}", "--every", "1s", "--offset-key", "n", "--metastore", hive.metastore]
    process = subprocess.Popen(
        [sys.executable, "-m", "acidctl", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": PYTHONPATH},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(60)


def give(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdin
    process.stdin.write(text)
    process.stdin.flush()


def wait_for(hive: HiveServer, name: str, count: int) -> None:
    """Wait until Hive reads this number of rows, by no job, as counting would need one."""
    for _ in range(120):
        if len(hive.sql(f"select id from {name}")) >= count:
            return
        time.sleep(0.5)
    pytest.fail("the lines did not come")
