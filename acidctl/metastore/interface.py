"""The part of the metastore's interface that acidctl uses, as of Hive 2.3 to 4.x: structs, enums and methods.

Fields that a version lacks are None or empty there. Times are milliseconds since the epoch, of the server's clock.
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
    struct_type,
)


class TxnType(IntEnum):
    """Kinds of transactions; before Hive 4 all are DEFAULT."""

    DEFAULT = 0
    REPL_CREATED = 1
    READ_ONLY = 2
    COMPACTION = 3
    MATER_VIEW_REBUILD = 4
    SOFT_DELETE = 5
    REBALANCE_COMPACTION = 6


class TxnState(IntEnum):
    """States of a transaction that is still known."""

    COMMITTED = 1
    ABORTED = 2
    OPEN = 3


class LockType(IntEnum):
    """What a lock allows others."""

    SHARED_READ = 1
    SHARED_WRITE = 2
    EXCLUSIVE = 3
    EXCL_WRITE = 4


class LockLevel(IntEnum):
    """What a lock is on."""

    DB = 1
    TABLE = 2
    PARTITION = 3


class LockState(IntEnum):
    """Whether a lock is held."""

    ACQUIRED = 1
    WAITING = 2
    ABORT = 3
    NOT_ACQUIRED = 4


class Operation(IntEnum):
    """What a lock is taken for."""

    SELECT = 1
    INSERT = 2
    UPDATE = 3
    DELETE = 4


class CompactionType(IntEnum):
    """Kinds of entries in the queue."""

    MINOR = 1
    MAJOR = 2
    REBALANCE = 3
    ABORT_TXN_CLEANUP = 4
    SMART_OPTIMIZE = 5


INSERT_ONLY_TABLES = 2
"""The capability without which Hive 3 and 4 hide insert-only tables."""


# --- tables ---------------------------------------------------------------------------------------------------------


@struct
class FieldSchema(Struct):
    """A column."""

    name: str = field(1, STRING, "")
    type: str = field(2, STRING, "")


@struct
class SerDeInfo(Struct):
    """How rows are written in files."""

    name: str | None = field(1, STRING)
    serialization_lib: str | None = field(2, STRING)
    parameters: Mapping[str, str] = field(3, map_of(STRING, STRING), {})


@struct
class Order(Struct):
    """A column that rows are sorted by; 1 is ascending."""

    column: str = field(1, STRING, "")
    order: int = field(2, I32, 1)


@struct
class StorageDescriptor(Struct):
    """Where and how a table or a partition is stored."""

    columns: tuple[FieldSchema, ...] = field(1, list_of(struct_type(FieldSchema)), ())
    location: str | None = field(2, STRING)
    input_format: str | None = field(3, STRING)
    buckets: int = field(6, I32, -1)
    serde: SerDeInfo | None = field(7, struct_type(SerDeInfo))
    bucket_columns: tuple[str, ...] = field(8, list_of(STRING), ())
    sort_columns: tuple[Order, ...] = field(9, list_of(struct_type(Order)), ())
    parameters: Mapping[str, str] = field(10, map_of(STRING, STRING), {})


@struct
class Table(Struct):
    """A table, as the metastore has it."""

    name: str = field(1, STRING, "")
    database: str = field(2, STRING, "")
    owner: str | None = field(3, STRING)
    created: int = field(4, I32, 0)
    storage: StorageDescriptor | None = field(7, struct_type(StorageDescriptor))
    partition_keys: tuple[FieldSchema, ...] = field(8, list_of(struct_type(FieldSchema)), ())
    parameters: Mapping[str, str] = field(9, map_of(STRING, STRING), {})
    table_type: str | None = field(12, STRING)
    catalog: str | None = field(17, STRING)
    id: int = field(25, I64, 0)


@struct
class PartitionStorage(Struct):
    """Where a partition is stored; of its :class:`StorageDescriptor` no more is read."""

    location: str | None = field(2, STRING)


@struct
class Partition(Struct):
    """A partition, as the metastore has it: only what does not repeat its table."""

    values: tuple[str, ...] = field(1, list_of(STRING), ())
    storage: PartitionStorage | None = field(6, struct_type(PartitionStorage))
    parameters: Mapping[str, str] = field(7, map_of(STRING, STRING), {})


@struct
class PartitionFiles(Struct):
    """How the files of a partition are written, too."""

    columns: tuple[FieldSchema, ...] = field(1, list_of(struct_type(FieldSchema)), ())
    location: str | None = field(2, STRING)
    input_format: str | None = field(3, STRING)
    serde: SerDeInfo | None = field(7, struct_type(SerDeInfo))


@struct
class PartitionWithFiles(Struct):
    """A partition with what may differ from its table in how its files are written."""

    values: tuple[str, ...] = field(1, list_of(STRING), ())
    storage: PartitionFiles | None = field(6, struct_type(PartitionFiles))
    parameters: Mapping[str, str] = field(7, map_of(STRING, STRING), {})


@struct
class Database(Struct):
    """A database."""

    name: str = field(1, STRING, "")
    location: str | None = field(3, STRING)
    parameters: Mapping[str, str] = field(4, map_of(STRING, STRING), {})
    managed_location: str | None = field(10, STRING)


@struct
class TableMeta(Struct):
    """A table's name and kind."""

    database: str = field(1, STRING, "")
    name: str = field(2, STRING, "")
    table_type: str = field(3, STRING, "")


@struct
class ClientCapabilities(Struct):
    """What a client says that it can do."""

    values: tuple[int, ...] = field(1, list_of(I32), (INSERT_ONLY_TABLES,))


@struct
class GetTableRequest(Struct):
    """Which table is asked for."""

    database: str = field(1, STRING, "")
    name: str = field(2, STRING, "")
    capabilities: ClientCapabilities = field(3, struct_type(ClientCapabilities), ClientCapabilities())
    processor_capabilities: tuple[str, ...] | None = field(8, list_of(STRING))
    processor: str | None = field(9, STRING)


@struct
class GetTableResult(Struct):
    """The table that was asked for."""

    table: Table | None = field(1, struct_type(Table))


@struct
class GetTablesRequest(Struct):
    """Which tables of a database are asked for."""

    database: str = field(1, STRING, "")
    names: tuple[str, ...] = field(2, list_of(STRING), ())
    capabilities: ClientCapabilities = field(3, struct_type(ClientCapabilities), ClientCapabilities())
    processor_capabilities: tuple[str, ...] | None = field(5, list_of(STRING))
    processor: str | None = field(6, STRING)


@struct
class GetTablesResult(Struct):
    """Those of them that there are."""

    tables: tuple[Table, ...] = field(1, list_of(struct_type(Table)), ())


GET_ALL_DATABASES = method("get_all_databases", (), list_of(STRING), "MetaException")
GET_DATABASE = method("get_database", (STRING,), struct_type(Database), "NoSuchObjectException MetaException")
GET_TABLE_META = method(
    "get_table_meta", (STRING, STRING, list_of(STRING)), list_of(struct_type(TableMeta)), "MetaException"
)
GET_TABLE_NAMES_BY_FILTER = method(
    "get_table_names_by_filter",
    (STRING, STRING, I16),
    list_of(STRING),
    "MetaException InvalidOperationException UnknownDBException",
)
GET_TABLE = method(
    "get_table_req", (struct_type(GetTableRequest),), struct_type(GetTableResult), "MetaException NoSuchObjectException"
)
GET_TABLES = method(
    "get_table_objects_by_name_req",
    (struct_type(GetTablesRequest),),
    struct_type(GetTablesResult),
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
    list_of(struct_type(Partition)),
    "MetaException NoSuchObjectException InvalidObjectException",
)
GET_PARTITIONS_WITH_FILES = method(
    "get_partitions_by_names",
    (STRING, STRING, list_of(STRING)),
    list_of(struct_type(PartitionWithFiles)),
    "MetaException NoSuchObjectException InvalidObjectException",
)


# --- transactions ---------------------------------------------------------------------------------------------------


@struct
class OpenTxnRequest(Struct):
    """How many transactions are to be opened, and by whom."""

    count: int = field(1, I32, 1)
    user: str = field(2, STRING, "")
    host: str = field(3, STRING, "")
    agent: str = field(4, STRING, "acidctl")
    txn_type: int | None = field(7, I32)


@struct
class OpenTxnsResponse(Struct):
    """Their ids."""

    txn_ids: tuple[int, ...] = field(1, list_of(I64), ())


@struct
class AbortTxnRequest(Struct):
    """Which transaction is to be aborted; why, as one of Hive's error codes (Hive 4)."""

    txn: int = field(1, I64, 0)
    error_code: int | None = field(4, I64)


@struct
class AbortTxnsRequest(Struct):
    """Which transactions are to be aborted; why, as one of Hive's error codes."""

    txns: tuple[int, ...] = field(1, list_of(I64), ())
    error_code: int | None = field(2, I64)


@struct
class CommitTxnRequest(Struct):
    """Which transaction is to be committed."""

    txn: int = field(1, I64, 0)


@struct
class GetOpenTxnsRequest(Struct):
    """Which kinds of transactions do not count (Hive 4)."""

    excluded_types: tuple[int, ...] = field(1, list_of(I32), ())


@struct
class OpenTxns(Struct):
    """What the server knows of transactions now.

    Attributes:
        txns: open and aborted ones, ascending; None where the server sends none.
        aborted_bits: bit i, least significant first, says that `txns[i]` is aborted. Hive 2.3 does not tell.
    """

    high_watermark: int = field(1, I64, 0)
    txns: tuple[int, ...] = field(2, list_of(I64), ())
    min_open: int | None = field(3, I64)
    aborted_bits: bytes = field(4, BINARY, b"")


@struct
class TxnInfo(Struct):
    """One transaction that is open or aborted."""

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
    """All of them."""

    high_watermark: int = field(1, I64, 0)
    txns: tuple[TxnInfo, ...] = field(2, list_of(struct_type(TxnInfo)), ())


@struct
class ValidWriteIdsRequest(Struct):
    """Of which tables (``db.table``) the write ids are asked for, as of which transactions."""

    tables: tuple[str, ...] = field(1, list_of(STRING), ())
    txns: str | None = field(2, STRING)


@struct
class MaxAllocatedRequest(Struct):
    """Asks for the highest write id of a table."""

    database: str = field(1, STRING, "")
    table: str = field(2, STRING, "")


@struct
class MaxAllocated(Struct):
    """The highest write id that was ever given for a table; 0 for one that has none."""

    write_id: int = field(1, I64, 0)


@struct
class TableWriteIds(Struct):
    """The write ids of one table.

    Attributes:
        invalid: open and aborted ones, ascending.
        aborted_bits: as of :class:`OpenTxns`.
    """

    table: str = field(1, STRING, "")
    high_watermark: int = field(2, I64, 0)
    invalid: tuple[int, ...] = field(3, list_of(I64), ())
    min_open: int | None = field(4, I64)
    aborted_bits: bytes = field(5, BINARY, b"")


@struct
class ValidWriteIdsResponse(Struct):
    """Those of all tables."""

    tables: tuple[TableWriteIds, ...] = field(1, list_of(struct_type(TableWriteIds)), ())


@struct
class HeartbeatRequest(Struct):
    """Of what a sign of life is given."""

    lock: int | None = field(1, I64)
    txn: int | None = field(2, I64)


@struct
class HeartbeatTxnRangeRequest(Struct):
    """Of which transactions, first and last, a sign of life is given."""

    first: int = field(1, I64, 0)
    last: int = field(2, I64, 0)


@struct
class HeartbeatTxnRangeResponse(Struct):
    """Those of them that are not open any more."""

    aborted: frozenset[int] = field(1, set_of(I64), frozenset())
    unknown: frozenset[int] = field(2, set_of(I64), frozenset())


_GONE = "NoSuchTxnException TxnAbortedException"

GET_OPEN_TXNS = method("get_open_txns", (), struct_type(OpenTxns), loose=True)
GET_OPEN_TXNS_REQ = method("get_open_txns_req", (struct_type(GetOpenTxnsRequest),), struct_type(OpenTxns))
GET_OPEN_TXNS_INFO = method("get_open_txns_info", (), struct_type(OpenTxnsInfo))
GET_VALID_WRITE_IDS = method(
    "get_valid_write_ids",
    (struct_type(ValidWriteIdsRequest),),
    struct_type(ValidWriteIdsResponse),
    "NoSuchTxnException MetaException",
)
GET_MAX_ALLOCATED = method(
    "get_max_allocated_table_write_id",
    (struct_type(MaxAllocatedRequest),),
    struct_type(MaxAllocated),
    "MetaException",
)
OPEN_TXNS = method("open_txns", (struct_type(OpenTxnRequest),), struct_type(OpenTxnsResponse), repeatable=False)
ABORT_TXN = method("abort_txn", (struct_type(AbortTxnRequest),), None, "NoSuchTxnException", repeatable=False)
ABORT_TXNS = method("abort_txns", (struct_type(AbortTxnsRequest),), None, "NoSuchTxnException", repeatable=False)
COMMIT_TXN = method("commit_txn", (struct_type(CommitTxnRequest),), None, _GONE, repeatable=False)
ADD_WRITE_IDS_TO_MIN_HISTORY = method("add_write_ids_to_min_history", (I64, map_of(STRING, I64)), None, "MetaException")
HEARTBEAT = method(
    "heartbeat", (struct_type(HeartbeatRequest),), None, "NoSuchLockException NoSuchTxnException TxnAbortedException"
)
HEARTBEAT_TXN_RANGE = method(
    "heartbeat_txn_range", (struct_type(HeartbeatTxnRangeRequest),), struct_type(HeartbeatTxnRangeResponse)
)


# --- locks ----------------------------------------------------------------------------------------------------------


@struct
class LockComponent(Struct):
    """One thing that a lock is on."""

    type: int = field(1, I32, LockType.SHARED_READ)
    level: int = field(2, I32, LockLevel.TABLE)
    database: str = field(3, STRING, "")
    table: str | None = field(4, STRING)
    partition: str | None = field(5, STRING)
    operation: int = field(6, I32, Operation.SELECT)
    is_transactional: bool = field(7, BOOL, True)


@struct
class LockRequest(Struct):
    """A lock that is asked for."""

    components: tuple[LockComponent, ...] = field(1, list_of(struct_type(LockComponent)), ())
    txn: int | None = field(2, I64)
    user: str = field(3, STRING, "")
    host: str = field(4, STRING, "")
    agent: str = field(5, STRING, "acidctl")
    zero_wait: bool | None = field(6, BOOL)


@struct
class LockResponse(Struct):
    """Whether it is held."""

    lock: int = field(1, I64, 0)
    state: int = field(2, I32, 0)
    message: str | None = field(3, STRING)


@struct
class CheckLockRequest(Struct):
    """Which lock, that was not to be had at once, is asked for again."""

    lock: int = field(1, I64, 0)
    txn: int | None = field(2, I64)


@struct
class UnlockRequest(Struct):
    """Which lock, of no transaction, is given back."""

    lock: int = field(1, I64, 0)


@struct
class ShowLocksRequest(Struct):
    """Which locks are to be shown; all of them without anything."""

    database: str | None = field(1, STRING)
    table: str | None = field(2, STRING)
    partition: str | None = field(3, STRING)
    txn: int | None = field(5, I64)


@struct
class LockInfo(Struct):
    """One component of a lock that is held or waits."""

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


@struct
class ShowLocksResponse(Struct):
    """All of them."""

    locks: tuple[LockInfo, ...] = field(1, list_of(struct_type(LockInfo)), ())


LOCK = method("lock", (struct_type(LockRequest),), struct_type(LockResponse), _GONE, repeatable=False)
CHECK_LOCK = method(
    "check_lock", (struct_type(CheckLockRequest),), struct_type(LockResponse), f"{_GONE} NoSuchLockException"
)
UNLOCK = method("unlock", (struct_type(UnlockRequest),), None, "NoSuchLockException TxnOpenException", repeatable=False)
SHOW_LOCKS = method("show_locks", (struct_type(ShowLocksRequest),), struct_type(ShowLocksResponse))


# --- the queue of compactions ---------------------------------------------------------------------------------------


@struct
class CompactionRequest(Struct):
    """A compaction that is asked for; what stands after `properties` is of Hive 4."""

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
    """What became of the request."""

    id: int = field(1, I64, 0)
    state: str = field(2, STRING, "")
    accepted: bool = field(3, BOOL, False)
    message: str | None = field(4, STRING)


@struct
class ShowCompactRequest(Struct):
    """Which entries are to be shown; before Hive 4 all of them."""

    id: int | None = field(1, I64)
    pool: str | None = field(2, STRING)
    database: str | None = field(3, STRING)
    table: str | None = field(4, STRING)
    partition: str | None = field(5, STRING)
    type: int | None = field(6, I32)
    state: str | None = field(7, STRING)
    limit: int | None = field(8, I64)
    order: str | None = field(9, STRING)


@struct
class CompactionInfo(Struct):
    """One entry of the queue or of its history, as SHOW COMPACTIONS has it."""

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


@struct
class ShowCompactResponse(Struct):
    """All of them."""

    entries: tuple[CompactionInfo, ...] = field(1, list_of(struct_type(CompactionInfo)), ())


@struct
class AbortCompactionsRequest(Struct):
    """Which entries, that wait, are to be taken out of the queue (Hive 4)."""

    ids: tuple[int, ...] = field(1, list_of(I64), ())


@struct
class AbortedCompaction(Struct):
    """What became of one."""

    id: int = field(1, I64, 0)
    status: str | None = field(2, STRING)
    message: str | None = field(3, STRING)


@struct
class AbortCompactionsResponse(Struct):
    """Of all, by id."""

    aborted: Mapping[int, AbortedCompaction] = field(1, map_of(I64, struct_type(AbortedCompaction)), {})


COMPACT = method("compact2", (struct_type(CompactionRequest),), struct_type(CompactionResponse), repeatable=False)
SHOW_COMPACT = method("show_compact", (struct_type(ShowCompactRequest),), struct_type(ShowCompactResponse))
ABORT_COMPACTIONS = method(
    "abort_Compactions",
    (struct_type(AbortCompactionsRequest),),
    struct_type(AbortCompactionsResponse),
    repeatable=False,
)


@struct
class QueueEntry(Struct):
    """An entry of the queue as workers know it (Hive 4).

    Attributes:
        properties: as Hive's StringableMap writes them.
        state: one character.
    """

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


@struct
class MaybeQueueEntry(Struct):
    """One, or none where nothing waits."""

    entry: QueueEntry | None = field(1, struct_type(QueueEntry))


@struct
class FindNextCompactRequest(Struct):
    """Who takes an entry, of which pool; without a pool one of none."""

    worker: str | None = field(1, STRING)
    worker_version: str | None = field(2, STRING)
    pool: str | None = field(3, STRING)


FIND_NEXT_COMPACT = method(
    "find_next_compact2",
    (struct_type(FindNextCompactRequest),),
    struct_type(MaybeQueueEntry),
    "MetaException",
    repeatable=False,
)
UPDATE_COMPACTOR_STATE = method("update_compactor_state", (struct_type(QueueEntry), I64))


class DeltaFigure(IntEnum):
    """What the metastore's metrics of deltas count."""

    NUM_OBSOLETE_DELTAS = 0
    NUM_DELTAS = 1
    NUM_SMALL_DELTAS = 2


@struct
class DeltaFigureData(Struct):
    """A number of deltas in a location; the metastore keeps it from the threshold on, and else takes it out."""

    database: str = field(1, STRING, "")
    table_name: str = field(2, STRING, "")
    partition: str | None = field(3, STRING)
    metric_type: int = field(4, I32, 0)
    metric_value: int = field(5, I32, 0)
    version: int = field(6, I32, 0)
    threshold: int = field(7, I32, 0)


UPDATE_COMPACTION_METRICS_DATA = method(
    "update_compaction_metrics_data", (struct_type(DeltaFigureData),), BOOL, "MetaException"
)
SET_HADOOP_JOBID = method("set_hadoop_jobid", (STRING, I64))
MARK_COMPACTED = method("mark_compacted", (struct_type(QueueEntry),), None, "MetaException", repeatable=False)
MARK_FAILED = method("mark_failed", (struct_type(QueueEntry),), None, "MetaException", repeatable=False)
MARK_REFUSED = method("mark_refused", (struct_type(QueueEntry),), None, "MetaException", repeatable=False)
MARK_CLEANED = method("mark_cleaned", (struct_type(QueueEntry),), None, "MetaException", repeatable=False)


# --- the server itself ----------------------------------------------------------------------------------------------

SET_UGI = method("set_ugi", (STRING, list_of(STRING)), list_of(STRING), "MetaException")
GET_CONFIG_VALUE = method("get_config_value", (STRING, STRING), STRING, "ConfigValSecurityException")
GET_VERSION = method("getVersion", (), STRING)
GET_DELEGATION_TOKEN = method("get_delegation_token", (STRING, STRING), STRING, "MetaException")
