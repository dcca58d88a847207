"""What the owner of a warehouse wants of some tables, by patterns of names; the most specific is heard first."""

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
    """What is wanted of a table; None where nothing is said.

    Attributes:
        exclude: it is left alone: neither compacted, nor cleaned, nor purged.
        kind: the compaction that is done when one is due, whatever the thresholds choose.
        min_deltas: a compaction is due from so many deltas on.
        max_ratio: a major one is due when the deltas have more than so much of the base's bytes.
        older_than: seconds that what is obsolete stays.
        purge_older_than: seconds that trash and backups of repairs are kept.
        priority: those with a higher one come first; 0 where nothing is said.
    """

    exclude: bool | None = None
    kind: CompactionKind | None = None
    min_deltas: int | None = None
    max_ratio: float | None = None
    older_than: float | None = None
    purge_older_than: float | None = None
    priority: int | None = None

    def __post_init__(self) -> None:
        """Names are taken for the values that they are of.

        Raises:
            UsageProblem: a value that cannot be meant.
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
        """Return this policy, with the values of another one where this one has none."""
        said = {field.name: value for field in fields(self) if (value := getattr(self, field.name)) is not None}
        return replace(other, **said)


class Policies:
    """Policies by patterns of names: ``sales.orders``, ``sales.*``, ``*.tmp_?``.

    A table takes each value from the most specific pattern that says it: the one with most characters that are no
    wildcards; of two the one with fewer wildcards, and then the one that comes first in the alphabet.
    """

    def __init__(self, by_pattern: Mapping[str, TablePolicy] | None = None, usual: TablePolicy | None = None) -> None:
        self._usual = usual or TablePolicy()
        lowered = {pattern.lower(): policy for pattern, policy in (by_pattern or {}).items()}
        self._ordered = [(pattern, lowered[pattern]) for pattern in sorted(lowered, key=specificity)]
        self.of = lru_cache(1024)(self._of)  # of all partitions of a table it is the same

    def by_default(self, usual: TablePolicy) -> Policies:
        """Return these policies, with one for the tables that none of them matches."""
        return Policies(dict(self._ordered), usual)

    def excluding(self, table: str) -> str:
        """Return the pattern that leaves a table out; empty where none does."""
        saying = ((pattern, one.exclude) for pattern, one in self._matching(table) if one.exclude is not None)
        pattern, excludes = next(saying, ("", False))
        return pattern if excludes else ""

    @property
    def patterns(self) -> tuple[str, ...]:
        """The most specific first."""
        return tuple(pattern for pattern, _ in self._ordered)

    def _of(self, table: str) -> tuple[TablePolicy, tuple[str, ...]]:
        """Return what is wanted of a table, and the patterns that match it, the most specific first.

        Args:
            table: ``db.table``, or its name where the path shows no database.
        """
        found = self._usual
        matching = self._matching(table)
        for _, one in reversed(matching):
            found = one.over(found)
        return found, tuple(pattern for pattern, _ in matching)

    def _matching(self, table: str) -> list[tuple[str, TablePolicy]]:
        return [(pattern, one) for pattern, one in self._ordered if fnmatch.fnmatchcase(table.lower(), pattern)]


def specificity(pattern: str) -> tuple[int, int, str]:
    """Return a key that sorts the most specific pattern first."""
    wild = sum(character in _WILD for character in pattern)
    return wild - len(pattern), wild, pattern


def require_pattern(pattern: str) -> None:
    """Raises UsageProblem for what no name of a table can match."""
    database, dot, table = pattern.partition(".")
    form = 'write the name as the metastore or the path has it, "sales.orders", with * where several are meant'
    if "/" in pattern or ":" in pattern:
        raise UsageProblem(f"{pattern!r} is no pattern of names of tables", "that is a path", form)
    if not database or (dot and not table) or "." in table or not pattern.strip():
        raise UsageProblem(f"{pattern!r} is no pattern of names of tables", "", form)
