"""What is wanted of a table, by patterns: the most specific one that says a thing wins, key by key."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.base.errors import UsageProblem
from acidctl.verbs.policy import Partition, Policies, TablePolicy, end_of_period, require_pattern

NAMES = st.from_regex(r"[ab]{1,3}\.[ab]{1,3}", fullmatch=True)
PATTERNS = st.from_regex(r"[ab*?]{1,3}\.[ab*?]{1,3}|[*]", fullmatch=True)
POLICIES = st.builds(
    TablePolicy,
    exclude=st.none() | st.booleans(),
    kind=st.none() | st.sampled_from(CompactionKind),
    min_deltas=st.none() | st.integers(1, 9),
    older_than=st.none() | st.floats(3600, 1e6),
    priority=st.none() | st.integers(-3, 3),
)


def matches(pattern: str, table: str) -> bool:
    return re.fullmatch(pattern.replace(".", r"\.").replace("*", ".*").replace("?", "."), table) is not None


def wanted(by_pattern: dict[str, TablePolicy], table: str, key: str) -> object:
    """The model: of all that say it, the one with most characters that are no wildcards."""
    saying = [
        (sum(c not in "*?" for c in pattern), -sum(c in "*?" for c in pattern), [-ord(c) for c in pattern], policy)
        for pattern, policy in by_pattern.items()
        if matches(pattern, table) and getattr(policy, key) is not None
    ]
    return getattr(max(saying, key=lambda one: one[:3])[3], key) if saying else None


@given(st.dictionaries(PATTERNS, POLICIES, max_size=6), NAMES)
def test_each_key_is_of_the_most_specific_pattern_that_says_it(by_pattern: dict[str, TablePolicy], table: str) -> None:
    found, patterns = Policies(by_pattern).of(table)
    assert {one.name: getattr(found, one.name) for one in fields(TablePolicy)} == {
        one.name: wanted(by_pattern, table, one.name) for one in fields(TablePolicy)
    }
    assert set(patterns) == {pattern for pattern in by_pattern if matches(pattern, table)}
    assert bool(Policies(by_pattern).excluding(table)) == bool(found.exclude)


def test_names_are_compared_as_hive_does_and_defaults_come_last() -> None:
    policies = Policies({"Sales.*": TablePolicy(min_deltas=4)}).by_default(TablePolicy(min_deltas=9, older_than=7200))
    assert policies.of("sales.ORDERS") == (TablePolicy(min_deltas=4, older_than=7200), ("sales.*",))
    assert policies.of("orders")[0].min_deltas == 9
    assert policies.patterns == ("sales.*",)


@pytest.mark.parametrize(
    "said", [{"older_than": 60}, {"min_deltas": 0}, {"max_ratio": -1}, {"purge_older_than": float("nan")}]
)
def test_what_cannot_be_meant_is_refused(said: dict[str, float]) -> None:
    with pytest.raises(UsageProblem):
        TablePolicy(**said)  # type: ignore[arg-type]


@pytest.mark.parametrize("pattern", ["/warehouse/sales.db", "hive:sales.*", "a.b.c", "sales.", ".x", "", " "])
def test_what_no_table_is_called_is_no_pattern(pattern: str) -> None:
    with pytest.raises(UsageProblem, match="not a pattern"):
        require_pattern(pattern)


DAY = 86400.0
NOW = 1_795_305_600.0  # 2026-11-22 00:00 UTC


@pytest.mark.parametrize(
    ("partition", "days"),
    [
        ((("dt", "2026-11-20"),), 1),
        ((("dt", "2026-11-20 13:00:00"), ("hour", "13")), 1),
        ((("region", "7"), ("dt", "20261120")), 1),
        ((("month", "2026-10"),), 21),
        ((("Year", "2026"), ("month", "9"), ("day", "30")), 52),
        ((("year", "2026"), ("month", "10")), 21),
        ((("year", "2025"),), 325),
        ((("dt", "2025-12"),), 325),
        ((("dt", "2026-11-31"),), None),
        ((("id", "202611201"),), None),
        ((("id", "202610"),), None),
        ((("year", "9999"),), None),
        ((("part", "2000-01-A7"),), None),
        ((("part", "1234-99"), ("dt", "2026-11-20-13")), 1),
        ((), None),
    ],
)
def test_a_partition_is_as_old_as_the_end_of_its_period(partition: Partition, days: int | None) -> None:
    end = end_of_period(partition)
    assert (None if end is None else (NOW - end) / DAY) == days


def test_a_policy_may_be_for_old_or_young_partitions() -> None:
    policies = Policies(
        {
            "sales.orders": TablePolicy(min_deltas=4),
            "sales.*/older-than=30D": TablePolicy(kind=CompactionKind.MAJOR),
            "sales.orders/younger-than=2d": TablePolicy(exclude=True),
        },
        now=NOW,
    ).by_default(TablePolicy(min_deltas=9))
    old, new, middle = (("dt", "2026-10-01"),), (("dt", "2026-11-22"),), (("dt", "2026-11-18"),)
    assert policies.of("sales.orders", old)[0].kind is CompactionKind.MAJOR
    assert [policies.excluding("sales.orders", one) for one in (old, new, middle, ())] == [
        "", "sales.orders/younger-than=2d", "", "",
    ]  # fmt: skip
    assert policies.of("sales.orders", middle) == (TablePolicy(min_deltas=4), ("sales.orders",))
    assert policies.of("sales.orders", (("k", "1"),))[0] == TablePolicy(min_deltas=4)


@pytest.mark.parametrize("pattern", ["sales.*/older-than=soon", "sales.*/age=3d", "sales.*/dt=1", "/older-than=3d"])
def test_a_wrong_age_is_refused(pattern: str) -> None:
    with pytest.raises(UsageProblem, match="is not a pattern of names of tables"):
        require_pattern(pattern)
