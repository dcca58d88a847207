"""What a house keeper does where a metastore has none: transactions and locks of clients that have died are ended.

Ages are told by the server's clock, which its time-outs go by: a short transaction of our own reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from acidctl.errors import NotFoundError, RefusedError, UsageProblem
from acidctl.metastore import interface
from acidctl.metastore.activity import Lock, Txn, find_locks, find_transactions, locks_by_txn, open_txns_info
from acidctl.metastore.client import Metastore, batches
from acidctl.metastore.errors import LostTransaction, MetastoreError
from acidctl.metastore.own.own_transaction import OwnTransaction
from acidctl.metastore.server import Switches, each_server
from acidctl.wording import duration

_ABORT_TIMEOUT = 50004
"""Hive's own number for why: it had timed out."""

_AT_ONCE = 1000
_REPLICATED = interface.TxnType.REPL_CREATED.name
_TARGET = ("repl.last.id", "repl.target.for")
"""Properties of a database into which another warehouse is replicated."""


@dataclass(frozen=True, slots=True)
class Dead:
    """What gave no sign of life for longer than may be.

    Attributes:
        txns, locks: to be ended; of the locks only those of no transaction.
        kept: transactions that are as old, and that nobody but Hive's replication may end, or that may be its own.
        by_txn: the locks of the transactions.
        now: the server's time.
    """

    txns: tuple[Txn, ...]
    locks: tuple[Lock, ...]
    kept: tuple[Txn, ...]
    by_txn: Mapping[int, tuple[Lock, ...]]
    now: float


def server_time(metastore: Metastore) -> float:
    """Seconds since the epoch by the clock of the server: the begin of a transaction, which is ended at once.

    Raises:
        MetastoreError: the metastore cannot be reached, or failed.
    """
    own = OwnTransaction(metastore)
    try:
        own.open()
        infos = open_txns_info(metastore).txns
        begun = next((one.started for one in infos if one.id == own.id), None)
    finally:
        own.end()
    if own.failure:
        raise own.failure
    if not begun:
        raise MetastoreError(
            f"the metastore {metastore.shown} does not tell its time",
            "it shows no begin of a transaction that was just opened",
            "see the metastore's log",
        )
    return float(begun) / 1000


def silent_for(older_than: float | None, switches: Switches) -> float:
    """Seconds after which a client counts as dead: those that are given, or the server's time-out.

    Raises:
        UsageProblem: fewer than its time-out.
    """
    if older_than is None:
        return switches.txn_timeout
    if older_than < switches.txn_timeout:
        raise UsageProblem(
            f"{duration(older_than)} is shorter than the server's time-out",
            f"a client may be silent for {duration(switches.txn_timeout)}, and would be ended while it is at work",
            "give that time, or more",
        )
    return older_than


def refuse_where_it_is_done(metastore: Metastore, on_silent: Callable[[str], None] = lambda _: None) -> None:
    """Ask every server that is known: one of them may keep house for all.

    Args:
        on_silent: told of one that does not answer.

    Raises:
        RefusedError: one of them keeps house itself.
        MetastoreError: ZooKeeper, which knows them, does not answer.
    """
    for address, found in each_server(metastore):
        if not isinstance(found, Switches):
            on_silent(address.url)
        elif found.keeps_house:
            switch = "metastore.housekeeping.threads.on" if found.is_hive4 else "hive.compactor.initiator.on"
            raise RefusedError(
                f"the metastore {address.url} keeps house itself",
                f"{switch} is true there, or AcidHouseKeeperService is one of its tasks",
                "wait for it; where it does not do so, see its log, or give `force`",
            )


def find_dead(metastore: Metastore, older_than: float, now: float | None = None) -> Dead:
    """Transactions and locks without a heartbeat for so long.

    Args:
        older_than: seconds.
        now: by the clock of the server; read where it is not given.

    Raises:
        MetastoreError: the metastore cannot be reached, or failed.
    """
    now = server_time(metastore) if now is None else now
    known, locks = find_transactions(metastore), find_locks(metastore)
    by_txn = locks_by_txn(locks)
    latest = now - older_than
    dead = [txn for txn in known.open if txn.last_heartbeat is not None and txn.last_heartbeat < latest]
    may_be = _may_be_replicated(metastore, dead, by_txn)
    return Dead(
        tuple(txn for txn in dead if txn.id not in may_be),
        tuple(_first_parts(one for one in locks if _is_dead(one, latest))),
        tuple(txn for txn in dead if txn.id in may_be),
        {txn.id: by_txn.get(txn.id, ()) for txn in dead},
        now,
    )


def _is_dead(lock: Lock, latest: float) -> bool:
    return not lock.txn and lock.last_heartbeat is not None and lock.last_heartbeat < latest


def _first_parts(locks: Iterable[Lock]) -> Iterable[Lock]:
    """One component of each lock."""
    seen: dict[int, Lock] = {}
    for lock in locks:
        seen.setdefault(lock.id, lock)
    return seen.values()


def _may_be_replicated(
    metastore: Metastore, dead: Sequence[Txn], by_txn: Mapping[int, Sequence[Lock]]
) -> frozenset[int]:
    """Which of them are of a replication, whose source ends them, or may be: before Hive 4 nobody tells."""
    if all(txn.type is not None for txn in dead):
        return frozenset(txn.id for txn in dead if txn.type == _REPLICATED)
    named = {txn.id for txn in dead if txn.user.lower().startswith("repl") or txn.agent.lower().startswith("repl")}
    # They take no locks. Where nothing is replicated into this warehouse there are none.
    without_locks = {txn.id for txn in dead if not by_txn.get(txn.id)}
    if without_locks - named and _replicates(metastore):
        named |= without_locks
    return frozenset(named)


def _replicates(metastore: Metastore) -> bool:
    return any(is_replication_target(metastore, name) for name in metastore.call(interface.GET_ALL_DATABASES))


def is_replication_target(metastore: Metastore, database: str) -> bool:
    """Whether another warehouse is replicated into a database; not where it was dropped meanwhile.

    Raises:
        MetastoreError: the metastore cannot be reached, or failed.
    """
    try:
        parameters = metastore.call(interface.GET_DATABASE, database).parameters
    except NotFoundError:
        return False
    return any(key.startswith(_TARGET) for key in parameters)


def end_dead(metastore: Metastore, dead: Dead, older_than: float) -> Dead:
    """End them: those of them that are still dead.

    Returns:
        What was ended.

    Raises:
        UsageProblem: so short a time.
        MetastoreError: the metastore cannot be reached, or failed.
    """
    if older_than <= 0:
        raise UsageProblem("what is alive would be ended", "no time was given that it may be silent", "")
    again = find_dead(metastore, older_than)
    wanted, locks = {txn.id for txn in dead.txns}, {lock.id for lock in dead.locks}
    txns = tuple(txn for txn in again.txns if txn.id in wanted)
    for some in batches([txn.id for txn in txns], _AT_ONCE):
        metastore.call(interface.ABORT_TXNS, interface.AbortTxnsRequest(tuple(some), _ABORT_TIMEOUT))
    ended = []
    for lock in again.locks:
        if lock.id in locks:
            with suppress(LostTransaction):  # its client came back, and gave it back
                metastore.call(interface.UNLOCK, interface.UnlockRequest(lock.id))
                ended.append(lock)
    return Dead(txns, tuple(ended), again.kept, again.by_txn, again.now)


def abort_txn(metastore: Metastore, txn: int) -> bool:
    """Abort one transaction.

    Returns:
        Whether it was open until then; False where it was committed meanwhile, or is unknown.

    Raises:
        MetastoreError: the metastore cannot be reached, or failed.
    """
    try:
        metastore.call(interface.ABORT_TXN, interface.AbortTxnRequest(txn))
    except LostTransaction:
        return False
    return True
