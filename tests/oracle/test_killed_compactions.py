"""A compaction of acidctl's that is killed, and the next one that takes it up, on tables that Hive goes on with.

Hive 3.1.3 and 4.0.1 read the same rows, and change them, between the two and after them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest
from support.command_line import Result
from support.engines.hive_compactor import READY, clean_by_hive, compact_by_hive, names
from support.engines.hive_histories import History, Rows, ours
from support.paths import PYTHONPATH
from support.servers.hive_server import HiveServer

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]

DYING = """
import os, signal, sys
from acidctl.cli.main import main
from acidctl.storage.local.filesystem import LocalFileSystem

kind, when, *line = sys.argv[1:]
real = LocalFileSystem.rename

def rename(fs, source, target, *more):
    shown = os.path.basename(target).startswith(kind)
    if not shown or when == "after":
        real(fs, source, target, *more)
    if shown:
        os.kill(os.getpid(), signal.SIGKILL)

LocalFileSystem.rename = rename
main(line)
"""
"""Dies when it shows a directory whose name begins so, before that or after it."""

MINOR = ("--minor", "--offline")
MOSTLY_LEFT_OUT = pytest.mark.skipif(
    not os.environ.get("ACIDCTL_EVERY_KILL"), reason="half a minute; the minor one shows as much (ACIDCTL_EVERY_KILL=1)"
)


@pytest.mark.parametrize(
    ("real_hive", "kind", "shown", "when"),
    [
        pytest.param(3, ("--major",), "base_", "before", marks=MOSTLY_LEFT_OUT),
        (3, MINOR, "delta_", "before"),
        (4, ("--major",), "base_", "after"),
    ],
    ids=["hive-3.1-major-staged", "hive-3.1-minor-half-shown", "hive-4.0-major-shown"],
    indirect=["real_hive"],
)
def test_what_was_killed_is_taken_up_and_hive_goes_on(
    real_hive: HiveServer, acidctl: Callable[..., Result], kind: tuple[str, ...], shown: str, when: str
) -> None:
    history = History(real_hive, f"killed_{kind[0][2:]}_{when}", 5)
    for number in range(6):
        history.aborted_step() if number == 3 else history.step()
        history.judge()
    before = history.judge()
    line = ("compact", "--engine", "local", *kind, "--metastore", real_hive.metastore, f"hive:default.{history.name}")
    died = subprocess.run(
        [sys.executable, "-c", DYING, shown, when, *line],
        env={**os.environ, "PYTHONPATH": PYTHONPATH},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr
    if kind is not MINOR:  # of which a half is shown: that is why it wants --offline
        assert both(history) == before
        history.run(f"insert into {history.name} values (9001, 'meanwhile', 0.5)")
        before = both(history)
    done = acidctl(*line)
    assert done.status == 0, done.err
    assert history.judge() == before
    assert [name for name in history.path.iterdir() if name.name.startswith("_tmp_")] == []
    still_open = [int(row[0]) for row in real_hive.sql("show transactions")[1:] if row[1] == "OPEN"]
    assert len(still_open) == (real_hive.version == 3)  # without a queue it ends when it was silent for long enough
    for transaction in still_open:
        real_hive.end_transaction(transaction, commit=False)
    for _ in range(2):
        history.step()
        history.judge()
    before = history.judge()
    assert compact_by_hive(real_hive, history.name, "major") == READY
    clean_by_hive(real_hive, history.name)
    assert [name for name in names(history.path) if not name.startswith("base_")] == []
    assert history.judge() == before


def both(history: History) -> Rows:
    """Hive's rows, which are ours."""
    rows = history.rows()
    assert ours(history.path, *history.lists()) == rows
    return rows
