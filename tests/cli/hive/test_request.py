"""`acidctl hive request`: compactions that Hive's own workers do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Result
from support.files.acid_files import insert, write_acid
from support.metastore.fake_hive import FakeHive

import acidctl as acidctl_library
from acidctl.base.errors import RefusedError
from acidctl.location import metastore_state

Acidctl = Callable[..., Result]
Ask = Callable[..., Any]


@pytest.fixture
def filled(fake: FakeHive) -> FakeHive:
    fill(fake)
    return fake


def fill(fake: FakeHive) -> None:
    fake.table("s", "t", "file:/t", ["day"])
    for name in ("day=1", "day=2", "day=a%3Ab"):
        fake.partition("s", "t", name)
    fake.table("s", "u", "file:/u")


def test_one_for_each_partition(ask: Ask, filled: FakeHive) -> None:
    found = ask(filled, "request", "--major", "hive:s.*", "-o", "json")
    assert found.status == 0, found.err
    assert [(one["on"], one["result"], one["id"]) for one in found.json()] == [
        ("s.t/day=1", "requested", 1), ("s.t/day=2", "requested", 2), ("s.t/day=a%3Ab", "requested", 3),
        ("s.u", "requested", 4),
    ]  # fmt: skip
    assert [(one.partition, one.type, one.state) for one in filled.queue] == [
        ("day=1", 2, "initiated"), ("day=2", 2, "initiated"), ("day=a%3Ab", 2, "initiated"), (None, 2, "initiated"),
    ]  # fmt: skip


def test_some_partitions(ask: Ask, filled: FakeHive) -> None:
    assert ask(filled, "request", "--minor", "hive:s.t/day=2", "hive:s.t/day=2").status == 0
    assert [(one.partition, one.type) for one in filled.queue] == [("day=2", 1)]
    missing = ask(filled, "request", "--minor", "hive:s.t/day=9")
    assert missing.status == 3


def test_a_dry_run_asks_for_nothing(ask: Ask, filled: FakeHive) -> None:
    found = ask(filled, "request", "--major", "--dry-run", "hive:s.t")
    assert found.out.count("major planned") == 3
    assert not filled.queue
    assert "compact2" not in filled.calls


@pytest.mark.parametrize("state", ["initiated", "working"])
def test_one_that_waits_already_is_refused_with_its_entry(ask: Ask, filled: FakeHive, state: str) -> None:
    there = filled.entry("s", "t", state, "day=1")
    found = ask(filled, "request", "--major", "hive:s.t", "-o", "json")
    assert found.status == 7
    refused, *others = found.json()
    assert (refused["result"], refused["id"], refused["state"]) == ("refused", there, state)
    assert f"compaction {there} of it is {state}" in ask(filled, "request", "--major", "hive:s.t/day=1").out
    assert [one["result"] for one in others] == ["requested"] * 2


@pytest.mark.parametrize(
    "words",
    [
        ["--rebalance"],
        ["--major", "--pool", "p"],
        ["--rebalance", "--buckets", "4"],
        ["--rebalance", "--order-by", "id"],
    ],
)
def test_what_hive_3_cannot_do_is_said(ask: Ask, fake3: FakeHive, words: list[str]) -> None:
    fill(fake3)
    found = ask(fake3, "request", *words, "hive:s.u")
    assert found.status == 2
    assert "that came with Hive 4" in found.err
    assert "compact2" not in fake3.calls


def test_what_hive_4_is_asked_for(ask: Ask, fake4: FakeHive, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(fake4)
    seen: list[Any] = []
    real = fake4._do_compact2
    monkeypatch.setattr(fake4, "_do_compact2", lambda asked: (seen.append(asked), real(asked))[1])
    words = ["--rebalance", "--buckets", "8", "--order-by", "id desc", "--pool", "p", "--property", "compactor.x=1"]
    assert ask(fake4, "request", *words, "hive:s.u").status == 0
    (asked,) = seen
    assert (asked.type, asked.buckets, asked.order_by, asked.pool) == (3, 8, "order by id desc", "p")
    assert dict(asked.properties) == {"compactor.x": "1"}


def test_options_that_do_nothing_are_refused(ask: Ask, filled: FakeHive) -> None:
    assert ask(filled, "request", "hive:s.u").status == 2
    assert ask(filled, "request", "--major", "--buckets", "4", "hive:s.u").status == 2


def test_a_sorted_table_is_warned_of(ask: Ask, fake4: FakeHive) -> None:
    from acidctl.metastore.interface import Order

    fake4.table("s", "z", "file:/z", sort_columns=(Order("id"),))
    assert "is sorted" in ask(fake4, "request", "--major", "hive:s.z").err


def test_what_was_lost_is_not_asked_for_twice(ask: Ask, filled: FakeHive) -> None:
    filled.fault("compact2", "done")
    found = ask(filled, "request", "--major", "hive:s.t")
    assert found.status == 6
    assert "acidctl hive compactions --metastore=" in found.err
    assert len(filled.queue) == 1


def test_one_that_fails_does_not_keep_the_others(ask: Ask, filled: FakeHive) -> None:
    filled.fault("compact2", "failed")
    found = ask(filled, "request", "--major", "hive:s.t", "-o", "json")
    assert found.status == 6
    assert [one["result"] for one in found.json()] == ["failed", "requested", "requested"]


def test_files_newer_than_the_metastore_are_not_asked_for(
    acidctl: Acidctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metastore_state, "_WAIT", 0.01)
    with FakeHive(4) as hive:
        for name, highest in (("older", 3), ("fine", 2)):
            hive.table("d", name, str(tmp_path / name))
            hive.write_ids[f"d.{name}"] = list(hive.begin_many(2))
            write_acid(
                tmp_path / name / f"delta_{highest:07}_{highest:07}_0000" / "bucket_00000", insert(1, 0, (1, "x"))
            )
        hive.table("d", "nowhere", "gs2://nothing/x")
        for more in (["--dry-run"], []):
            done = acidctl("hive", "request", "--major", "-o", "jsonl", *more, "--metastore", hive.address, "d.*")
            found = {one["table"]: one["result"] for one in done.lines()}
            expected = "planned" if more else "requested"
            assert (done.status, found) == (7, {"fine": expected, "nowhere": expected, "older": "refused"})
            assert "nowhere" in done.err or "gs2" in done.err
        assert [entry.table for entry in hive.queue] == ["fine", "nowhere"]
        with pytest.raises(RefusedError):
            acidctl_library.Hive(hive.address).request("d.older")
