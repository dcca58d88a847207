"""An initiator that requests the compactions due in a warehouse, those with the most benefit for readers first.

It applies the thresholds of `compact` to the files in storage, so that it also sees what was written without Hive. It
skips the tables that Hive's own initiator skips.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.triggers import advise
from acidctl.base.errors import AcidctlError, ConflictError, GoneError, RefusedError, unexpected
from acidctl.compaction.request import CompactionRequest, decide_resolved, request_for_table
from acidctl.hive.stuck import given_up
from acidctl.hive.table_names import location_key, names_of
from acidctl.location.find import find
from acidctl.location.resolved import metastore_facts, resolve
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.location.table_location import TableLocation
from acidctl.location.walk import Observer
from acidctl.location.warehouse import Warehouse
from acidctl.metastore import queue
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import Unreachable, Unreadable
from acidctl.metastore.housekeeping import is_replication_target
from acidctl.metastore.server import find_switches
from acidctl.metastore.tables import HiveTable
from acidctl.metastore.txn.locks import LeaderLock
from acidctl.outcome import Outcome, Result
from acidctl.verbs.hive.options import InitiatorOptions
from acidctl.verbs.hive.service import Service, Tables

ROLE = "initiator"
"""Role of the lock that the running initiator holds."""

_AGAIN = 7 * 86400.0
"""Seconds after which a location whose compactions failed is checked again, as in Hive."""

_STANDBY = 15.0
"""Average seconds between two attempts to take the lock in standby."""


@dataclass(frozen=True, kw_only=True)
class Initiated(Outcome):
    """Outcome for a location.

    Attributes:
        gain: bytes that each full read saves per byte rewritten.
    """

    kind: CompactionKind | None = None
    entry: int = 0
    gain: float = 0.0
    pool: str = ""

    def facts(self) -> Mapping[str, object]:
        """See :class:`Outcome`."""
        if self.kind is None:
            return {}
        return {
            "kind": self.kind.value,
            "entry": self.entry or None,
            "gain": round(self.gain, 3),
            "pool": self.pool or None,
        }


class Initiator(Service):
    """An initiator that checks a warehouse in rounds.

    Args:
        on_error: called with the name of each location that cannot be checked, and without a name for a failed round.
    """

    def __init__(
        self,
        metastore: Metastore,
        options: InitiatorOptions,
        tables: Tables,
        on_outcome: Callable[[Initiated], None],
        on_error: Callable[[str, AcidctlError], None],
    ) -> None:
        super().__init__(metastore, lambda error: on_error("", error))
        self._options, self._tables = options, tables
        self._on_outcome, self._on_error = on_outcome, on_error

    def once(self) -> None:
        """Run one round, under the warehouse's lock unless nothing is changed."""
        if self._options.dry_run:
            self._round(None)
            return
        with LeaderLock(self._metastore, ROLE) as lock:
            lock.take()
            self._round(lock)

    def run(self, on_standby: Callable[[ConflictError], None] = lambda _: None) -> None:
        """Run rounds until :meth:`stop`.

        Args:
            on_standby: called when another initiator is running, whose end this one waits for.

        Raises:
            ConflictError: another initiator is running at the start, and this one is not a standby.
        """
        with LeaderLock(self._metastore, ROLE) as lock:
            self._take(lock, on_standby)

            def run_round() -> None:
                if lock.lost:
                    self.counts.leading = False
                    lock.release()
                    self._take(lock, on_standby)
                if self.counts.leading:
                    self._round(lock)

            self._repeat(run_round, self._options.every)

    def _take(self, lock: LeaderLock, on_standby: Callable[[ConflictError], None]) -> None:
        """Take the lock; in standby, wait until it is free or :meth:`stop` was called."""
        is_waiting = False
        while not self._stopping.is_set():
            try:
                lock.take()
            except ConflictError as error:
                if not self._options.standby:
                    raise
                if not is_waiting:
                    on_standby(error)
                is_waiting, self.counts.failing = True, False
            except AcidctlError as error:
                if not is_waiting:
                    raise
                self._round_failed(error)
            else:
                self.counts.leading = True
                return
            self._stopping.wait(_STANDBY * random.uniform(0.5, 1.5))  # so that several do not try at the same time

    def _round(self, lock: LeaderLock | None) -> None:
        start, tables = time.monotonic(), self._tables
        resolver = SnapshotResolver(warehouse=Warehouse(self._metastore, tables.exclude)).opened()
        queued = _Queue(self._metastore)
        due: list[tuple[Initiated, queue.Wish]] = []
        for found in find(tables.names, tables.storage, resolver, Observer(lambda error: self._failed("", error))):
            if self._stopping.is_set():
                return
            try:
                checked = self._check(found, queued)
            except Exception as error:  # noqa: BLE001 - a bug in one location must not stop the others
                self._failed(found.shown, unexpected(error, f"while {found.shown} was looked at"))
                continue
            if isinstance(checked, Initiated):
                self._count(checked)
            else:
                due.append(checked)
        due.sort(key=lambda pair: (-pair[0].gain, pair[1].name))
        for outcome in self._ask(due, lock):
            self._count(outcome)
        self._round_ended(start)

    def _check(self, found: TableLocation, queued: _Queue) -> Initiated | tuple[Initiated, queue.Wish]:
        """Return the outcome and the request for a location, or the outcome alone if nothing is due."""
        table, outcome = found.hive, partial(Initiated, location=found.shown)
        assert table  # it was found by its name
        if why := queued.why_skipped(table, found):
            return outcome(result=Result.SKIPPED, reasons=(why,))
        try:
            request = request_for_table(found.shown, CompactionRequest(), metastore_facts(found))
        except RefusedError as error:
            refused = reason(Code.REFUSED, how="error", why=str(error))
            return outcome(result=Result.SKIPPED, reasons=(refused,))
        location = resolve(found, compactor=True)
        location.for_compactor().require_history()
        decided = decide_resolved(location, request)
        decision, snapshot = decided.decision, decided.snapshot
        if decided.idle:
            return outcome(result=Result.NOTHING_TO_DO, reasons=decided.idle)
        kind, gain, pool = decision.kind, advise(snapshot.listing, snapshot.state).gain, ""
        assert kind is not None  # else it would be idle
        if self._metastore.features.txn_types:
            pool = self._options.pool or location.metastore.properties.pool
        planned = outcome(result=Result.PLANNED, reasons=(decision.reason,), kind=kind, gain=gain, pool=pool)
        return planned, queue.Wish(*names_of(found), kind.value, pool)

    def _ask(self, due: Sequence[tuple[Initiated, queue.Wish]], lock: LeaderLock | None) -> Iterator[Initiated]:
        most = len(due) if self._options.most is None else self._options.most
        for number, (planned, wish) in enumerate(due):
            if number >= most:
                more = reason(Code.OTHERS_GAIN_MORE, count=most)
                yield replace(planned, result=Result.POSTPONED, reasons=(*planned.reasons, more))
            elif lock is None:
                yield planned
            elif not self._stopping.is_set():
                lock.check()
                try:
                    answer = queue.request_compaction(self._metastore, wish)
                except (Unreachable, Unreadable):
                    raise  # the other requests would fail, too
                except AcidctlError as error:
                    self._failed(planned.location, error)
                    continue
                if answer.accepted:
                    yield replace(planned, result=Result.REQUESTED, entry=answer.id)
                else:
                    why = _in_queue(answer.id, answer.state)
                    yield replace(planned, result=Result.SKIPPED, reasons=(why,))

    def _count(self, outcome: Initiated) -> None:
        self.counts.results[outcome.result] += 1
        self._on_outcome(outcome)

    def _failed(self, location: str, error: AcidctlError) -> None:
        if isinstance(error, GoneError):  # the location was dropped, so nothing is due
            return
        self.counts.results[Result.FAILED] += 1
        self._on_error(location, error)


class _Queue:
    """The queue and its history at the start of a round, by location."""

    def __init__(self, metastore: Metastore) -> None:
        self._metastore = metastore
        switches, entries, now = find_switches(metastore), queue.find_compactions(metastore), time.time()
        self._waiting = {entry.key: entry for entry in entries if entry.state in (queue.INITIATED, queue.WORKING)}
        self._given_up = {
            last.key: (count, last)
            for last, count in given_up(entries, switches.most_failures)
            if last.ended is None or now - last.ended < _AGAIN
        }
        self._replicas: dict[str, bool] = {}

    def why_skipped(self, table: HiveTable, found: TableLocation) -> Reason | None:
        """Return why no compaction of a location is requested, whatever its files; None if one may be."""
        key = location_key(found)
        if entry := self._waiting.get(key):
            return _in_queue(entry.id, entry.state)
        if key in self._given_up:
            count, last = self._given_up[key]
            return reason(Code.GIVEN_UP, count=count, entry=last.id)
        if table.database not in self._replicas:
            self._replicas[table.database] = is_replication_target(self._metastore, table.database)
        return reason(Code.IS_REPLICA, database=table.database) if self._replicas[table.database] else None


def _in_queue(entry: int, state: str) -> Reason:
    return reason(Code.IN_QUEUE, entry=entry, state=state or "there")
