"""Directories that begin below and end above a write id: what is compacted up to there would be in both.

A compaction's last write id must lie in no directory that it does not hold whole, whether the snapshot sees that
directory or not: other readers do, and return its rows beside those of the result (format section 13.1, rule V9).
"""

from __future__ import annotations

from collections.abc import Iterable

from acidctl.acid.names import AcidDirectory, Kind


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
    """A directory that shares write ids with a compacted delta, and neither holds all of it nor lies within it.

    Were both read, rows would come twice: of a base below its end, and of a delta that begins below it and ends inside.

    Args:
        directories: those that it is not made from.
    """
    for directory in sorted(directories, key=lambda d: d.name):
        is_base = directory.kind is Kind.BASE
        if low <= directory.max_write_id < high and (is_base or directory.min_write_id < low):
            return directory
    return None
