"""The process that holds a transaction while others write the rows."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.metastore.fake_hive import FakeHive
from support.metastore.writable import rows_of, writable
from support.paths import PYTHONPATH

import acidctl
from acidctl.base.errors import ConflictError, UsageProblem
from acidctl.metastore.interface import LockState, TxnState
from acidctl.metastore.txn.transaction import UnknownOutcome
from acidctl.spark.writing.keeper import Kept, WriteRequest, has_ended
from acidctl.spark.writing.share import Attempt, write_share
from acidctl.writing.once import Once

ROWS = pa.table({"a": pa.array([1, 2], pa.int32()), "b": ["x", "y"]})


@pytest.fixture
def hive(tmp_path: Path) -> Iterator[FakeHive]:
    with FakeHive(4, config={"metastore.txn.timeout": "2s"}, remembers=True) as made:
        writable(made, tmp_path)
        yield made


@pytest.fixture
def driver() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def begun(hive: FakeHive, driver: int | None = None, **more: Any) -> Kept:
    kept: Kept = pickle.loads(pickle.dumps(Kept.begin(request(hive, driver, **more))))
    return kept


def request(hive: FakeHive, driver: int | None = None, **more: Any) -> WriteRequest:
    given = {"table": "hive:db.t", "metastore": hive.address, "schema": ROWS.schema, "overwrite": False}
    given |= {"storage": {}, "wait": 5.0, "driver": driver or os.getpid()}
    return WriteRequest(**{**given, **more})


def written(kept: Kept) -> Attempt:
    return write_share(pickle.loads(kept.task), 0, ROWS.to_batches())


def wait_for(condition: Callable[[], object]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail("it did not come about")


def open_ones(hive: FakeHive) -> list[int]:
    return [txn.id for txn in hive.txns.values() if txn.state == TxnState.OPEN]


def keepers() -> list[int]:
    """Return the processes of keepers that this one has started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == os.getpid() and b"acidctl.spark.writing.keeper" in words and not has_ended(int(folder.name)):
            found.append(int(folder.name))
    return found


def test_rows_appear_with_the_commit(hive: FakeHive) -> None:
    kept = begun(hive)
    attempt = written(kept)
    beats = hive.calls.count("heartbeat")
    wait_for(lambda: hive.calls.count("heartbeat") > beats)
    done = kept.commit([attempt])
    assert (done.inserted, done.files) == (2, 1)
    assert rows_of(hive) == [(1, "x"), (2, "y")]
    wait_for(lambda: not keepers())
    with pytest.raises(ConflictError, match="the transaction is lost"):
        kept.commit([attempt])
    kept.abort()
    assert len(rows_of(hive)) == 2


def test_an_insert_and_the_epochs_of_a_query_are_logged(hive: FakeHive, tmp_path: Path) -> None:
    for once in (None, Once("query", 0), Once("query", 1), Once("query", 1)):
        kept = begun(hive)
        kept.commit([written(kept)], once)
    epochs, insert = acidctl.Location(tmp_path).log()
    assert (insert.verb, insert.facts["inserted"], insert.facts["engine"]) == ("insert", 2, "spark")
    assert (epochs.verb, epochs.run, epochs.facts["transactions"]) == ("stream", "query", 2), "one was passed over"
    assert (epochs.facts["inserted"], epochs.facts["minWriteId"], epochs.facts["maxWriteId"]) == (4, 2, 3)


def test_two_at_once(hive: FakeHive) -> None:
    first, second = begun(hive), begun(hive)
    attempts = [written(first), written(second)]
    with pytest.raises(ConflictError, match="is being written to"):
        begun(hive, overwrite=True, wait=0.5)
    assert second.commit([attempts[1]]).write_id == 2
    assert first.commit([attempts[0]]).write_id == 1
    assert len(rows_of(hive)) == 4


def test_an_abort_removes_all_files(hive: FakeHive, tmp_path: Path) -> None:
    kept = begun(hive, overwrite=True)
    written(kept)
    assert hive.locks
    kept.abort()
    assert not open_ones(hive)
    assert not hive.locks
    assert not list(tmp_path.iterdir())
    wait_for(lambda: not keepers())


def test_the_end_of_the_driver_aborts(hive: FakeHive, driver: subprocess.Popen[bytes], tmp_path: Path) -> None:
    kept = begun(hive, driver.pid)
    written(kept)
    assert open_ones(hive)
    driver.kill()  # and nobody asks for its status yet
    wait_for(lambda: not open_ones(hive))
    wait_for(lambda: not keepers())
    assert not list(tmp_path.iterdir())


BEGIN = "import pickle, sys; from acidctl.spark.writing.keeper import Kept; Kept.begin(pickle.load(sys.stdin.buffer))"


def test_a_query_that_is_killed_while_it_waits_for_a_lock_leaves_no_transaction(hive: FakeHive, tmp_path: Path) -> None:
    holder = begun(hive, overwrite=True)
    line, environ = [sys.executable, "-c", BEGIN], {**os.environ, "PYTHONPATH": PYTHONPATH}
    with subprocess.Popen(line, stdin=subprocess.PIPE, env=environ) as query:
        assert query.stdin
        query.stdin.write(pickle.dumps(request(hive, wait=60.0)))
        query.stdin.close()
        wait_for(lambda: len(open_ones(hive)) == 2)
        query.kill()
    holder.abort()
    hive.locks = [replace(lock, state=LockState.ACQUIRED) for lock in hive.locks]
    wait_for(lambda: not open_ones(hive))  # though this process, its driver, goes on
    wait_for(lambda: not list(tmp_path.iterdir()))


def test_a_killed_keeper_commits_nothing(hive: FakeHive, tmp_path: Path) -> None:
    kept = begun(hive)
    attempt = written(kept)
    (keeper,) = keepers()
    os.kill(keeper, signal.SIGKILL)
    wait_for(lambda: not keepers())
    with pytest.raises((ConflictError, UnknownOutcome)):  # its socket may outlive it for a moment
        kept.commit([attempt])
    kept.abort()
    assert not list(tmp_path.glob("delta*"))


def test_a_lost_transaction_is_told_at_the_commit(hive: FakeHive, tmp_path: Path) -> None:
    kept = begun(hive)
    attempt = written(kept)
    hive.end(open_ones(hive)[0], commit=False)
    with pytest.raises(ConflictError):
        kept.commit([attempt])
    assert not list(tmp_path.iterdir())


def test_what_is_refused_opens_no_transaction(hive: FakeHive) -> None:
    with pytest.raises(UsageProblem, match="no column c"):
        begun(hive, schema=pa.schema({"c": pa.int32()}))
    assert "open_txns" not in hive.calls
    wait_for(lambda: not keepers())


def test_a_folder_of_a_long_name(hive: FakeHive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path.parent / ("x" * 90)
    long.mkdir()
    monkeypatch.setenv("TMPDIR", str(long))
    kept = begun(hive)
    assert kept.commit([written(kept)]).inserted == 2
