"""Hive's lists of valid transactions and write ids, made from the metastore's answers (format section 7)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from acidctl.acid.names import MAXL
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.base.errors import AccessError, NotFoundError
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore, batches
from acidctl.metastore.errors import MetastoreError, UnknownMethod, Unreachable, Unreadable
from acidctl.metastore.wire import Method

_TABLES = 100
"""Tables per call for write ids."""

_MOST_WORDS = 300

_OF_ANY_TYPE = interface.GetOpenTxnsRequest(())


class Transactions:
    """The valid transactions at one moment, and the write ids of tables as of that moment.

    Attributes:
        taken: seconds since the epoch, by this machine's clock.
        txns: the list of a reader that starts now.
    """

    def __init__(self, metastore: Metastore) -> None:
        self._metastore = metastore
        self._has_write_ids = metastore.features.write_ids
        self.taken = time.time()
        self.txns = _valid_txns(metastore)
        self.server = metastore.shown
        self._write_ids: dict[str, ValidWriteIds] = {}

    @cached_property
    def of_cleaner(self) -> ValidTxns:
        """The list of a cleaner, whose lowest open transaction may be read-only.

        Hive 4's cleaner waits for these, but its lists for readers leave them out unless the request excludes no type.
        """
        if not self._metastore.features.txn_types:
            return self.txns
        of_all_types = _list_of(self._metastore.call(interface.GET_OPEN_TXNS_REQ, _OF_ANY_TYPE), self.server)
        return replace(self.txns, min_open=min(self.txns.min_open, of_all_types.min_open))

    def load(self, tables: Iterable[str]) -> None:
        """Fetch the write ids of those tables, ``db.table``, that are not loaded yet."""
        missing = sorted(set(tables) - set(self._write_ids))
        if not self._has_write_ids:
            # Hive 2 numbers writes by their transactions.
            txns = self.txns
            for name in missing:
                ids = ValidWriteIds(txns.high_watermark, txns.min_open, txns.open, txns.aborted, table=name)
                self._write_ids[name] = ids
            return
        metastore = self._metastore
        for batch in batches(missing, _TABLES):
            request = interface.ValidWriteIdsRequest(tuple(batch), str(self.txns))
            for answer in metastore.call(interface.GET_VALID_WRITE_IDS, request).tables:
                # Later versions put the catalog in front.
                name = ".".join(answer.table.lower().split(".")[-2:])
                what, flags = f"the write ids of {name}", bits(answer.aborted_bits, len(answer.invalid))
                open_ids, aborted = _parted(self.server, what, answer.high_watermark, answer.invalid, flags)
                least = answer.min_open if answer.min_open is not None and answer.invalid else MAXL
                lowest = min((least, *open_ids[:1]))
                self._write_ids[name] = ValidWriteIds(answer.high_watermark, lowest, open_ids, aborted, table=name)

    def write_ids(self, table: str) -> ValidWriteIds:
        """Return the write ids of a table."""
        self.load([table])
        if table not in self._write_ids:
            raise NotFoundError(f"the metastore {self.server} has no write ids of {table}", "", "check its name")
        return self._write_ids[table]


def given_write_id(metastore: Metastore, database: str, table: str) -> int:
    """Return the highest write id that a table was ever given, whatever its state; 0 without any.

    The high watermark of a list may be lower: replication can bring ids, and ids may be given after the list's
    transactions were read.
    """
    if not metastore.features.write_ids:
        return given_txn(metastore)
    try:
        allocated = interface.MaxAllocatedRequest(database, table)
        return int(metastore.call(interface.GET_MAX_ALLOCATED, allocated).write_id)
    except UnknownMethod:  # before Hive 4: with an unlimited list of transactions, no write id is left out
        request = interface.ValidWriteIdsRequest((f"{database}.{table}",), str(ValidTxns(MAXL, MAXL)))
        answers = metastore.call(interface.GET_VALID_WRITE_IDS, request).tables
        return max((answer.high_watermark for answer in answers), default=0)


def given_txn(metastore: Metastore) -> int:
    """Return the highest transaction id that was ever opened."""
    way = interface.GET_OPEN_TXNS if metastore.features.write_ids else interface.GET_OPEN_TXNS_INFO
    return int(metastore.call(way).high_watermark)


def _valid_txns(metastore: Metastore) -> ValidTxns:
    features = metastore.features
    if not features.write_ids:
        # Hive 2's short answer does not separate open from aborted transactions.
        info = _ask(metastore, interface.GET_OPEN_TXNS_INFO)
        ids = sorted((txn.id, txn.state == interface.TxnState.ABORTED) for txn in info.txns)
        aborted = [is_aborted for _, is_aborted in ids]
        return _list(info.high_watermark, [id_ for id_, _ in ids], aborted, metastore.shown)
    if features.txn_types:
        request = interface.GetOpenTxnsRequest((interface.TxnType.READ_ONLY,))
        answer = _ask(metastore, interface.GET_OPEN_TXNS_REQ, request)
    else:
        answer = _ask(metastore, interface.GET_OPEN_TXNS)
    return _list_of(answer, metastore.shown)


def _ask(metastore: Metastore, method: Method, *arguments: Any) -> Any:
    """Call a method that lists open transactions; it fails if Hive's ACID is switched off (HIVE-29520)."""
    try:
        return metastore.call(method, *arguments)
    except (Unreachable, Unreadable, AccessError):
        raise
    except (MetastoreError, UnknownMethod) as error:
        why = ": ".join(filter(None, (error.what, error.why.partition("\n")[0])))
        raise MetastoreError(
            f"the metastore {metastore.shown} gives no list of transactions",
            why[:_MOST_WORDS],
            "see whether Hive's ACID is switched off there: then it has no ACID tables; if not, see its log",
        ) from error


def _list_of(answer: interface.OpenTxns, server: str) -> ValidTxns:
    return _list(answer.high_watermark, answer.txns, bits(answer.aborted_bits, len(answer.txns)), server)


def _list(high_watermark: int, ids: Sequence[int], aborted: Sequence[bool], server: str) -> ValidTxns:
    open_ids, aborted_ids = _parted(server, "its transactions", high_watermark, ids, aborted)
    return ValidTxns(high_watermark, min(open_ids, default=MAXL), open_ids, aborted_ids)


def _parted(
    server: str, what: str, high_watermark: int, ids: Sequence[int], aborted: Sequence[bool]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the open and the aborted ids, both ascending; refuse a list that contradicts itself."""
    # Cleaning by such a list could remove live data.
    least, most, why = min(ids, default=1), max(ids, default=0), ""
    if not 0 <= high_watermark < MAXL:
        why = f"{what} go up to {high_watermark}"
    elif least < 1 or most > high_watermark:
        why = f"{what} go from 1 to {high_watermark}, and {least if least < 1 else most} is one of them"
    elif len(set(ids)) < len(ids):
        why = f"one of {what} is there twice"
    if why:
        hint = "see the metastore's log; nothing is read or changed by this"
        raise MetastoreError(f"the metastore {server} contradicts itself", why, hint)
    pairs = sorted(zip(ids, aborted, strict=True))
    return tuple(id_ for id_, is_aborted in pairs if not is_aborted), tuple(
        id_ for id_, is_aborted in pairs if is_aborted
    )


def bits(data: bytes, count: int) -> list[bool]:
    """Return the first `count` bits of a Java BitSet, least significant first; bits after its end are not set."""
    number = int.from_bytes(data[: (count + 7) // 8], "little")
    text = f"{number:b}"[::-1]
    return [at < len(text) and text[at] == "1" for at in range(count)]
