"""A compaction as a verb: its deadline limits the metastore, too."""

from __future__ import annotations

import math
import time
from pathlib import Path

from support.made.due import write_deltas
from support.metastore.fake_hive import FakeHive

from acidctl.location.snapshot_resolver import SnapshotResolver, open_warehouse
from acidctl.verbs.compact import compact
from acidctl.verbs.compact_options import CompactOptions
from acidctl.verbs.engine import TaskOptions
from acidctl.verbs.events import Events
from acidctl.verbs.selection import Selection


def test_calls_to_the_metastore_end_with_the_run(tmp_path: Path) -> None:
    with FakeHive(4) as fake:
        fake.table("db", "t", f"file:{write_deltas(tmp_path / 't', 1, 2)}")
        for _ in range(2):
            txn = fake.begin()
            fake.end(txn)
            fake.write_ids.setdefault("db.t", []).append(txn)
        warehouse = open_warehouse(fake.address)
        assert warehouse
        where = Selection(("hive:db.t",), resolver=SnapshotResolver(warehouse=warehouse))
        options = CompactOptions(auto=True, deadline=60, tasks=TaskOptions(engine="local"))
        for outcome in compact(where, options, Events()):
            assert outcome.result == "nothing-to-do"
            assert warehouse.metastore.until.at <= time.monotonic() + 60
        assert warehouse.metastore.until.at == math.inf, "later calls of the same client have no deadline"
