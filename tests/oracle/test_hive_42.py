"""acidctl beside a whole Hive 4.2.1 with its metastore, where it differs from 4.0.1."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.command_line import Result
from support.engines.hive_compactor import READY, clean_by_hive, compact_by_hive, compactions, names
from support.engines.hive_histories import History
from support.engines.random_history import RandomHistory
from support.servers.hive_server import HiveServer

pytestmark = [
    pytest.mark.server,
    pytest.mark.timeout(900),
    pytest.mark.parametrize("real_hive", [42], ids=["hive-4.2"], indirect=True),
]

Acidctl = Callable[..., Result]


def test_what_happens_by_chance_is_read_as_it_reads_it(real_hive: HiveServer) -> None:
    RandomHistory(real_hive, 1).live(4)


def test_it_reads_and_cleans_what_acidctl_compacted(real_hive: HiveServer, acidctl: Acidctl) -> None:
    history = History(real_hive, "by_acidctl", 5)
    for number in range(4):
        history.aborted_step() if number == 2 else history.step()
        history.judge()
    before = history.judge()
    line = ("compact", "--major", "--engine", "local", "--metastore", real_hive.metastore)
    done = acidctl(*line, f"hive:default.{history.name}")
    assert done.status == 0, done.err
    assert compactions(real_hive, history.name) == [READY]
    assert history.judge() == before
    clean_by_hive(real_hive, history.name)
    assert [name for name in names(history.path) if not name.startswith("base_")] == []
    history.step()
    before = history.judge()
    assert compact_by_hive(real_hive, history.name, "major") == READY
    clean_by_hive(real_hive, history.name)
    assert history.judge() == before
