"""All transactions that are open or aborted, as the metastore tells of them in one answer."""

from __future__ import annotations

import time

from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import NoAnswer, Unreachable

_GAP = 1.3
"""Seconds, and more than `metastore.txn.opentxn.timeout`, before the question is asked once more."""


def open_txns_info(metastore: Metastore) -> interface.OpenTxnsInfo:
    """Ask, and where the server hangs up once more a second later.

    Where numbers of transactions were left out, as a restart does it, Hive 4 counts them as open for a second, and
    hangs up: they have no user, without whom its answer has no form (4.0.1: "Required field 'user' is unset").

    Raises:
        MetastoreError: the metastore cannot be reached, or failed.
    """
    try:
        answer: interface.OpenTxnsInfo = metastore.call(interface.GET_OPEN_TXNS_INFO)
    except NoAnswer:
        raise
    except Unreachable:
        time.sleep(_GAP)
        answer = metastore.call(interface.GET_OPEN_TXNS_INFO)
    return answer
