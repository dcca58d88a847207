"""Random histories that Hive 3.1.3 and 4.0.1 judge step by step: SQL, streams, compactions and cleanings of acidctl's.

Many more of them, which takes some ten seconds each:

    ACIDCTL_HIVE_HISTORIES=300 ACIDCTL_HIVE_SEED=1000 python -m pytest tests/oracle/test_real_hive_histories.py
"""

from __future__ import annotations

import os

import pytest
from support.engines.random_history import RandomHistory
from support.servers.hive_server import HiveServer

COUNT = int(os.environ.get("ACIDCTL_HIVE_HISTORIES", "1"))
FIRST = int(os.environ.get("ACIDCTL_HIVE_SEED", "1"))

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_what_happens_by_chance_is_read_as_hive_reads_it(real_hive: HiveServer, seed: int) -> None:
    RandomHistory(real_hive, seed).live(6)
