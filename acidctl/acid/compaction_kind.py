"""What kinds of compaction there are."""

from __future__ import annotations

from enum import StrEnum


class CompactionKind(StrEnum):
    """The two types of compaction."""

    MAJOR = "major"
    MINOR = "minor"
