"""Codes of reasons for people: the family of each, with where it is met and what to do, and a sentence of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
        "`acidctl why LOCATION NAME` says what must happen first; `acidctl hive txns --blocking` whose query it is",
    ),
    Family(Code.AGE_UNKNOWN, "ages", "why something waits, or goes, for its age", "wait, or see --older-than"),
    Family(
        Code.CLEANER_SEES_OTHER, "refused plans", "what a plan of a cleaning would have broken",
        "nothing was removed: report it with a listing of the location",
    ),
    Family(
        Code.COMMIT_UNKNOWN, "queue of cleaning", "why an entry of Hive's queue is not cleaned, or not marked",
        "`acidctl hive compactions --stuck` says what frees it",
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
    """Return a reason with that code and the values that its sentence names. All examples tell one story.

    The high watermark is 9, write ids 3 and 5 are open, and a compaction up to 5 ran in transaction 26.
    """
    values = dict(_OF_CODE.get(code, {}))
    by, ids = values.pop("by", _BY), values.pop("ids", (3, 5))
    return reason(code, *values.pop("parts", ()), by=by, ids=ids, **{**_VALUES, **values})


def _directory(name: str) -> AcidDirectory:
    directory = parse_directory(name)
    assert directory is not None
    return directory


_BY = ("base_0000005", "delta_0000003_0000003")
_OPEN = (IdRun(3, 3, IdStatus.OPEN), IdRun(5, 5, IdStatus.OPEN))
_VALUES: dict[str, Any] = {
    "above": 5, "aborted": (), "age": 3600.0, "ago": 60.0, "base": 5, "bytes": 934, "compacted": True,
    "directory": _directory("delta_0000003_0000003"), "fault": "not-acid", "file": "000000_0",
    "other": "base_0000005/bucket_00000_1", "files": 3, "high_watermark": 9, "is_obsolete": True, "kind": "delta",
    "mine": 3, "missing": _OPEN, "name": "_SUCCESS", "newest": 1795451220.0, "open": _OPEN,
    "owner": "process 7 on this machine", "path": "base_0000005/bucket_00000", "reach": 5, "runs": _OPEN,
    "since": 1795451220.0, "status": IdStatus.COMMITTED, "target": "delta_0000003_0000003", "until": 1795537620.0,
    "usable": 2, "what": Code.COMPACTION_STAGING, "why": "the connection was refused",
    "wide": _directory("base_0000005_v0000026"), "write_id": 5, "count": 12, "format": "Parquet",
    "table_type": "full-acid", "window": "22:00-06:00", "now": "12:30", "deltas": 12, "limit": 10, "most": 0.1,
    "ratio": 0.25, "server": "thrift://metastore:9083", "table": "sales.orders", "given": 2, "entry": 7,
    "state": "initiated", "database": "sales", "pattern": "sales.*", "who": "etl@host7",
    "agent": "hive_20261123162700_5d", "at": "2026-11-23 16:27:00 UTC",
}  # fmt: skip
_MINOR = "delta_0000001_0000005", "delete_delta_0000001_0000005"
_TXN = {"ids": (26,)}
_STRAY = reason(Code.ORIGINAL_WITHOUT_BUCKET, path="README.md")
_FEW = {"deltas": 4, "ratio": 0.05}
_OF_CODE: dict[Code, dict[str, Any]] = {
    Code.ABOVE_HIGH_WATERMARK: {"ids": (10,)},
    Code.BESIDE_BUCKET_FILES: {"by": ("delta_0000003_0000003_0000",)},
    Code.COMPACTED_BELOW: {"by": ("delta_0000003_0000007",), "ids": (2, 4)},
    Code.COMPACTED_BASE: {"ids": (5,)},
    Code.DECIDE_TRANSACTION: _TXN,
    Code.DELETES_ARE_ROWS: {"by": ("delete_delta_0000003_0000003_0000",)},
    Code.AS_TOLD: {"hint": "give a newer `write_ids`"},
    Code.AUTO_IS_OFF: {"who": "table"},
    Code.EMPTY_FILES: {"path": "base_0000005/bucket_00003"},
    Code.EVENTS: {"compacted": False},
    Code.EXPLAIN_PARTITION: {"by": ("dt=2026-11-23",)},
    Code.FEW_DELTAS: _FEW,
    Code.FEWER_THAN_ASKED: _FEW,
    Code.FIND_MISSING_TWIN: {"by": _MINOR[:1]},
    Code.GIVEN_UP: {"count": 3},
    Code.HALF_A_MINOR: {"by": _MINOR[:1]},
    Code.HELD_BY: {"by": ("base_0000005_v0000026",)},
    Code.HIVE_COMPACTS: {"ids": (7,), "state": "working"},
    Code.HOLDS_TWIN: {"by": _MINOR},
    Code.INSERT_ONLY_LAYOUT: {"path": "delta_0000003_0000003_0000/000000_0"},
    Code.INSERT_OVERWRITE_UNKNOWN: {"ids": (5,)},
    Code.INSERT_UNKNOWN: {"by": ("delta_0000003_0000003",)},
    Code.LATER_BASE: {"by": ("base_0000005_v0000026",), "ids": (5,)},
    Code.LAYOUT_REFUSED: {"parts": (_STRAY,)},
    Code.NESTED_FILE: {"path": "base_0000005/old/bucket_00000"},
    Code.NEWER_SNAPSHOT: {"ids": (10,)},
    Code.NO_CLEANUP: {"who": "table"},
    Code.NOT_A_BUCKET_FILE: {"path": "base_0000005/bucket_00000.bak"},
    Code.NOT_A_COMPACTION: {"kind": "ABORT_TXN_CLEANUP"},
    Code.NOT_HIVES_NAME: {"path": "base_0000005/part-0.orc"},
    Code.NOT_TRANSACTIONAL: {"parts": (reason(Code.FEW_DELTAS, **{**_VALUES, **_FEW}),)},
    Code.NOTHING_TO_MERGE: {"deltas": 1},
    Code.OLD_QUERIES: _TXN,
    Code.ONLY_BY_DOUBT: {"parts": (reason(Code.TRANSACTION_UNKNOWN, by=("base_0000005_v0000026",), ids=(26,)),)},
    Code.ORIGINAL_WITHOUT_BUCKET: {"by": (), "path": "README.md"},
    Code.OTHER_FORMAT_BELOW: {"path": "metadata/v1.metadata.json", "what": "an Iceberg table"},
    Code.OTHER_NAMES: {"path": "base_0000005/part-0.orc"},
    Code.OTHER_OF_SAME_END: {"by": ("base_0000005_v0000026",), "ids": (5,)},
    Code.OVERLAP: {"by": ("delta_0000003_0000006", "delta_0000005_0000008")},
    Code.PARTITION_BESIDE: {"path": "dt=2026-11-23"},
    Code.READ_BUT_REFUSED: {"parts": (reason(Code.COMMITTED),)},
    Code.READABLE_BY: {"by": ("base_0000005_v0000026",), "txn": 26},
    Code.READER_HOLDS: _TXN,
    Code.REFUSED: {"why": "the metastore is older than the files"},
    Code.REFUSED_NAME: {"by": ("delta_0000003_x",)},
    Code.SECOND_ATTEMPT: {"path": "base_0000005/bucket_00000_0"},
    Code.SIDE_FILE: {"file": "_orc_acid_version"},
    Code.SPELLED_TWICE: {"by": ("delta_0000003_0000003", "delta_3_3")},
    Code.STOPPED_BY: {
        "by": ("delta_0000003_0000003_0000",),
        "parts": (reason(Code.WRITER_BESIDE, by=("-tmp.delta_0000003_0000003_0000",)),),
    },
    Code.STRADDLES_BASE: {"by": ("delta_0000003_0000007", "base_0000005")},
    Code.STRANGE_PATH: {"path": "base_0000005/README.md"},
    Code.SUPERSEDED_BY_DELTA: {"by": _MINOR[:1]},
    Code.TABLES_BELOW: {"path": "orders/delta_0000003_0000003_0000"},
    Code.TRANSACTION: _TXN,
    Code.TRANSACTION_BELOW: {"ids": (25,)},
    Code.TRANSACTION_UNKNOWN: _TXN,
    Code.TWINS: {"by": ("delta_0000001_0000005_v0000026", "delta_0000001_0000005_v0000027")},
    Code.TYPE_ASSUMED: {"path": "000000_0"},
    Code.UNMARKED: {"ids": (5,)},
    Code.UNPADDED_DELETES: {"by": ("delete_delta_3_3",), "name": "delete_delta_0000003_0000003"},
    Code.UNPARSEABLE: {"ids": (), "why": "the prefix is Hive's but the numbers are not"},
    Code.VISIBILITY_ABORTED: _TXN,
    Code.VISIBILITY_ABOVE_GIVEN: {"by": ("base_0000005_v0000026",), "ids": (26,), "given": 20},
    Code.VISIBILITY_OPEN: _TXN,
    Code.WRITER_BESIDE: {"by": ("-tmp.delta_0000003_0000003_0000",)},
}
