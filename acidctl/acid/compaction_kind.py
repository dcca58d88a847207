"""The kinds of compaction, and the versions of Hive that read their results."""

from __future__ import annotations

from enum import StrEnum


class CompactionKind(StrEnum):
    """The two types of compaction."""

    MAJOR = "major"
    MINOR = "minor"


class Hive(StrEnum):
    """The version of Hive that reads a table: a compaction must not change what it shows."""

    HIVE2 = "hive2"
    HIVE3 = "hive3"
    HIVE4 = "hive4"
