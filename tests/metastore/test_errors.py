"""What a server's exceptions are told as."""

from __future__ import annotations

import pytest

from acidctl.base.errors import AccessError, NotFoundError
from acidctl.metastore.errors import LostTransaction, MetastoreError, refusal_of


@pytest.mark.parametrize(
    ("kind", "message", "error"),
    [
        ("NoSuchObjectException", "sales.orders", NotFoundError),
        ("UnknownDBException", "", NotFoundError),
        # Hive 4.0.1 of the partitions of a table that was dropped.
        ("InvalidObjectException", "hive.sales.orders table not found", NotFoundError),
        ("InvalidObjectException", "of another kind", MetastoreError),
        ("MetaException", "hive.sales.orders table not found", NotFoundError),
        ("MetaException", "the database is down", MetastoreError),
        ("MetaException", "Permission denied: user=alice", AccessError),
        ("TxnAbortedException", "Transaction 7 was aborted", LostTransaction),
    ],
)
def test_by_its_kind_and_its_words(kind: str, message: str, error: type[Exception]) -> None:
    found = refusal_of(kind, message, "get_partitions_by_names", "thrift://h:9083")
    assert type(found) is error
    assert message in str(found)
