"""Compactions that are due in a warehouse, asked for in Hive's queue: those first whose readers gain most.

It decides as `compact` does by thresholds, from the files that are there, and so it sees what was written without Hive,
too. It leaves alone what Hive's own initiator leaves alone.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.triggers import advise
from acidctl.compaction.plan import below_straddlers
from acidctl.compaction.request import CompactionRequest, as_its_owner_wishes, decision_on, why_idle
from acidctl.errors import AcidctlError, ConflictError, GoneError, RefusedError
from acidctl.hive.rounds import repeat
from acidctl.hive.turn import partition_of
from acidctl.location.find import Found, find
from acidctl.location.lists import SnapshotLists
from acidctl.location.walk import Observer
from acidctl.location.warehouse import Warehouse
from acidctl.metastore.activity import key_of
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import Unreachable, Unreadable
from acidctl.metastore.housekeeping import is_replication_target
from acidctl.metastore.own.locks import LeaderLock
from acidctl.metastore.queue.compactions import (
    INITIATED,
    WORKING,
    Compaction,
    Wish,
    find_compactions,
    request_compaction,
)
from acidctl.metastore.queue.stuck import given_up
from acidctl.metastore.server import find_switches
from acidctl.metastore.tables import HiveTable
from acidctl.outcome import Outcome, Result

ROLE = "initiator"
"""Of the lock that one of them holds."""

_AGAIN = 7 * 86400.0
"""Seconds after which a location is looked at again whose compactions failed, as Hive does it."""

_STANDBY = 15.0
"""Seconds, about, between two questions of one in standby."""


@dataclass(frozen=True, slots=True)
class Initiation:
    """What an initiator does.

    Attributes:
        names: of tables, ``hive:db.*``.
        exclude: patterns of tables that are left out.
        pool: in which it is asked for; empty for that of the table, or of its database.
        most: so many are asked for in one round; None for all.
        changes_nothing: only say what would be asked for.
        request: thresholds that count more than those of the tables.
        storage: options of stores.
    """

    names: Sequence[str] = ("hive:*.*",)
    exclude: Sequence[str] = ()
    pool: str = ""
    most: int | None = None
    changes_nothing: bool = False
    request: CompactionRequest = field(default_factory=CompactionRequest)
    storage: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Initiated(Outcome):
    """What became of a location.

    Attributes:
        kind: the compaction that is due; None for none.
        entry: of the queue, where it was asked for.
        gain: bytes that each full read saves for each byte that is rewritten once.
        pool: in which it is asked for.
    """

    kind: CompactionKind | None = None
    entry: int = 0
    gain: float = 0.0
    pool: str = ""

    def facts(self) -> Mapping[str, object]:
        """As of :class:`Outcome`."""
        if self.kind is None:
            return {}
        return {
            "kind": self.kind.value,
            "entry": self.entry or None,
            "gain": round(self.gain, 3),
            "pool": self.pool or None,
        }


@dataclass(slots=True)
class InitiatorCounts:
    """What an initiator has done so far.

    Attributes:
        results: locations by what became of them, in all rounds.
        rounds: that it has finished.
        looked: when the last one ended, seconds since the epoch.
        seconds: that the last one took.
        failing: whether the last one was given up.
        leading: whether it holds the lock of the one that works.
    """

    results: Counter[str] = field(default_factory=Counter)
    rounds: int = 0
    looked: float = 0.0
    seconds: float = 0.0
    failing: bool = False
    leading: bool = False


class Initiator:
    """Looks over a warehouse in rounds.

    Args:
        on_outcome: told of every location.
        on_error: told of what cannot be looked at, by its name, and of a round that failed, without one.
    """

    def __init__(
        self,
        metastore: Metastore,
        asked: Initiation,
        on_outcome: Callable[[Initiated], None],
        on_error: Callable[[str, AcidctlError], None],
    ) -> None:
        self._metastore, self._asked = metastore, asked
        self._on_outcome, self._on_error = on_outcome, on_error
        self._stopping = threading.Event()
        self.counts = InitiatorCounts()

    def stop(self) -> None:
        """Ask for nothing any more."""
        self._stopping.set()

    def once(self) -> None:
        """One round, under the lock of which there is one in a warehouse; without it where nothing is changed.

        Raises:
            ConflictError: another initiator is at work, or the lock was lost.
            MetastoreError: the metastore cannot be reached, or failed.
        """
        if self._asked.changes_nothing:
            self._round(None)
            return
        with LeaderLock(self._metastore, ROLE) as lock:
            lock.take()
            self._round(lock)

    def run(self, every: float, on_standby: Callable[[ConflictError], None] | None = None) -> None:
        """Rounds until it is told to stop.

        Args:
            every: seconds from the begin of one to that of the next.
            on_standby: while another one is at work it waits for that one's end, and this is told of it; None refuses.

        Raises:
            ConflictError: another initiator is at work when this one begins, and it is not to wait.
            MetastoreError: the metastore cannot be reached then.
        """
        with LeaderLock(self._metastore, ROLE) as lock:
            self._take(lock, on_standby)

            def look() -> None:
                if lock.lost:
                    self.counts.leading = False
                    lock.release()
                    self._take(lock, on_standby)
                if self.counts.leading:
                    self._round(lock)

            repeat(look, every, self._stopping, self._round_failed)

    def _take(self, lock: LeaderLock, on_standby: Callable[[ConflictError], None] | None) -> None:
        """Take the lock, in standby as soon as it is free; or be told to stop."""
        is_waiting = False
        while not self._stopping.is_set():
            try:
                lock.take()
            except ConflictError as error:
                if on_standby is None:
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
            self._stopping.wait(_STANDBY * random.uniform(0.5, 1.5))  # several of them are not to meet each time

    def _round_failed(self, error: AcidctlError) -> None:
        self.counts.failing = True
        self._on_error("", error)

    def _round(self, lock: LeaderLock | None) -> None:
        begun = time.monotonic()
        lists = SnapshotLists(warehouse=Warehouse(self._metastore, tuple(self._asked.exclude))).begun()
        queue = _Queue(self._metastore)
        due: list[tuple[Initiated, Wish]] = []
        for found in find(
            self._asked.names, self._asked.storage, lists, Observer(lambda error: self._failed("", error))
        ):
            if self._stopping.is_set():
                return
            try:
                one = self._look(found, lists, queue)
            except AcidctlError as error:
                self._failed(found.shown, error)
                continue
            except Exception as error:  # noqa: BLE001 - a bug in one location is not to end the others
                what = AcidctlError(f"unexpected {type(error).__name__}: {error}", f"while {found.shown} was looked at")
                self._failed(found.shown, what)
                continue
            if isinstance(one, tuple):
                due.append(one)
            else:
                self._done(one)
        due.sort(key=lambda pair: (-pair[0].gain, pair[1].name))
        for one in self._ask(due, lock):
            self._done(one)
        self.counts.rounds += 1
        self.counts.looked, self.counts.seconds = time.time(), time.monotonic() - begun
        self.counts.failing = False

    def _look(self, found: Found, lists: SnapshotLists, queue: _Queue) -> Initiated | tuple[Initiated, Wish]:
        """One location: what is due there, or why nothing is."""
        table = found.hive
        assert table  # it was found by its name
        if held := queue.holds(table, found):
            return Initiated(location=found.shown, result=Result.SKIPPED, reasons=(held,))
        try:
            request = as_its_owner_wishes(self._asked.request, table, lists.wishes_of(table))
        except RefusedError as error:
            why = reason(Code.REFUSED, how="error", why=str(error))
            return Initiated(location=found.shown, result=Result.SKIPPED, reasons=(why,))
        snapshot = below_straddlers(found.snapshot(lists, compactor=True))
        snapshot.require_history()
        decision, _ = decision_on(snapshot, request)
        if idle := why_idle(snapshot, decision):
            return Initiated(location=found.shown, result=Result.NOTHING_TO_DO, reasons=idle)
        assert decision.kind is not None  # it would be idle
        pool = ""
        if self._metastore.features.txn_types:
            pool = self._asked.pool or lists.wishes_of(table).pool
        wish = Wish(table.database, table.name, partition_of(found), decision.kind.value, pool)
        gain = advise(snapshot.listing, snapshot.state).gain
        one = Initiated(
            location=found.shown,
            result=Result.PLANNED,
            reasons=(decision.reason,),
            kind=decision.kind,
            gain=gain,
            pool=pool,
        )
        return one, wish

    def _ask(self, due: Sequence[tuple[Initiated, Wish]], lock: LeaderLock | None) -> Iterator[Initiated]:
        most = len(due) if self._asked.most is None else self._asked.most
        for number, (one, wish) in enumerate(due):
            if number >= most:
                more = reason(Code.OTHERS_GAIN_MORE, count=most)
                yield _as(one, Result.POSTPONED, (*one.reasons, more))
            elif lock is None:
                yield one
            elif not self._stopping.is_set():
                lock.check()
                try:
                    answer = request_compaction(self._metastore, wish)
                except (Unreachable, Unreadable):
                    raise  # of a server that is gone nothing more is to be had
                except AcidctlError as error:
                    self._failed(one.location, error)
                    continue
                if answer.accepted:
                    yield _as(one, Result.REQUESTED, one.reasons, answer.id)
                else:
                    yield _as(one, Result.SKIPPED, (_in_queue(answer.id, answer.state),))

    def _done(self, one: Initiated) -> None:
        self.counts.results[one.result] += 1
        self._on_outcome(one)

    def _failed(self, location: str, error: AcidctlError) -> None:
        if isinstance(error, GoneError):  # nothing is due there any more
            return
        self.counts.results[Result.FAILED] += 1
        self._on_error(location, error)


class _Queue:
    """The queue and its history when a round begins, by location."""

    def __init__(self, metastore: Metastore) -> None:
        self._metastore = metastore
        switches, entries, now = find_switches(metastore), find_compactions(metastore), time.time()
        self._waiting = {_place_of(one): one for one in entries if one.state in (INITIATED, WORKING)}
        self._given_up = {
            _place_of(last): (count, last)
            for last, count in given_up(entries, switches.most_failures)
            if last.ended is None or now - last.ended < _AGAIN
        }
        self._replicas: dict[str, bool] = {}

    def holds(self, table: HiveTable, found: Found) -> Reason | None:
        """Why nothing is asked for in a location, whatever is there."""
        place = key_of(table.database, table.name, partition_of(found))
        if entry := self._waiting.get(place):
            return _in_queue(entry.id, entry.state)
        if place in self._given_up:
            count, last = self._given_up[place]
            return reason(Code.GIVEN_UP, count=count, entry=last.id)
        if table.database not in self._replicas:
            self._replicas[table.database] = is_replication_target(self._metastore, table.database)
        return reason(Code.IS_REPLICA, database=table.database) if self._replicas[table.database] else None


def _place_of(entry: Compaction) -> tuple[str, str, str]:
    return key_of(entry.database, entry.table, entry.partition)


def _in_queue(entry: int, state: str) -> Reason:
    return reason(Code.IN_QUEUE, entry=entry, state=state or "there")


def _as(one: Initiated, result: Result, reasons: tuple[Reason, ...], entry: int = 0) -> Initiated:
    return Initiated(
        location=one.location, result=result, reasons=reasons, kind=one.kind, entry=entry, gain=one.gain, pool=one.pool
    )
