"""A queue of compactions of Hive 4.2.1 that acidctl's workers share with one that compacts Iceberg's tables."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from support.paths import PYTHONPATH
from support.servers.hive_server import HiveServer

from acidctl.metastore import interface, queue
from acidctl.metastore.client import Metastore
from acidctl.metastore.settings import find_settings

pytestmark = [
    pytest.mark.server,
    pytest.mark.timeout(900),
    pytest.mark.parametrize("real_hive", [42], ids=["hive-4.2"], indirect=True),
]

OF_EACH, REAL = 250, 12
DIES = """
import os, signal, sys
from acidctl.hive.queue_entries import worker_id
from acidctl.metastore import queue
from acidctl.metastore.client import Metastore
from acidctl.metastore.settings import find_settings

print(queue.claim(Metastore(find_settings({"uris": sys.argv[1]}, {})), worker_id()).table, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
"""A worker that dies right after its claim."""


def test_no_entry_of_iceberg_fails_or_is_held(real_hive: HiveServer, tmp_path: Path) -> None:
    """Five hundred entries, two workers of acidctl, one of others, and one of acidctl that died after its claim."""
    rows = ", ".join(f"({at}, 'p{at}')" for at in range(REAL))
    real_hive.sql(
        "create table shared_acid (a int) partitioned by (p string) stored as orc"
        " tblproperties ('transactional'='true')",
        *[f"insert into shared_acid partition (p) values {rows}"] * 2,
        # Hive makes no table of Iceberg without Iceberg's jar: acidctl leaves all of other formats alone.
        "create external table shared_iceberg (a int) stored as orc tblproperties ('table_type'='DELTA')",
    )
    settings = find_settings({"uris": real_hive.metastore}, {})
    assert settings
    with closing(Metastore(settings)) as metastore:
        ask_for_all(metastore)
        died = subprocess.run(
            [sys.executable, "-c", DIES, real_hive.metastore],
            env={**os.environ, "PYTHONPATH": PYTHONPATH},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (died.returncode, died.stdout) == (-signal.SIGKILL, "shared_iceberg\n"), died.stderr
        with workers(real_hive.metastore, tmp_path):
            done = compact_icebergs(metastore)
        assert done == {f"p={at}": 1 for at in range(OF_EACH)}, "each once, and all of what was asked for"
        entries = [one for one in queue.find_compactions(metastore) if one.table.startswith("shared_")]
        iceberg = [one for one in entries if one.table == "shared_iceberg"]
        assert {one.state for one in iceberg} == {queue.READY, queue.REFUSED}
        put_back = [one for one in iceberg if one.state == queue.REFUSED]
        assert put_back, "at least that of the worker that died"
        assert max((one.ended or 0) - (one.started or 0) for one in put_back) < 60
        acid = Counter(one.state for one in entries if one.table == "shared_acid")
        assert acid.keys() == {queue.READY, queue.REFUSED}
        assert acid[queue.READY] == REAL
    assert real_hive.sql("select count(*) from shared_acid") == [[str(2 * REAL)]]


def ask_for_all(metastore: Metastore) -> None:
    """The first one is of Iceberg; partitions that are gone are refused, as Hive does."""
    gone = [f"p=gone{at}" for at in range(OF_EACH - REAL)]
    acid = [*(f"p=p{at}" for at in range(REAL)), *gone]
    wishes = [queue.Wish("default", "shared_acid", name, "major") for name in acid]
    kinds = ("major", "smart-optimize")
    wishes += [queue.Wish("default", "shared_iceberg", f"p={at}", kinds[at % 2]) for at in range(1, OF_EACH)]
    random.Random(1).shuffle(wishes)
    for wish in (queue.Wish("default", "shared_iceberg", "p=0", "major"), *wishes):
        assert queue.request_compaction(metastore, wish).accepted


@contextmanager
def workers(address: str, folder: Path) -> Iterator[None]:
    """Two processes of `acidctl hive worker`; they end well when they are told to."""
    line = [sys.executable, "-m", "acidctl", "hive", "worker", "--engine", "local", "--metastore", address]
    with ExitStack() as stack:
        running = []
        for number in range(2):
            log = stack.enter_context((folder / f"worker{number}.log").open("w"))
            running.append(subprocess.Popen(line, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": PYTHONPATH}))
        try:
            yield
        finally:
            for one in running:
                one.terminate()
            for one in running:
                one.wait(120)


def compact_icebergs(metastore: Metastore) -> dict[str, int]:
    """What a worker that knows Iceberg does until the queue is empty; how often it got each partition of Iceberg's.

    It refuses partitions that are gone, as Hive's does, and leaves those that are there to acidctl's workers.
    """
    done: Counter[str] = Counter()
    end = time.monotonic() + 600
    while time.monotonic() < end:
        time.sleep(0.05)  # the others come to their turns
        entry = queue.claim(metastore, "hive-worker")
        if entry and entry.table == "shared_iceberg":
            done[entry.partition or ""] += 1
            metastore.call(interface.MARK_COMPACTED, entry)
        elif entry:
            assert queue.mark_refused(metastore, entry, "not compacted here")
            if "gone" not in (entry.partition or ""):
                wish = queue.Wish("default", entry.table, entry.partition or "", "major")
                assert queue.request_compaction(metastore, wish).accepted
                time.sleep(0.5)
        elif any(queue.find_compactions(metastore, state=state) for state in (queue.INITIATED, queue.WORKING)):
            time.sleep(0.2)
        else:
            return dict(done)
    raise AssertionError(f"the queue does not become empty: {queue.find_compactions(metastore)[:5]}")
