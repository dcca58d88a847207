"""The current transactions and locks of a metastore, with names in place of the interface's numbers."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from acidctl.acid.names import unescape
from acidctl.base.errors import AcidctlError
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import NoAnswer, Unreachable


class TxnStatus(StrEnum):
    """State of a transaction that a metastore still lists; it does not list committed transactions."""

    OPEN = "open"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


_STATES = {int(interface.TxnState.OPEN): TxnStatus.OPEN, int(interface.TxnState.ABORTED): TxnStatus.ABORTED}
_SPECIAL = (
    interface.TxnType.READ_ONLY,
    interface.TxnType.COMPACTION,
    *(kind for kind in interface.TxnType if kind.name not in ("DEFAULT", "READ_ONLY", "COMPACTION")),
)
"""All types but DEFAULT, the most frequent first: few open transactions have them."""

_GAP = 1.3
"""Seconds before the second request; longer than `metastore.txn.opentxn.timeout`."""


def key_of(database: str, table: str, partition: str) -> tuple[str, str, str]:
    """Return a key that is equal for two spellings of one table or partition."""
    return database.lower(), table.lower(), spelled_alike(partition)


def spelled_alike(partition: str) -> str:
    """Return a text that is equal for two spellings of one partition: values may be escaped, and case may differ."""
    return unescape(partition).lower()


class OfLocation:
    """Base of values of a table, or of one of its partitions (by Hive's name; empty for the whole table)."""

    __slots__ = ()
    database: str
    table: str
    partition: str

    @property
    def name(self) -> str:
        """``db``, ``db.table`` or ``db.table/day=1``."""
        table = f"{self.database}.{self.table}" if self.table else self.database
        return f"{table}/{self.partition}" if self.partition else table

    @property
    def key(self) -> tuple[str, str, str]:
        """A key of the location, by :func:`key_of`."""
        return key_of(self.database, self.table, self.partition)


@dataclass(frozen=True, slots=True)
class Txn:
    """A transaction that is open, or aborted and still listed.

    Attributes:
        type: Hive's name, ``READ_ONLY``; None before Hive 4 and for an aborted transaction, as no call returns it.
        agent, query: the client's description of itself and of its work; empty if it gave none.
        started, last_heartbeat: seconds since the epoch by the server's clock; None if the server does not send them.
    """

    id: int
    state: TxnStatus
    type: str | None
    user: str
    host: str
    agent: str
    query: str
    started: float | None
    last_heartbeat: float | None


@dataclass(frozen=True, slots=True)
class Lock(OfLocation):
    """One component of a lock that is held or waiting.

    Attributes:
        partition: Hive's name, ``day=2026-11-20``; empty for a whole table.
        state, type: Hive's names, ``ACQUIRED`` and ``SHARED_READ``.
        agent: the client's description of itself; Hive gives the id of its query.
        blocked_by, blocked_by_part: the lock that it waits for; 0 for none.
    """

    id: int
    part: int
    database: str
    table: str
    partition: str
    state: str
    type: str
    txn: int
    user: str
    host: str
    agent: str
    acquired: float | None
    last_heartbeat: float | None
    blocked_by: int = 0
    blocked_by_part: int = 0

    @property
    def is_waiting(self) -> bool:
        """Whether the lock is not held yet."""
        return self.state == interface.LockState.WAITING.name


@dataclass(frozen=True, slots=True)
class KnownTxns:
    """All transactions that a metastore listed at one moment.

    Attributes:
        now: estimate of the server's time: ours, or its newest heartbeat if that is later.
    """

    high_watermark: int
    txns: tuple[Txn, ...]
    now: float

    @property
    def open(self) -> tuple[Txn, ...]:
        """The open transactions, oldest first."""
        return tuple(txn for txn in self.txns if txn.state is TxnStatus.OPEN)

    @property
    def aborted_ids(self) -> frozenset[int]:
        """The ids of the aborted transactions."""
        return frozenset(txn.id for txn in self.txns if txn.state is TxnStatus.ABORTED)

    def age(self, since: float | None) -> float | None:
        """Return the seconds since a time of the server's clock; None without a time."""
        return None if since is None else max(self.now - since, 0.0)


def seconds(milliseconds: int | None) -> float | None:
    """Convert a time of the interface; None without a time, for which some versions send 0."""
    return milliseconds / 1000 if milliseconds and milliseconds > 0 else None


def find_transactions(metastore: Metastore) -> KnownTxns:
    """Return all open and aborted transactions; on Hive 4 with their types, which takes a few more calls."""
    types = _types(metastore)
    answer = open_txns_info(metastore)
    txns = sorted((_txn(info, types) for info in answer.txns), key=lambda txn: txn.id)
    now = now_by(when for txn in txns for when in (txn.last_heartbeat, txn.started))
    return KnownTxns(answer.high_watermark, tuple(txns), now)


def now_by(times: Iterable[float | None]) -> float:
    """Return our time, or the newest of the server's times if that is later."""
    return max(time.time(), max(filter(None, times), default=0.0))


def open_txns_info(metastore: Metastore) -> interface.OpenTxnsInfo:
    """Return all open and aborted transactions; if the server hangs up, ask again a second later.

    A restart can skip transaction ids. Hive 4 counts these as open for a second, and closes the connection, because it
    cannot serialize a transaction without a user (4.0.1: "Required field 'user' is unset").
    """
    try:
        answer: interface.OpenTxnsInfo = metastore.call(interface.GET_OPEN_TXNS_INFO)
    except NoAnswer:
        raise
    except Unreachable:
        time.sleep(_GAP)
        answer = metastore.call(interface.GET_OPEN_TXNS_INFO)
    return answer


def _txn(info: interface.TxnInfo, types: Mapping[int, str] | None) -> Txn:
    state = _STATES.get(info.state, TxnStatus.UNKNOWN)
    is_open = state is TxnStatus.OPEN
    return Txn(
        id=info.id,
        state=state,
        type=None if types is None or not is_open else types.get(info.id, interface.TxnType.DEFAULT.name),
        user=info.user,
        host=info.host,
        agent=_client_text(info.agent),
        query=_client_text(info.meta_info),
        started=seconds(info.started),
        last_heartbeat=seconds(info.last_heartbeat),
    )


def _client_text(text: str | None) -> str:
    return "" if text in (None, "Unknown") else text or ""  # Hive writes Unknown if the client sent nothing


def _types(metastore: Metastore) -> dict[int, str] | None:
    """Return the types of open transactions other than DEFAULT, by id; None if the server has no types.

    No call returns types, but one can exclude the transactions of some types. A transaction has one of these types if
    it is missing from such an answer, began before it and is still open afterwards.
    """
    if not metastore.features.txn_types:
        return None
    try:
        of_default = _listed(metastore, _SPECIAL)
        every = _listed(metastore, ())
        special = {txn for txn in every.txns if txn <= of_default.high_watermark} - set(of_default.txns)
        if not special:
            return {}
        types: dict[int, str] = {}
        for kind in _SPECIAL:
            if untyped := special - set(types):
                types |= dict.fromkeys(untyped - set(_listed(metastore, (kind,)).txns), kind.name)
        still_open = set(_listed(metastore, ()).txns)
    except Unreachable:
        raise
    except AcidctlError:
        return None  # the server lacks some of these types
    return {txn: kind for txn, kind in types.items() if txn in still_open}


def _listed(metastore: Metastore, without: Sequence[int]) -> interface.OpenTxns:
    answer: interface.OpenTxns = metastore.call(
        interface.GET_OPEN_TXNS_REQ, interface.GetOpenTxnsRequest(tuple(int(kind) for kind in without))
    )
    return answer


def find_locks(metastore: Metastore, database: str | None = None, table: str | None = None) -> tuple[Lock, ...]:
    """Return the held and waiting locks, on everything or on one table, sorted by id."""
    answer = metastore.call(interface.SHOW_LOCKS, interface.ShowLocksRequest(database, table))
    return tuple(sorted(map(_lock, answer.locks), key=lambda lock: (lock.id, lock.part)))


def _lock(info: interface.LockInfo) -> Lock:
    return Lock(
        id=info.lock,
        part=info.part or 0,
        database=info.database,
        table=info.table or "",
        partition=info.partition or "",
        state=_name_in(interface.LockState, info.state),
        type=_name_in(interface.LockType, info.type),
        txn=max(info.txn or 0, 0),
        user=info.user,
        host=info.host,
        agent=_client_text(info.agent),
        acquired=seconds(info.acquired),
        last_heartbeat=seconds(info.last_heartbeat),
        blocked_by=max(info.blocked_by or 0, 0),
        blocked_by_part=max(info.blocked_by_part or 0, 0),
    )


def _name_in(names: type[IntEnum], number: int) -> str:
    try:
        return names(number).name
    except ValueError:
        return f"unknown ({number})"  # from a later version


def locks_by_txn(locks: Iterable[Lock]) -> Mapping[int, tuple[Lock, ...]]:
    """Return the locks of each transaction, by its id."""
    by_txn: defaultdict[int, list[Lock]] = defaultdict(list)
    for lock in locks:
        if lock.txn:
            by_txn[lock.txn].append(lock)
    return {txn: tuple(its_locks) for txn, its_locks in by_txn.items()}
