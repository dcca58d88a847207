"""Directories that begin below and end above a write id: what is compacted up to there would be in both.

A compaction's last write id must lie in no directory that it does not hold whole, whether the snapshot sees that
directory or not: other readers do, and return its rows beside those of the result (format section 13.1, rule V9).
"""

from __future__ import annotations

from collections.abc import Iterable

from acidctl.acid.names import NO_STATEMENT, AcidDirectory, Kind


def straddles(directory: AcidDirectory, write_id: int) -> bool:
    """Whether a delta begins at or below a write id, and ends above it."""
    return directory.kind is not Kind.BASE and directory.min_write_id <= write_id < directory.max_write_id


def below_all(directories: Iterable[AcidDirectory], write_id: int) -> tuple[int, tuple[AcidDirectory, ...]]:
    """The highest write id, at most the one given, that lies inside no delta; and the deltas that lowered it.

    Args:
        directories: all of a location.
    """
    deltas = sorted(
        (d for d in directories if d.kind is not Kind.BASE and d.min_write_id <= d.max_write_id),
        key=lambda d: (-d.max_write_id, -d.min_write_id, d.name),
    )
    lowered = []
    # From the highest end down: what is below all that were looked at can only be lowered by those that end later.
    for delta in deltas:
        if straddles(delta, write_id):
            write_id = delta.min_write_id - 1
            lowered.append(delta)
    return write_id, tuple(lowered)


def crossing(directories: Iterable[AcidDirectory], low: int, high: int) -> AcidDirectory | None:
    """A directory that would be read beside a compacted delta, with write ids of both.

    Rows would come twice: of a base below its end, of a delta that begins below it and ends inside, and of the delta of
    another compaction of the same range, of which Hive reads as many as there are.

    Args:
        directories: those that it is not made from.
    """
    for directory in sorted(directories, key=lambda d: d.name):
        is_base = directory.kind is Kind.BASE
        is_inside = low <= directory.max_write_id < high and (is_base or directory.min_write_id < low)
        if is_inside or (not is_base and _is_compacted_delta(directory, low, high)):
            return directory
    return None


def _is_compacted_delta(directory: AcidDirectory, low: int, high: int) -> bool:
    same = (directory.min_write_id, directory.max_write_id) == (low, high)
    return same and directory.statement_id == NO_STATEMENT
