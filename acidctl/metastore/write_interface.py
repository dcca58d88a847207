"""The part of the metastore's interface that writers of rows use: write ids, partitions, statistics."""

from __future__ import annotations

from collections.abc import Mapping

from thrift.Thrift import TType

from acidctl.metastore.interface import GetTableRequest, Operation
from acidctl.metastore.lossless import RawStruct
from acidctl.metastore.wire import BOOL, I32, I64, STRING, Struct, WireType, field, list_of, map_of, method, struct

RAW = WireType(TType.STRUCT, [RawStruct, None])

TABLE_PARAMETERS, TABLE_WRITE_ID = 9, 19
PARTITION_PARAMETERS, PARTITION_WRITE_ID = 7, 10
"""Numbers of fields of a table and of a partition."""


@struct
class TxnToWriteId(Struct):
    txn: int = field(1, I64, 0)
    write_id: int = field(2, I64, 0)


@struct
class AllocateWriteIdsRequest(Struct):
    database: str = field(1, STRING, "")
    table: str = field(2, STRING, "")
    txns: tuple[int, ...] = field(3, list_of(I64), ())
    reallocate: bool | None = field(6, BOOL)


@struct
class AllocateWriteIdsResponse(Struct):
    write_ids: tuple[TxnToWriteId, ...] = field(1, list_of(TxnToWriteId), ())


@struct
class DynamicPartitions(Struct):
    txn: int = field(1, I64, 0)
    write_id: int = field(2, I64, 0)
    database: str = field(3, STRING, "")
    table: str = field(4, STRING, "")
    partitions: tuple[str, ...] = field(5, list_of(STRING), ())
    operation: int = field(6, I32, Operation.INSERT)


@struct
class RawTableResult(Struct):
    table: RawStruct | None = field(1, RAW)


@struct
class EnvironmentContext(Struct):
    properties: Mapping[str, str] = field(1, map_of(STRING, STRING), {})


@struct
class AlterTableRequest(Struct):
    database: str = field(2, STRING, "")
    name: str = field(3, STRING, "")
    table: RawStruct | None = field(4, RAW)
    context: EnvironmentContext | None = field(5, EnvironmentContext)
    write_id: int = field(6, I64, -1)
    valid_write_ids: str | None = field(7, STRING)


@struct
class AlterTableResponse(Struct):
    pass


@struct
class AlterPartitionsRequest(Struct):
    database: str = field(2, STRING, "")
    table: str = field(3, STRING, "")
    partitions: tuple[RawStruct, ...] = field(4, list_of(RAW), ())
    context: EnvironmentContext | None = field(5, EnvironmentContext)
    write_id: int = field(6, I64, -1)
    valid_write_ids: str | None = field(7, STRING)


@struct
class AddPartitionsRequest(Struct):
    database: str = field(1, STRING, "")
    table: str = field(2, STRING, "")
    partitions: tuple[RawStruct, ...] = field(3, list_of(RAW), ())
    if_not_exists: bool = field(4, BOOL, True)
    need_result: bool = field(5, BOOL, False)
    valid_write_ids: str | None = field(7, STRING)


@struct
class AddPartitionsResult(Struct):
    partitions: tuple[RawStruct, ...] = field(1, list_of(RAW), ())


@struct
class ConstraintsRequest(Struct):
    catalog: str = field(1, STRING, "hive")
    database: str = field(2, STRING, "")
    table: str = field(3, STRING, "")


@struct
class NotNull(Struct):
    column: str = field(4, STRING, "")
    is_enabled: bool = field(6, BOOL, False)


@struct
class ColumnConstraint(Struct):
    """A default, or a check: its text is an expression in HiveQL."""

    column: str = field(4, STRING, "")
    text: str = field(5, STRING, "")
    is_enabled: bool = field(7, BOOL, False)


@struct
class NotNullResponse(Struct):
    constraints: tuple[NotNull, ...] = field(1, list_of(NotNull), ())


@struct
class ConstraintsResponse(Struct):
    constraints: tuple[ColumnConstraint, ...] = field(1, list_of(ColumnConstraint), ())


_GONE = "NoSuchTxnException TxnAbortedException MetaException"
_ALTER = "InvalidOperationException MetaException"

ALLOCATE_WRITE_IDS = method(
    "allocate_table_write_ids", (AllocateWriteIdsRequest,), AllocateWriteIdsResponse, _GONE, repeatable=False
)
LATEST_TXN_IN_CONFLICT = method("get_latest_txnid_in_conflict", (I64,), I64, "MetaException")
ADD_DYNAMIC_PARTITIONS = method(
    "add_dynamic_partitions", (DynamicPartitions,), None, "NoSuchTxnException TxnAbortedException"
)
GET_RAW_TABLE = method(
    "get_table_req", (GetTableRequest,), RawTableResult, "MetaException NoSuchObjectException", raw=True
)
GET_RAW_PARTITIONS = method(
    "get_partitions_by_names",
    (STRING, STRING, list_of(STRING)),
    list_of(RAW),
    "MetaException NoSuchObjectException InvalidObjectException",
    raw=True,
)
_ABSENT = "MetaException NoSuchObjectException"
GET_NOT_NULL = method("get_not_null_constraints", (ConstraintsRequest,), NotNullResponse, _ABSENT)
GET_DEFAULTS = method("get_default_constraints", (ConstraintsRequest,), ConstraintsResponse, _ABSENT)
GET_CHECKS = method("get_check_constraints", (ConstraintsRequest,), ConstraintsResponse, _ABSENT)
ALTER_TABLE = method("alter_table_req", (AlterTableRequest,), AlterTableResponse, _ALTER, raw=True)
ALTER_PARTITIONS = method("alter_partitions_req", (AlterPartitionsRequest,), AlterTableResponse, _ALTER, raw=True)
ALTER_TABLE_OF_HIVE_3 = method(
    "alter_table_with_environment_context", (STRING, STRING, RAW, EnvironmentContext), None, _ALTER, raw=True
)
ALTER_PARTITIONS_OF_HIVE_3 = method(
    "alter_partitions_with_environment_context",
    (STRING, STRING, list_of(RAW), EnvironmentContext),
    None,
    _ALTER,
    raw=True,
)
ADD_PARTITIONS = method(
    "add_partitions_req",
    (AddPartitionsRequest,),
    AddPartitionsResult,
    "InvalidObjectException AlreadyExistsException MetaException",
    raw=True,
)
