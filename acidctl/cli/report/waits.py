"""Texts about what holds back a cleaning and what is stuck in the queue: why, and what frees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from acidctl.hive.blocking import Blocker
from acidctl.hive.stuck import Cause, Stuck
from acidctl.metastore.activity import KnownTxns
from acidctl.metastore.server import Switches
from acidctl.wording import age_text, time_of

HiveLine = Callable[..., str]
"""Returns the line of a command of ``acidctl hive`` from its words."""


def who_blocks(blocker: Blocker) -> dict[str, Any]:
    """Return the JSON form of a blocker: who it is, and how much it holds back."""
    return {
        "id": blocker.txn.id if blocker.txn else None,
        "lock": None if blocker.txn else blocker.locks[0].id,
        "user": blocker.client.user,
        "host": blocker.client.host,
        "query": blocker.query or None,
        "started": time_of(blocker.started),
        "waiting": blocker.count,
        "bytes": blocker.bytes,
    }


def what_to_do(blocker: Blocker, known: KnownTxns, switches: Switches, hive_line: HiveLine) -> str:
    """Return what a user can do about a blocker."""
    silent = known.age(blocker.client.last_heartbeat)
    is_dead = silent is not None and silent > switches.txn_timeout
    if blocker.txn is None:
        died = f"its client has died: {hive_line('housekeep')} ends it"
        return died if is_dead else "end the program that holds this lock"
    if blocker.txn.type == "REPL_CREATED":
        return "a replication opened it and will end it: check that the replication runs"
    if is_dead:
        ends = f"{hive_line('housekeep')}, or {hive_line('abort', 'txn', str(blocker.txn.id))}, ends it"
        return f"no sign of life for {age_text(silent)}: {ends}"
    if blocker.txn.type in ("COMPACTION", "REBALANCE_COMPACTION"):
        return "it is a compaction at work: wait for it"
    return f"it is alive: end its query, or {hive_line('abort', 'txn', str(blocker.txn.id))}"


def why_stuck(stuck: Stuck, switches: Switches) -> str:
    """Return why an entry of the queue is stuck."""
    entry, since = stuck.entry, "" if stuck.seconds is None else f" for {age_text(stuck.seconds)}"
    timeout = age_text(switches.worker_timeout)
    no_worker = "no worker runs in the server that answered, and only servers of the metastore have them"
    if switches.workers_elsewhere:
        no_worker = f"it waits{since}, and no worker has taken anything since"
    return {
        Cause.WORKER_LOST: f"its worker {entry.worker or 'is lost'}: transaction {entry.txn} of it has ended, and it "
        f"is still marked as working{since}",
        Cause.TIMED_OUT: f"it is worked on{since}, longer than the {timeout} that a worker has",
        Cause.NO_JOB: f"it is worked on{since}, and no job of it is known",
        Cause.NO_WORKER: no_worker,
        Cause.POOL_NOT_SERVED: f"it waits{since}, and nobody takes entries of the pool {entry.pool}",
        Cause.TXN_ABORTED: f"its own transaction {entry.txn} was aborted: what it compacted to is invisible, and there "
        "is nothing to clean",
        Cause.BLOCKED: _blocked(stuck),
        Cause.NOT_CLEANED: f"nothing holds it back{since}, and no cleaner has taken it",
        Cause.GIVEN_UP: f"the last {stuck.failures} compactions failed, and the initiator asks for none any more"
        + (f": {entry.error}" if entry.error else ""),
    }[stuck.cause]


def _blocked(stuck: Stuck) -> str:
    if stuck.locks:
        first, rest = stuck.locks[0], len(stuck.locks) - 1
        who = f"lock {first.id} of {first.user}@{first.host}"
    else:
        who, rest = f"transaction {next(iter(stuck.blockers), 0)}", stuck.blocker_count - 1
    return f"cleaning waits for {who}" + (f" and {rest:,} more" if rest > 0 else "")


def what_frees(stuck: Stuck, switches: Switches, hive_line: HiveLine) -> str:
    """Return what frees an entry of the queue that is stuck."""
    entry, timeout = stuck.entry, age_text(switches.worker_timeout)
    by_initiator = f"its own initiator gives it to another worker after {timeout}"
    if not switches.initiator:
        by_initiator = f"no initiator runs in the server that answered; one that does gives it away after {timeout}"
    new_worker = "start a server with compactor.worker.threads above 0"
    if switches.is_hive4:
        takes_out = hive_line("abort", "compaction", str(entry.id))
        new_worker += f", or {hive_line('worker')}, which does the same; {takes_out} takes it out"
    else:
        new_worker += "; acidctl compact needs none"
    cleaner = hive_line("cleaner")
    new_cleaner = f"the server that answered runs no cleaner: start one (compactor.cleaner.on), or {cleaner}"
    kind = entry.kind if entry.kind in ("major", "minor", "rebalance") else "major"
    return {
        Cause.WORKER_LOST: by_initiator,
        Cause.TIMED_OUT: by_initiator,
        Cause.NO_JOB: by_initiator,
        Cause.NO_WORKER: new_worker,
        Cause.POOL_NOT_SERVED: f"start a worker of that pool ({hive_line('worker', '--pool', entry.pool)}), "
        f"or {hive_line('abort', 'compaction', str(entry.id))} and ask again without a pool; others take it after "
        f"{age_text(switches.pool_timeout)}",
        Cause.TXN_ABORTED: f"{cleaner} asks for the compaction again; a cleaner of Hive's with HIVE-29572 "
        "marks it as failed",
        Cause.BLOCKED: f"{hive_line('txns', '--blocking')} shows whose it is and what ends it",
        Cause.NOT_CLEANED: "see the log of the server that cleans" if switches.cleaner else new_cleaner,
        Cause.GIVEN_UP: f"mend the reason, then {hive_line('request', f'--{kind}', f'hive:{entry.name}')}: one "
        "that succeeds lets the initiator go on",
    }[stuck.cause]
