"""`acidctl status` and the worker's page give Prometheus the state of tables and of Hive's queue."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.metastore.fake_hive import FakeHive
from support.tables import age, make

from acidctl.cli.hive.services import Figures, QueueWatch, serve
from acidctl.cli.report.state_metrics import QUEUE, STATE
from acidctl.metastore.client import Metastore
from acidctl.metastore.settings import find_settings
from acidctl.verbs.hive.service import Counts

Acidctl = Callable[..., Any]
Series = dict[tuple[str, ...], float]
TEN = [f"delta_{n:07d}_{n:07d}_0000" for n in range(1, 11)]


@pytest.fixture
def fake() -> Iterator[FakeHive]:
    with FakeHive(4) as one:
        yield one


def series(text: str) -> Series:
    """Value by name and the values of the labels other than `command`."""
    found: Series = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = {name: value for name, value in sample.labels.items() if name != "command"}
            found[sample.name.removeprefix("acidctl_"), *labels.values()] = sample.value
    return found


def status_of(acidctl: Acidctl, tmp_path: Path, *words: str | Path) -> tuple[Series, Any]:
    """The series, and the object in JSON, of one run."""
    file = tmp_path / "status.prom"
    found = acidctl("status", "-o", "json", "--metrics-file", file, *words)
    return series(file.read_text()), found.json()


def test_the_series_have_the_sums_of_the_screen(acidctl: Acidctl, tmp_path: Path) -> None:
    tree = tmp_path / "sales.db"
    age(make(tree / "old", "base_0000010", *TEN), 48)
    age(make(tree / "young", "base_0000010", *TEN), 12)
    make(tree / "worn", *TEN, "delta_0000011_0000011_0000")
    found, shown = status_of(acidctl, tmp_path, "--assume-committed=0s", tree)
    assert found["state_locations",] == shown["locations"] == 3
    assert found["state_due", "major"] == shown["compaction"]["major"]
    assert found["state_due", "minor"] == shown["compaction"]["minor"]
    assert found["state_due", "major"] + found["state_due", "minor"] == 1
    assert found["state_reclaimable_bytes", "now"] == shown["cleaning"]["freeBytes"] > 0
    assert found["state_reclaimable_bytes", "within-a-day"] == shown["cleaning"]["soonBytes"] > 0
    assert found["state_reclaimable_bytes", "later"] == shown["cleaning"]["laterBytes"] == 0
    assert sum(value for name, value in found.items() if name[0] == "state_bytes") == shown["bytes"]
    assert {name[1]: value for name, value in found.items() if name[0] == "state_trouble"} == dict.fromkeys(
        ("failed", "unfinished", "refused", "disagreeing"), 0
    )
    assert not [name for name in found if name[0].startswith(("queue", "transactions", "blockers"))]
    assert found["last_success_timestamp_seconds",] > 0


def test_what_is_held_back_has_its_reason_and_its_age(acidctl: Acidctl, fake: FakeHive, tmp_path: Path) -> None:
    table = make(tmp_path / "t", "base_0000010", *TEN)
    age(table, 72)
    age(table, 48, "base_0000010")
    fake.table("s", "t", str(table))
    fake.write_ids["s.t"] = [100] * 10
    txn = fake.begin(ago=3 * 86400)
    fake.lock("s", "t", txn=txn, ago=3 * 86400)
    fake.begin_many(2, aborted=True)
    fake.entry("s", "t", "ready for cleaning", next_txn=txn + 1, txn=2, committed=50)
    fake.entry("s", "t", "initiated", enqueued=7000)
    fake.entry("s", "t", "initiated", enqueued=9000)
    fake.entry("other", "t", "initiated", enqueued=90000)
    found, shown = status_of(acidctl, tmp_path, "--metastore", fake.address, "hive:s.*")
    (kept,) = shown["cleaning"]["keptBack"]
    assert found["state_held_back_bytes", kept["code"]] == kept["bytes"] > 0
    assert found["state_held_back_age_seconds", kept["code"]] == pytest.approx(48 * 3600, abs=60), "since the base"
    assert {state: found["queue_entries", state] for state in ("initiated", "working", "ready for cleaning")} == {
        "initiated": 2, "working": 0, "ready for cleaning": 1,
    }  # fmt: skip
    assert found["queue_age_seconds", "initiated"] == pytest.approx(9000, abs=60)
    assert found["queue_age_seconds", "working"] == 0
    assert found["queue_age_seconds", "ready for cleaning"] == pytest.approx(50, abs=60)
    assert (found["transactions", "open"], found["transactions", "aborted"]) == (1, 2)
    assert (found["blockers",], shown["blocked"]["count"]) == (1, 1)
    assert found["oldest_blocker_age_seconds",] == pytest.approx(3 * 86400, abs=60)


def test_files_newer_than_the_metastore_and_failures_are_trouble(
    acidctl: Acidctl, fake: FakeHive, tmp_path: Path
) -> None:
    fake.table("s", "t", str(make(tmp_path / "t", "base_0000010", *TEN)))
    fake.table("s", "gone", str(tmp_path / "gone"))
    fake.write_ids |= {"s.t": [1], "s.gone": [1]}
    found, _ = status_of(acidctl, tmp_path, "--metastore", fake.address, "hive:s.t", "hive:s.gone")
    assert found["state_trouble", "disagreeing"] == 1
    assert found["failures",] == found["state_trouble", "failed"] == 1
    assert found["exit_status",] != 0


def test_labels_and_names_are_those_of_a_list(acidctl: Acidctl, fake: FakeHive, tmp_path: Path) -> None:
    """A warehouse of any size has the same number of series."""
    for name in ("a", "b"):
        fake.table("s", name, str(make(tmp_path / name, "base_0000010", *TEN)))
        fake.write_ids[f"s.{name}"] = [100] * 10
    first, _ = status_of(acidctl, tmp_path, "--metastore", fake.address, "hive:s.a")
    both, _ = status_of(acidctl, tmp_path, "--metastore", fake.address, "hive:s.*")
    elsewhere = ("locations_looked_at",)
    assert {name for name in first if name[:1] != elsewhere} == {name for name in both if name[:1] != elsewhere}
    assert all(re.fullmatch(r"acidctl_[a-z_]+", name) for name in STATE)


def test_the_page_of_a_worker_has_the_queue_without_its_own_figures_waiting_for_it(
    fake: FakeHive, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unexpected(*_: object) -> None:
        raise RuntimeError

    fake.table("s", "t", "/t")
    fake.entry("s", "t", "initiated", enqueued=600)
    settings = find_settings({"uris": fake.address}, {})
    assert settings
    watch = QueueWatch(Metastore(settings))

    def page(address: str) -> Series:
        return series(urllib.request.urlopen(f"http://{address}/metrics", timeout=10).read().decode())

    def queue(found: Series) -> set[str]:
        return {name for (name, *_) in found} & {name.removeprefix("acidctl_") for name in QUEUE}

    with serve("0", Figures("worker", Counts(checked=5.0), watch)) as address:
        watch.look()
        found = page(address)
        assert found["queue_entries", "initiated"] == 1
        assert found["queue_age_seconds", "initiated"] == pytest.approx(600, abs=60)
        assert queue(found) == {name.removeprefix("acidctl_") for name in QUEUE}
        with monkeypatch.context() as patch, pytest.raises(RuntimeError):
            patch.setattr("acidctl.hive.blocking.find_held_back_or_stuck", unexpected)
            watch.look()
        assert queue(page(address)) == set(), "nobody looks again after an unexpected error"
        watch.look()
        assert queue(page(address))
        fake.fault("show_compact", "failed", 9)
        watch.look()
        found = page(address)
        assert queue(found) == set(), "old figures would lie"
        assert found["worker_last_look_timestamp_seconds",] == 5.0
