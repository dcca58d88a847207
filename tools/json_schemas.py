"""The JSON that commands print, as JSON Schema: docs/reference/schemas/, which `tools/make_docs.py` makes.

A shape is written in short: the name of a type, with ``?`` where it may be null; a list of one shape is an array of
it; a dictionary is an object, whose keys end with ``?`` where they may be absent; ``"map"`` has keys of others; a tuple
of one shape is that, or null.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

Shape = Any
DIALECT = "https://json-schema.org/draft/2020-12/schema"

_TYPES: dict[str, Any] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "num": {"type": "number"},
    "bool": {"type": "boolean"},
    "time": {"type": "string", "format": "date-time"},
    "map": {"type": "object"},
    "value": {"type": ["string", "number", "boolean"]},
    "any": {},
}

_SOURCE = {"from": "str", "server": "str?", "at": "time?"}
_WHY = {"code": "str", "what": "str", "why": "str", "hint": "str"}
_ROW_ID = {"writeid": "int", "bucketid": "int", "rowid": "int"}
_EVENT = {
    "operation": "str", "writeId": "int", "directory": "str", "file": "str", "state": "str", "rewritten": "bool",
}  # fmt: skip
_FIGURES = {"baseBytes": "int", "deltaBytes": "int", "deltaRatio": "num?", "deltas": "int"}
_OUTCOME = {
    "location": "str", "result": "str", "error?": "str", "reason?": "str", "reasonCodes?": ["str"], "code?": "str",
    "snapshotSource?": "source",
}  # fmt: skip
_TO_COMPACT = {
    "kind?": "str", "figures?": _FIGURES, "inputs?": ["str"], "outputs?": ["str"], "buckets?": "int",
    "segments?": "int", "inputBytes?": "int", "inputRows?": "int", "deleteEvents?": "int", "gain?": "num",
    "bytes?": "int",
    "rows?": "int", "rowsDropped?": "int", "stripesCopied?": "int", "stripesEncoded?": "int", "verified?": "str",
    "taskSeconds?": "num", "finished?": ["str"],
}  # fmt: skip
_TO_WRITE = {
    "verb?": "str", "writeId?": "int", "transaction?": "int?", "lock?": "str", "inserted?": "int", "updated?": "int",
    "deleted?": "int", "replaces?": "bool", "files?": "int", "bytes?": "int", "partitions?": ["str"],
    "loadedBefore?": "bool",
}  # fmt: skip
_TO_CLEAN = {
    "bytes?": "int",
    "files?": "int",
    "removals?": [
        {
            "name": "str", "kind": "str", "state": "str", "reason": "str", "reasonCode": "str", "files": "int",
            "bytes": "int",
        }
    ],
    "keptBack?": [{"name": "str", "reason": "str", "code": "str"}],
    "waiting?": [{"name": "str", "since": "time?", "until": "time?", "reason": "str", "code": "str"}],
    "postponed?": ["str"],
    "trashRun?": "str?",
}  # fmt: skip
_IN_TRASH = {
    "trashRun?": "str", "repairRun?": "str", "isComplete?": "bool", "names?": ["str"], "repairs?": ["str"],
    "paths?": ["str"], "bytes?": "int", "changes?": ["str"],
}  # fmt: skip
_DONE_THERE = {
    "at": "time", "verb": "str", "result": "str", "run": "str?", "user": "str?", "owner": "str?", "host": "str?",
    "acidctl": "str?", "snapshotFrom": "str?", "facts": "map",
}  # fmt: skip
_LOCK = {"lock": "int", "on": "str", "type": "str", "state": "str"}
_TXN_OR_LOCK = {
    "id": "int?", "user": "str?", "host": "str?", "query": "str?", "started": "time?", "lastHeartbeat": "time?",
    "age": "int?", "silent": "int?", "locks": [_LOCK],
}  # fmt: skip
_ENTRY = {
    "id": "int", "on": "str", "database": "str", "table": "str", "partition": "str?", "kind": "str", "state": "str",
    "pool": "str?", "worker": "str?", "job": "str?", "runAs": "str?", "initiator": "str?", "error": "str?",
    "enqueued": "time?", "started": "time?", "committed": "time?", "ended": "time?", "age": "int?", "txn": "int?",
    "nextTxn": "int?", "highestWriteId": "int?",
}  # fmt: skip
_BLOCKER = {
    "id": "int?", "lock": "int?", "user": "str?", "host": "str?", "query": "str?", "started": "time?", "waiting": "int",
    "bytes": "int?",
}  # fmt: skip
_NAMED = {"location": "str", "name": "str?"}
_OVERVIEW = {
    "where": ["str"], "verdict": "str", "tables": "int", "locations": "int", "bytes": "int",
    "compaction": {
        "due": "int", "major": "int", "minor": "int", "helped": "int",
        "worst": [{**_NAMED, "kind": "str", "gain": "num", "reason": "str", "reasonCode": "str"}],
    },
    "cleaning": {
        "locations": "int", "freeBytes": "int", "soonBytes": "int", "laterBytes": "int", "abortedBytes": "int",
        "keptBack": [{"code": "str", "reason": "str", "locations": "int", "entries": "int", "bytes": "int"}],
    },
    "trash": {"locations": "int", "runs": "int", "bytes": "int", "oldest": "time?"},
    "unfinished": {"count": "int", "first": [{**_NAMED, "staging": "str"}]},
    "refused": {"locations": "int", "first": [{**_NAMED, **_WHY}]},
    "blocked": ({"count": "int", "overdue": "int", "first": [{**_BLOCKER, "advice": "str"}]},),
    "stuck": (
        {
            "count": "int",
            "first": [
                {
                    "id": "int", "on": "str", "kind": "str", "state": "str", "cause": "str", "why": "str",
                    "frees": "str",
                }
            ],
        },
    ),
    "notLookedAt": {"nothingAt": ["str"], "count": "int", "first": ["str"]},
    "lastDone": "time?",
}  # fmt: skip
_SUMS = {
    "locations": "int", "deltas": "int", "current": "int", "obsolete": "int", "aborted": "int", "ignored": "int",
    "files": "int", "bytes": "int", "currentBytes": "int", "obsoleteBytes": "int", "abortedBytes": "int",
    "ignoredBytes": "int", "trashBytes": "int", "freeBytes": "int", "soonBytes": "int", "laterBytes": "int",
    "due": "int", "helped": "int", "score": "int?", "cost": "int?", "directoriesRead": "int?", "filesRead": "int?",
    "smallFiles": "int?", "deleteBytes": "int?", "helps": "str?", "rewritten": "int?", "saved": "int?", "gain": "num?",
    "filesAfter": "int?", "seconds": "num?", "secondsAfter": "num?",
}  # fmt: skip
_OF_TABLE = {"table": "str", **_SUMS}

SHAPES: dict[str, Shape] = {
    "ls": {
        **_NAMED, "table": "str", "verdict": "str", "why": "str", "base": "str?", **_SUMS, "compaction": "str?",
        "compactionReason": "str", "compactionReasonCode": "str", "problem": "str?",
        "transactional": {"known": "bool", "type": "str?", "code": "str", "reason": "str"},
        "snapshotSource": "source", "historyProblem": "str?",
        "disagreements": [{"code": "str", "reason": "str", "directories": ["str"]}],
        "notes": ["str"], "warnings": ["str"],
        "entries?": [
            {
                "name": "str", "kind": "str", "minWriteId": "int?", "maxWriteId": "int?", "statementId": "int?",
                "visibilityTxnId": "int?", "state": "str", "reason": "str", "reasonCode": "str",
                "supersededBy": ["str"], "files": "int", "bytes": "int", "rows": "int?", "modified": "time?",
            }
        ],
    },
    "status": {**_OVERVIEW, "lastNightly": "time?"},
    "report": {
        "at": "time", "acidctl": "str", "olderThan": "num", **_OVERVIEW, "failed": "int", "sources": "map",
        "whole": _SUMS, "largest": [_OF_TABLE], "others": ({"tables": "int", **_OF_TABLE},), "helped": "int",
        "worst": [_OF_TABLE],
    },
    "why": {
        **_NAMED,
        "snapshot": {"writeIds": "str?", "highWatermark": "int?", "validTxns": "str?"},
        "snapshotSource": "source",
        "base": "str?", "historyProblem": "str?", "history": ["map"],
        "proofs": [
            {
                "name": "str", "kind": "str", "state": "str", "reason": "str", "reasonCode": "str",
                "supersededBy": ["str"], "writeIds": [{"first": "int", "last": "int", "status": "str"}],
                "visibilityTxn": "map?",
                "steps": [{"topic": "str", "text": "str", "names": ["str"], "ids": ["int"]}],
                "cleaning": {"may": "str", "code": "str", "text": "str", "next": "str?", "nextCodes": ["str"]},
            }
        ],
        "notes": ["str"],
    },
    "history": {
        "location": "str", "unknownBelow": "int?", "snapshotSource": "source",
        "writeIds": [
            {
                "writeId": "int", "state": "str?", "inserted": "int?", "updated": "int?", "deleted": "int?",
                "complete": "bool", "modified": "time?", "directories": ["str"], "compactedInto": ["str"],
                "heldIn": ["str"],
            }
        ],
        "problems": ["any"],
    },
    "log": {"location": "str", **_DONE_THERE},
    "blame": {
        "location": "str", "snapshotSource": "source", "stripes": "int", "stripesRead": "int",
        "rowId": _ROW_ID, "status": "str", "inserts": [_EVENT], "changes": [{**_EVENT, "maybeUpdate": "bool"}],
    },
    "diff-count": {"disappeared": "int", "appeared": "int", "snapshotSource": "source"},
    "compact": {**_OUTCOME, **_TO_COMPACT},
    **{verb: {**_OUTCOME, **_TO_WRITE} for verb in ("insert", "stream", "update", "delete", "merge", "truncate")},
    "create": {
        **_OUTCOME, "verb": "str", "type": "str?", "format": "str", "columns": [{"name": "str", "type": "str"}],
        "partitionKeys": [{"name": "str", "type": "str"}], "buckets": "int", "bucketColumns": ["str"],
        "directory": "str",
    },
    "erase": {
        **_OUTCOME, **_TO_WRITE, **_TO_COMPACT, **_TO_CLEAN, **_IN_TRASH, "events?": "int", "isKnown?": "bool",
        "steps?": ["str"], "files?": "any",
    },
    "migrate": {
        **_OUTCOME, "verb": "str", "target": "str", "format": "str?", "snapshotId": "int?", "filesCopied": "int",
        "bytes": "int", "rowsAdded": "int", "rowsDead": "int", "positionDeletes": "int",
        "columnsEncoded": "map", "columns": "map", "hiveTypes": "map", "columnNotes": "map", "notes": ["str"],
        "proof": "str?", "statements?": "str", "names": "str?",
    },
    "clean": {**_OUTCOME, **_TO_CLEAN},
    "restore": {**_OUTCOME, **_IN_TRASH},
    "nightly": {
        **_OUTCOME, **_TO_COMPACT, **_TO_CLEAN, **_IN_TRASH, "trashRun?": "str?", "part": "str", "run": "str",
        "policy": ["str"],
    },
    "hive-tables": {
        "database": "str", "table": "str", "type": "str?", "format": "str", "partitionKeys": ["str"],
        "partitions": "int?", "location": "str?", "owner": "str?", "buckets": "int", "bucketColumns": ["str"],
        "sortColumns": ["str"], "noAutoCompaction": "bool", "noCleanup": "bool", "pool": "str?",
        "thresholds": "map", "job": "map",
    },
    "hive-txns": {
        **_TXN_OR_LOCK, "state?": "str", "type?": "str?", "agent?": "str?",
        "lock?": "int?", "waiting?": "int", "bytes?": "int?",
        "holds?": [{"on": "str", "compaction": "int?", "bytes": "int?"}], "advice?": "str",
    },
    "hive-locks": {
        "lock": "int", "part": "int", "on": "str", "database": "str", "table": "str?", "partition": "str?",
        "state": "str", "type": "str", "txn": "int?", "user": "str?", "host": "str?", "agent": "str?",
        "acquired": "time?", "lastHeartbeat": "time?", "age": "int?", "blockedBy": "map?",
    },
    "hive-compactions": {**_ENTRY, "cause?": "str?", "why?": "str?", "frees?": "str?", "blockers?": ["int"]},
    "hive-request": {
        "on": "str", "database": "str", "table": "str", "partition": "str?", "kind": "str", "pool": "str?",
        "result": "str", "id": "int?", "state": "str?", "reason": "str?", "error?": "str",
    },
    "hive-rescue": {
        **_OUTCOME,
        "disagreements?": [
            {
                "kind": "str", "given": "int", "sequence": "int", "highest": "int", "directories": ["str"],
                "why": "str", "advice": "str",
            }
        ],
        "steps?": {
            "given": "int", "raiseTo": "int?", "aborted": ["int"], "sequence": "int?", "aside": ["str"],
            "partitions": ["str"],
        },
    },
    "hive-abort-txn": {
        **_TXN_OR_LOCK, "id": "int", "state": "str", "type": "str?", "agent": "str?", "result": "str", "error?": "str",
    },
    "hive-abort-compaction": {**_ENTRY, "result": "str"},
    "hive-housekeep": {
        "id": "int?", "lock": "int?", "user": "str?", "host": "str?", "agent": "str?", "started": "time?",
        "lastHeartbeat": "time?", "silent": "int?", "result": "str", "type": "str?", "locks": [_LOCK],
    },
    "hive-worker": {
        "on": "str", "entry": "int", "kind": "str", "result": "str", "reason": "str?", "seconds": "num",
        "error?": "str", "message?": "str", **{key: one for key, one in _TO_COMPACT.items() if key != "kind?"},
        "snapshotSource?": "source",
    },
    "erasure": {
        "condition": "str", "result": "str", "tool": "str", "began": "time", "ended": "time", "checksums": "bool",
        "events": "int", "filesRead": "int", "bytes": "int", "stripes": "int", "stripesRead": "int",
        "locations": [
            {
                "location": "str", "table": "str", "besideLocations": "bool", "result": "str",
                "snapshot": {"writeIds": "str?", "validTxns": "str?"}, "snapshotSource": "source?", "live": "int?",
                "events": "int",
                "holdings": [
                    {
                        "directory": "str", "kind": "str", "events": "int", "files": "int", "bytes": "int",
                        "isKnown": "bool",
                    }
                ],
                "notLookedAt": [{"path": "str", "why": "str"}],
                "steps": [
                    {
                        "do": "str", "text": "str", "command": "str?", "directories": ["str"],
                    }
                ],
                "files": [
                    {
                        "directory": "str", "path": "str", "size": "int", "modified": "time?", "sha256": "str?",
                        "events": "int",
                        "stripes": "int", "stripesRead": "int", "notKnown": "str?",
                    }
                ],
            }
        ],
        "withoutColumns": [{"table": "str", "why": "str"}], "notEntered": ["str"], "notSeen": ["str"],
    },
    "cat-checksum": {"rows": "int", "values": "str", "rowIds": "str", "columns": "str"},
    "validate": {
        "location": "str", "result": "str", "depth": "str", "snapshotSource?": "source?",
        "findings": [
            {"rule": "str", "severity": "str", "path": "str", "message": "str", "evidence": "map", "hint": "str"}
        ],
        "unchecked": [{"path": "str", "message": "str", "code": "str?", "hint": "str"}],
        "summary": {
            "errors": "int", "warnings": "int", "remarks": "int", "unchecked": "int", "files": "int", "bytes": "int",
            "rows": "int",
        },
    },
    "repair": {
        **_OUTCOME, "bytes?": "int",
        "fixes?": [{"kind": "str", "path": "str", "problem": "str", "remedy": "str", "bytes": "int"}],
        "refused?": [{"kind": "str", "path": "str", "reason": "str", "hint": "str"}],
        "interrupted?": ["str"], "run?": "str?",
    },
    "meta": {
        "path": "str", "fileLength": "int", "rows": "int", "type": "str", "isAcid": "bool", "encrypted": "bool",
        "compression": "str", "compressionBlockSize": "int", "rowIndexStride": "int", "formatVersion": "str",
        "writer": "str", "writerVersion": "int", "softwareVersion": "str?", "calendar": "str?",
        "acid": "map?",
        "stripes": [
            {
                "stripe": "int", "offset": "int", "indexLength": "int", "dataLength": "int", "footerLength": "int",
                "rows": "int", "lastKey?": "map?", "writerTimezone?": "str?", "encodings?": ["str"],
                "streams?": [{"column": "int", "kind": "str", "length": "int"}],
            }
        ],
        "columns": [{"id": "int", "name": "str", "type": "str", "statistics": "map"}],
        "userMetadata": "map", "notes": ["str"], "problems": ["str"],
    },
    "explain": {
        "word": "str", "kind": "str", "what": "str", "todo": "str?",
        "words?": ["str"], "why?": "str", "severity?": "str", "depth?": "str", "section?": "str", "readers?": ["str"],
    },
    "doctor": {
        "configuration": {
            "file": "str", "isUsed": "bool", "profile": "str?", "problem": "map?",
            "settings": [{"name": "str", "value": "any", "origin": "str"}],
        },
        "python": "str", "java": [{"candidate": "str", "verdict": "str"}],
        "packages": [{"name": "str", "version": "str"}], "environment": [{"name": "str", "value": "str"}],
        "timezones": "str", "metastore?": "map", "stores?": ["map"],
    },
}  # fmt: skip
"""What an object of a command has besides `schema_version`; `apply` prints those of clean, `purge` of restore."""


def schema_of(name: str, *, is_closed: bool = False) -> dict[str, Any]:
    """JSON Schema of one object that a command prints.

    Args:
        is_closed: no other keys may be there: for tests. Who reads JSON of a newer version may meet some.
    """
    shape = {"schema_version": "version", **SHAPES[name]}
    return {"$schema": DIALECT, "title": f"acidctl {re.sub('^hive-', 'hive ', name)}", **_schema(shape, is_closed)}


def schema_files() -> Iterator[tuple[str, str]]:
    """Each file's path from the root of the repository, and its text."""
    for name in SHAPES:
        yield f"docs/reference/schemas/{name}.json", json.dumps(schema_of(name), indent=2) + "\n"


def _schema(shape: Shape, is_closed: bool) -> dict[str, Any]:
    if isinstance(shape, tuple):
        return {"anyOf": [_schema(shape[0], is_closed), {"type": "null"}]}
    if isinstance(shape, list):
        return {"type": "array", "items": _schema(shape[0], is_closed)}
    if isinstance(shape, dict):
        keys = {key.removesuffix("?"): one for key, one in shape.items()}
        needed = [key for key in shape if not key.endswith("?")]
        properties = {key: _schema(one, is_closed) for key, one in keys.items()}
        closed = {"additionalProperties": False} if is_closed else {}
        return {"type": "object", "properties": properties, "required": needed, **closed}
    if shape.endswith("?"):
        return {"anyOf": [_schema(shape.removesuffix("?"), is_closed), {"type": "null"}]}
    if shape == "source":
        return _schema(_SOURCE, is_closed)
    return {"const": 1} if shape == "version" else dict(_TYPES[shape])
