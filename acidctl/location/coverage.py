"""The coverage of a command over many locations: whether it saw all that it should have seen.

A walk reports every directory that it skips, with the reason, and counts the locations found at each named place. It
saw too little if a named place holds no location, or if there are fewer than the last run found at the same places.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from acidctl.base.errors import ExitStatus, NotLookedAtError
from acidctl.location.arguments import is_hive_name
from acidctl.wording import human_count, some_of

_FEW, _LISTED = 3, 20
_LONGEST = 200
_FEWER_BY_NAMES = "if they were dropped on purpose, there is nothing to do: the new number is on record now"
_FEWER_BY_PATHS = "find those that are missing; if they were dropped on purpose, run it once with --accept-fewer"
_NOTHING_HINT = "see whether it is mounted, and whether it is the right place; `acidctl ls` shows what is there"


@dataclass(frozen=True, slots=True)
class Looked:
    """The number of locations that a run found at certain places.

    Attributes:
        where: a name for the places, made by :func:`places_key`.
        by_names: all places are names of a metastore's tables: what is missing was dropped there, so it is reported
            once. For paths that is unknown: it is reported until they are back, or the user accepts it.
    """

    where: str
    locations: int
    by_names: bool = False

    def on_record(self, before: int | None, status: int, *, is_accepted: bool) -> int:
        """Return the number of locations that later runs should find at these places.

        Args:
            before: the number that this run should find; None if none is on record.
            status: the exit status of the run so far.
            is_accepted: whether the user accepts fewer.
        """
        only_fewer = status == ExitStatus.NOT_LOOKED_AT and self.by_names and self.locations > 0
        if is_accepted or only_fewer or status in (0, ExitStatus.NOTHING_TO_DO, ExitStatus.POSTPONED):
            return self.locations
        return max(self.locations, before or 0)


@dataclass(slots=True)
class Coverage:
    """The locations that a run found, and the directories that it skipped.

    Attributes:
        named: the number of locations found at each named place.
        typed: the places as they were typed, if these had patterns: what a pattern matches changes from run to run.
        failed: the named places that could not be walked; the reason was reported.
        passed: a sentence for each directory that was skipped: ``/w/_t is hidden``.
        strangers: the number of found locations that were left alone, not known to be transactional.
    """

    named: dict[str, int] = field(default_factory=dict)
    typed: tuple[str, ...] = ()
    failed: set[str] = field(default_factory=set)
    passed: list[str] = field(default_factory=list)
    strangers: int = 0

    @property
    def locations(self) -> int:
        """Return the number of locations looked at: they hold something or a metastore has them, without strangers."""
        return sum(self.named.values()) - self.strangers

    @property
    def looked(self) -> Looked:
        """Return the number of locations with a name for the places."""
        return Looked(places_key(self.typed or list(self.named)), self.locations, all(map(is_hive_name, self.named)))

    @property
    def nothing_at(self) -> list[str]:
        """Return the named places without any location."""
        return [place for place, count in self.named.items() if not count and place not in self.failed]

    def begin(self, place: str) -> None:
        """Record that the walk of a named place begins."""
        self.named.setdefault(place, 0)

    def met(self, place: str) -> None:
        """Count one more location at a named place."""
        self.named[place] += 1

    def skip(self, shown: str, why: str) -> None:
        """Record that a directory is skipped.

        Args:
            why: a predicate such as ``is hidden``.
        """
        self.passed.append(f"{shown} {why}")

    def as_json(self) -> dict[str, object]:
        """Return the named places and directories that were skipped: the number of all, and the first few."""
        return {"nothingAt": self.nothing_at, "count": len(self.passed), "first": self.passed[:_LISTED]}

    def problem(self, before: int | None = None) -> NotLookedAtError | None:
        """Return the error if this run saw too little, else None.

        Args:
            before: the number of locations that the last run found at the same places; None if none is on record.
        """
        if nothing := self.nothing_at:
            return NotLookedAtError(
                f"nothing was looked at in {some_of(nothing, _FEW)}", "no table was found there", _NOTHING_HINT
            )
        if self.strangers and not self.locations:
            return NotLookedAtError(
                f"nothing was looked at in {some_of(list(self.named), _FEW)}",
                f"nothing there is known to be transactional: {human_count(self.strangers, 'location')}",
                _NOTHING_HINT,
            )
        if before is not None and self.locations < before:
            return NotLookedAtError(
                f"{human_count(self.locations, 'location was', 'locations were')} looked at, but {before:,} in the run "
                "before",
                "some were dropped, or cannot be seen: a disk that is not mounted, a directory that was moved",
                _FEWER_BY_NAMES if self.looked.by_names else _FEWER_BY_PATHS,
            )
        return None


def places_key(places: Sequence[str]) -> str:
    """Return a short name for places; their order does not matter."""
    names = sorted(set(places))
    text = " ".join(names)
    if len(text) <= _LONGEST:
        return text
    digest = hashlib.sha256("\0".join(names).encode("utf-8", "surrogateescape")).hexdigest()
    return f"{names[0][:_LONGEST]} and {len(names) - 1} more, {digest[:16]}"
