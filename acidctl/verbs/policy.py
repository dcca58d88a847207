"""Policies by patterns of tables' names and ages of partitions: the most specific pattern that sets a value decides."""

from __future__ import annotations

import fnmatch
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.base.deadline import duration_seconds
from acidctl.base.errors import UsageProblem
from acidctl.base.nearest import member
from acidctl.cleaning.retention import FLOOR_SECONDS

_WILD = "*?["
_OLDER, _YOUNGER = "older-than", "younger-than"
_DATE = re.compile(r"(\d{4})-(\d{2})(?:-(\d{2})(?:[ T_-]\d.*)?)?|(\d{4})(\d{2})(\d{2})")

Partition = tuple[tuple[str, str], ...]
"""The keys and values of a partition, from the outermost, unescaped."""


@dataclass(frozen=True, slots=True)
class TablePolicy:
    """The policy of a table; None if a value is not set.

    Attributes:
        exclude: leave the table alone: do not compact, clean or purge it.
        kind: the type of compaction if one is due, whatever type the thresholds choose.
        min_deltas: the number of deltas from which a compaction is due.
        max_ratio: a major compaction is due if the deltas have more than this part of the base's bytes.
        older_than: seconds for which obsolete directories stay.
        purge_older_than: seconds for which trash and backups of repairs are kept.
        priority: tables with a higher priority come first; default: 0.
    """

    exclude: bool | None = None
    kind: CompactionKind | None = None
    min_deltas: int | None = None
    max_ratio: float | None = None
    older_than: float | None = None
    purge_older_than: float | None = None
    priority: int | None = None

    def __post_init__(self) -> None:
        """Accept the name of a type of compaction.

        Raises:
            UsageProblem: a value is out of its range.
        """
        if self.kind is not None:
            object.__setattr__(self, "kind", member(CompactionKind, self.kind, "type of compaction"))
        if self.older_than is not None and not self.older_than >= FLOOR_SECONDS:
            raise UsageProblem(
                "a retention below 1h is not safe",
                "queries that began before the compaction may still read what would be removed",
                "give 1h or more",
            )
        for name, least in (("min_deltas", 1), ("max_ratio", 0), ("purge_older_than", 0)):
            value = getattr(self, name)
            if value is not None and not value >= least:  # nor anything that is not a number
                raise UsageProblem(f"{name.replace('_', '-')} cannot be {value}", "", f"give {least} or more")

    def over(self, other: TablePolicy) -> TablePolicy:
        """Return this policy; another policy gives the values that this one does not set."""
        values = {field.name: value for field in fields(self) if (value := getattr(self, field.name)) is not None}
        return replace(other, **values)


class Policies:
    """Policies by patterns of names: ``sales.orders``, ``sales.*``, ``*.tmp_?``.

    ``sales.*/older-than=30d`` and ``sales.*/younger-than=2d`` match only partitions of that age, see
    :func:`end_of_period`.

    A table takes each value from the most specific pattern that sets it: the one with the most characters other than
    wildcards; then the one with fewer wildcards, then one with an age, and then the first one in the alphabet.
    """

    def __init__(
        self,
        by_pattern: Mapping[str, TablePolicy] | None = None,
        usual: TablePolicy | None = None,
        now: float | None = None,
    ) -> None:
        """Make policies.

        Args:
            usual: gives the values that no other policy sets.
            now: the time from which ages are counted, by default the present one, so that ages stay the same in a run.

        Raises:
            UsageProblem: a pattern has a wrong age.
        """
        self._usual = usual or TablePolicy()
        self._now = time.time() if now is None else now
        lowered = {pattern.lower(): policy for pattern, policy in (by_pattern or {}).items()}
        self._ordered = [(pattern, lowered[pattern]) for pattern in sorted(lowered, key=specificity)]
        self._parsed = {pattern: _parsed(pattern) for pattern in lowered}
        self.of = lru_cache(1024)(self._of)  # all partitions of a table have the same, unless ages count

    def by_default(self, usual: TablePolicy) -> Policies:
        """Return these policies, with a policy for the values that none of them sets."""
        return Policies(dict(self._ordered), usual, self._now)

    def excluding(self, table: str, partition: Partition = ()) -> str:
        """Return the pattern that excludes a location; empty if none does."""
        deciding = ((pattern, p.exclude) for pattern, p in self._matching(table, partition) if p.exclude is not None)
        pattern, excludes = next(deciding, ("", False))
        return pattern if excludes else ""

    @property
    def patterns(self) -> tuple[str, ...]:
        """Return the patterns, the most specific first."""
        return tuple(pattern for pattern, _ in self._ordered)

    def _of(self, table: str, partition: Partition = ()) -> tuple[TablePolicy, tuple[str, ...]]:
        """Return the policy of a location, and the patterns that match it, the most specific first.

        Args:
            table: ``db.table``, or only the table's name if its path shows no database.
            partition: the keys and values of the partition.
        """
        policy = self._usual
        matching = self._matching(table, partition)
        for _, other in reversed(matching):
            policy = other.over(policy)
        return policy, tuple(pattern for pattern, _ in matching)

    def _matching(self, table: str, partition: Partition) -> list[tuple[str, TablePolicy]]:
        return [pair for pair in self._ordered if self._is_match(self._parsed[pair[0]], table, partition)]

    def _is_match(self, parsed: _Pattern, table: str, partition: Partition) -> bool:
        if not fnmatch.fnmatchcase(table.lower(), parsed.name):
            return False
        if parsed.seconds is None:
            return True
        end = end_of_period(partition)
        return end is not None and (self._now - end >= parsed.seconds) is parsed.older


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A pattern of names; with `seconds`, only for partitions that are older, or younger."""

    name: str
    seconds: float | None = None
    older: bool = True


def _parsed(pattern: str) -> _Pattern:
    name, slash, age = pattern.partition("/")
    if not slash:
        return _Pattern(name)
    key, _, text = age.partition("=")
    seconds = duration_seconds(text)
    if key not in (_OLDER, _YOUNGER) or seconds is None:
        hint = f"write the age of partitions as {name}/{_OLDER}=30d or {name}/{_YOUNGER}=2d"
        raise UsageProblem(f"{pattern!r} is not a pattern of names of tables", "it is a path, or has a wrong age", hint)
    return _Pattern(name, seconds, key == _OLDER)


def end_of_period(partition: Partition) -> float | None:
    """Return the end of the day, month or year that a partition is for, seconds since the epoch in UTC.

    Args:
        partition: keys and values. The first value that is a date decides (``2026-11-20``, ``20261120``, ``2026-11``,
            also with a time), else the keys ``year``, ``month`` and ``day``.

    Returns:
        None if it is not for any period.
    """
    for _, value in partition:
        if match := _DATE.fullmatch(value):
            end = _end(*match.group(1, 2, 3)) if match[1] else _end(*match.group(4, 5, 6))
            if end is not None:
                return end
    values = {key.lower(): value for key, value in partition}
    if not values.get("year", "").isdecimal():
        return None
    return _end(values["year"], values.get("month"), values.get("day") if "month" in values else None)


def _end(year: str, month: str | None, day: str | None) -> float | None:
    try:
        first = datetime(int(year), int(month or 1), int(day or 1), tzinfo=UTC)
        if day:
            return (first + timedelta(days=1)).timestamp()
        following = first.year * 12 + first.month if month else (first.year + 1) * 12
        return datetime(following // 12, following % 12 + 1, 1, tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        return None


def specificity(pattern: str) -> tuple[int, int, bool, str]:
    """Return a key that sorts the most specific pattern first; of equal names, those with an age come first."""
    name, slash, _ = pattern.partition("/")
    wild = sum(character in _WILD for character in name)
    return wild - len(name), wild, not slash, pattern


def require_pattern(pattern: str) -> None:
    """Raise UsageProblem for a pattern that no name of a table can match."""
    database, dot, table = pattern.partition(".")
    form = 'write the name as the metastore or the path has it, "sales.orders", with * where several are meant'
    _parsed(pattern.lower())
    pattern = pattern.partition("/")[0]
    if ":" in pattern:
        raise UsageProblem(f"{pattern!r} is not a pattern of names of tables", "that is a path", form)
    if not database or (dot and not table) or "." in table or not pattern.strip():
        raise UsageProblem(f"{pattern!r} is not a pattern of names of tables", "", form)
