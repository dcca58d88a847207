"""The part of the metastore's interface (Hive 2.3 to 4.x) that acidctl uses: structs, enums and methods.

A field that a version lacks is None or empty. Times are milliseconds since the epoch, by the server's clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from acidctl.metastore.wire import (
    BINARY,
    BOOL,
    I16,
    I32,
    I64,
    STRING,
    Struct,
    field,
    list_of,
    map_of,
    method,
    set_of,
    struct,
    untyped_struct,
)

TxnType = IntEnum(
    "TxnType",
    "DEFAULT REPL_CREATED READ_ONLY COMPACTION MATER_VIEW_REBUILD SOFT_DELETE REBALANCE_COMPACTION",
    start=0,
)
"""Types of transactions; before Hive 4 all are DEFAULT."""

TxnState = IntEnum("TxnState", "COMMITTED ABORTED OPEN")
LockType = IntEnum("LockType", "SHARED_READ SHARED_WRITE EXCLUSIVE EXCL_WRITE")
"""Types of locks, which decide what other clients may do."""

LockLevel = IntEnum("LockLevel", "DB TABLE PARTITION")
LockState = IntEnum("LockState", "ACQUIRED WAITING ABORT NOT_ACQUIRED")
Operation = IntEnum("Operation", "SELECT INSERT UPDATE DELETE")
"""Operations that need a lock."""

CompactionType = IntEnum("CompactionType", "MINOR MAJOR REBALANCE ABORT_TXN_CLEANUP SMART_OPTIMIZE")
"""Types of entries in the queue of compactions."""

INSERT_ONLY_TABLES = 2
"""The client capability without which Hive 3 and 4 hide insert-only tables."""


# --- tables ---------------------------------------------------------------------------------------------------------


@struct
class FieldSchema(Struct):
    name: str = field(1, STRING, "")
    type: str = field(2, STRING, "")


@struct
class SerDeInfo(Struct):
    name: str | None = field(1, STRING)
    serialization_lib: str | None = field(2, STRING)
    parameters: Mapping[str, str] = field(3, map_of(STRING, STRING), {})


@struct
class Order(Struct):
    column: str = field(1, STRING, "")
    order: int = field(2, I32, 1)


@struct
class StorageDescriptor(Struct):
    columns: tuple[FieldSchema, ...] = field(1, list_of(FieldSchema), ())
    location: str | None = field(2, STRING)
    input_format: str | None = field(3, STRING)
    buckets: int = field(6, I32, -1)
    serde: SerDeInfo | None = field(7, SerDeInfo)
    bucket_columns: tuple[str, ...] = field(8, list_of(STRING), ())
    sort_columns: tuple[Order, ...] = field(9, list_of(Order), ())
    parameters: Mapping[str, str] = field(10, map_of(STRING, STRING), {})


@struct
class Table(Struct):
    name: str = field(1, STRING, "")
    database: str = field(2, STRING, "")
    owner: str | None = field(3, STRING)
    created: int = field(4, I32, 0)
    storage: StorageDescriptor | None = field(7, StorageDescriptor)
    partition_keys: tuple[FieldSchema, ...] = field(8, list_of(FieldSchema), ())
    parameters: Mapping[str, str] = field(9, map_of(STRING, STRING), {})
    table_type: str | None = field(12, STRING)
    catalog: str | None = field(17, STRING)
    write_id: int = field(19, I64, 0)
    id: int = field(25, I64, 0)


@struct
class PartitionStorage(Struct):
    location: str | None = field(2, STRING)


@struct
class Partition(Struct):
    values: tuple[str, ...] = field(1, list_of(STRING), ())
    storage: PartitionStorage | None = field(6, PartitionStorage)
    parameters: Mapping[str, str] = field(7, map_of(STRING, STRING), {})
    write_id: int = field(10, I64, 0)


@struct
class PartitionFiles(Struct):
    columns: tuple[FieldSchema, ...] = field(1, list_of(FieldSchema), ())
    location: str | None = field(2, STRING)
    input_format: str | None = field(3, STRING)
    serde: SerDeInfo | None = field(7, SerDeInfo)


@struct
class PartitionWithFiles(Struct):
    values: tuple[str, ...] = field(1, list_of(STRING), ())
    storage: PartitionFiles | None = field(6, PartitionFiles)
    parameters: Mapping[str, str] = field(7, map_of(STRING, STRING), {})


@struct
class Database(Struct):
    name: str = field(1, STRING, "")
    location: str | None = field(3, STRING)
    parameters: Mapping[str, str] = field(4, map_of(STRING, STRING), {})
    managed_location: str | None = field(10, STRING)


TableMeta = untyped_struct(
    "TableMeta", database=field(1, STRING, ""), name=field(2, STRING, ""), table_type=field(3, STRING, "")
)
ClientCapabilities = untyped_struct("ClientCapabilities", values=field(1, list_of(I32), (INSERT_ONLY_TABLES,)))
GetTableRequest = untyped_struct(
    "GetTableRequest",
    database=field(1, STRING, ""),
    name=field(2, STRING, ""),
    capabilities=field(3, ClientCapabilities, ClientCapabilities()),
    processor_capabilities=field(8, list_of(STRING)),
    processor=field(9, STRING),
)
GetTableResult = untyped_struct("GetTableResult", table=field(1, Table))
GetTablesRequest = untyped_struct(
    "GetTablesRequest",
    database=field(1, STRING, ""),
    names=field(2, list_of(STRING), ()),
    capabilities=field(3, ClientCapabilities, ClientCapabilities()),
    processor_capabilities=field(5, list_of(STRING)),
    processor=field(6, STRING),
)
GetTablesResult = untyped_struct("GetTablesResult", tables=field(1, list_of(Table), ()))

GET_ALL_DATABASES = method("get_all_databases", (), list_of(STRING), "MetaException")
GET_DATABASE = method("get_database", (STRING,), Database, "NoSuchObjectException MetaException")
GET_TABLE_META = method("get_table_meta", (STRING, STRING, list_of(STRING)), list_of(TableMeta), "MetaException")
GET_TABLE_NAMES_BY_FILTER = method(
    "get_table_names_by_filter",
    (STRING, STRING, I16),
    list_of(STRING),
    "MetaException InvalidOperationException UnknownDBException",
)
GET_TABLE = method("get_table_req", (GetTableRequest,), GetTableResult, "MetaException NoSuchObjectException")
GET_TABLES = method(
    "get_table_objects_by_name_req",
    (GetTablesRequest,),
    GetTablesResult,
    "MetaException InvalidOperationException UnknownDBException",
)
GET_PARTITION_NAMES = method(
    "get_partition_names", (STRING, STRING, I16), list_of(STRING), "NoSuchObjectException MetaException"
)
GET_PARTITION_NAMES_BEFORE_3 = method("get_partition_names", (STRING, STRING, I16), list_of(STRING), "MetaException")
GET_PARTITION_NAMES_PS = method(
    "get_partition_names_ps",
    (STRING, STRING, list_of(STRING), I16),
    list_of(STRING),
    "MetaException NoSuchObjectException",
)
GET_PARTITIONS_BY_NAMES = method(
    "get_partitions_by_names",
    (STRING, STRING, list_of(STRING)),
    list_of(Partition),
    "MetaException NoSuchObjectException InvalidObjectException",
)
GET_PARTITIONS_WITH_FILES = method(
    "get_partitions_by_names",
    (STRING, STRING, list_of(STRING)),
    list_of(PartitionWithFiles),
    "MetaException NoSuchObjectException InvalidObjectException",
)


# --- transactions ---------------------------------------------------------------------------------------------------


@struct
class OpenTxnRequest(Struct):
    count: int = field(1, I32, 1)
    user: str = field(2, STRING, "")
    host: str = field(3, STRING, "")
    agent: str = field(4, STRING, "acidctl")
    txn_type: int | None = field(7, I32)


OpenTxnsResponse = untyped_struct("OpenTxnsResponse", txn_ids=field(1, list_of(I64), ()))


@struct
class AbortTxnRequest(Struct):
    txn: int = field(1, I64, 0)
    error_code: int | None = field(4, I64)


@struct
class AbortTxnsRequest(Struct):
    txns: tuple[int, ...] = field(1, list_of(I64), ())
    error_code: int | None = field(2, I64)


@struct
class CommitTxnRequest(Struct):
    txn: int = field(1, I64, 0)
    exclusive_writes: bool | None = field(6, BOOL)


GetOpenTxnsRequest = untyped_struct("GetOpenTxnsRequest", excluded_types=field(1, list_of(I32), ()))


@struct
class OpenTxns(Struct):
    high_watermark: int = field(1, I64, 0)
    txns: tuple[int, ...] = field(2, list_of(I64), ())
    min_open: int | None = field(3, I64)
    aborted_bits: bytes = field(4, BINARY, b"")


@struct
class TxnInfo(Struct):
    id: int = field(1, I64, 0)
    state: int = field(2, I32, 0)
    user: str = field(3, STRING, "")
    host: str = field(4, STRING, "")
    agent: str | None = field(5, STRING)
    meta_info: str | None = field(7, STRING)
    started: int | None = field(8, I64)
    last_heartbeat: int | None = field(9, I64)


@struct
class OpenTxnsInfo(Struct):
    high_watermark: int = field(1, I64, 0)
    txns: tuple[TxnInfo, ...] = field(2, list_of(TxnInfo), ())


ValidWriteIdsRequest = untyped_struct(
    "ValidWriteIdsRequest", tables=field(1, list_of(STRING), ()), txns=field(2, STRING)
)
MaxAllocatedRequest = untyped_struct("MaxAllocatedRequest", database=field(1, STRING, ""), table=field(2, STRING, ""))
MaxAllocated = untyped_struct("MaxAllocated", write_id=field(1, I64, 0))


@struct
class TableWriteIds(Struct):
    table: str = field(1, STRING, "")
    high_watermark: int = field(2, I64, 0)
    invalid: tuple[int, ...] = field(3, list_of(I64), ())
    min_open: int | None = field(4, I64)
    aborted_bits: bytes = field(5, BINARY, b"")


ValidWriteIdsResponse = untyped_struct("ValidWriteIdsResponse", tables=field(1, list_of(TableWriteIds), ()))


@struct
class HeartbeatRequest(Struct):
    lock: int | None = field(1, I64)
    txn: int | None = field(2, I64)


HeartbeatTxnRangeRequest = untyped_struct("HeartbeatTxnRangeRequest", first=field(1, I64, 0), last=field(2, I64, 0))
HeartbeatTxnRangeResponse = untyped_struct(
    "HeartbeatTxnRangeResponse", aborted=field(1, set_of(I64), frozenset()), unknown=field(2, set_of(I64), frozenset())
)

_GONE = "NoSuchTxnException TxnAbortedException"

GET_OPEN_TXNS = method("get_open_txns", (), OpenTxns, loose=True)
GET_OPEN_TXNS_REQ = method("get_open_txns_req", (GetOpenTxnsRequest,), OpenTxns)
GET_OPEN_TXNS_INFO = method("get_open_txns_info", (), OpenTxnsInfo)
GET_VALID_WRITE_IDS = method(
    "get_valid_write_ids", (ValidWriteIdsRequest,), ValidWriteIdsResponse, "NoSuchTxnException MetaException"
)
GET_MAX_ALLOCATED = method("get_max_allocated_table_write_id", (MaxAllocatedRequest,), MaxAllocated, "MetaException")
OPEN_TXNS = method("open_txns", (OpenTxnRequest,), OpenTxnsResponse, repeatable=False)
ABORT_TXN = method("abort_txn", (AbortTxnRequest,), None, "NoSuchTxnException", repeatable=False)
ABORT_TXNS = method("abort_txns", (AbortTxnsRequest,), None, "NoSuchTxnException", repeatable=False)
COMMIT_TXN = method("commit_txn", (CommitTxnRequest,), None, _GONE, repeatable=False)
ADD_WRITE_IDS_TO_MIN_HISTORY = method("add_write_ids_to_min_history", (I64, map_of(STRING, I64)), None, "MetaException")
HEARTBEAT = method("heartbeat", (HeartbeatRequest,), None, "NoSuchLockException NoSuchTxnException TxnAbortedException")
HEARTBEAT_TXN_RANGE = method("heartbeat_txn_range", (HeartbeatTxnRangeRequest,), HeartbeatTxnRangeResponse)


# --- locks ----------------------------------------------------------------------------------------------------------


@struct
class LockComponent(Struct):
    type: int = field(1, I32, LockType.SHARED_READ)
    level: int = field(2, I32, LockLevel.TABLE)
    database: str = field(3, STRING, "")
    table: str | None = field(4, STRING)
    partition: str | None = field(5, STRING)
    operation: int = field(6, I32, Operation.SELECT)
    is_transactional: bool = field(7, BOOL, True)
    is_dynamic: bool | None = field(8, BOOL)


@struct
class LockRequest(Struct):
    components: tuple[LockComponent, ...] = field(1, list_of(LockComponent), ())
    txn: int | None = field(2, I64)
    user: str = field(3, STRING, "")
    host: str = field(4, STRING, "")
    agent: str = field(5, STRING, "acidctl")
    zero_wait: bool | None = field(6, BOOL)


LockResponse = untyped_struct("LockResponse", lock=field(1, I64, 0), state=field(2, I32, 0), message=field(3, STRING))
CheckLockRequest = untyped_struct("CheckLockRequest", lock=field(1, I64, 0), txn=field(2, I64))


@struct
class UnlockRequest(Struct):
    lock: int = field(1, I64, 0)


ShowLocksRequest = untyped_struct(
    "ShowLocksRequest", database=field(1, STRING), table=field(2, STRING), partition=field(3, STRING), txn=field(5, I64)
)


@struct
class LockInfo(Struct):
    lock: int = field(1, I64, 0)
    database: str = field(2, STRING, "")
    table: str | None = field(3, STRING)
    partition: str | None = field(4, STRING)
    state: int = field(5, I32, 0)
    type: int = field(6, I32, 0)
    txn: int | None = field(7, I64)
    last_heartbeat: int = field(8, I64, 0)
    acquired: int | None = field(9, I64)
    user: str = field(10, STRING, "")
    host: str = field(11, STRING, "")
    agent: str | None = field(13, STRING)
    blocked_by: int | None = field(14, I64)
    blocked_by_part: int | None = field(15, I64)
    part: int | None = field(16, I64)


ShowLocksResponse = untyped_struct("ShowLocksResponse", locks=field(1, list_of(LockInfo), ()))

LOCK = method("lock", (LockRequest,), LockResponse, _GONE, repeatable=False)
CHECK_LOCK = method("check_lock", (CheckLockRequest,), LockResponse, f"{_GONE} NoSuchLockException")
UNLOCK = method("unlock", (UnlockRequest,), None, "NoSuchLockException TxnOpenException", repeatable=False)
SHOW_LOCKS = method("show_locks", (ShowLocksRequest,), ShowLocksResponse)


# --- the queue of compactions ---------------------------------------------------------------------------------------


@struct
class CompactionRequest(Struct):
    database: str = field(1, STRING, "")
    table: str = field(2, STRING, "")
    partition: str | None = field(3, STRING)
    type: int = field(4, I32, CompactionType.MAJOR)
    run_as: str | None = field(5, STRING)
    properties: Mapping[str, str] | None = field(6, map_of(STRING, STRING))
    initiator: str | None = field(7, STRING)
    initiator_version: str | None = field(8, STRING)
    pool: str | None = field(9, STRING)
    buckets: int | None = field(10, I32)
    order_by: str | None = field(11, STRING)


@struct
class CompactionResponse(Struct):
    """A metastore's answer to a request for a compaction.

    Attributes:
        id: of the new entry, or of the existing entry that blocks the request; 0 if unknown.
        state: of that entry.
        accepted: whether the entry is new.
        message: the server's words; empty if there are none.
    """

    id: int = field(1, I64, 0)
    state: str = field(2, STRING, "")
    accepted: bool = field(3, BOOL, False)
    message: str = field(4, STRING, "")


ShowCompactRequest = untyped_struct(
    "ShowCompactRequest",
    id=field(1, I64),
    pool=field(2, STRING),
    database=field(3, STRING),
    table=field(4, STRING),
    partition=field(5, STRING),
    type=field(6, I32),
    state=field(7, STRING),
    limit=field(8, I64),
    order=field(9, STRING),
)


@struct
class CompactionInfo(Struct):
    database: str = field(1, STRING, "")
    table: str = field(2, STRING, "")
    partition: str | None = field(3, STRING)
    type: int = field(4, I32, 0)
    state: str = field(5, STRING, "")
    worker: str | None = field(6, STRING)
    started: int | None = field(7, I64)
    run_as: str | None = field(8, STRING)
    highest_txn: int | None = field(9, I64)
    meta_info: str | None = field(10, STRING)
    ended: int | None = field(11, I64)
    job: str | None = field(12, STRING)
    id: int | None = field(13, I64)
    error: str | None = field(14, STRING)
    enqueued: int | None = field(15, I64)
    initiator: str | None = field(17, STRING)
    initiator_version: str | None = field(18, STRING)
    cleaner_start: int | None = field(19, I64)
    pool: str | None = field(20, STRING)
    next_txn: int | None = field(21, I64)
    txn: int | None = field(22, I64)
    committed: int | None = field(23, I64)
    highest_write_id: int | None = field(24, I64)


ShowCompactResponse = untyped_struct("ShowCompactResponse", entries=field(1, list_of(CompactionInfo), ()))


@struct
class AbortCompactionsRequest(Struct):
    ids: tuple[int, ...] = field(1, list_of(I64), ())


AbortedCompaction = untyped_struct(
    "AbortedCompaction", id=field(1, I64, 0), status=field(2, STRING), message=field(3, STRING)
)
AbortCompactionsResponse = untyped_struct(
    "AbortCompactionsResponse", aborted=field(1, map_of(I64, AbortedCompaction), {})
)

COMPACT = method("compact2", (CompactionRequest,), CompactionResponse, repeatable=False)
SHOW_COMPACT = method("show_compact", (ShowCompactRequest,), ShowCompactResponse)
ABORT_COMPACTIONS = method("abort_Compactions", (AbortCompactionsRequest,), AbortCompactionsResponse, repeatable=False)


@struct
class QueueEntry(Struct):
    id: int = field(1, I64, 0)
    database: str = field(2, STRING, "")
    table: str = field(3, STRING, "")
    partition: str | None = field(4, STRING)
    type: int = field(5, I32, CompactionType.MAJOR)
    run_as: str | None = field(6, STRING)
    properties: str | None = field(7, STRING)
    too_many_aborts: bool | None = field(8, BOOL)
    state: str | None = field(9, STRING)
    worker: str | None = field(10, STRING)
    started: int | None = field(11, I64)
    highest_write_id: int | None = field(12, I64)
    error: str | None = field(13, STRING)
    has_old_abort: bool | None = field(14, BOOL)
    enqueued: int | None = field(15, I64)
    retry_retention: int | None = field(16, I64)
    pool: str | None = field(17, STRING)
    buckets: int | None = field(18, I32)
    order_by: str | None = field(19, STRING)

    @property
    def name(self) -> str:
        """``db.table`` or ``db.table/day=1``."""
        return f"{self.database}.{self.table}" + (f"/{self.partition}" if self.partition else "")


MaybeQueueEntry = untyped_struct("MaybeQueueEntry", entry=field(1, QueueEntry))


@struct
class FindNextCompactRequest(Struct):
    worker: str | None = field(1, STRING)
    worker_version: str | None = field(2, STRING)
    pool: str | None = field(3, STRING)


FIND_NEXT_COMPACT = method(
    "find_next_compact2", (FindNextCompactRequest,), MaybeQueueEntry, "MetaException", repeatable=False
)
UPDATE_COMPACTOR_STATE = method("update_compactor_state", (QueueEntry, I64))


SET_HADOOP_JOBID = method("set_hadoop_jobid", (STRING, I64))
MARK_COMPACTED = method("mark_compacted", (QueueEntry,), None, "MetaException", repeatable=False)
MARK_FAILED = method("mark_failed", (QueueEntry,), None, "MetaException", repeatable=False)
MARK_REFUSED = method("mark_refused", (QueueEntry,), None, "MetaException", repeatable=False)
MARK_CLEANED = method("mark_cleaned", (QueueEntry,), None, "MetaException", repeatable=False)


# --- the server itself ----------------------------------------------------------------------------------------------

SET_UGI = method("set_ugi", (STRING, list_of(STRING)), list_of(STRING), "MetaException")
GET_CONFIG_VALUE = method("get_config_value", (STRING, STRING), STRING, "ConfigValSecurityException")
GET_VERSION = method("getVersion", (), STRING)
GET_DELEGATION_TOKEN = method("get_delegation_token", (STRING, STRING), STRING, "MetaException")
