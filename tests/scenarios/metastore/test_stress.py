"""Everything at once, and everything that goes wrong, for some seconds on a real metastore.

For longer: tests/bench/stress_worker.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.metastore.stress import stress
from support.servers.hdfs_server import ServerUnavailable

pytestmark = [pytest.mark.server, pytest.mark.timeout(600)]


@pytest.mark.sampled
@pytest.mark.parametrize(("version", "seconds"), [(3, 8), (4, 15)], ids=["hive-3.1", "hive-4.0"])
def test_readers_see_their_rows_and_nothing_is_left(tmp_path: Path, version: int, seconds: float) -> None:
    beside = version == 3  # its own compactor is part of it
    try:
        with stress(
            tmp_path, 4711, version, hives_cleaner=beside, hives_worker=beside, restarts=False, txn_timeout=10
        ) as everything:
            everything.hive_writes = False  # that takes seconds each time
            everything.play(seconds / 60)
            assert not everything.problems
            assert everything.did["reads"]
    except ServerUnavailable as error:
        pytest.skip(f"no Hive {version}: {error}")
