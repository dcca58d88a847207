"""A cleaner for Hive's queue (Hive 4): it moves the obsolete files of ready entries to the trash, and marks them clean.

Like Hive's cleaner, it takes the entry with the lowest write id of a location first. It checks whether the entry may be
cleaned now, removes what the compactions up to its highest write id replaced, lists the location again, and marks the
entry. Doubtful entries are left to Hive's own cleaner; two cleaners at the same time do no harm.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from acidctl.acid.reasons import Code, Reason, reason
from acidctl.base.errors import AcidctlError, ConflictError, NotFoundError, UsageProblem, unexpected
from acidctl.cleaning.apply import How, carry_out
from acidctl.cleaning.outcomes import Cleaned
from acidctl.cleaning.plan import CleaningPlan, plan_cleaning
from acidctl.hive import ready_rules
from acidctl.hive.queue_entries import free_uncommitted
from acidctl.hive.table_names import is_named, location_of
from acidctl.location.arguments import HIVE
from acidctl.location.change.lock import Locking
from acidctl.location.change.own_files import new_run_id
from acidctl.location.snapshot import Snapshot, seen_below
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.location.table_location import TableLocation
from acidctl.location.warehouse import Warehouse
from acidctl.metastore.activity import KnownTxns, find_transactions
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import Unreachable, Unreadable
from acidctl.metastore.housekeeping import server_time
from acidctl.metastore.queue import READY, Compaction, find_compactions, mark_cleaned
from acidctl.metastore.tables import is_excluded
from acidctl.outcome import Outcome, Result
from acidctl.verbs.hive.options import CleanerOptions
from acidctl.verbs.hive.service import Service, Tables, require_queue

_AT_ONCE = 100
"""Entries whose tables and write ids are fetched together."""

_NEWER = 60.0
"""Seconds after which they are fetched again."""


@dataclass(frozen=True, kw_only=True)
class CleanedEntry(Outcome):
    """Outcome for an entry of the queue.

    Attributes:
        names: the entries that were removed, or would be.
        bytes: their size.
    """

    entry: int
    marked: bool = False
    names: tuple[str, ...] = ()
    run: str = ""
    bytes: int = 0

    def facts(self) -> Mapping[str, object]:
        """See :class:`Outcome`."""
        removed = {"removed": list(self.names), "bytes": self.bytes, "run": self.run or None} if self.names else {}
        return {"entry": self.entry, "marked": self.marked, **removed}


class Cleaner(Service):
    """A cleaner that checks the queue in rounds."""

    def __init__(
        self,
        metastore: Metastore,
        options: CleanerOptions,
        tables: Tables,
        on_outcome: Callable[[CleanedEntry], None],
        on_error: Callable[[AcidctlError], None],
    ) -> None:
        super().__init__(metastore, on_error)
        self._options, self._tables, self._policy = options, tables, options.policy()
        self._on_outcome = on_outcome
        self._committed: dict[int, Compaction] = {}
        """Rebalances by their ids, with the time at which their commit was first seen as that of the commit."""

    def run(self) -> None:
        """Run rounds until :meth:`stop`."""
        require_queue(self._metastore)
        self._repeat(self.once, self._options.every)

    def once(self) -> None:
        """Run one round; several cleaners may run at once, so it takes no lock of a leader.

        Raises:
            UsageProblem: the server has no queue for external cleaners (before Hive 4).
        """
        require_queue(self._metastore)
        start = time.monotonic()
        entries = [
            entry
            for entry in find_compactions(self._metastore, state=READY)
            if is_named(self._tables.names, entry.database, entry.table, entry.partition)
            and not is_excluded(f"{entry.database}.{entry.table}".lower(), self._tables.exclude)
        ]
        entries.sort(key=lambda entry: (entry.name, entry.highest_write_id, entry.id))
        known = self._transactions()
        self._committed = {entry.id: seen for entry in entries if (seen := self._seen(entry, known))}
        late = self._clean_all(entries, known, self._committed)
        # A later run by cron would not know when this one saw a commit, so wait here.
        if late and not self._stopping.wait(ready_rules.OPEN_TXN_GAP + 1.0):
            self._clean_all(late, self._transactions(), ())
        if self._stopping.is_set():
            return
        self._round_ended(start)

    def _transactions(self) -> KnownTxns:
        # Our clock may be ahead of the server's, which would shorten the waiting times.
        now = server_time(self._metastore)
        return replace(find_transactions(self._metastore), now=now)

    def _seen(self, entry: Compaction, known: KnownTxns) -> Compaction | None:
        if entry.kind != ready_rules.REBALANCE or ready_rules.tells_of_commit(entry):
            return None
        seen = self._committed.get(entry.id) or ready_rules.first_seen_committed(entry, known)
        if seen and self._options.dry_run:  # a real run would have waited
            return replace(seen, committed=0.0)
        return seen

    def _clean_all(
        self, entries: Sequence[Compaction], known: KnownTxns, may_be_late: Collection[int]
    ) -> list[Compaction]:
        """Clean entries in their order; of those in `may_be_late`, return the ones that were just committed."""
        late: list[Compaction] = []
        ready = [entry for entry in entries if self._why_not(entry, known) is None]
        fetched = _FetchedLists(self._metastore, ready)
        for entry in entries:
            if self._stopping.is_set():
                break
            outcome = self._clean_or_explain(entry, known, fetched)
            if entry.id in may_be_late and any(why.code is Code.COMMITTED_LATELY for why in outcome.reasons):
                late.append(entry)
                continue
            self.counts.results[outcome.result] += 1
            self.counts.marked += outcome.marked
            self.counts.bytes["removed"] += outcome.bytes if outcome.result is not Result.PLANNED else 0
            self._on_outcome(outcome)
        return late

    def _why_not(self, entry: Compaction, known: KnownTxns) -> CleanedEntry | None:
        """Return why an entry is not cleaned now, whatever its location holds; None if it may be cleaned."""
        if entry.txn in known.aborted_ids and entry.committed is None and entry.cleaner_start is None:
            return _not_cleaned(entry, Result.SKIPPED, reason(Code.VISIBILITY_ABORTED, ids=(entry.txn,)))
        if why := ready_rules.why_left(entry, known.now):
            return _not_cleaned(entry, Result.SKIPPED, why)
        seen = entry if ready_rules.tells_of_commit(entry) else self._committed.get(entry.id)
        why = ready_rules.why_waiting(seen, known) if seen else reason(Code.TRANSACTION_BELOW, ids=(entry.txn,))
        return _not_cleaned(entry, Result.POSTPONED, why) if why else None

    def _clean_or_explain(self, entry: Compaction, known: KnownTxns, fetched: _FetchedLists) -> CleanedEntry:
        try:
            if why := self._why_not(entry, known):
                if why.reasons[0].code is Code.VISIBILITY_ABORTED and not self._options.dry_run:
                    free_uncommitted(self._metastore, entry, known.aborted_ids)
                return why
            return self._clean(entry, known, fetched.lists_for(entry))
        except (Unreachable, Unreadable):
            raise  # the other entries would fail, too
        except (NotFoundError, UsageProblem) as error:  # left to Hive's cleaner, which can handle it
            return _not_cleaned(entry, Result.SKIPPED, reason(Code.REFUSED, how="error", why=str(error)))
        except ConflictError as error:  # the location is changing: the next round looks at it again
            return _not_cleaned(entry, Result.POSTPONED, reason(Code.REFUSED, how="error", why=str(error)))
        except Exception as error:  # noqa: BLE001 - a bug in one entry must not stop the others
            what = unexpected(error, f"while {entry.name} was cleaned")
            return CleanedEntry(location=entry.name, result=Result.FAILED, error=what, entry=entry.id)

    def _clean(self, entry: Compaction, known: KnownTxns, resolver: SnapshotResolver) -> CleanedEntry:
        found = location_of(entry, self._tables.storage, resolver)
        snapshot = found.snapshot(readers=True)
        snapshot.require_agreement()
        # For readers without a lock, the entry's transaction ids are more precise than times.
        snapshot = replace(snapshot, readers=tuple(reader for reader in snapshot.readers if reader.lock))
        if snapshot.no_cleanup:
            return _not_cleaned(entry, Result.SKIPPED, reason(Code.NO_CLEANUP, who=snapshot.no_cleanup))
        plan = self._plan(entry, snapshot)
        if isinstance(plan, CleanedEntry):
            return plan
        if self._options.dry_run:
            return CleanedEntry(
                location=entry.name, result=Result.PLANNED, entry=entry.id, names=plan.names, bytes=plan.bytes
            )
        cleaned = Cleaned.after(plan)
        if plan.removals:
            found.require_same_table()
            cleaned = carry_out(plan, How(self._options.how), Locking(age=self._policy.older_than), run_id=new_run_id())
        why = self._why_unmarked(entry, found, known)
        refusal = self._mark(entry) if why is None else None
        result = Result.CLEANED if why is None or plan.removals else Result.POSTPONED
        return CleanedEntry(
            location=entry.name,
            result=Result.FAILED if refusal else result,
            reasons=(why,) if why else (),
            error=refusal,
            entry=entry.id,
            marked=why is None and refusal is None,
            names=plan.names,
            bytes=plan.bytes,
            run=cleaned.run.id if cleaned.run else "",
        )

    def _mark(self, entry: Compaction) -> AcidctlError | None:
        """Mark an entry as done, or return why the server refuses: what was removed is reported in both cases."""
        try:
            mark_cleaned(self._metastore, entry)
        except (Unreachable, Unreadable):
            raise
        except AcidctlError as error:
            return error
        return None

    def _plan(self, entry: Compaction, snapshot: Snapshot) -> CleaningPlan | CleanedEntry:
        """Plan to remove what is obsolete up to the entry's highest write id and for all current readers."""
        everything = plan_cleaning(snapshot, self._policy)
        below = seen_below(snapshot, entry.highest_write_id)
        if below.state.history_problem is not None:
            return CleaningPlan(below, ())  # a later compaction took its place, and its cleaning removed the rest
        plan = plan_cleaning(below, self._policy)
        beyond = tuple(sorted(set(plan.names) - set(everything.names)))
        return _not_cleaned(entry, Result.SKIPPED, reason(Code.STILL_LEFT, by=beyond)) if beyond else plan

    def _why_unmarked(self, entry: Compaction, found: TableLocation, known: KnownTxns) -> Reason | None:
        """List the location and the entry again, and return why the entry may not be marked; None if it may.

        The old lists suffice: an entry is marked only if they decide all write ids up to its highest one, and what a
        later transaction hides is hidden in them, too.
        """
        fresh = found.reload().snapshot()
        by_entry = seen_below(fresh, entry.highest_write_id).state
        if why := ready_rules.why_unmarked(entry, fresh.state, fresh.write_ids, by_entry):
            return why
        found.require_same_table()
        queued = find_compactions(self._metastore, id=entry.id)
        # If another cleaner marks the entry right now, the server may list it twice: in the queue and in the history.
        if [replace(one, cleaner_start=None) for one in queued] != [replace(entry, cleaner_start=None)]:
            return reason(Code.IN_QUEUE, entry=entry.id, state=queued[-1].state if queued else "gone")
        return ready_rules.why_left(queued[0], known.now)


class _FetchedLists:
    """Snapshot lists, tables and partitions of entries, fetched for many entries in a few calls."""

    def __init__(self, metastore: Metastore, entries: Sequence[Compaction]) -> None:
        self._metastore = metastore
        self._pending = {entry.id: entry.name for entry in entries}
        self._fetched: set[int] = set()
        self._resolver = SnapshotResolver()
        self._until = 0.0

    def lists_for(self, entry: Compaction) -> SnapshotResolver:
        """Return the lists for an entry; call this in the order of the entries."""
        if entry.id not in self._fetched or time.monotonic() > self._until:
            batch = dict(islice(self._pending.items(), _AT_ONCE)) | {entry.id: entry.name}
            resolver = SnapshotResolver(warehouse=Warehouse(self._metastore)).opened()
            resolver.prefetch([HIVE + name for name in dict.fromkeys(batch.values())], partitions=True)
            self._resolver, self._fetched, self._until = resolver, set(batch), time.monotonic() + _NEWER
        self._pending.pop(entry.id, None)
        return self._resolver


def _not_cleaned(entry: Compaction, result: Result, why: Reason) -> CleanedEntry:
    return CleanedEntry(location=entry.name, result=result, reasons=(why,), entry=entry.id)
