"""Cleans what Hive's queue has as ready for cleaning, through the trash, and says so to the metastore (Hive 4).

Each entry is a turn of its own, the lowest highest write id of a location first, as Hive's cleaner takes them:
whether it may be cleaned now, what may go by what compactions up to its highest write id replaced, the removal, a new
look, and the mark. What is in doubt is left to Hive's own cleaner; two cleaners at once do each other no harm.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from threading import Event

from acidctl.acid.reasons import Code, Reason, reason
from acidctl.cleaning.apply import How
from acidctl.cleaning.outcomes import Cleaned
from acidctl.cleaning.plan import CleaningPlan, plan_cleaning
from acidctl.cleaning.request import carry_out
from acidctl.cleaning.retention import FLOOR_SECONDS, Policy
from acidctl.errors import AcidctlError, NotFoundError, UsageProblem
from acidctl.hive.leftover import free_uncommitted
from acidctl.hive.ready_rules import (
    OPEN_TXN_GAP,
    REBALANCE,
    first_seen_committed,
    tells_of_commit,
    why_left,
    why_unmarked,
    why_waiting,
)
from acidctl.hive.rounds import repeat
from acidctl.hive.turn import partition_of
from acidctl.location.change.lock import Locking
from acidctl.location.change.own_files import new_run_id
from acidctl.location.find import Found, find_named
from acidctl.location.given import HIVE
from acidctl.location.hive_names import HiveName, partition_values
from acidctl.location.lists import SnapshotLists
from acidctl.location.snapshot import Snapshot, seen_below
from acidctl.location.warehouse import Warehouse
from acidctl.metastore.activity import KnownTxns, find_transactions, spelled_alike
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import Unreachable, Unreadable
from acidctl.metastore.housekeeping import server_time
from acidctl.metastore.queue import queue_work
from acidctl.metastore.queue.compactions import READY, Compaction, find_compactions
from acidctl.metastore.tables import is_excluded
from acidctl.outcome import Outcome, Result

_AT_ONCE = 100
"""Entries for which a metastore is asked at once, """

_NEWER = 60.0
"""and seconds after which it is asked again for those that are left."""


@dataclass(frozen=True, slots=True)
class CleanerWork:
    """What a cleaner does.

    Attributes:
        names: of tables, ``hive:db.*``.
        exclude: patterns of tables that are left out.
        policy: how old what is removed must be.
        how: where to it goes.
        changes_nothing: only say what would be done.
        storage: options of stores.
    """

    names: Sequence[str] = ("hive:*.*",)
    exclude: Sequence[str] = ()
    policy: Policy = field(default_factory=lambda: Policy(FLOOR_SECONDS))
    how: How = How.TRASH
    changes_nothing: bool = False
    storage: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CleanedEntry(Outcome):
    """What became of an entry of the queue.

    Attributes:
        entry: its id.
        marked: whether the metastore has it as done.
        names: of what was removed, or would be.
        run: of the trash.
        bytes: of what was removed, or would be.
    """

    entry: int
    marked: bool = False
    names: tuple[str, ...] = ()
    run: str = ""
    bytes: int = 0

    def facts(self) -> Mapping[str, object]:
        """As of :class:`Outcome`."""
        removed = {"removed": list(self.names), "bytes": self.bytes, "run": self.run or None} if self.names else {}
        return {"entry": self.entry, "marked": self.marked, **removed}


@dataclass(slots=True)
class CleanerCounts:
    """What a cleaner has done so far.

    Attributes:
        results: entries by what became of them, in all rounds.
        marked: entries that it has said to be done.
        looked: when the last round ended, seconds since the epoch.
        failing: whether the last one was given up.
    """

    results: Counter[str] = field(default_factory=Counter)
    marked: int = 0
    bytes: int = 0
    rounds: int = 0
    looked: float = 0.0
    failing: bool = False


class Cleaner:
    """Looks through the queue in rounds.

    Args:
        on_outcome: told of every entry.
        on_error: told of a round that failed.
    """

    def __init__(
        self,
        metastore: Metastore,
        asked: CleanerWork,
        on_outcome: Callable[[CleanedEntry], None],
        on_error: Callable[[AcidctlError], None],
    ) -> None:
        self._metastore, self._asked = metastore, asked
        self._on_outcome, self._on_error = on_outcome, on_error
        self._stopping = Event()
        self._committed: dict[int, Compaction] = {}
        """Rebalances by their ids, as if they had been committed when that was first seen."""
        self.counts = CleanerCounts()

    def stop(self) -> None:
        """Begin with no entry any more."""
        self._stopping.set()

    def run(self, every: float) -> None:
        """Rounds until it is told to stop.

        Args:
            every: seconds from the begin of one to that of the next.

        Raises:
            UsageProblem: the server is older than Hive 4.
        """
        self.require_queue()

        def failed(error: AcidctlError) -> None:
            self.counts.failing = True
            self._on_error(error)

        repeat(self.once, every, self._stopping, failed)

    def require_queue(self) -> None:
        """Refuse a server before Hive 4.

        Raises:
            UsageProblem: its cleaner waits for locks that nobody outside of it knows.
            MetastoreError: it cannot be reached.
        """
        if not self._metastore.features.txn_types:
            raise UsageProblem(
                f"the metastore {self._metastore.shown} takes no word of a cleaner outside of it",
                "that came with Hive 4",
                "`clean` removes what nobody reads",
            )

    def once(self) -> None:
        """One round.

        Raises:
            UsageProblem: the server is older than Hive 4, or a name is none.
            MetastoreError: the metastore cannot be reached, or failed.
        """
        self.require_queue()
        entries = [one for one in find_compactions(self._metastore, state=READY) if self._is_asked_for(one)]
        entries.sort(key=lambda one: (one.name, one.highest_write_id, one.id))
        before = set(self._committed)
        known = self._known()
        self._committed = {one.id: seen for one in entries if (seen := self._seen(one, known))}
        new = set() if self._asked.changes_nothing else self._committed.keys() - before
        late: list[Compaction] = []
        self._look_at(entries, known, late, new)
        if late and not self._stopping.wait(OPEN_TXN_GAP + 1.0):  # of a look by cron no later one knows
            self._look_at(late, self._known(), [], set())
        if self._stopping.is_set():
            return
        self.counts.rounds += 1
        self.counts.looked, self.counts.failing = time.time(), False

    def _known(self) -> KnownTxns:
        """All transactions, and the server's time: ours may be ahead, and would shorten what is waited for."""
        now = server_time(self._metastore)
        return replace(find_transactions(self._metastore), now=now)

    def _seen(self, entry: Compaction, known: KnownTxns) -> Compaction | None:
        if entry.kind != REBALANCE or tells_of_commit(entry):
            return None
        seen = self._committed.get(entry.id) or first_seen_committed(entry, known)
        if seen and self._asked.changes_nothing:  # the moment that is waited for would be over
            return replace(seen, committed=known.now - 2 * OPEN_TXN_GAP)
        return seen

    def _look_at(
        self, entries: Sequence[Compaction], known: KnownTxns, late: list[Compaction], may_be_late: Collection[int]
    ) -> None:
        """Some entries in their order; of those that may be late those are kept that only a moment is waited for."""
        ready = [one for one in entries if self._why_not(one, known) is None]
        asked = _AskedAtOnce(self._metastore, ready)
        for entry in entries:
            if self._stopping.is_set():
                return
            done = self._turn(entry, known, asked)
            if entry.id in may_be_late and any(why.code is Code.COMMITTED_LATELY for why in done.reasons):
                late.append(entry)
                continue
            self.counts.results[done.result] += 1
            self.counts.marked += done.marked
            self.counts.bytes += done.bytes if done.result is Result.CLEANED else 0
            self._on_outcome(done)

    def _is_asked_for(self, entry: Compaction) -> bool:
        table = f"{entry.database}.{entry.table}".lower()
        return not is_excluded(table, self._asked.exclude) and any(
            is_excluded(table, [f"{name.database}.{name.table}"])
            and name.partition.items() <= partition_values(entry.partition).items()
            for name in map(HiveName.parse, self._asked.names)
        )

    def _why_not(self, entry: Compaction, known: KnownTxns) -> CleanedEntry | None:
        """Why an entry is not cleaned now, whatever its location holds; None where it may be."""
        if entry.txn in known.aborted_ids and entry.committed is None and entry.cleaner_start is None:
            return _said(entry, Result.SKIPPED, reason(Code.VISIBILITY_ABORTED, ids=(entry.txn,)))
        if why := why_left(entry, known.now):
            return _said(entry, Result.SKIPPED, why)
        seen = entry if tells_of_commit(entry) else self._committed.get(entry.id)
        why = why_waiting(seen, known) if seen else reason(Code.TRANSACTION_BELOW, ids=(entry.txn,))
        return _said(entry, Result.POSTPONED, why) if why else None

    def _turn(self, entry: Compaction, known: KnownTxns, asked: _AskedAtOnce) -> CleanedEntry:
        try:
            if why := self._why_not(entry, known):
                if why.reasons[0].code is Code.VISIBILITY_ABORTED and not self._asked.changes_nothing:
                    free_uncommitted(self._metastore, entry, known.aborted_ids)
                return why
            return self._clean(entry, known, asked.lists_for(entry))
        except (Unreachable, Unreadable):
            raise  # of a server that is gone nothing more is to be had
        except (NotFoundError, UsageProblem) as error:  # Hive knows what it is, and what to do
            return _said(entry, Result.SKIPPED, reason(Code.REFUSED, how="error", why=str(error)))
        except AcidctlError as error:
            return CleanedEntry(location=entry.name, result=Result.FAILED, error=error, entry=entry.id)
        except Exception as error:  # noqa: BLE001 - a bug in one entry is not to end the others
            what = AcidctlError(f"unexpected {type(error).__name__}: {error}", f"while {entry.name} was cleaned")
            return CleanedEntry(location=entry.name, result=Result.FAILED, error=what, entry=entry.id)

    def _clean(self, entry: Compaction, known: KnownTxns, lists: SnapshotLists) -> CleanedEntry:
        found = self._place(entry, lists)
        snapshot = found.snapshot(lists, readers=True)
        snapshot.require_agreement()
        # Whether a transaction without a lock reads what was replaced the entry tells, and better than times do.
        snapshot = replace(snapshot, readers=tuple(one for one in snapshot.readers if one.lock))
        if snapshot.no_cleanup:
            return _said(entry, Result.SKIPPED, reason(Code.NO_CLEANUP, who=snapshot.no_cleanup))
        plan = self._plan(entry, snapshot)
        if isinstance(plan, CleanedEntry):
            return plan
        if self._asked.changes_nothing:
            return CleanedEntry(
                location=entry.name, result=Result.PLANNED, entry=entry.id, names=plan.names, bytes=plan.bytes
            )
        cleaned = Cleaned.after(plan)
        if plan.removals:
            lists.require_same(found.hive)
            cleaned = carry_out(plan, self._asked.how, Locking(age=self._asked.policy.older_than), run_id=new_run_id())
        why = self._why_unmarked(entry, found, lists, known)
        if why is None:
            queue_work.mark_cleaned(self._metastore, entry)
        return CleanedEntry(
            location=entry.name,
            result=Result.CLEANED if why is None or plan.removals else Result.POSTPONED,
            reasons=(why,) if why else (),
            entry=entry.id,
            marked=why is None,
            names=plan.names,
            bytes=plan.bytes,
            run=cleaned.run.id if cleaned.run else "",
        )

    def _place(self, entry: Compaction, lists: SnapshotLists) -> Found:
        """The location of an entry.

        Raises:
            NotFoundError: the table or the partition is gone, or it is none or several: Hive knows what to do then.
        """
        name = entry.name
        places = list(islice(find_named(f"{HIVE}{name}", self._asked.storage, lists), 2))
        if len(places) != 1 or spelled_alike(partition_of(places[0])) != spelled_alike(entry.partition):
            raise NotFoundError(f"{name} is not one location", "", "")
        return places[0]

    def _plan(self, entry: Compaction, snapshot: Snapshot) -> CleaningPlan | CleanedEntry:
        """What goes for an entry: what is obsolete up to its highest write id, and for all readers of now."""
        everything = plan_cleaning(snapshot, self._asked.policy)
        below = seen_below(snapshot, entry.highest_write_id)
        if below.state.history_problem is not None:
            return CleaningPlan(below, ())  # what is above it has taken its place, and a cleaning what it would take
        plan = plan_cleaning(below, self._asked.policy)
        beyond = tuple(sorted(set(plan.names) - set(everything.names)))
        return _said(entry, Result.SKIPPED, reason(Code.STILL_LEFT, by=beyond)) if beyond else plan

    def _why_unmarked(self, entry: Compaction, found: Found, lists: SnapshotLists, known: KnownTxns) -> Reason | None:
        """Why an entry may not be marked, by a new look at its location and at itself.

        By the same lists: up to its highest write id all is decided in them, or it is not marked; and what is hidden by
        a transaction that came later is hidden in them, too.
        """
        fresh = found.afresh().snapshot(lists)
        by_entry = seen_below(fresh, entry.highest_write_id).state
        if why := why_unmarked(entry, fresh.state, fresh.write_ids, by_entry):
            return why
        lists.require_same(found.hive)
        there = find_compactions(self._metastore, id=entry.id)
        # Of one that another cleaner marks in this moment the server tells twice: from the queue, and from its history.
        if [replace(one, cleaner_start=None) for one in there] != [replace(entry, cleaner_start=None)]:
            return reason(Code.IN_QUEUE, entry=entry.id, state=there[-1].state if there else "gone")
        return why_left(there[0], known.now)


class _AskedAtOnce:
    """The lists by which entries are cleaned, and their tables and partitions: asked for of many in a few calls."""

    def __init__(self, metastore: Metastore, entries: Sequence[Compaction]) -> None:
        self._metastore = metastore
        self._left = {one.id: one.name for one in entries}
        self._known: set[int] = set()
        self._lists = SnapshotLists()
        self._until = 0.0

    def lists_for(self, entry: Compaction) -> SnapshotLists:
        """Those for one entry; what comes before it is not asked for any more.

        Raises:
            MetastoreError: the metastore cannot be reached, or failed.
        """
        if entry.id not in self._known or time.monotonic() > self._until:
            some = dict(islice(self._left.items(), _AT_ONCE)) | {entry.id: entry.name}
            lists = SnapshotLists(warehouse=Warehouse(self._metastore)).begun()
            lists.expect([HIVE + name for name in dict.fromkeys(some.values())], partitions=True)
            self._lists, self._known, self._until = lists, set(some), time.monotonic() + _NEWER
        self._left.pop(entry.id, None)
        return self._lists


def _said(entry: Compaction, result: Result, why: Reason) -> CleanedEntry:
    return CleanedEntry(location=entry.name, result=result, reasons=(why,), entry=entry.id)
