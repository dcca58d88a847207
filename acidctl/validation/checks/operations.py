"""The rule on the operations of events, which Hive 3 and newer ignore: ACID version 1, and events in wrong places."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from acidctl.validation.findings import DEEP, ERROR, INFO, Finding, Rule

V12 = Rule(
    "V12", ERROR, DEEP, "An event's operation does not belong in such a directory, or a delete event has a row.",
    "Hive 3 and newer ignore the operation: updates and deletes are read as rows.",
    "Before Hive 3 reads updates or deletes in deltas of ACID v1: a major compaction with --for hive2. Nothing else "
    "compacts them. Updates in a base can stay: they are rows to every Hive.", "4.2",
)  # fmt: skip


def acid_v1(paths: Sequence[str], reported: Collection[str] = ()) -> Iterator[Finding]:
    """Yield rule V12's remarks about files of ACID version 1 with updates or deletes: about deltas, and about a base.

    Args:
        reported: files that earlier remarks name; a remark of the same kind is not repeated.
    """
    texts = {
        False: "ACID v1: files hold updates or deletes; compact before Hive 3 reads them: {}",
        True: "ACID v1: rows have the operation of an update, and every Hive reads them as rows: {}",
    }
    for in_base, text in texts.items():
        if not any(_is_in_base(path) is in_base for path in reported):
            files = [path for path in paths if _is_in_base(path) is in_base]
            yield from V12.of_several(files, text=text, severity=INFO)


def _is_in_base(path: str) -> bool:
    return path.startswith("base_")
