"""What is wanted of a table, by patterns: the most specific one that says a thing wins, key by key."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.base.errors import UsageProblem
from acidctl.verbs.policy import Policies, TablePolicy, require_pattern

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
