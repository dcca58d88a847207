"""Tables that Hive and acidctl write in turn, each statement by either of them: both read the rows of a model.

Many more of them, ten tables each:

    export ACIDCTL_SHARED_HISTORIES=40 ACIDCTL_SHARED_TABLES=10 ACIDCTL_SHARED_SEED=1000
    python -m pytest -m server tests/oracle/test_shared_histories.py
"""

from __future__ import annotations

import os

import pytest
from support.histories.shared import SharedHistory
from support.servers.hive_server import HiveServer

COUNT = int(os.environ.get("ACIDCTL_SHARED_HISTORIES", "1"))
TABLES = int(os.environ.get("ACIDCTL_SHARED_TABLES", "5"))
FIRST = int(os.environ.get("ACIDCTL_SHARED_SEED", "1"))

pytestmark = [pytest.mark.server, pytest.mark.timeout(900), pytest.mark.in_turn("real_hive")]


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_statements_of_either_are_read_alike_by_both(real_hive: HiveServer, seed: int) -> None:
    SharedHistory(real_hive, seed, TABLES).live(6)
