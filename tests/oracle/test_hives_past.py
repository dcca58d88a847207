"""What happened to tables of Hive 3.1.3 and 4.0.1: `history`, `diff`, `blame`, `cat --at` against Hive's own SELECTs.

Hive is asked for its rows after each step; what acidctl says of any time is compared with what was noted down then.
More random histories than two for each, which takes some ten seconds each:

    ACIDCTL_HIVE_HISTORIES=100 ACIDCTL_HIVE_SEED=1000 python -m pytest tests/oracle/test_hives_past.py
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest
from support.compacting import run_compaction
from support.engines.hive_compactor import READY, clean_by_hive, compact_by_hive, has_copied_deletes, names
from support.engines.hive_past import Past
from support.engines.random_history import RandomHistory
from support.engines.real_hive import HiveTable, same
from support.servers.hive_server import HiveError, HiveServer
from support.tables import json_rows, snapshot_of
from support.validating import check

from acidctl import Location
from acidctl.acid.compaction_kind import CompactionKind
from acidctl.base.errors import AcidctlError
from acidctl.rows.scan.scan import Scan
from acidctl.validation.findings import Depth

COUNT = int(os.environ.get("ACIDCTL_HIVE_HISTORIES", "1"))
FIRST = int(os.environ.get("ACIDCTL_HIVE_SEED", "3"))

pytestmark = [pytest.mark.server, pytest.mark.timeout(900), pytest.mark.in_turn("real_hive")]


class Told:
    """A table whose past is judged after each step."""

    def __init__(self, hive: HiveServer, name: str, extra: str = "") -> None:
        self.table = HiveTable(hive, name, {"id": "int", "name": "string"}, extra, by_lists=True)
        self.past = Past(self.table, self.table.path, "true")
        self._chance = random.Random(name)

    def run(self, statement: str, *, overwritten: bool = False) -> None:
        """A statement, after which all is told right."""
        self.table.run(statement)
        self.look(overwritten=overwritten)

    def look(self, *, overwritten: bool = False) -> None:
        """Nothing was changed, or by one statement, and all is told right."""
        self.past.look(self.table.rows(), overwritten=overwritten)
        self.past.judge(lambda found: [*found[-2:], *self._chance.sample(found[:-2], min(len(found[:-2]), 3))])

    def compact(self, kind: CompactionKind) -> None:
        """By acidctl."""
        assert run_compaction(self.table.path, kind, self.table.write_ids)
        self.look()

    def compact_by_hive(self, kind: str) -> None:
        """By Hive's own worker."""
        assert compact_by_hive(self.table.hive, self.table.name, kind) == READY
        self.look()

    def clean(self) -> None:
        """By acidctl: what was before goes."""
        lists = {"snapshot": f"{self.table.write_ids}\ntxns={self.table.hive.transactions()}"}
        assert Location(self.table.path, **lists).clean(0, unsafe_retention=True).removed
        self.past.cleaned = True
        self.look()

    def clean_by_hive(self) -> None:
        """By Hive's cleaner."""
        clean_by_hive(self.table.hive, self.table.name)
        self.past.cleaned = True
        self.look()


def filled(hive: HiveServer, name: str) -> Told:
    """Six write ids: rows inserted, updated, deleted, and merged."""
    told = Told(hive, name)
    told.run(f"insert into {name} values " + ", ".join(f"({i}, 'n{i}')" for i in range(12)))
    told.run(f"insert into {name} values (20, 'x'), (21, null)")
    told.run(f"update {name} set name = 'u' where id % 4 = 0")
    told.run(f"delete from {name} where id % 5 = 1")
    told.run(
        f"merge into {name} as t using (select id + 1 as id, name from {name} where id % 3 = 0) as s on t.id = s.id"
        " when matched and s.id % 2 = 0 then delete when matched then update set name = 'm'"
        " when not matched then insert values (s.id, 'new')"
    )
    return told


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_what_happened_by_chance_is_told_after_each_step(real_hive: HiveServer, seed: int) -> None:
    RandomHistory(real_hive, 10_000 + seed).live(6, look_back=True)


@pytest.mark.parametrize("by_query", ["false", "true"], ids=["by MapReduce", "by query"])
def test_before_and_after_compactions_and_cleanings_of_both(real_hive: HiveServer, by_query: str) -> None:
    if real_hive.version == 3 and by_query == "true":
        pytest.skip("Hive 3 compacts by MapReduce only")
    real_hive.set("hive.compactor.crud.query.based", by_query)
    told = filled(real_hive, f"told_{by_query}")
    name = told.table.name
    told.compact_by_hive("minor")
    told.clean_by_hive()
    assert not told.past.destroyed, "a minor compaction hides nothing"
    told.run(f"delete from {name} where id = 20")
    told.run(f"insert into {name} values (30, 'y')")
    told.compact(CompactionKind.MINOR)
    told.clean()
    told.compact(CompactionKind.MAJOR)
    assert not told.past.destroyed
    told.clean()
    assert told.past.destroyed
    told.run(f"update {name} set name = 'v' where id > 8")
    told.run(f"delete from {name} where id = 21")
    told.compact_by_hive("major")
    told.clean_by_hive()
    told.run(f"insert overwrite table {name} select id, 'o' from {name} where id % 2 = 0", overwritten=True)
    told.run(f"delete from {name} where id = 2")


@pytest.mark.parametrize("kind", list(CompactionKind))
def test_hive_3_cannot_read_what_its_minor_compaction_made_of_a_table_without_buckets(
    real_hive: HiveServer, kind: CompactionKind
) -> None:
    """It writes each delete event into every file, so that two of its readers meet the same one.

    Its own compactions then fail; a major one by acidctl mends it. Hive 4 writes each event once.
    """
    real_hive.set("hive.compactor.crud.query.based", "false")
    name = f"copied_{kind.value}"
    told = Told(real_hive, name)
    told.run(f"insert into {name} values " + ", ".join(f"({i}, 'n{i}')" for i in range(12)))
    real_hive.set("mapreduce.job.reduces", "3")
    told.run(f"insert into {name} select * from (select id + 100 as id, name from {name}) s distribute by id")
    real_hive.set("mapreduce.job.reduces", "-1")
    told.run(f"update {name} set name = 'u' where id % 4 = 0")
    told.run(f"delete from {name} where id % 5 = 0")
    path, before = told.table.path, told.table.judge()
    assert compact_by_hive(real_hive, name, "minor") == READY
    clean_by_hive(real_hive, name)
    found = {one.partition("_v")[0] for one in names(path)}
    assert found == {"delta_0000001_0000004", "delete_delta_0000001_0000004"}
    assert len(list(path.glob("delete_delta_*/bucket_*"))) == 3
    assert has_copied_deletes(path) == (real_hive.version == 3)
    if real_hive.version > 3:
        same(told.table.judge(), before)
        return
    with pytest.raises(HiveError, match="Two readers for"):
        told.table.rows()
    real_hive.set("hive.fetch.task.conversion", "none")  # a job, in batches
    same(told.table.rows(), before)
    same(told.table.ours(), before)
    told.past.judge()
    (report,) = check(path, depth=Depth.DEEP, write_ids=str(told.table.write_ids))
    assert {one.rule for one in report.findings if one.severity != "info"} == {"V21", "V34"}
    told.table.run(f"delete from {name} where id = 3")
    assert compact_by_hive(real_hive, name, "major") == "failed"
    real_hive.reset()
    if kind is CompactionKind.MINOR:  # which leaves every event in its file, so that Hive goes on to fail
        assert run_compaction(path, kind, told.table.write_ids)
    told.compact(CompactionKind.MAJOR)
    told.table.judge()
    told.run(f"update {name} set name = 'v' where id < 9")
    told.compact_by_hive("major")
    told.table.judge()


def test_hive_3_puts_the_minor_compaction_of_a_stream_in_its_place(real_hives: Callable[[int], HiveServer]) -> None:
    """Whoever listed the location before finds another file there, or none, which nobody takes for his rows."""
    hive = real_hives(3)
    table = HiveTable(hive, "in_its_place", {"id": "int", "name": "string"}, by_lists=True)
    table.run("stream open in_its_place 2", "stream begin", "stream write 1,a", "stream commit")
    table.run("stream begin", "stream write 2,b", "stream commit", "stream close")
    rows = table.judge()
    delta = table.path / "delta_0000001_0000002"
    before, seen = delta.stat().st_ino, Scan(snapshot_of(table.path, table.write_ids))
    assert compact_by_hive(hive, table.name, "minor") == READY
    assert names(table.path) == {delta.name, f"delete_{delta.name}"}
    assert delta.stat().st_ino != before
    with pytest.raises(AcidctlError, match="was replaced while the table was read"):
        json_rows(seen)
    clean_by_hive(hive, table.name)
    same(table.judge(), rows)
