"""What goes on in a metastore now: its transactions and its locks, with names where the interface has numbers."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from acidctl.acid.names import unescape
from acidctl.errors import AcidctlError
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import NoAnswer, Unreachable


class TxnStatus(StrEnum):
    """Of a transaction that a metastore still knows; committed ones it forgets."""

    OPEN = "open"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


_STATES: Mapping[int, TxnStatus] = {
    interface.TxnState.OPEN: TxnStatus.OPEN,
    interface.TxnState.ABORTED: TxnStatus.ABORTED,
}
_SPECIAL = (
    interface.TxnType.READ_ONLY,
    interface.TxnType.COMPACTION,
    *(kind for kind in interface.TxnType if kind.name not in ("DEFAULT", "READ_ONLY", "COMPACTION")),
)
"""Types of which there are some at most, the usual ones first."""

_GAP = 1.3
"""Seconds, and more than `metastore.txn.opentxn.timeout`, before the question is asked once more."""


@dataclass(frozen=True, slots=True)
class Txn:
    """A transaction that is open, or aborted and not yet forgotten.

    Attributes:
        type: as Hive calls it, ``READ_ONLY``; None before Hive 4, and of aborted ones: nobody tells.
        agent, query: what its client said of itself and of its work; empty where it said nothing.
        started, last_heartbeat: seconds since the epoch by the server's clock; None where it does not tell.
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
class Lock:
    """One component of a lock that is held, or that waits.

    Attributes:
        id, part: of the lock, and of this component of it.
        partition: as Hive names it, ``day=2026-11-20``; empty for a whole table.
        state, type: as Hive calls them, ``ACQUIRED`` and ``SHARED_READ``.
        txn: 0 for a lock without a transaction.
        agent: what its client said of itself: Hive gives the id of its query.
        blocked_by, blocked_by_part: the lock for which it waits; 0 for none.
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
    def on(self) -> str:
        """What it is on: ``db``, ``db.table`` or ``db.table/day=1``."""
        return name_of(self.database, self.table, self.partition)

    @property
    def is_waiting(self) -> bool:
        """Whether it is not held yet."""
        return self.state == interface.LockState.WAITING.name


@dataclass(frozen=True, slots=True)
class KnownTxns:
    """All transactions that a metastore knew at one moment.

    Attributes:
        high_watermark: the largest id there was.
        txns: by id.
        now: the server's time then, as far as it can be told: ours, or that of its newest heartbeat where it is ahead.
    """

    high_watermark: int
    txns: tuple[Txn, ...]
    now: float

    @property
    def open(self) -> tuple[Txn, ...]:
        """Those that are open, oldest first."""
        return tuple(txn for txn in self.txns if txn.state is TxnStatus.OPEN)

    @property
    def aborted_ids(self) -> frozenset[int]:
        """The ids of those that are aborted."""
        return frozenset(txn.id for txn in self.txns if txn.state is TxnStatus.ABORTED)

    def age(self, since: float | None) -> float | None:
        """Seconds since a time of the server's; None where there is none."""
        return None if since is None else max(self.now - since, 0.0)


def name_of(database: str, table: str, partition: str) -> str:
    """``db``, ``db.table`` or ``db.table/day=1``."""
    name = f"{database}.{table}" if table else database
    return f"{name}/{partition}" if partition else name


def key_of(database: str, table: str, partition: str) -> tuple[str, str, str]:
    """What is the same for two spellings of one table or partition."""
    return database.lower(), table.lower(), spelled_alike(partition)


def spelled_alike(partition: str) -> str:
    """What is the same for two spellings of one partition: a metastore escapes values, and ignores case in places."""
    return unescape(partition).lower()


def seconds(milliseconds: int | None) -> float | None:
    """From a time of the interface; None where there is none, for which some versions send 0."""
    return milliseconds / 1000 if milliseconds and milliseconds > 0 else None


def find_transactions(metastore: Metastore) -> KnownTxns:
    """All transactions that are open or aborted, in one call; on Hive 4 some more say of which type they are.

    Raises:
        MetastoreError: the metastore cannot be reached, or failed.
    """
    types = _types(metastore)
    answer = open_txns_info(metastore)
    txns = sorted((_txn(one, types) for one in answer.txns), key=lambda txn: txn.id)
    return KnownTxns(
        answer.high_watermark, tuple(txns), now_by(when for t in txns for when in (t.last_heartbeat, t.started))
    )


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


def now_by(times: Iterable[float | None]) -> float:
    """Our time, or the newest of the server's where that is ahead."""
    return max(time.time(), max(filter(None, times), default=0.0))


def _txn(one: interface.TxnInfo, types: Mapping[int, str] | None) -> Txn:
    state = _STATES.get(one.state, TxnStatus.UNKNOWN)
    is_open = state is TxnStatus.OPEN
    return Txn(
        id=one.id,
        state=state,
        type=None if types is None or not is_open else types.get(one.id, interface.TxnType.DEFAULT.name),
        user=one.user,
        host=one.host,
        agent=said(one.agent),
        query=said(one.meta_info),
        started=seconds(one.started),
        last_heartbeat=seconds(one.last_heartbeat),
    )


def said(text: str | None) -> str:
    """What a client said of itself; empty for what Hive writes where it said nothing."""
    return "" if text in (None, "Unknown") else text or ""


def _types(metastore: Metastore) -> dict[int, str] | None:
    """The types of open transactions by id, of those that are not DEFAULT; None where the server does not tell.

    No call gives types: one leaves out the transactions of some. What is missing in such an answer, was begun before it
    and is still open afterwards, is of one of these.
    """
    if not metastore.features.txn_types:
        return None
    try:
        of_default = _listed(metastore, _SPECIAL)
        every = _listed(metastore, ())
        wanted = {txn for txn in every.txns if txn <= of_default.high_watermark} - set(of_default.txns)
        if not wanted:
            return {}
        found: dict[int, str] = {}
        for kind in _SPECIAL:
            if left := wanted - set(found):
                found |= dict.fromkeys(left - set(_listed(metastore, (kind,)).txns), kind.name)
        still = set(_listed(metastore, ()).txns)
    except Unreachable:
        raise
    except AcidctlError:
        return None  # one that does not know all of these types
    return {txn: kind for txn, kind in found.items() if txn in still}


def _listed(metastore: Metastore, without: Sequence[int]) -> interface.OpenTxns:
    answer: interface.OpenTxns = metastore.call(
        interface.GET_OPEN_TXNS_REQ, interface.GetOpenTxnsRequest(tuple(int(kind) for kind in without))
    )
    return answer


def find_locks(metastore: Metastore, database: str | None = None, table: str | None = None) -> tuple[Lock, ...]:
    """The locks that are held and that wait, in the order of their ids; all of them, or those on one table.

    Raises:
        MetastoreError: the metastore cannot be reached, or failed.
    """
    answer = metastore.call(interface.SHOW_LOCKS, interface.ShowLocksRequest(database, table))
    return tuple(sorted(map(_lock, answer.locks), key=lambda lock: (lock.id, lock.part)))


def _lock(one: interface.LockInfo) -> Lock:
    return Lock(
        id=one.lock,
        part=one.part or 0,
        database=one.database,
        table=one.table or "",
        partition=one.partition or "",
        state=name_in(interface.LockState, one.state),
        type=name_in(interface.LockType, one.type),
        txn=max(one.txn or 0, 0),
        user=one.user,
        host=one.host,
        agent=said(one.agent),
        acquired=seconds(one.acquired),
        last_heartbeat=seconds(one.last_heartbeat),
        blocked_by=max(one.blocked_by or 0, 0),
        blocked_by_part=max(one.blocked_by_part or 0, 0),
    )


def name_in(names: type[IntEnum], number: int) -> str:
    """The name of a number; later versions have more of them."""
    try:
        return names(number).name
    except ValueError:
        return f"unknown ({number})"


def locks_by_txn(locks: Iterable[Lock]) -> Mapping[int, tuple[Lock, ...]]:
    """The locks of each transaction."""
    found: defaultdict[int, list[Lock]] = defaultdict(list)
    for lock in locks:
        if lock.txn:
            found[lock.txn].append(lock)
    return {txn: tuple(some) for txn, some in found.items()}
