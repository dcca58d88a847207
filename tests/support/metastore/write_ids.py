"""How writers get write ids from a metastore, which acidctl itself never does."""

from __future__ import annotations

from acidctl.metastore.wire import I64, STRING, Struct, field, list_of, method, struct


@struct
class TxnToWriteId(Struct):
    """Which write id a transaction has in a table."""

    txn: int = field(1, I64, 0)
    write_id: int = field(2, I64, 0)


@struct
class AllocateWriteIdsRequest(Struct):
    """For which transactions a table gives write ids."""

    database: str = field(1, STRING, "")
    table: str = field(2, STRING, "")
    txns: tuple[int, ...] = field(3, list_of(I64), ())


@struct
class AllocateWriteIdsResponse(Struct):
    """The ids of all of them."""

    write_ids: tuple[TxnToWriteId, ...] = field(1, list_of(TxnToWriteId), ())


ALLOCATE_WRITE_IDS = method(
    "allocate_table_write_ids",
    (AllocateWriteIdsRequest,),
    AllocateWriteIdsResponse,
    "NoSuchTxnException TxnAbortedException MetaException",
    repeatable=False,
)
