"""Policies for tables, by patterns of their names: the most specific pattern that sets a value decides."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.base.errors import UsageProblem
from acidctl.base.nearest import member
from acidctl.cleaning.retention import FLOOR_SECONDS

_WILD = "*?["


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

    A table takes each value from the most specific pattern that sets it: the one with the most characters other than
    wildcards; then the one with fewer wildcards, and then the first one in the alphabet.
    """

    def __init__(self, by_pattern: Mapping[str, TablePolicy] | None = None, usual: TablePolicy | None = None) -> None:
        self._usual = usual or TablePolicy()
        lowered = {pattern.lower(): policy for pattern, policy in (by_pattern or {}).items()}
        self._ordered = [(pattern, lowered[pattern]) for pattern in sorted(lowered, key=specificity)]
        self.of = lru_cache(1024)(self._of)  # all partitions of a table have the same

    def by_default(self, usual: TablePolicy) -> Policies:
        """Return these policies, with a policy for the values that none of them sets."""
        return Policies(dict(self._ordered), usual)

    def excluding(self, table: str) -> str:
        """Return the pattern that excludes a table; empty if none does."""
        deciding = ((pattern, p.exclude) for pattern, p in self._matching(table) if p.exclude is not None)
        pattern, excludes = next(deciding, ("", False))
        return pattern if excludes else ""

    @property
    def patterns(self) -> tuple[str, ...]:
        """Return the patterns, the most specific first."""
        return tuple(pattern for pattern, _ in self._ordered)

    def _of(self, table: str) -> tuple[TablePolicy, tuple[str, ...]]:
        """Return the policy of a table, and the patterns that match it, the most specific first.

        Args:
            table: ``db.table``, or only the table's name if its path shows no database.
        """
        policy = self._usual
        matching = self._matching(table)
        for _, other in reversed(matching):
            policy = other.over(policy)
        return policy, tuple(pattern for pattern, _ in matching)

    def _matching(self, table: str) -> list[tuple[str, TablePolicy]]:
        return [pair for pair in self._ordered if fnmatch.fnmatchcase(table.lower(), pair[0])]


def specificity(pattern: str) -> tuple[int, int, str]:
    """Return a key that sorts the most specific pattern first."""
    wild = sum(character in _WILD for character in pattern)
    return wild - len(pattern), wild, pattern


def require_pattern(pattern: str) -> None:
    """Raise UsageProblem for a pattern that no name of a table can match."""
    database, dot, table = pattern.partition(".")
    form = 'write the name as the metastore or the path has it, "sales.orders", with * where several are meant'
    if "/" in pattern or ":" in pattern:
        raise UsageProblem(f"{pattern!r} is not a pattern of names of tables", "that is a path", form)
    if not database or (dot and not table) or "." in table or not pattern.strip():
        raise UsageProblem(f"{pattern!r} is not a pattern of names of tables", "", form)
