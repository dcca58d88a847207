"""Everything at once, and everything that goes wrong, for a quarter of a minute on a real metastore.

For longer: tests/bench/stress_worker.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.metastore.stress import stress
from support.servers.hdfs_server import ServerUnavailable

pytestmark = [pytest.mark.server, pytest.mark.timeout(600)]


def test_readers_see_their_rows_and_nothing_is_left(tmp_path: Path) -> None:
    try:
        with stress(
            tmp_path, 4711, hives_cleaner=False, hives_worker=False, restarts=False, txn_timeout=10
        ) as everything:
            everything.play(0.25)
            assert not everything.problems
            assert everything.did["reads"]
    except ServerUnavailable as error:
        pytest.skip(f"no Hive 4: {error}")
