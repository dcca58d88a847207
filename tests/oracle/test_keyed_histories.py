"""Partitioned tables with NULLs and repeated ids that Hive and acidctl write in turn: both read the rows of a model.

They are run by hand. Many of them, ten tables each:

    export ACIDCTL_KEYED_HISTORIES=40 ACIDCTL_KEYED_TABLES=10 ACIDCTL_KEYED_SEED=1000
    python -m pytest -m server tests/oracle/test_keyed_histories.py
"""

from __future__ import annotations

import os

import pytest
from support.histories.keyed import KeyedHistory
from support.servers.hive_server import HiveServer

COUNT = int(os.environ.get("ACIDCTL_KEYED_HISTORIES", "1"))
TABLES = int(os.environ.get("ACIDCTL_KEYED_TABLES", "4"))
FIRST = int(os.environ.get("ACIDCTL_KEYED_SEED", "1"))

pytestmark = [pytest.mark.server, pytest.mark.timeout(900), pytest.mark.by_hand]


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_awkward_keys_and_sources_are_read_alike_by_both(real_hive: HiveServer, seed: int) -> None:
    KeyedHistory(real_hive, seed, TABLES).live(6)
