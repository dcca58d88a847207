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


def who_blocks(blocker: Blocker) -> dict[str, Any]:
    """Return the JSON form of a blocker: who it is, and how much it holds back."""
    return {
        "id": blocker.txn.id if blocker.txn else None,
        "lock": None if blocker.txn else blocker.locks[0].id,
        "user": blocker.user,
        "host": blocker.host,
        "query": blocker.query or None,
        "started": time_of(blocker.started),
        "waiting": blocker.count,
        "bytes": blocker.bytes,
    }


def what_to_do(blocker: Blocker, known: KnownTxns, switches: Switches) -> str:
    """Return what a user can do about a blocker."""
    silent = known.age(blocker.last_heartbeat)
    is_dead = silent is not None and silent > switches.txn_timeout
    if blocker.txn is None:
        return (
            "its client has died: acidctl hive housekeep ends it" if is_dead else "end the program that holds this lock"
        )
    if blocker.txn.type == "REPL_CREATED":
        return "it is of a replication, which ends it: look whether that goes on"
    if is_dead:
        ends = f"acidctl hive housekeep, or acidctl hive abort txn {blocker.txn.id}, ends it"
        return f"no sign of life for {age_text(silent)}: {ends}"
    if blocker.txn.type in _OF_COMPACTION:
        return "it is a compaction at work: wait for it"
    return f"it is alive: end its query, or acidctl hive abort txn {blocker.txn.id}"


def why_stuck(stuck: Stuck, switches: Switches) -> str:
    """Return why an entry of the queue is stuck."""
    return _WHY[stuck.cause](stuck, switches)


def what_frees(stuck: Stuck, switches: Switches) -> str:
    """Return what frees an entry of the queue that is stuck."""
    return _FREES[stuck.cause](stuck, switches)


def _for(stuck: Stuck) -> str:
    return "" if stuck.seconds is None else f" for {age_text(stuck.seconds)}"


def _no_worker(stuck: Stuck, switches: Switches) -> str:
    if switches.workers_elsewhere:
        return f"it waits{_for(stuck)}, and no worker has taken anything since"
    return "no worker runs in the server that answered, and only servers of the metastore have them"


def _blocked(stuck: Stuck, _: Switches) -> str:
    if stuck.locks:
        first = stuck.locks[0]
        more = f" and {len(stuck.locks) - 1:,} more" if len(stuck.locks) > 1 else ""
        return f"cleaning waits for lock {first.id} of {first.user}@{first.host}{more}"
    first_id, rest = stuck.blockers[0], stuck.blocker_count - 1
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
    Cause.WORKER_LOST: lambda stuck, _: (
        f"its worker {stuck.entry.worker or 'is lost'}: "
        f"transaction {stuck.entry.txn} of it has ended, and it is still called working{_for(stuck)}"
    ),
    Cause.TIMED_OUT: lambda stuck, switches: (
        f"it is worked on{_for(stuck)}, longer than the {age_text(switches.worker_timeout)} that a worker has"
    ),
    Cause.NO_JOB: lambda stuck, _: f"it is worked on{_for(stuck)}, and no job of it is known",
    Cause.NO_WORKER: _no_worker,
    Cause.POOL_NOT_SERVED: lambda stuck, _: (
        f"it waits{_for(stuck)}, and nobody takes entries of the pool {stuck.entry.pool}"
    ),
    Cause.TXN_ABORTED: lambda stuck, _: (
        f"its own transaction {stuck.entry.txn} was aborted: what it compacted to is "
        "invisible, and there is nothing to clean"
    ),
    Cause.BLOCKED: _blocked,
    Cause.NOT_CLEANED: lambda stuck, _: f"nothing holds it back{_for(stuck)}, and no cleaner has taken it",
    Cause.GIVEN_UP: lambda stuck, _: (
        f"the last {stuck.failures} compactions failed, and the initiator asks for none "
        f"any more{': ' + stuck.entry.error if stuck.entry.error else ''}"
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
    Cause.POOL_NOT_SERVED: lambda stuck, switches: (
        f"start a worker of that pool (acidctl hive worker --pool {shlex.quote(stuck.entry.pool)}), or "
        f"acidctl hive abort compaction {stuck.entry.id} and ask again without a pool; "
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
    Cause.GIVEN_UP: lambda stuck, _: (
        f"mend the reason, then acidctl hive request --{_kind(stuck)} {shlex.quote(f'hive:{stuck.entry.name}')}: "
        "one that succeeds lets the initiator go on"
    ),
}


def _kind(stuck: Stuck) -> str:
    return stuck.entry.kind if stuck.entry.kind in ("major", "minor", "rebalance") else "major"
