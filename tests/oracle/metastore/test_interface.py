"""acidctl's definitions of the metastore's interface are those of Hive's own classes of each version."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.servers.hdfs_server import ServerUnavailable
from support.servers.metastore_judge import MetastoreJudge
from thrift.Thrift import TType

from acidctl.metastore import interface
from acidctl.metastore.lossless import RawStruct
from acidctl.metastore.wire import Method, Struct

pytestmark = [pytest.mark.server, pytest.mark.timeout(600)]

VERSIONS = (2, 3, 4, 41, 42)
DECLARED = {name: getattr(interface, name) for name in interface.INTERFACE.declarations}
METHODS = [one for one in DECLARED.values() if isinstance(one, Method)]
ENUMS = {
    "TxnType": interface.TxnType,
    "TxnState": interface.TxnState,
    "LockType": interface.LockType,
    "LockLevel": interface.LockLevel,
    "LockState": interface.LockState,
    "DataOperationType": interface.Operation,
    "CompactionType": interface.CompactionType,
}
CODES = {
    "BOOL": TType.BOOL,
    "I16": TType.I16,
    "I32": TType.I32,
    "I64": TType.I64,
    "STRING": TType.STRING,
    "BINARY": TType.STRING,
    "ENUM": TType.I32,
    "STRUCT": TType.STRUCT,
    "LIST": TType.LIST,
    "SET": TType.SET,
    "MAP": TType.MAP,
}
FOR_WRITERS = {
    "allocate_table_write_ids", "get_latest_txnid_in_conflict", "add_dynamic_partitions", "get_not_null_constraints",
    "get_default_constraints", "get_check_constraints", "alter_table_req", "alter_partitions_req", "add_partitions_req",
}  # fmt: skip
"""Methods for which acidctl asks Hive 3.1 and later alone; Hive 2.3 has other fields in some."""

OTHER_WORDS = {
    "database": "db", "partition": "part", "txn": "txnid", "lock": "lockid", "host": "hostname", "storage": "sd",
    "columns": "cols", "column": "col", "catalog": "cat", "run": "runas",
    "worker": "workerid", "started": "start", "ended": "end", "enqueued": "enqueue", "created": "create",
    "committed": "commit", "acquired": "acquiredat", "first": "min", "last": "max", "unknown": "nosuch",
    "count": "num", "entries": "compacts", "message": "errormessage", "part": "internal", "table": "tb",
    "tables": "tbl", "last_heartbeat": "lastheartbeat", "aborted": "abortedcompacts",
    "entry": "ci", "too_many_aborts": "toomanyaborts", "has_old_abort": "hasoldabort",
    "table_name": "tbl", "metric_value": "metricvalue",
}  # fmt: skip
"""Words of acidctl's names, and what Hive says for them."""

STRUCTS_OF_WRITERS = (
    interface.DynamicPartitions, interface.AddPartitionsRequest, interface.AlterPartitionsRequest,
    interface.AlterTableRequest, interface.AllocateWriteIdsRequest, interface.TxnToWriteId,
    interface.ConstraintsRequest, interface.NotNull, interface.ColumnConstraint, interface.NotNullResponse,
    interface.ConstraintsResponse, interface.AllocateWriteIdsResponse, interface.EnvironmentContext,
)  # fmt: skip
"""Their fields are compared by number and type; what they mean shows in the tables that real Hives read afterwards."""


@cache
def judged(version: int, folder: Path) -> dict[str, Any] | str:
    try:
        judge = MetastoreJudge(version, folder / str(version))
    except ServerUnavailable as error:
        return f"no classes of Hive {version} to compare with: {error}"
    try:
        return judge.interface(sorted({one.name for one in METHODS}))
    finally:
        judge.stop()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("interface")


@pytest.fixture(params=VERSIONS, ids=["hive-2.3", "hive-3.1", "hive-4.0", "hive-4.1", "hive-4.2"])
def hives(request: pytest.FixtureRequest, folder: Path) -> dict[str, Any]:
    found = judged(request.param, folder)
    return pytest.skip(found) if isinstance(found, str) else found | {"version": request.param}


def walked(hives: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Any, Any]]:
    """All fields that acidctl and this version have: where, acidctl's name and Hive's, acidctl's type and Hive's."""
    seen = set()

    def inside(detail: Any, kind: Any, loose: bool) -> Iterator[tuple[str, str, str, Any, Any]]:
        if kind[0] == "STRUCT" and detail[0] is not RawStruct:
            yield from fields(detail[0], kind[1], loose)
        elif kind[0] in ("LIST", "SET"):
            yield from inside(detail[1], kind[1], loose)
        elif kind[0] == "MAP":
            yield from inside(detail[3], kind[2], loose)

    def fields(struct: type[Struct], name: str, loose: bool) -> Iterator[tuple[str, str, str, Any, Any]]:
        if (struct, name) in seen:
            return
        seen.add((struct, name))
        for row in filter(None, struct.thrift_spec):
            number, code, ours, detail, _ = row
            if str(number) in hives["structs"][name]:
                theirs, kind = hives["structs"][name][str(number)]
                yield f"{struct.__name__}.{number}", ours, theirs, (code, detail, loose), kind
                yield from inside(detail, kind, loose)

    for method in METHODS:
        if method.name not in hives["methods"] or (method.name in FOR_WRITERS and hives.get("version") == 2):
            continue
        arguments, results = hives["methods"][method.name]
        assert len(arguments) == len(method.arguments), method.name
        for number, wire in enumerate(method.arguments, 1):
            name, kind = arguments[str(number)]
            yield f"{method.name}.{number}", "", name, (wire.code, wire.detail, False), kind
            yield from inside(wire.detail, kind, False)
        result = method.answer.thrift_spec[0] if method.answer.thrift_spec else None
        assert bool(result) == ("0" in results), method.name
        if result:
            yield f"{method.name}.0", "", "success", (result[1], result[3], method.loose), results["0"][1]
            yield from inside(result[3], results["0"][1], method.loose)


def agrees(ours: tuple[int, Any, bool], theirs: Any) -> bool:
    """Whether two types are one on the wire."""
    code, detail, loose = ours
    name = theirs if isinstance(theirs, str) else theirs[0]
    if loose and {CODES[name], code} == {TType.LIST, TType.SET}:
        code = CODES[name]
    if code != CODES[name]:
        return False
    if name in ("LIST", "SET"):
        return agrees((detail[0], detail[1], loose), theirs[1])
    if name == "MAP":
        key, value = agrees((detail[0], detail[1], loose), theirs[1]), agrees((detail[2], detail[3], loose), theirs[2])
        return key and value
    return code != TType.STRING or (detail == "BINARY") == (name == "BINARY")


def words(name: str) -> set[str]:
    parts = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_")
    return {part.removesuffix("name") or part for part in parts} | set(parts)


def test_every_field_has_hives_number_and_type(hives: dict[str, Any]) -> None:
    found = list(walked(hives))
    assert len(found) > 150
    wrong = [(where, ours, theirs) for where, ours, theirs, kind, hive in found if not agrees(kind, hive)]
    assert not wrong


def test_every_field_means_what_hives_does(hives: dict[str, Any]) -> None:
    def alike(ours: str, theirs: str) -> bool:
        mine = words(ours) | {OTHER_WORDS[word] for word in (*words(ours), ours) if word in OTHER_WORDS}
        return bool({word.rstrip("s") for word in mine} & {word.rstrip("s") for word in words(theirs)})

    others = {one.__name__ for one in STRUCTS_OF_WRITERS}
    wrong = [
        (where, ours, theirs)
        for where, ours, theirs, *_ in walked(hives)
        if ours and not alike(ours, theirs) and where.partition(".")[0] not in others
    ]
    assert not wrong


def test_every_exception_has_hives_number(hives: dict[str, Any]) -> None:
    other = "GET_PARTITION_NAMES" if hives["version"] == 2 else "GET_PARTITION_NAMES_BEFORE_3"
    for name, method in DECLARED.items():
        if not isinstance(method, Method) or name == other or method.name not in hives["methods"]:
            continue
        _, results = hives["methods"][method.name]
        theirs = {int(number): kind[1] for number, (_, kind) in results.items() if number != "0"}
        ours = dict(enumerate(method.raises, 1))
        assert {number: ours.get(number) for number in theirs} == theirs, method.name


def test_every_number_of_an_enumeration_is_hives(hives: dict[str, Any]) -> None:
    for name, numbers in ENUMS.items():
        theirs = hives["enums"].get(name, {})
        ours: type[IntEnum] = numbers
        both = {one.name: one.value for one in ours if one.name in theirs}
        assert both == {name: theirs[name] for name in both}
        assert not {one.value: one.name for one in ours}.keys() & {
            value for other, value in theirs.items() if other not in ours.__members__
        }
    capability = hives["enums"]["ClientCapability"].get("INSERT_ONLY_TABLES", 2)  # Hive 2 has no such tables
    assert capability == interface.INSERT_ONLY_TABLES


def test_nothing_is_acidctls_own(folder: Path) -> None:
    """Each method, field and number is of one version at least."""
    versions = [judged(version, folder) for version in VERSIONS]
    known = [one for one in versions if not isinstance(one, str)]
    if len(known) < len(VERSIONS):
        pytest.skip(next(one for one in versions if isinstance(one, str)))
    assert {one.name for one in METHODS} == {name for one in known for name in one["methods"]}
    here = {(where, ours) for one in known for where, ours, *_ in walked(one) if ours}
    all_of_ours = {
        (f"{struct.__name__}.{row[0]}", row[2])
        for struct in DECLARED.values()
        if isinstance(struct, type) and issubclass(struct, Struct)
        for row in filter(None, struct.thrift_spec)
    }
    assert all_of_ours - here == set()
    for name, numbers in ENUMS.items():
        theirs = {other for one in known for other in one["enums"].get(name, {})}
        assert {one.name for one in numbers} <= theirs, name
