"""`acidctl hive tables`: what there is, and what is set for it."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.metastore.fake_hive import FakeHive

from acidctl.metastore.interface import Order

Ask = Callable[..., Any]


@pytest.fixture
def filled(fake: FakeHive) -> FakeHive:
    fake.table("sales", "orders", "hdfs://nn/sales/orders", ["day"], {"NO_AUTO_COMPACTION": "true"})
    fake.partition("sales", "orders", "day=1")
    fake.partition("sales", "orders", "day=2")
    fake.table(
        "sales", "sorted", "hdfs://nn/sales/sorted", (),
        {"compactorthreshold.hive.compactor.delta.num.threshold": "4", "no_cleanup": "true",
         "transactional_properties": "insert_only"},
        buckets=4, bucket_columns=("id",), sort_columns=(Order("id"),),
    )  # fmt: skip
    fake.table("hr", "people", "hdfs://nn/hr/people")
    fake.databases["hr"] = replace(fake.databases["hr"], parameters={"no_auto_compaction": "true"})
    return fake


def test_what_is_set_is_shown(ask: Ask, filled: FakeHive) -> None:
    people, orders, sorted_ = ask(filled, "tables", "-o", "json").json()
    assert (people["database"], people["table"], people["noAutoCompaction"]) == ("hr", "people", True)
    assert (orders["type"], orders["format"], orders["partitionKeys"]) == ("full-acid", "ORC", ["day"])
    assert (orders["partitions"], orders["noAutoCompaction"], orders["owner"]) == (None, True, "hive")
    assert (sorted_["type"], sorted_["buckets"], sorted_["bucketColumns"]) == ("insert-only", 4, ["id"])
    assert (sorted_["sortColumns"], sorted_["noCleanup"]) == (["id"], True)
    assert sorted_["thresholds"] == {"hive.compactor.delta.num.threshold": "4"}
    shown = ask(filled, "tables").out
    assert "no_cleanup; 4 buckets by id; sorted by id; hive.compactor.delta.num.threshold=4" in shown
    assert "get_partition_names" not in filled.calls


def test_partitions_are_counted_when_asked_for(ask: Ask, filled: FakeHive) -> None:
    found = {one["table"]: one["partitions"] for one in ask(filled, "tables", "--partitions", "-o", "jsonl").lines()}
    assert found == {"people": None, "orders": 2, "sorted": None}
    assert filled.calls.count("get_partition_names") == 1
    assert "2 by day" in ask(filled, "tables", "--partitions").out


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["sales.*"], ["orders", "sorted"]),
        (["hive:SALES.o*"], ["orders"]),
        (["*.orders", "sales.*"], ["orders", "sorted"]),
        (["--exclude", "sales.*"], ["people"]),
        (["none.*"], []),
    ],
)
def test_patterns(ask: Ask, filled: FakeHive, words: list[str], names: list[str]) -> None:
    found = ask(filled, "tables", "-o", "csv", *words)
    assert [row["table"] for row in csv.DictReader(found.out.splitlines())] == names
    assert found.status == 0
