"""Compaction of planned locations: under Hive's transactions if a metastore has their tables, else without."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from acidctl.base.errors import AcidctlError
from acidctl.compaction.plan import CompactionPlan
from acidctl.compaction.request import CompactionRequest, Mode, NoWork, Planned, PlanRefused, carry_out
from acidctl.compaction.run import Compacted, Engine
from acidctl.compaction.tasks import Task
from acidctl.location.change.work_log import Fact, LogEntry, log_done, of_night
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
        # Writers wait for the lock of a rebalance, so it is held for one location at a time.
        for batch in batches(under_hive, 1 if request.mode is Mode.REBALANCE else AT_ONCE):
            with closing(_under_lease(take, batch, request, carry)) as answers:
                yield from answers


def _under_lease(
    take: Callable[[TableLocation, CompactionRequest], QueueEntryLease],
    planned: Sequence[tuple[TableLocation, Planned]],
    request: CompactionRequest,
    carry: Callable[..., Generator[Compacted, None, None]],
) -> Generator[Compacted | NoWork | PlanRefused, None, None]:
    leases: dict[str, QueueEntryLease] = {}
    ready: list[Planned] = []

    def check(plan: CompactionPlan) -> None:
        leases[plan.staging].check()

    try:
        for found, first in planned:
            try:
                decided = replace(request, mode=Mode(first.plan.asked))
                leases[found.shown] = take(found, decided)  # so that it is ended with the others on an error
                answer = leases[found.shown].plan(decided)
            except AcidctlError as error:
                if found.shown in leases:
                    leases[found.shown].give_up(error)
                answer = PlanRefused(location=first.location, error=error, snapshot=first.snapshot)
            if isinstance(answer, Planned):
                leases[answer.plan.staging] = leases.pop(found.shown)
                ready.append(replace(answer, reasons=first.reasons, figures=first.figures))
            else:
                yield answer
        with closing(carry(ready, check=check)) as outcomes:
            for outcome in outcomes:
                yield written_down(leases[outcome.plan.staging].settle(outcome), request)
    except BaseException as error:
        for lease in leases.values():
            lease.give_up(error)
        raise
