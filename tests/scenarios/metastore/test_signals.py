"""Ctrl-C and SIGTERM in the middle of a command: no transaction and no lock of ours is left with the metastore."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.files.acid_files import insert, write_acid
from support.metastore.fake_hive import FakeHive
from support.paths import PYTHONPATH

from acidctl.metastore.interface import LockType, TxnState


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeHive]:
    with FakeHive(4) as server:
        location = tmp_path / "sales.db" / "orders"
        write_acid(location / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (1,)))
        server.table("sales", "orders", f"file:{location}")
        server.write_ids["sales.orders"] = [server.begin()]
        server.end(1)
        yield server


def started(fake: FakeHive, *line: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
    command = [sys.executable, "-m", "acidctl", *line, "--metastore", fake.address]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def interrupted(fake: FakeHive, method: str, number: signal.Signals, *line: str, after: str = "") -> tuple[int, str]:
    """A command that gets a signal while the server works on a call; its exit status, and what it says.

    Args:
        after: the call is the first one after this one.
    """
    running: list[subprocess.Popen[str]] = []

    def then() -> None:
        while not running:
            time.sleep(0.01)
        running[0].send_signal(number)
        time.sleep(0.3)

    if after:
        fake.before[after] = lambda: fake.before.update({method: then})
    else:
        fake.before[method] = then
    running.append(started(fake, *line))
    _, said = running[0].communicate(timeout=60)
    return running[0].returncode, said


def left_open(fake: FakeHive) -> list[object]:
    """What is open at the server."""
    return [*(one for one in fake.txns.values() if one.state == TxnState.OPEN), *fake.locks]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("method", "number"),
    [
        ("open_txns", signal.SIGINT),
        ("open_txns", signal.SIGTERM),
        ("lock", signal.SIGTERM),
        ("get_open_txns_req", signal.SIGINT),
        ("get_config_value", signal.SIGINT),
        ("commit_txn", signal.SIGTERM),
    ],
)
def test_a_lock_for_reading_is_let_go(fake: FakeHive, method: str, number: signal.Signals) -> None:
    after = "lock" if method == "get_open_txns_req" else ""  # which is asked at first, too
    status, said = interrupted(fake, method, number, "cat", "--read-lock", "hive:sales.orders", after=after)
    assert not left_open(fake), said
    assert status == (0 if method == "get_config_value" and status == 0 else 130), said
    assert "Traceback" not in said
    assert fake.calls.count("open_txns") <= 1
    assert fake.calls.count("lock") <= 1


def test_who_waits_for_a_lock_leaves_nothing_behind(fake: FakeHive) -> None:
    writer = fake.begin()
    fake.lock("sales", "orders", txn=writer, type=LockType.EXCLUSIVE)
    status, said = interrupted(fake, "check_lock", signal.SIGINT, "cat", "--read-lock", "hive:sales.orders")
    assert status == 130, said
    assert [one.id for one in left_open(fake) if hasattr(one, "id")] == [writer]
    assert [one.txn for one in fake.locks] == [writer]


@pytest.mark.parametrize("method", ["open_txns", "get_open_txns_info"])
def test_the_transaction_that_reads_the_clock_ends(fake: FakeHive, method: str) -> None:
    status, said = interrupted(fake, method, signal.SIGINT, "hive", "housekeep", "--dry-run")
    assert status == 130, said
    assert not left_open(fake)


@pytest.mark.parametrize(
    ("method", "line"),
    [
        ("compact2", ("hive", "request", "--major", "hive:sales.orders")),
        ("abort_txn", ("hive", "abort", "txn", "--yes", "2")),
        ("get_table_req", ("compact", "--major", "--engine", "local", "hive:sales.orders")),
        ("show_locks", ("clean", "--yes", "hive:sales.orders")),
    ],
)
def test_other_commands_end_and_do_nothing_twice(
    fake: FakeHive, method: str, line: tuple[str, ...], tmp_path: Path
) -> None:
    fake.begin()
    before = sorted(tmp_path.rglob("*"))
    status, said = interrupted(fake, method, signal.SIGTERM, *line)
    assert status == 130, said
    assert "interrupted" in said
    assert fake.calls.count(method) == 1
    assert sorted(tmp_path.rglob("*")) == before
