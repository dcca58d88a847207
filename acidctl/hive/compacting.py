"""Compaction of planned locations: under Hive's transactions if a metastore has their tables, else without."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from acidctl.base.errors import unexpected
from acidctl.compaction.plan import CompactionPlan
from acidctl.compaction.request import CompactionRequest, Mode, NoWork, Planned, PlanRefused, carry_out
from acidctl.compaction.run import Compacted, Engine
from acidctl.compaction.tasks import Task
from acidctl.location.change.work_log import Fact, LogEntry, log_done, of_night
from acidctl.location.snapshot import Snapshot
from acidctl.location.table_location import TableLocation

if TYPE_CHECKING:
    from acidctl.hive.queue_lease import QueueEntryLease

AT_ONCE = 50
"""Locations whose transactions are open at the same time."""


def written_down(outcome: Compacted, request: CompactionRequest) -> Compacted:
    """Write a final outcome to its location's log if it changed anything there, and return it."""
    if outcome.is_changed:
        plan, snapshot = outcome.plan, outcome.plan.snapshot
        facts: dict[str, Fact] = {
            "kind": plan.kind.value,
            "minWriteId": plan.min_write_id,
            "maxWriteId": plan.max_write_id,
            "inputs": len(plan.inputs),
            "outputs": list(outcome.published),
            "inputBytes": plan.input_bytes,
            "bytes": outcome.bytes,
            "rows": outcome.rows,
            "rowsDropped": outcome.rows_dropped,
        }
        facts |= of_night(request.night)
        entry = LogEntry("compact", outcome.result.value, request.night, source=snapshot.source.kind, facts=facts)
        log_done(snapshot.fs, snapshot.path, entry, request.locking.tell)
    return outcome


def is_under_hive(found: TableLocation, request: CompactionRequest) -> bool:
    """Return whether a location is compacted under a transaction of Hive.

    This requires that the metastore has its table and provides the lists; a caller who gives lists or a transaction is
    responsible for both.
    """
    return found.hive is not None and found.resolver.asks_metastore and not request.visibility_txn


def compact_locations(
    planned: Sequence[tuple[TableLocation, Planned]],
    request: CompactionRequest,
    engine: Engine | None = None,
    on_task: Callable[[Task], None] | None = None,
) -> Generator[Compacted | NoWork | PlanRefused, None, None]:
    """Carry plans out: those under Hive's transactions in batches, the others all together.

    Under a transaction, a location is planned again. If this generator is closed or interrupted, it removes its
    entries from Hive's queue, its transactions and its locks.

    Args:
        engine, on_task: as in :func:`acidctl.compaction.request.carry_out`.
    """
    under_hive = [(found, plan) for found, plan in planned if is_under_hive(found, request)]
    others = [plan for found, plan in planned if not is_under_hive(found, request)]
    if others:
        with closing(carry_out(others, request, engine, on_task)) as outcomes:
            yield from (written_down(outcome, request) for outcome in outcomes)
    if not under_hive:
        return
    # These import thrift, which is optional without a metastore.
    from acidctl.hive.queue_lease import QueueEntryLease  # noqa: PLC0415
    from acidctl.metastore.client import batches  # noqa: PLC0415
    from acidctl.metastore.txn.transaction import Heartbeats  # noqa: PLC0415

    metastore = under_hive[0][0].resolver.require_warehouse("").metastore
    with closing(Heartbeats(metastore)) as heartbeats:
        take = partial(QueueEntryLease.take, metastore, heartbeats)
        carry = partial(carry_out, request=request, engine=engine, on_task=on_task)
        wanted = [(found, replace(request, mode=Mode(plan.plan.asked)), plan.snapshot) for found, plan in under_hive]
        # Writers wait for the lock of a rebalance, so it is held for one location at a time.
        for batch in batches(wanted, 1 if request.mode is Mode.REBALANCE else AT_ONCE):
            with closing(compact_under_leases(take, batch, carry)) as answers:
                yield from answers


def compact_under_leases(
    take: Callable[[TableLocation, CompactionRequest], QueueEntryLease],
    wanted: Sequence[tuple[TableLocation, CompactionRequest, Snapshot | None]],
    carry: Callable[..., Generator[Compacted, None, None]],
) -> Generator[Compacted | NoWork | PlanRefused, None, None]:
    """Plan locations under a lease each, and carry the plans out together; every lease ends, whatever happens.

    Args:
        wanted: locations, each with its request and the snapshot to report if no lease or plan can be had.
        carry: carries plans out, as :func:`acidctl.compaction.request.carry_out` with its `check`.
    """
    leases: dict[str, tuple[QueueEntryLease, CompactionRequest]] = {}
    ready: list[Planned] = []

    def check(plan: CompactionPlan) -> None:
        leases[plan.staging][0].check()

    try:
        for found, request, seen in wanted:
            lease = None
            try:
                lease = take(found, request)
                leases[found.shown] = lease, request  # so that it is ended with the others on an error
                answer = lease.plan(request)
            except Exception as caught:  # noqa: BLE001 - the other locations go on
                error = unexpected(caught)
                if lease:
                    lease.give_up(error)
                answer = PlanRefused(location=found.shown, error=error, snapshot=seen)
            if isinstance(answer, Planned):
                leases[answer.plan.staging] = leases.pop(found.shown)
                ready.append(answer)
            else:
                yield answer
        with closing(carry(ready, check=check)) as outcomes:
            for outcome in outcomes:
                lease, request = leases[outcome.plan.staging]
                yield written_down(lease.settle(outcome), request)
    except BaseException as error:
        for lease, _ in leases.values():
            lease.give_up(error)
        raise
