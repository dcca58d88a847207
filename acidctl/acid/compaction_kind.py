"""What kinds of compaction there are, and for whom they are done."""

from __future__ import annotations

from enum import StrEnum


class CompactionKind(StrEnum):
    """The two types of compaction."""

    MAJOR = "major"
    MINOR = "minor"


class Hive(StrEnum):
    """A Hive that reads a table: what it shows before a compaction, it shows after it."""

    HIVE2 = "hive2"
    HIVE3 = "hive3"
    HIVE4 = "hive4"
