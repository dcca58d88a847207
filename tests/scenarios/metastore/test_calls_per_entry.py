"""What an entry of the queue costs a metastore: a worker and a cleaner ask for each what they must, and no more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.files.acid_files import insert, write_acid
from support.metastore.fake_hive import FakeHive

from acidctl.compaction.local_engine import LocalEngine
from acidctl.metastore.client import Metastore
from acidctl.metastore.settings import find_settings
from acidctl.verbs.hive.cleaner import CleanedEntry, Cleaner
from acidctl.verbs.hive.options import CleanerOptions, WorkerOptions
from acidctl.verbs.hive.service import Tables
from acidctl.verbs.hive.worker import Worked, Worker

COUNT = 12


class Days:
    """``s.t``: partitions with three inserts each, all of which stand in the queue."""

    def __init__(self, fake: FakeHive, root: Path) -> None:
        self.fake, self.root = fake, root
        fake.table("s", "t", f"file:{root}", keys=("day",))
        ids = fake.write_ids.setdefault("s.t", [])
        for _ in range(3):
            txn = fake.begin()
            ids.append(txn)
            fake.end(txn)
        for day in range(COUNT):
            name = f"day={day:02d}%3A"
            fake.partition("s", "t", name)
            for number in (1, 2, 3):
                write_acid(
                    root / name / f"delta_{number:07d}_{number:07d}_0000" / "bucket_00000", insert(number, 0, (day,))
                )
            fake.entry("s", "t", "initiated", name)
        settings = find_settings({"uris": fake.address}, {})
        assert settings
        self.metastore = Metastore(settings)

    def work(self) -> Counter[str]:
        """The calls of a worker that does all of it."""
        found: list[Worked] = []
        self.fake.calls.clear()
        work = WorkerOptions(once=True)
        Worker(
            self.metastore, work, lambda until, told: LocalEngine(1, until, told), found.append, print, job="acidctl"
        ).run()
        assert [one.result for one in found] == ["compacted"] * COUNT
        for one in self.fake.queue:
            self.fake.set_entry(one.id or 0, committed=int((self.fake.now - 60) * 1000))
        return Counter(self.fake.calls)

    def clean(self) -> tuple[Counter[str], list[CleanedEntry]]:
        """The calls of a cleaner, and what became of the entries."""
        found: list[CleanedEntry] = []
        self.fake.calls.clear()
        Cleaner(
            self.metastore, CleanerOptions(older_than=0, unsafe_retention=True), Tables(), found.append, lambda _: None
        ).once()
        return Counter(self.fake.calls), found


@pytest.fixture
def days(tmp_path: Path) -> Iterator[Days]:
    with FakeHive(4) as fake:
        yield Days(fake, tmp_path / "t")


def test_a_worker_asks_nothing_twice_that_it_knows(days: Days) -> None:
    calls = days.work()
    assert {name: round(count / COUNT) for name, count in calls.items() if count >= COUNT} == {
        "find_next_compact2": 1,
        "get_table_req": 3,  # whose it is, before the lock, and after it
        "get_partitions_by_names": 1,
        "open_txns": 1,
        "lock": 1,
        "add_write_ids_to_min_history": 1,
        "set_hadoop_jobid": 1,
        "get_open_txns_req": 1,
        "get_database": 1,
        "get_valid_write_ids": 1,
        "update_compactor_state": 1,
        "heartbeat": 1,
        "show_compact": 2,  # before a result is named, and before it is handed on
        "mark_compacted": 1,
        "commit_txn": 1,
    }
    assert sum(calls.values()) < 20 * COUNT


def test_a_cleaner_asks_of_many_at_once_and_of_each_what_must_be_so_at_the_end(days: Days) -> None:
    days.work()
    calls, found = days.clean()
    assert [one.marked for one in found] == [True] * COUNT
    assert {name: round(count / COUNT) for name, count in calls.items() if count >= COUNT} == {
        "get_table_req": 2,  # before it removes, and before it marks
        "show_compact": 1,
        "mark_cleaned": 1,
    }
    assert sum(calls.values()) < 4 * COUNT + 20


def test_partitions_that_are_asked_for_together_keep_what_their_owners_wish(days: Days) -> None:
    days.work()
    parts = days.fake.partitions["s", "t"]
    for day in (3, 7):
        name = f"day={day:02d}%3A"
        parts[name] = replace(parts[name], parameters={"no_cleanup": "true"})
    del parts["day=05%3A"]
    _, found = days.clean()
    said = {one.location.rpartition("=")[2]: [why.code.value for why in one.reasons] for one in found if one.reasons}
    assert said == {"03%3A": ["no-cleanup"], "07%3A": ["no-cleanup"], "05%3A": ["refused"]}
    assert sum(one.marked for one in found) == COUNT - 3
    kept = {path.parent.parent.name for path in days.root.glob("day=*/delta_*/bucket_00000")}
    assert kept == {"day=03%3A", "day=05%3A", "day=07%3A"}


def test_a_table_that_is_made_anew_between_two_entries_is_not_touched(days: Days) -> None:
    """The second batch of answers is a moment old."""
    days.work()
    renewed: list[str] = []

    def renew() -> None:
        if not renewed:
            table = days.fake.tables["s", "t"]
            days.fake.tables["s", "t"] = replace(table, created=table.created + 5)
            renewed.append("now")

    days.fake.before["mark_cleaned"] = renew
    _, found = days.clean()
    assert sum(one.marked for one in found) == 1
    left = [one for one in found if not one.marked]
    assert all("it was dropped and created again meanwhile" in one.reason for one in left)
    assert {one.result for one in left} == {"postponed"}
    assert len(list(days.root.glob("day=*/delta_*/bucket_00000"))) == 3 * (COUNT - 1)


def test_a_cleaning_of_many_partitions_asks_once_whether_their_table_is_the_same(days: Days, acidctl: Any) -> None:
    days.work()
    days.fake.calls.clear()
    asked = (
        "clean",
        "--dry-run",
        "--older-than=0",
        "--unsafe-retention",
        f"--metastore={days.fake.address}",
        "-o",
        "json",
    )
    ran = acidctl(*asked, "hive:s.t")
    assert [len(one["removals"]) for one in ran.json()] == [3] * COUNT
    calls = Counter(days.fake.calls)
    assert max(calls.values()) < COUNT, calls

    def renew() -> None:
        table = days.fake.tables["s", "t"]
        days.fake.tables["s", "t"] = replace(table, created=table.created + 5)

    days.fake.before["show_locks"] = renew
    ran = acidctl(*asked, "hive:s.t")
    assert ran.status
    assert {one.get("removals") and len(one["removals"]) for one in ran.json()} == {None}
    assert ran.err.count("it was dropped and created again meanwhile") == COUNT
