"""A reason of every code, for the page that lists them with a sentence each."""

from __future__ import annotations

from acidctl.acid.names import AcidDirectory, parse_directory
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.writeids import IdRun, IdStatus


def example(code: Code) -> Reason:
    """A reason of that code with values that its sentence may name."""
    part = reason(Code.WRITER_BESIDE if code is Code.STOPPED_BY else Code.TRANSACTION_UNKNOWN, by=_BY[:1], ids=(26,))
    if code is Code.NOT_TRANSACTIONAL:
        part = example(Code.FEW_DELTAS)
    values = {**_VALUES, "kind": "delta"}
    return reason(code, *([part] if code in _OF_PARTS else []), by=_BY, ids=_IDS.get(code, (3, 5)), **values)


def _directory(name: str) -> AcidDirectory:
    directory = parse_directory(name)
    assert directory is not None
    return directory


_BY = ("base_0000005", "delta_0000003_0000003")
_IDS = {
    Code.TRANSACTION: (26,), Code.TRANSACTION_UNKNOWN: (26,), Code.VISIBILITY_OPEN: (26,), Code.OLD_QUERIES: (26,),
    Code.VISIBILITY_ABORTED: (26,), Code.DECIDE_TRANSACTION: (26,), Code.UNPARSEABLE: (),
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
    "entry": 7, "state": "initiated", "database": "sales", "pattern": "sales.*",
    "who": "etl@host7", "agent": "hive_20261123162700_5d", "at": "2026-11-23 16:27:00 UTC",
}  # fmt: skip
