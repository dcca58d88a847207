"""Texts about what holds back a cleaning and what is stuck in the queue: why, and what frees it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Any

from acidctl.hive.blocking import Blocker
from acidctl.metastore.activity import KnownTxns
from acidctl.metastore.queue.stuck import Cause, Stuck
from acidctl.metastore.server import Switches
from acidctl.wording import age_text, time_of

_OF_COMPACTION = ("COMPACTION", "REBALANCE_COMPACTION")


def who_blocks(one: Blocker) -> dict[str, Any]:
    """Return the JSON form of a blocker: who it is, and how much it holds back."""
    return {
        "id": one.txn.id if one.txn else None,
        "lock": None if one.txn else one.locks[0].id,
        "user": one.user,
        "host": one.host,
        "query": one.query or None,
        "started": time_of(one.started),
        "waiting": one.count,
        "bytes": one.bytes,
    }


def what_to_do(one: Blocker, known: KnownTxns, switches: Switches) -> str:
    """Return what a user can do about a blocker."""
    silent = known.age(one.last_heartbeat)
    is_dead = silent is not None and silent > switches.txn_timeout
    if one.txn is None:
        return (
            "its client has died: acidctl hive housekeep ends it" if is_dead else "end the program that holds this lock"
        )
    if one.txn.type == "REPL_CREATED":
        return "it is of a replication, which ends it: look whether that goes on"
    if is_dead:
        ends = f"acidctl hive housekeep, or acidctl hive abort txn {one.txn.id}, ends it"
        return f"no sign of life for {age_text(silent)}: {ends}"
    if one.txn.type in _OF_COMPACTION:
        return "it is a compaction at work: wait for it"
    return f"it is alive: end its query, or acidctl hive abort txn {one.txn.id}"


def why_stuck(one: Stuck, switches: Switches) -> str:
    """Return why an entry of the queue is stuck."""
    return _WHY[one.cause](one, switches)


def what_frees(one: Stuck, switches: Switches) -> str:
    """Return what frees an entry of the queue that is stuck."""
    return _FREES[one.cause](one, switches)


def _for(one: Stuck) -> str:
    return "" if one.seconds is None else f" for {age_text(one.seconds)}"


def _no_worker(one: Stuck, switches: Switches) -> str:
    if switches.workers_elsewhere:
        return f"it waits{_for(one)}, and no worker has taken anything since"
    return "no worker runs in the server that answered, and only servers of the metastore have them"


def _blocked(one: Stuck, _: Switches) -> str:
    if one.locks:
        first = one.locks[0]
        more = f" and {len(one.locks) - 1:,} more" if len(one.locks) > 1 else ""
        return f"cleaning waits for lock {first.id} of {first.user}@{first.host}{more}"
    first_id, rest = one.blockers[0], one.blocker_count - 1
    return f"cleaning waits for transaction {first_id}" + (f" and {rest:,} more" if rest else "")


def _by_initiator(_: Stuck, switches: Switches) -> str:
    own = f"its own initiator gives it to another worker after {age_text(switches.worker_timeout)}"
    if switches.initiator:
        return own
    return (
        f"no initiator runs in the server that answered; one that does gives it away after "
        f"{age_text(switches.worker_timeout)}"
    )


_WHY: Mapping[Cause, Callable[[Stuck, Switches], str]] = {
    Cause.WORKER_LOST: lambda one, _: (
        f"its worker {one.entry.worker or 'is lost'}: "
        f"transaction {one.entry.txn} of it has ended, and it is still called working{_for(one)}"
    ),
    Cause.TIMED_OUT: lambda one, switches: (
        f"it is worked on{_for(one)}, longer than the {age_text(switches.worker_timeout)} that a worker has"
    ),
    Cause.NO_JOB: lambda one, _: f"it is worked on{_for(one)}, and no job of it is known",
    Cause.NO_WORKER: _no_worker,
    Cause.POOL_NOT_SERVED: lambda one, _: f"it waits{_for(one)}, and nobody takes entries of the pool {one.entry.pool}",
    Cause.TXN_ABORTED: lambda one, _: (
        f"its own transaction {one.entry.txn} was aborted: what it compacted to is "
        "invisible, and there is nothing to clean"
    ),
    Cause.BLOCKED: _blocked,
    Cause.NOT_CLEANED: lambda one, _: f"nothing holds it back{_for(one)}, and no cleaner has taken it",
    Cause.GIVEN_UP: lambda one, _: (
        f"the last {one.failures} compactions failed, and the initiator asks for none "
        f"any more{': ' + one.entry.error if one.entry.error else ''}"
    ),
}
_FREES: Mapping[Cause, Callable[[Stuck, Switches], str]] = {
    Cause.WORKER_LOST: _by_initiator,
    Cause.TIMED_OUT: _by_initiator,
    Cause.NO_JOB: _by_initiator,
    Cause.NO_WORKER: lambda _, switches: (
        "start a server with compactor.worker.threads above 0"
        + (
            ", or acidctl hive worker, which does the same; acidctl hive abort compaction takes it out"
            if switches.is_hive4
            else "; acidctl compact works without"
        )
    ),
    Cause.POOL_NOT_SERVED: lambda one, switches: (
        f"start a worker of that pool (acidctl hive worker --pool {shlex.quote(one.entry.pool)}), or "
        f"acidctl hive abort compaction {one.entry.id} and ask again without a pool; "
        f"others take it after {age_text(switches.pool_timeout)}"
    ),
    Cause.TXN_ABORTED: lambda *_: (
        "acidctl hive cleaner asks for the compaction again; a cleaner of Hive's with HIVE-29572 marks it as failed"
    ),
    Cause.BLOCKED: lambda *_: "acidctl hive txns --blocking says whose it is and what ends it",
    Cause.NOT_CLEANED: lambda _, switches: (
        "see the log of the server that cleans"
        if switches.cleaner
        else "the server that answered runs no cleaner: start one (compactor.cleaner.on), or acidctl hive cleaner"
    ),
    Cause.GIVEN_UP: lambda one, _: (
        f"mend the reason, then acidctl hive request --{_kind(one)} {shlex.quote(f'hive:{one.entry.name}')}: "
        "one that succeeds lets the initiator go on"
    ),
}


def _kind(one: Stuck) -> str:
    return one.entry.kind if one.entry.kind in ("major", "minor", "rebalance") else "major"
