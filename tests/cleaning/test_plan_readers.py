"""Who holds a lock of Hive's on a location keeps what he may still read."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from support.tables import age, make, snapshot_of

from acidctl.acid.reasons import Code
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.cleaning.plan import CleaningPlan, plan_cleaning
from acidctl.cleaning.retention import Policy
from acidctl.location.snapshot import Reader
from acidctl.wording import text_of

HOUR = 3600.0


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Three deltas, one of them aborted, and the base that replaced the others 40 hours ago."""
    made = make(tmp_path / "t", "delta_0000001_0000001", "delta_0000002_0000002", "delta_0000003_0000003")
    age(made, 50)
    make(made, "base_0000002")
    age(made, 40, "base_0000002")
    return made


def plan(table: Path, *readers: Reader, policy: Policy | None = None) -> CleaningPlan:
    seen = snapshot_of(table, ValidWriteIds(3, aborted=(3,)), ValidTxns())
    return plan_cleaning(replace(seen, readers=readers), policy or Policy(24 * HOUR))


OBSOLETE = ["delta_0000001_0000001", "delta_0000002_0000002"]


def test_a_lock_from_before_the_base_keeps_what_the_base_replaced(table: Path) -> None:
    assert sorted(plan(table).names) == [*OBSOLETE, "delta_0000003_0000003"]
    held = plan(table, Reader(812, 7, "etl@host7", time.time() - 45 * HOUR, "hive_q1"))
    assert held.names == ("delta_0000003_0000003",), "no reader ever saw the aborted one"
    kept = dict(held.kept_back)
    assert sorted(kept) == OBSOLETE
    assert {one.code for one in kept.values()} == {Code.READER_HOLDS}
    said = text_of(kept[OBSOLETE[0]])
    assert "etl@host7" in said
    assert "812" in said
    assert "hive_q1" in said


def test_a_lock_from_after_the_base_keeps_nothing(table: Path) -> None:
    assert sorted(plan(table, Reader(812, 7, "etl@host7", time.time() - 30 * HOUR)).names) == [
        *OBSOLETE,
        "delta_0000003_0000003",
    ]


def test_a_lock_of_which_nobody_knows_since_when_keeps_all(table: Path) -> None:
    assert plan(table, Reader(0, 7, "etl@host7", None)).names == ("delta_0000003_0000003",)


def test_a_lock_holds_where_retention_is_waived(table: Path) -> None:
    held = plan(table, Reader(0, 7, "etl@host7", time.time() - 45 * HOUR), policy=Policy(0))
    assert held.names == ("delta_0000003_0000003",)


def test_a_lock_is_named_before_the_retention_which_alone_would_not_free_it(table: Path) -> None:
    found = plan(table, Reader(812, 7, "etl@host7", time.time() - 45 * HOUR), policy=Policy(60 * HOUR))
    assert {name: one.code for name, one in found.kept_back} == dict.fromkeys(OBSOLETE, Code.READER_HOLDS)
    assert [one.name for one in found.waiting] == ["delta_0000003_0000003"]
    after = plan(table, policy=Policy(60 * HOUR))
    assert [one.name for one in after.waiting] == [*OBSOLETE, "delta_0000003_0000003"], (
        "then it is the retention's turn"
    )


@pytest.mark.parametrize(("began", "goes"), [(45, False), (30, True)])
def test_a_transaction_that_began_before_a_commit_keeps_what_it_replaced(
    tmp_path: Path, began: float, goes: bool
) -> None:
    """Its number is above that of the compaction's, which it saw open."""
    made = make(tmp_path / "t", "delta_0000001_0000001", "delta_0000002_0000002")
    age(made, 50)
    make(made, "base_0000002_v0000810")
    age(made, 40, "base_0000002_v0000810")
    seen = snapshot_of(made, ValidWriteIds(2), ValidTxns(900, 812, (812,)))
    held = plan_cleaning(
        replace(seen, readers=(Reader(812, 0, "etl@host7", time.time() - began * HOUR),)), Policy(24 * HOUR)
    )
    assert sorted(held.names) == (OBSOLETE if goes else [])
    kept = dict(held.kept_back)
    assert [one.code for one in kept.values()] == ([] if goes else [Code.READER_HOLDS] * 2)
    assert goes or "etl@host7 has had transaction 812 open" in text_of(kept[OBSOLETE[0]])


@pytest.mark.parametrize(("began", "goes"), [(45, False), (30, True)])
def test_a_compaction_of_hive_3_keeps_what_became_obsolete_since_it_began(
    table: Path, began: float, goes: bool
) -> None:
    hives = Reader(0, 0, "host-3", time.time() - began * HOUR, compaction="ready for cleaning", number=9)
    found = plan(table, hives, policy=Policy(0))
    assert sorted(found.names) == ([*OBSOLETE, "delta_0000003_0000003"] if goes else ["delta_0000003_0000003"])
    kept = dict(found.kept_back)
    assert [one.code for one in kept.values()] == ([] if goes else [Code.HIVE_COMPACTS] * 2)
    assert goes or "the compaction 9 of Hive's queue" in text_of(kept[OBSOLETE[0]])


def test_an_open_transaction_without_a_lock_here_keeps_nothing_by_itself(table: Path) -> None:
    """It keeps back results of transactions that came after it, which is the rule of the cleaner's lists."""
    assert len(plan(table, Reader(812, 0, "etl@host7", time.time() - 45 * HOUR)).names) == 3


def test_the_oldest_open_transaction_is_named_with_its_user(tmp_path: Path) -> None:
    made = make(tmp_path / "t", "delta_0000001_0000001", "base_0000001_v0000030")
    age(made, 50)
    seen = snapshot_of(made, ValidWriteIds(1), ValidTxns(40, 20, (20,)))
    reader = Reader(20, 0, "etl@host7", 1795570147.0, "hive_q1")
    kept = dict(plan_cleaning(replace(seen, readers=(reader,)), Policy(24 * HOUR)).kept_back)
    said = text_of(kept["delta_0000001_0000001"])
    assert kept["delta_0000001_0000001"].code is Code.READER_HOLDS
    assert said.startswith("transaction 20 of etl@host7 (open since 2026-")
    assert "hive_q1" in said
