"""Housekeeping for a metastore that does not run its own: end transactions and locks of dead clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from acidctl.base.errors import NotFoundError, RefusedError, UsageProblem
from acidctl.metastore import interface
from acidctl.metastore.activity import Lock, Txn, find_locks, find_transactions, locks_by_txn, open_txns_info
from acidctl.metastore.client import Metastore, batches
from acidctl.metastore.errors import LostTransaction, MetastoreError
from acidctl.metastore.server import look_at_servers
from acidctl.metastore.txn.transaction import OwnTransaction

_ABORT_TIMEOUT = 50004
"""Hive's error code for a transaction that timed out."""

_AT_ONCE = 1000
_REPLICATED = interface.TxnType.REPL_CREATED.name
_TARGET = ("repl.last.id", "repl.target.for")
"""Prefixes of the properties of a database into which another warehouse is replicated."""


@dataclass(frozen=True, slots=True)
class Dead:
    """Transactions and locks whose heartbeat has timed out.

    Attributes:
        kept: transactions as old as these that belong, or may belong, to Hive's replication: only it may end them.
    """

    txns: tuple[Txn, ...]
    locks: tuple[Lock, ...]
    kept: tuple[Txn, ...]
    by_txn: Mapping[int, tuple[Lock, ...]]
    now: float


def server_time(metastore: Metastore) -> float:
    """Return the time of the server's clock, by which it times clients out, in seconds since the epoch.

    The time is the start of a transaction that this function opens and ends at once.
    """
    own = OwnTransaction(metastore)
    try:
        own.open()
        infos = open_txns_info(metastore).txns
        started = next((txn.started for txn in infos if txn.id == own.id), None)
    finally:
        own.end()
    if own.failure:
        raise own.failure
    if not started:
        raise MetastoreError(
            f"the metastore {metastore.shown} does not tell its time",
            "it shows no begin of a transaction that was just opened",
            "see the metastore's log",
        )
    return float(started) / 1000


def refuse_where_it_is_done(metastore: Metastore, on_silent: Callable[[str], None] = lambda _: None) -> None:
    """Refuse if any server runs its own housekeeping, as one does it for all.

    Args:
        on_silent: called with the address of each server that does not answer.

    Raises:
        RefusedError: a server runs its own housekeeping.
    """
    for facts in look_at_servers(metastore):
        url, switches = facts.address.url, facts.switches
        if not switches:
            on_silent(url)
        elif switches.keeps_house:
            switch = "metastore.housekeeping.threads.on" if switches.is_hive4 else "hive.compactor.initiator.on"
            raise RefusedError(
                f"the metastore {url} runs Hive's housekeeping itself",
                f"{switch} is true there, or AcidHouseKeeperService is one of its tasks",
                "wait for it; where it does not do so, see its log, or give --force",
            )


def find_dead(metastore: Metastore, older_than: float, now: float | None = None) -> Dead:
    """Return transactions and locks without a heartbeat for `older_than` seconds."""
    now = server_time(metastore) if now is None else now
    known, locks = find_transactions(metastore), find_locks(metastore)
    by_txn = locks_by_txn(locks)
    latest = now - older_than
    dead = [txn for txn in known.open if txn.last_heartbeat is not None and txn.last_heartbeat < latest]
    replicated = _may_be_replicated(metastore, dead, by_txn)
    first_parts: dict[int, Lock] = {}
    for lock in locks:
        if not lock.txn and lock.last_heartbeat is not None and lock.last_heartbeat < latest:
            first_parts.setdefault(lock.id, lock)
    return Dead(
        tuple(txn for txn in dead if txn.id not in replicated),
        tuple(first_parts.values()),
        tuple(txn for txn in dead if txn.id in replicated),
        {txn.id: by_txn.get(txn.id, ()) for txn in dead},
        now,
    )


def _may_be_replicated(
    metastore: Metastore, dead: Sequence[Txn], by_txn: Mapping[int, Sequence[Lock]]
) -> frozenset[int]:
    """Return the ids of transactions that a replication's source may still end; before Hive 4 this is a guess."""
    if all(txn.type is not None for txn in dead):
        return frozenset(txn.id for txn in dead if txn.type == _REPLICATED)
    named = {txn.id for txn in dead if txn.user.lower().startswith("repl") or txn.agent.lower().startswith("repl")}
    # A replication's transactions take no locks, and exist only if a database is its target.
    without_locks = {txn.id for txn in dead if not by_txn.get(txn.id)}
    if without_locks - named and any(
        is_replication_target(metastore, name) for name in metastore.call(interface.GET_ALL_DATABASES)
    ):
        named |= without_locks
    return frozenset(named)


def is_replication_target(metastore: Metastore, database: str) -> bool:
    """Return whether another warehouse is replicated into a database; False if the database was dropped."""
    try:
        parameters = metastore.call(interface.GET_DATABASE, database).parameters
    except NotFoundError:
        return False
    return any(key.startswith(_TARGET) for key in parameters)


def end_dead(metastore: Metastore, dead: Dead, older_than: float) -> Dead:
    """End those of `dead` that are still dead, and return them."""
    if older_than <= 0:
        raise UsageProblem("what is alive would be ended", "no time was given that it may be silent", "")
    again = find_dead(metastore, older_than)
    wanted, locks = {txn.id for txn in dead.txns}, {lock.id for lock in dead.locks}
    txns = tuple(txn for txn in again.txns if txn.id in wanted)
    for ids in batches([txn.id for txn in txns], _AT_ONCE):
        metastore.call(interface.ABORT_TXNS, interface.AbortTxnsRequest(tuple(ids), _ABORT_TIMEOUT))
    ended = []
    for lock in again.locks:
        if lock.id in locks:
            with suppress(LostTransaction):  # the client came back and released it
                metastore.call(interface.UNLOCK, interface.UnlockRequest(lock.id))
                ended.append(lock)
    return Dead(txns, tuple(ended), again.kept, again.by_txn, again.now)


def abort_txn(metastore: Metastore, txn: int) -> bool:
    """Abort a transaction; return whether it was open, False if it was committed meanwhile or is unknown."""
    try:
        metastore.call(interface.ABORT_TXN, interface.AbortTxnRequest(txn))
    except LostTransaction:
        return False
    return True
