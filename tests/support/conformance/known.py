"""Where acidctl does otherwise than Hive today, and why: a test holds that this list is exact."""

from __future__ import annotations

_CALENDAR = (
    "Hive 4 takes old dates of a C++ writer, which names no calendar, for Julian ones; Hive 3 and acidctl do not."
)

KNOWN: dict[str, str] = {
    "dash-tmp": "acidctl passes over a writer's manifest; Hive takes it for an original file, and fails.",
    "dates-before-1582": _CALENDAR,
    "delete-with-the-file": "Hive 4's vectorized reader fails on it before a minor compaction as after it.",
    "open-overwrite": "Hive 4.0.1 hides what an open INSERT OVERWRITE will replace (HIVE-29601); acidctl does not.",
    "timestamps-before-1582": _CALENDAR,
}
"""Reasons by the names of cases."""
