"""A worker for Hive's compaction queue (Hive 4), which takes entries like Hive's own workers.

Every slot has its own connection and thread and works on one entry at a time, so that a table that fails or takes long
does not hold up the others.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice

from acidctl.base.deadline import Deadline
from acidctl.base.errors import AcidctlError, ConflictError, NotFoundError, RefusedError, UsageProblem
from acidctl.compaction.request import CompactionRequest, Mode, NoWork, Planned, carry_out
from acidctl.compaction.run import failed
from acidctl.hive.compacting import written_down
from acidctl.hive.foreign_entries import Strangers
from acidctl.hive.orphaned_entries import free, free_dead, give_back, worker_id
from acidctl.hive.queue_lease import MetastoreSession, QueueEntryLease, partition_of
from acidctl.location.arguments import HIVE
from acidctl.location.find import find_named
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.location.table_location import TableLocation
from acidctl.location.warehouse import Warehouse
from acidctl.metastore import client, interface
from acidctl.metastore.activity import name_of, spelled_alike
from acidctl.metastore.client import Metastore, retry_until
from acidctl.metastore.interface import CompactionType
from acidctl.metastore.queue import queue_work
from acidctl.metastore.queue.compactions import WORKING, find_compactions, kind_of
from acidctl.metastore.txn.locked_transaction import Heartbeats
from acidctl.outcome import TIME_IS_UP, Outcome, Result
from acidctl.verbs.hive.engines import Engines
from acidctl.verbs.hive.options import WorkerOptions
from acidctl.verbs.hive.service import Counts, require_queue

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
_MOMENT = 10.0
"""Seconds in which interrupts are ignored while slots give their entries back."""

_POLL = 0.1
"""Seconds between two checks whether the slots have ended."""

_MODES = {
    CompactionType.MAJOR: Mode.MAJOR,
    CompactionType.MINOR: Mode.MINOR,
    CompactionType.REBALANCE: Mode.REBALANCE,
}
_POOL_HINT = "give ACID databases a pool of their own (hive.compactor.worker.pool), and run this worker in that pool"
_PATTERN = re.compile(r"[*?\[]")


_Unsure = tuple[bool, float]
"""Whether a possible entry is requested again, and until when the queue is searched for it."""


class _TimeIsUp(ConflictError):
    pass


@dataclass(frozen=True, kw_only=True)
class Worked(Outcome):
    """Outcome for an entry.

    Attributes:
        entry: its id in the queue.
        kind: of the compaction.
        took: seconds since it was claimed.
        of: the outcome of its compaction; None if there was none.
    """

    entry: int
    kind: str
    took: float
    of: Outcome | None = None


class Worker:
    """A worker that runs until :meth:`stop`, or until nothing waits.

    Args:
        metastore: every slot opens its own connection to it.
        engines: makes the engine for each entry.
        on_outcome: called for every entry, one at a time.
        on_error: called for each error of the metastore itself, after which the slot tries again.
        job: name of the job in the queue.
        storage: options of stores.
    """

    def __init__(
        self,
        metastore: Metastore,
        options: WorkerOptions,
        engines: Engines,
        on_outcome: Callable[[Worked], None],
        on_error: Callable[[AcidctlError], None],
        *,
        job: str = "",
        storage: Mapping[str, str] | None = None,
    ) -> None:
        self._metastore, self._options, self._engines = metastore, options, engines
        self._on_outcome, self._on_error = on_outcome, on_error
        self._job, self._storage, self._usual_request = job, storage or {}, options.request()
        self._stopping = threading.Event()
        self._lock = threading.Condition()
        self._bytes_in_work = 0
        self._running_slots = 0
        self._broken: BaseException | None = None
        self._deadlines: dict[str, Deadline] = {}
        self._ends_now = False
        self._unsure: dict[str, _Unsure] = {}
        self._strangers = Strangers(options.pool, 0.0) if options.once else Strangers(options.pool)
        self.counts = Counts(bytes=Counter(read=0, written=0))  # their series begin at 0

    def run(self) -> None:
        """Run the slots until they have ended.

        Raises:
            UsageProblem: the metastore has no queue for external workers.
            MetastoreError: the metastore cannot be reached at the start.
        """
        require_queue(self._metastore)
        heartbeats = Heartbeats(self._metastore)
        self._running_slots = self._options.max_parallel
        for number in range(1, self._options.max_parallel + 1):
            threading.Thread(
                target=self._guarded, args=(heartbeats,), name=f"acidctl-slot-{number}", daemon=True
            ).start()
        try:
            self._wait()
        except BaseException:
            self.stop()
            try:
                self._wait(self._options.grace)
            finally:
                self.stop(now=True)
                self._wait_for_the_last()
            raise
        finally:
            heartbeats.close()
        if self._broken:
            raise self._broken

    def _wait(self, seconds: float = math.inf) -> None:
        """Wait until all slots have ended; not with join, because an interrupted join marks a thread as ended."""
        end = time.monotonic() + seconds
        while self._running_slots and time.monotonic() < end:
            time.sleep(_POLL)

    def _wait_for_the_last(self) -> None:
        """Wait until all slots have given their entries back, even if interrupted again."""
        end = time.monotonic() + _MOMENT
        while self._running_slots:
            try:
                self._wait()
            except KeyboardInterrupt:
                if time.monotonic() > end:
                    raise

    @property
    def has_ended(self) -> bool:
        """Whether all slots have ended, so that no entry is in work."""
        return not self._running_slots

    def stop(self, *, now: bool = False) -> None:
        """Claim no more entries.

        Args:
            now: also give running entries back to the queue.
        """
        self._stopping.set()
        if now:
            with self._lock:
                self._ends_now = True
                for until in self._deadlines.values():
                    until.end_now()
                self._lock.notify_all()

    def free_dead(self) -> list[int]:
        """Free the entries of dead workers of this machine, see :func:`acidctl.hive.orphaned_entries.free_dead`."""
        return free_dead(self._metastore)

    # -- a slot ------------------------------------------------------------------------------------------------

    def _guarded(self, heartbeats: Heartbeats) -> None:
        try:
            self._slot(heartbeats)
        except BaseException as error:  # noqa: BLE001 - run() raises it again
            self._broken = error
            self.stop()
        finally:
            with self._lock:
                self._running_slots -= 1

    def _slot(self, heartbeats: Heartbeats) -> None:
        pause = _FIRST_PAUSE
        with closing(self._metastore.another()) as metastore:
            session = MetastoreSession(metastore, heartbeats)
            worker = worker_id()
            while not self._stopping.is_set():
                try:
                    self._free_unsure(metastore)
                    entry = self._strangers.claim(metastore, worker)
                    self.counts.checked, self.counts.failing = time.time(), False
                except AcidctlError as error:
                    with self._lock:
                        # The server may have given an entry to this worker, or may give it one only now.
                        self._unsure[worker] = True, time.monotonic() + client.PATIENCE
                    worker = worker_id()
                    self.counts.failing = True
                    self._on_error(error)
                    entry = None
                    if self._options.once:
                        break
                if entry is None:
                    if self._options.once:
                        break
                    self._stopping.wait(pause)
                    pause = min(pause * 1.5, _LONGEST_PAUSE)
                    continue
                pause = _FIRST_PAUSE
                if self._stopping.is_set():
                    give_back(metastore, entry, "its worker was told to stop")
                    break
                if not self._is_put_back(metastore, entry):
                    self._do(session, worker, entry)
                worker = worker_id()
            with suppress(AcidctlError):
                retry_until(lambda: self._free_unsure(metastore))

    def _is_put_back(self, metastore: Metastore, entry: interface.QueueEntry) -> bool:
        """Put an entry back if it is a stranger, and return whether it was put back."""
        name = name_of(entry.database, entry.table, entry.partition or "")
        try:
            why = self._strangers.put_back(metastore, entry)
        except AcidctlError as failure:
            self._on_error(failure)
            return True
        if why:
            error = RefusedError(f"the compaction of {name} was put back into Hive's queue", why, _POOL_HINT)
            done = Worked(
                location=name, result=Result.REFUSED, error=error, entry=entry.id, kind=kind_of(entry.type), took=0.0
            )
            with self._lock:
                self._count(done)
                self._on_outcome(done)
        return bool(why)

    def _free_unsure(self, metastore: Metastore) -> bool:
        """Free entries that the queue may show as in work by this worker because an answer was lost.

        Returns:
            Whether the search is complete.
        """
        with self._lock:
            unsure, self._unsure = self._unsure, {}
        if not unsure:
            return True
        freed: set[str] = set()
        checked = time.monotonic()
        try:
            for entry in find_compactions(metastore, state=WORKING):
                if entry.worker in unsure:
                    again, _ = unsure[entry.worker]
                    free(metastore, entry, "its worker could not tell what became of it", again=again)
                    freed.add(entry.worker)
        except AcidctlError:
            checked = -math.inf
            raise
        finally:
            kept = {name: state for name, state in unsure.items() if name not in freed and state[1] > checked}
            with self._lock:
                self._unsure |= kept
        return not kept

    def _do(self, session: MetastoreSession, worker: str, entry: interface.QueueEntry) -> None:
        began = time.monotonic()
        until = Deadline()
        with self._lock:
            self._deadlines[worker] = until
            self.counts.running += 1
            if self._ends_now:
                until.end_now()
        name = name_of(entry.database, entry.table, entry.partition or "")
        try:
            outcome = self._compact(session, worker, entry, until)
        except AcidctlError as error:
            outcome = Outcome(location=name, result=Result.FAILED, error=error)
        except Exception as error:  # noqa: BLE001 - a bug in one entry must not stop the others
            what = AcidctlError(f"unexpected {type(error).__name__}: {error}", f"while {name} was compacted")
            outcome = Outcome(location=name, result=Result.FAILED, error=what)
        finally:
            with self._lock:
                del self._deadlines[worker]
                self.counts.running -= 1
        took = time.monotonic() - began
        done = Worked(
            location=outcome.location,
            result=outcome.result,
            reasons=outcome.reasons,
            error=outcome.error,
            entry=entry.id,
            kind=kind_of(entry.type),
            took=took,
            of=outcome,
        )
        with self._lock:
            if not outcome.is_changed:
                self._unsure[worker] = False, 0.0  # the queue may not have recorded the outcome
            self._count(done)
            self._on_outcome(done)

    def _count(self, done: Worked) -> None:
        counts = self.counts
        counts.results[done.result] += 1
        counts.seconds += done.took
        counts.bytes.update(done.of.bytes_by_use() if done.of else {})

    def _compact(self, session: MetastoreSession, worker: str, entry: interface.QueueEntry, until: Deadline) -> Outcome:
        resolver = SnapshotResolver(warehouse=Warehouse(session.metastore))
        try:
            request = self._request(entry)
            found = self._find(entry, resolver)
        except (RefusedError, UsageProblem) as error:  # the compaction is refused, which does not count as a failure
            queue_work.mark_refused(session.metastore, entry, str(error))
            name = name_of(entry.database, entry.table, entry.partition or "")
            return Outcome(location=name, result=Result.REFUSED, error=error)
        except Exception as error:
            queue_work.mark_failed(session.metastore, entry, str(error))
            raise
        lease = QueueEntryLease.of_entry(
            session, found, worker, request, entry=entry, on_lost=lambda _: until.end_now()
        )
        try:
            return self._under_lease(lease, entry, request, until)
        except BaseException as error:
            lease.give_up(error)
            raise

    def _request(self, entry: interface.QueueEntry) -> CompactionRequest:
        """Return the request for an entry.

        Raises:
            RefusedError: acidctl does not run this type of compaction.
        """
        mode = _MODES.get(entry.type)  # type: ignore[call-overload]
        if mode is None:
            name = name_of(entry.database, entry.table, entry.partition or "")
            raise RefusedError(f"{name} is not compacted", f"acidctl does no compaction of type {entry.type}", "")
        if mode is not Mode.REBALANCE:
            return replace(self._usual_request, mode=mode)
        buckets, order_by = max(entry.buckets or 0, 0), entry.order_by or ""
        return replace(self._usual_request, mode=mode, buckets=buckets, order_by=order_by)

    def _find(self, entry: interface.QueueEntry, resolver: SnapshotResolver) -> TableLocation:
        """Return the location of an entry.

        Raises:
            RefusedError: the location is gone or ambiguous; Hive's own worker refuses such an entry, too.
        """
        name = name_of(entry.database, entry.table, entry.partition or "")
        if _PATTERN.search(entry.database + entry.table):
            raise RefusedError(f"{name} is not compacted", "it is not the name of a table", "")
        try:
            locations = list(islice(find_named(f"{HIVE}{name}", self._storage, resolver), 2))
        except NotFoundError as error:
            raise RefusedError(f"{name} is not compacted", str(error), "") from error
        if len(locations) != 1:
            what = "several locations" if locations else "no location"
            raise RefusedError(f"{name} is not compacted", f"it is {what}", "")
        if spelled_alike(partition_of(locations[0])) != spelled_alike(entry.partition or ""):
            raise RefusedError(f"{name} is not compacted", "the table has partitions, and this is not one of them", "")
        return locations[0]

    def _under_lease(
        self, lease: QueueEntryLease, entry: interface.QueueEntry, request: CompactionRequest, until: Deadline
    ) -> Outcome:
        if self._job:
            queue_work.record_job(lease.session.metastore, entry, self._job)
        answer = lease.plan(request)
        if isinstance(answer, NoWork):
            lease.nothing(answer)
            return answer
        if not isinstance(answer, Planned):
            lease.give_up(answer.error)
            return replace(answer, result=Result.REFUSED) if isinstance(answer.error, RefusedError) else answer

        def still_ours(_: object, __: int) -> None:
            lease.transaction.check()
            if until.is_over:  # the only way to end a task in this process
                raise _TimeIsUp("its worker was told to stop", "", "")

        try:
            with self._share(answer.plan.input_bytes, until):
                engine = self._engines(until, still_ours)
                running = carry_out([answer], request, engine, check=lambda _: lease.check())
                with closing(running) as outcomes:
                    (outcome,) = outcomes
        except _TimeIsUp as error:
            outcome = failed(answer.plan, error)
        if isinstance(outcome.error, _TimeIsUp):
            outcome = replace(outcome, result=Result.POSTPONED, error=None, reasons=(TIME_IS_UP,))
        if self._stopping.is_set() and outcome.result is Result.POSTPONED:
            lease.give_back("its worker was told to stop")
            return outcome
        if lease.transaction.lost and not outcome.is_changed:
            lease.give_up(lease.transaction.lost)
            return Outcome(location=outcome.location, result=Result.FAILED, error=lease.transaction.lost)
        return written_down(lease.settle(outcome), request)

    @contextmanager
    def _share(self, size: int, until: Deadline) -> Iterator[None]:
        """Wait until the inputs fit into `max_bytes` beside those of the other slots, and reserve the bytes."""
        most = self._options.max_bytes or math.inf
        share = int(min(size, most))
        with self._lock:
            while self._bytes_in_work and self._bytes_in_work + share > most and not until.is_over:
                self._lock.wait(0.5)
            self._bytes_in_work += share
        try:
            yield
        finally:
            with self._lock:
                self._bytes_in_work -= share
                self._lock.notify_all()
