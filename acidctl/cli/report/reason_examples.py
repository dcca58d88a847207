"""Codes of reasons for people: the family of each, with where it is met and what to do, and a sentence of it."""

from __future__ import annotations

from dataclasses import dataclass

from acidctl.acid.names import AcidDirectory, parse_directory
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.writeids import IdRun, IdStatus


@dataclass(frozen=True, slots=True)
class Family:
    """Codes that are met in one place.

    Attributes:
        first: of its codes; the others follow, up to that of the next family.
        todo: what to do where one of them is in the way.
    """

    first: Code
    name: str
    what: str
    todo: str


FAMILIES = (
    Family(
        Code.ABOVE_GIVEN, "verdicts", "what a directory of a location is, or why a snapshot cannot be read",
        "`acidctl why LOCATION NAME` proves it, and says what must happen before cleaning takes it",
    ),
    Family(
        Code.ALL_TRANSACTIONS_COUNT, "notes", "what was assumed, or who said what is committed",
        "name a metastore, or hand in Hive's lists, where an assumption is not good enough",
    ),
    Family(
        Code.EMPTY_BASE, "doubts", "why a directory may not be finished, so that nothing is removed for it",
        "wait until its writer has ended; name a metastore or hand in Hive's lists, which know",
    ),
    Family(
        Code.ABOVE_CLEANER, "kept back", "why cleaning keeps what readers do not need now",
        "`acidctl why LOCATION NAME` says what must happen first; `acidctl txns --blocking` whose query it is",
    ),
    Family(Code.AGE_UNKNOWN, "ages", "why something waits, or goes, for its age", "wait, or see --older-than"),
    Family(
        Code.CLEANER_SEES_OTHER, "refused plans", "what a plan of a cleaning would have broken",
        "nothing was removed: report it with a listing of the location",
    ),
    Family(
        Code.COMMIT_UNKNOWN, "queue of cleaning", "why an entry of Hive's queue is not cleaned, or not marked",
        "`acidctl compactions --stuck` says what frees it",
    ),
    Family(
        Code.ACID_COLUMNS, "transactional", "by what a location is known to be of a transactional table, or why not",
        "give --table-type, or a metastore that knows the table, where it is one",
    ),
    Family(
        Code.BUDGET_IS_USED, "left for later", "why a location is left for another run",
        "run it again, or give more time or bytes",
    ),
    Family(
        Code.ASKED_FOR, "compactions", "whether a compaction is due, and whether there is work for one",
        "`acidctl compact --dry-run LOCATION` shows the plan; --minor or --major ask for one all the same",
    ),
    Family(
        Code.BESIDE_BUCKET_FILES, "layouts", "layouts that Hive never writes",
        "`acidctl validate LOCATION` says what to do about each",
    ),
    Family(
        Code.IS_READ, "may be cleaned", "whether a cleaning takes a directory",
        "`acidctl clean --dry-run LOCATION` shows what it would take",
    ),
    Family(
        Code.AS_TOLD, "next steps", "what must happen before a cleaning may take a directory", "what its sentence says",
    ),
    Family(
        Code.BACKUP, "hidden", "what acidctl and writers keep hidden in a location, and what clears it",
        "what its sentence says; nothing hidden is data",
    ),
    Family(
        Code.BASE_OF_ORIGINALS, "proofs", "steps of the proof of a verdict", "nothing: read it from top to bottom",
    ),
)  # fmt: skip


def family_of(code: Code) -> Family:
    """The family of a code."""
    order = list(Code)
    return [family for family in FAMILIES if order.index(family.first) <= order.index(code)][-1]


def example(code: Code) -> Reason:
    """A reason of that code with values that its sentence may name."""
    part = reason(Code.WRITER_BESIDE if code is Code.STOPPED_BY else Code.TRANSACTION_UNKNOWN, by=_BY[:1], ids=(26,))
    if code is Code.NOT_TRANSACTIONAL:
        part = example(Code.FEW_DELTAS)
    values = {**_VALUES, "kind": "delta"}
    if code in (Code.NO_CLEANUP, Code.AUTO_IS_OFF):
        values["who"] = "table"
    if code is Code.HIVE_COMPACTS:
        values["state"] = "working"
    if code in (Code.FEW_DELTAS, Code.FEWER_THAN_ASKED):
        values |= {"deltas": 4, "ratio": 0.05}
    return reason(
        code, *([part] if code in _OF_PARTS else []), by=_BY_OF.get(code, _BY), ids=_IDS.get(code, (3, 5)), **values
    )


def _directory(name: str) -> AcidDirectory:
    directory = parse_directory(name)
    assert directory is not None
    return directory


_BY = ("base_0000005", "delta_0000003_0000003")
_BY_OF = {
    Code.HALF_A_MINOR: ("delta_0000001_0000005",),
    Code.HOLDS_TWIN: ("delta_0000001_0000005", "delete_delta_0000001_0000005"),
    Code.INSERT_UNKNOWN: ("delta_0000003_0000003",),
    Code.SUPERSEDED_BY_DELTA: ("delta_0000001_0000005",),
    Code.VISIBILITY_ABOVE_GIVEN: ("base_0000005_v0000026",),
    Code.TWINS: ("delta_0000001_0000005_v0000026", "delta_0000001_0000005_v0000027"),
}
_IDS = {
    Code.TRANSACTION: (26,), Code.TRANSACTION_UNKNOWN: (26,), Code.VISIBILITY_OPEN: (26,), Code.OLD_QUERIES: (26,),
    Code.VISIBILITY_ABORTED: (26,), Code.VISIBILITY_ABOVE_GIVEN: (26,), Code.DECIDE_TRANSACTION: (26,),
    Code.UNPARSEABLE: (),
}  # fmt: skip
_OF_PARTS = (Code.NOT_TRANSACTIONAL, Code.STOPPED_BY, Code.ONLY_BY_DOUBT, Code.READ_BUT_REFUSED)
_OPEN = (IdRun(3, 3, IdStatus.OPEN), IdRun(5, 5, IdStatus.OPEN))
_VALUES: dict[str, object] = {
    "above": 5, "aborted": (), "age": 3600.0, "ago": 60.0, "base": 5, "bytes": 934, "compacted": True,
    "directory": _directory("delta_0000003_0000003"), "fault": "not-acid", "file": "000000_0",
    "other": "base_0000005/bucket_00000_1", "files": 3, "high_watermark": 9,
    "hint": "what the refusal says", "is_obsolete": True, "mine": 3, "missing": _OPEN, "name": "_SUCCESS",
    "newest": 1.7e9, "open": _OPEN, "owner": "process 7 on this machine", "path": "base_0000005/README.txt", "reach": 5,
    "runs": _OPEN, "since": 1.7e9, "status": IdStatus.COMMITTED, "target": "delta_0000003_0000003", "until": 1.8e9,
    "usable": 2, "what": Code.COMPACTION_STAGING, "why": "why it is", "wide": _directory("base_0000005_v0000026"),
    "write_id": 5, "count": 12, "format": "Parquet", "table_type": "full-acid", "window": "22:00-06:00", "now": "12:30",
    "deltas": 12, "limit": 10, "most": 0.1, "ratio": 0.25, "server": "thrift://metastore:9083", "table": "sales.orders",
    "given": 2, "entry": 7, "state": "initiated", "database": "sales", "pattern": "sales.*",
    "who": "etl@host7", "agent": "hive_20261123162700_5d", "at": "2026-11-23 16:27:00 UTC",
}  # fmt: skip
