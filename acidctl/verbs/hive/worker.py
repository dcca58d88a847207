"""A worker for Hive's compaction queue (Hive 4), which takes entries like Hive's own workers.

Every slot has its own connection and thread and works on one entry at a time, so that a table that fails or takes long
does not hold up the others.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from socket import gethostname

from acidctl.base.deadline import Deadline
from acidctl.base.errors import AcidctlError, ConflictError, NotFoundError, RefusedError, UsageProblem, unexpected
from acidctl.compaction.local_engine import LocalEngine
from acidctl.compaction.request import CompactionRequest, Mode, Planned, PlanRefused, carry_out
from acidctl.compaction.run import Check, Compacted, Engine, failed
from acidctl.compaction.tasks import Task
from acidctl.hive.compacting import compact_under_leases
from acidctl.hive.queue_entries import Claims, ask_again, free, free_dead, give_back, worker_id
from acidctl.hive.queue_lease import QueueEntryLease, mark_ended
from acidctl.hive.table_names import location_of
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.location.table_location import TableLocation
from acidctl.location.warehouse import Warehouse
from acidctl.metastore import client, interface
from acidctl.metastore.client import Metastore, retry_until
from acidctl.metastore.errors import Unreachable
from acidctl.metastore.queue import WORKING, entry_name, find_compactions, kind_of
from acidctl.metastore.txn.transaction import Heartbeats
from acidctl.outcome import TIME_IS_UP, Outcome, Result
from acidctl.storage.port import FileSystemSpec
from acidctl.storage.registry import open_location
from acidctl.verbs.hive.options import WorkerOptions
from acidctl.verbs.hive.service import Counts, require_queue

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
_MOMENT = 10.0
"""Seconds in which interrupts are ignored while slots give their entries back."""

_LOOK_FOR_DEAD = 20.0
"""Seconds between two searches for the entries of dead workers of this machine."""

_POLL = 0.1
"""Seconds between two checks whether the slots have ended."""

_POOL_HINT = "give ACID databases a pool of their own (hive.compactor.worker.pool), and run this worker in that pool"
_TOLD_TO_STOP = "its worker was told to stop"

Engines = Callable[[Deadline, Callable[[Task, int], None]], Engine]
"""Makes an engine for one entry: it stops its tasks at the deadline, and calls the function with their progress."""

_Unsure = tuple[bool, float]
"""Whether a possible entry is requested again, and until when the queue is searched for it."""


class _TimeIsUp(ConflictError):
    pass


@dataclass(frozen=True, kw_only=True)
class Worked(Outcome):
    """Outcome for an entry.

    Attributes:
        took: seconds since it was claimed.
        of: the outcome of its compaction; None if there was none.
    """

    entry: int
    kind: str
    took: float
    of: Outcome | None = None

    @classmethod
    def after(cls, entry: interface.QueueEntry, outcome: Outcome, took: float = 0.0) -> Worked:
        """Return the outcome for an entry from that of its location."""
        return cls(
            location=outcome.location,
            result=outcome.result,
            reasons=outcome.reasons,
            error=outcome.error,
            entry=entry.id,
            kind=kind_of(entry.type),
            took=took,
            of=outcome,
        )


class Worker:
    """A worker that runs until :meth:`stop`, or until nothing waits.

    Args:
        metastore: every slot opens its own connection to it.
        on_error: called for each error of the metastore itself, after which the slot tries again.
        job: name of the job in the queue.
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
        self._job, self._storage = job, storage or {}
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._running_slots = 0
        self._broken: BaseException | None = None
        self._deadlines: dict[str, Deadline] = {}
        self._ends_now = False
        self._unsure: dict[str, _Unsure] = {}
        self._claims = Claims(options.pool, 0.0) if options.once else Claims(options.pool)
        self.counts = Counts(bytes=Counter(read=0, written=0))  # their series begin at 0

    def run(self) -> None:
        """Run the slots until they have ended."""
        require_queue(self._metastore)
        with closing(Heartbeats(self._metastore)) as heartbeats:
            self._running_slots = self._options.max_parallel
            for number in range(1, self._options.max_parallel + 1):
                name = f"acidctl-slot-{number}"
                threading.Thread(target=self._guarded, args=(heartbeats,), name=name, daemon=True).start()
            try:
                self._wait_and_free_dead()
            except BaseException:
                self.stop()
                try:
                    self._wait(self._options.grace)
                finally:
                    self.stop(now=True)
                    self._wait_for_the_last()
                raise
        if self._broken:
            raise self._broken

    def _wait_and_free_dead(self) -> None:
        self._wait(_LOOK_FOR_DEAD)
        while self._running_slots:
            try:
                self.free_dead()
            except AcidctlError as error:
                self._on_error(error)
            self._wait(_LOOK_FOR_DEAD)

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

    def free_dead(self) -> list[int]:
        """Free the entries of dead workers of this machine, see :func:`acidctl.hive.queue_entries.free_dead`."""
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
            while not self._stopping.is_set():
                worker = worker_id()
                entry = self._claim(metastore, worker)
                if entry is None:
                    if self._options.once:
                        break
                    self._stopping.wait(pause)
                    pause = min(pause * 1.5, _LONGEST_PAUSE)
                    continue
                pause = _FIRST_PAUSE
                if self._stopping.is_set():
                    if not give_back(metastore, entry, _TOLD_TO_STOP):
                        self._remember_unsure(worker)
                elif not self._is_put_back(metastore, worker, entry):
                    self._do(metastore, heartbeats, worker, entry)
            with suppress(AcidctlError):
                retry_until(lambda: self._free_unsure(metastore))

    def _claim(self, metastore: Metastore, worker: str) -> interface.QueueEntry | None:
        try:
            self._free_unsure(metastore)
            entry = self._claims.claim(metastore, worker)
        except AcidctlError as error:
            self._remember_unsure(worker)
            self.counts.failing = True
            self._on_error(error)
            return None
        self.counts.checked, self.counts.failing = time.time(), False
        return entry

    def _remember_unsure(self, worker: str) -> None:
        """Search for an entry of this worker later: it may have one, or the server may give it one only now."""
        with self._lock:
            self._unsure[worker] = True, time.monotonic() + client.PATIENCE

    def _is_put_back(self, metastore: Metastore, worker: str, entry: interface.QueueEntry) -> bool:
        """Put an entry back if it is for another worker, and return whether it is none of ours."""
        try:
            why = self._claims.put_back(metastore, entry)
        except AcidctlError as failure:
            self._remember_unsure(worker)
            self._on_error(failure)
            return True
        if why:
            error = RefusedError(
                f"the compaction of {entry_name(entry)} was put back into Hive's queue", why, _POOL_HINT
            )
            self._ended(replace(Worked.after(entry, _refused(entry, error)), of=None))
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
                    if free(metastore, entry, "its worker could not tell what became of it", again=again):
                        freed.add(entry.worker)
            if names := {name for name, (again, _) in unsure.items() if again}:
                ask_again(metastore, names.__contains__)
        except AcidctlError:
            checked = -math.inf
            raise
        finally:
            kept = {name: state for name, state in unsure.items() if name not in freed and state[1] > checked}
            with self._lock:
                self._unsure |= kept
        return not kept

    def _do(self, metastore: Metastore, heartbeats: Heartbeats, worker: str, entry: interface.QueueEntry) -> None:
        began = time.monotonic()
        until = Deadline()
        with self._lock:
            self._deadlines[worker] = until
            self.counts.running += 1
            if self._ends_now:
                until.end_now()
        try:
            outcome = self._compact(metastore, heartbeats, worker, entry, until)
        except Exception as error:  # noqa: BLE001 - a bug in one entry must not stop the others
            what = unexpected(error, f"while {entry_name(entry)} was compacted")
            outcome = Outcome(location=entry_name(entry), result=Result.FAILED, error=what)
        finally:
            with self._lock:
                del self._deadlines[worker]
                self.counts.running -= 1
        if not outcome.is_changed:
            with self._lock:
                # The queue may not have recorded the outcome.
                self._unsure[worker] = outcome.result is Result.POSTPONED, 0.0
        self._ended(Worked.after(entry, outcome, time.monotonic() - began))

    def _ended(self, done: Worked) -> None:
        with self._lock:
            self.counts.results[done.result] += 1
            self.counts.seconds += done.took
            self.counts.bytes.update(done.of.bytes_by_use() if done.of else {})
            self._on_outcome(done)

    # -- an entry ----------------------------------------------------------------------------------------------

    def _compact(
        self, metastore: Metastore, heartbeats: Heartbeats, worker: str, entry: interface.QueueEntry, until: Deadline
    ) -> Outcome:
        try:
            request = self._request(entry)
            try:
                found = location_of(entry, self._storage, SnapshotResolver(warehouse=Warehouse(metastore)))
            except (NotFoundError, UsageProblem) as error:  # Hive's own worker refuses such an entry, too
                raise RefusedError(f"{entry_name(entry)} is not compacted", str(error), "") from error
        except Exception as error:
            mark_ended(metastore, entry, error)
            if isinstance(error, RefusedError):
                return _refused(entry, error)
            raise
        leases: list[QueueEntryLease] = []

        def take(found: TableLocation, request: CompactionRequest) -> QueueEntryLease:
            of_entry = partial(QueueEntryLease.of_entry, metastore, heartbeats, found, request, worker)
            leases.append(of_entry(entry=entry, on_lost=lambda _: until.end_now()))
            return leases[0]

        def carry(planned: Sequence[Planned], check: Check) -> Generator[Compacted, None, None]:
            for plan in planned:
                if self._job:
                    metastore.call(interface.SET_HADOOP_JOBID, self._job, entry.id)
                yield self._carried_out(plan, request, leases[0], until, check=check)

        with closing(compact_under_leases(take, [(found, request, None)], carry)) as outcomes:
            (outcome,) = outcomes
        if leases and leases[0].refusal:
            return _refused(entry, leases[0].refusal)
        is_refused = isinstance(outcome, PlanRefused) and isinstance(outcome.error, RefusedError)
        return replace(outcome, result=Result.REFUSED) if is_refused else outcome

    def _request(self, entry: interface.QueueEntry) -> CompactionRequest:
        request = replace(self._options.request(), mode=Mode(kind_of(entry.type)))
        if request.mode is Mode.REBALANCE:
            if entry.order_by:
                hint = "let Hive's own workers do it"
                raise RefusedError("acidctl sorts no rows", f"a rebalance was asked for with {entry.order_by}", hint)
            return replace(request, buckets=max(entry.buckets or 0, 0))
        return request

    def _carried_out(
        self, planned: Planned, request: CompactionRequest, lease: QueueEntryLease, until: Deadline, *, check: Check
    ) -> Compacted:
        def still_ours(_: object, __: int) -> None:
            lease.transaction.check()
            if until.is_over:  # the only way to end a task in this process
                raise _TimeIsUp(_TOLD_TO_STOP, "", "")

        try:
            engine = self._engines(until, still_ours)
            with closing(carry_out([planned], request, engine, check=check)) as outcomes:
                (outcome,) = outcomes
        except _TimeIsUp as error:
            outcome = failed(planned.plan, error)
        if isinstance(outcome.error, _TimeIsUp):
            outcome = replace(outcome, result=Result.POSTPONED, error=None, reasons=(TIME_IS_UP,))
        if self._stopping.is_set() and outcome.result is Result.POSTPONED:
            lease.give_back(_TOLD_TO_STOP)
        elif lease.transaction.lost and not outcome.is_changed:
            return failed(planned.plan, lease.transaction.lost)
        return outcome


def _refused(entry: interface.QueueEntry, error: RefusedError) -> Outcome:
    return Outcome(location=entry_name(entry), result=Result.REFUSED, error=error)


# --- engines ----------------------------------------------------------------------------------------------------------


@contextmanager
def worker_of(
    metastore: Metastore,
    options: WorkerOptions,
    storage: Mapping[str, str],
    on_outcome: Callable[[Worked], None],
    on_error: Callable[[AcidctlError], None],
    *,
    note: Callable[[str], None] = lambda _: None,
) -> Iterator[Worker]:
    """Yield a worker whose entries share one Spark session, or each have processes of this machine."""
    tasks, name = options.tasks, f"acidctl-worker-{gethostname()}"
    tasks.check("--jobs", options.jobs)
    require_queue(metastore)  # before Spark starts
    make = partial(Worker, metastore, options, on_outcome=on_outcome, on_error=on_error, storage=storage)
    if tasks.is_local:
        yield make(lambda until, on_progress: LocalEngine(options.jobs, until, on_progress), job=name)
        return
    from acidctl.spark.compaction_engine import spark_engines

    # On a cluster, Spark gets tokens for stores only at its start, before the tables are known.
    is_on_cluster = (tasks.master or "").startswith(("yarn", "k8s"))
    stores = database_stores(metastore, storage) if is_on_cluster else ()
    with spark_engines(tasks.spark(name, stores), note) as (start_engine, application):
        yield make(lambda until, _: start_engine(until), job=application)


def database_stores(metastore: Metastore, storage: Mapping[str, str]) -> tuple[FileSystemSpec, ...]:
    """Return the stores of all databases' directories without duplicates; this takes one call per database.

    Databases that the metastore hides and stores that cannot be opened are left out: code that uses them raises.
    """
    specs: dict[FileSystemSpec, None] = {}
    for name in metastore.call(interface.GET_ALL_DATABASES):
        try:
            database = metastore.call(interface.GET_DATABASE, name)
        except Unreachable:
            raise
        except AcidctlError:  # it was dropped meanwhile, or this user may not see it
            continue
        for url in filter(None, (database.managed_location, database.location)):
            with suppress(AcidctlError):
                specs[open_location(url, storage)[0].spec] = None
    return tuple(specs)
