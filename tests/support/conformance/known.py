"""Where acidctl does otherwise than Hive today, and why: a test holds that this list is exact."""

from __future__ import annotations

_ALL_DELETES = "Hive 4 looks for deletes in the file of the row's bucket alone; acidctl applies all, and V21 says so."
_CALENDAR = (
    "Hive 4 takes old dates of a C++ writer, which names no calendar, for Julian ones; Hive 3 and acidctl do not."
)
_NAMES = (
    "Hive 3 finds columns by their names, and their case; Hive 4 and acidctl by their places, whichever Hive it is."
)
_VERSION_1 = (
    "acidctl reads events of version 1 in deltas as Hive 2 does; Hive 3 and 4 take each for a row. V12 says so."
)

KNOWN: dict[str, str] = {
    "bucket-not-of-the-file": _ALL_DELETES,
    "bucketed-delete-elsewhere": "Hive looks for deletes in the file of the row's bucket alone; V21 says so.",
    "buckets-in-one-file": _ALL_DELETES,
    "column-renamed": _NAMES,
    "columns-swapped": _NAMES,
    "dash-tmp": "acidctl passes over a writer's manifest; Hive takes it for an original file, and fails.",
    "date-to-timestamp": "A DATE as TIMESTAMP depends on Java's time zone in Hive 3; Hive 4 and acidctl have midnight.",
    "dates-before-1582": _CALENDAR,
    "delete-of-version-1": _VERSION_1,
    "delta-in-a-folder": "Hive 4 reads a file with ids in a folder, Hive 3 fails; acidctl passes over it.",
    "flush-beside-one-write-id": "Hive 3 heeds a flush length beside a delta of one write id, Hive 4 and acidctl none.",
    "in-a-delta": _VERSION_1,
    "in-disorder": "Both Hives overlook deletes that are not sorted; acidctl applies them, and V26 says so.",
    "insert-in-a-delete-delta": "acidctl takes every event of a delete delta for a delete; V12 says so.",
    "names-in-capitals": _NAMES,
    "of-another-bucket": _ALL_DELETES,
    "open-overwrite": "Hive 4.0.1 hides what an open INSERT OVERWRITE will replace (HIVE-29601); acidctl does not.",
    "timestamps-before-1582": _CALENDAR,
    "update-of-version-1": _VERSION_1,
}
"""Reasons by the names of cases."""
