"""The entries of a location that the rules release for removal, now or at an earlier moment, and since when."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from acidctl.acid.empty_results import empty_results
from acidctl.acid.layout import strange_paths
from acidctl.acid.listing import CLOCKS_SECONDS, Ages, Listing, with_entries
from acidctl.acid.names import acid_directory, is_hidden, manifest_for, other_kind
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.state import AcidState, State
from acidctl.acid.unfinished import unproven
from acidctl.cleaning.readers import Contents, may_supersede
from acidctl.cleaning.retention import LaterEntry, Policy
from acidctl.location.snapshot import Reader, Snapshot


class Releases:
    """Decides which names the rules release, in the location as it is or as it was at some moment."""

    def __init__(self, snapshot: Snapshot, ages: Ages) -> None:
        lists = snapshot.lists
        self._snapshot, self._cleaner, self._ages = snapshot, lists.for_cleaner(), ages
        self._is_reader = self._cleaner is lists
        self._released_without: dict[frozenset[str], set[str]] = {}
        self._released_at: dict[tuple[float | None, bool, frozenset[str]], set[str]] = {}
        self._verdicts = {verdict.name: verdict for verdict in snapshot.state.verdicts}
        self._contents = Contents(snapshot)

    def at(self, moment: float | None, *, unknown: bool = False, keep: frozenset[str] = frozenset()) -> set[str]:
        """Return what was certainly obsolete or aborted at a moment (None: now), if `keep` existed by then."""
        key = moment, unknown, keep
        if key not in self._released_at:
            young = frozenset() if moment is None else self._ages.young_at(moment, unknown=unknown) - keep
            if young not in self._released_without:
                if not young:  # callers never need what was released earlier and is not now
                    self._released_without[young] = self._released_now()
                elif len(young) == self._visible:
                    self._released_without[young] = set()
                else:
                    self._released_without[young] = self._free(self._ages.listing_without(young))
            self._released_at[key] = self._released_without[young]
        return self._released_at[key]

    def _released_now(self) -> set[str]:
        if self._now.history_problem:
            return set()
        unneeded = {verdict.name for verdict in self._now.removable} - self._reasons.keys()
        return unneeded & {verdict.name for verdict in self._snapshot.state.removable}

    def old(self, policy: Policy, now: float) -> set[str]:
        """Return what was released for all readers that began before the retention."""
        cutoff, unknown = policy.cutoff(now), policy.older_than <= 0
        released = self.at(cutoff, unknown=unknown)
        # An entry that was touched since, for example by an interrupted removal, has the age of what supersedes it.
        touched = frozenset(
            name
            for name in self.at(None) - released
            if (by := self._verdicts[name].reason.by)
            and all(self._ages.is_old(other, cutoff, unknown=unknown) for other in by)
        )
        return released | (self.at(cutoff, unknown=unknown, keep=touched) & touched) if touched else released

    def kept_back(self) -> dict[str, Reason]:
        """Return what readers do not need now but the rules keep, with the reason."""
        unneeded = {verdict.name for verdict in self._snapshot.state.removable} - self.at(None)
        return {name: self._reasons.get(name) or self._beyond_cleaner() for name in unneeded}

    def waiting(self, names: Iterable[str], policy: Policy, now: float) -> list[LaterEntry]:
        return [self._later(name, since, policy, now) for name, since in sorted(self._since(names).items())]

    def _later(self, name: str, since: float | None, policy: Policy, now: float) -> LaterEntry:
        if since is None:
            return LaterEntry(name, None, None, reason(Code.AGE_UNKNOWN))
        until = policy.until(since)
        if since > now + CLOCKS_SECONDS:  # its time, or that of what supersedes it, lies in the future
            return LaterEntry(name, since, until, reason(Code.TOO_YOUNG, since=since, until=until, how="future"))
        how = "obsolete" if self._verdicts[name].state is State.OBSOLETE else "written"
        return LaterEntry(name, since, until, reason(Code.TOO_YOUNG, since=since, until=until, how=how))

    def held(self, names: set[str]) -> dict[str, Reason]:
        """Return the names that a reader may still need, with the reason; all of them if the table forbids cleaning.

        Such a reader took a lock before they became obsolete, or began before a commit made them obsolete.
        """
        readers = self._snapshot.readers
        if by := self._snapshot.no_cleanup:
            return dict.fromkeys(names, reason(Code.NO_CLEANUP, who=by))
        held: dict[str, Reason] = {}
        # No reader ever saw an aborted entry.
        seen = [name for name in names if self._verdicts[name].state is not State.ABORTED]
        for name, since in self._since(seen if readers else ()).items():
            # A transaction that began earlier may not see what supersedes an entry, whatever their numbers are.
            superseding = map(acid_directory, self._verdicts[name].reason.by)
            by_commit = any(directory and directory.visibility_txn for directory in superseding)
            for reader in readers:
                if not (reader.lock or reader.compaction or by_commit):
                    continue
                if since is None or reader.since is None or reader.since <= since + CLOCKS_SECONDS:
                    held[name] = _held_by(reader)
                    break
        return held

    def _since(self, names: Iterable[str]) -> dict[str, float | None]:
        """Return since when each name has been released; None if the store has no time."""
        times, since = self._ages.times, dict[str, float | None]()
        searched = []
        for name in names:
            by = self._verdicts[name].reason.by
            own, superseding = times.get(name), [times.get(other) for other in by]
            if own is None or not by:
                since[name] = own
            elif None in superseding or own > max(filter(None, superseding), default=own):  # touched since, see `old`
                since[name] = None if None in superseding else max(filter(None, superseding))
            else:
                searched.append(name)
        self._search(searched, 0, len(self._moments) - 1, since)
        return since

    def _search(self, names: Sequence[str], low: int, high: int, since: dict[str, float | None]) -> None:
        """Find the first moment from `low` to `high` at which each name was released, by binary search.

        All were released at `high`, and an obsolete entry stays obsolete. What came before `low` released none of them,
        so a listing of what came later suffices.
        """
        times = self._ages.times
        if low >= high or not names:
            last = self._moments[high] if high >= 0 else None
            since.update((name, last and max(times[name] or 0.0, last)) for name in names)
            return
        middle = (low + high) // 2
        last = self._moments[middle]
        start, end = (bisect_left(self._came, (moment,)) for moment in (self._moments[low], self._moments[middle + 1]))
        came = {name for _, name in self._came[start:end]}
        came |= {other for name in came if (times.get(other := other_kind(name)) or math.inf) <= last}
        there = {name for name in names if (times[name] or 0.0) <= last}
        free: set[str] = set()
        if there:
            present = there | came
            present |= {manifest for name in present for manifest in self._manifests.get(name, ())}
            listing = self._snapshot.listing
            free = self._free(with_entries(listing, (e for name in sorted(present) for e in listing.by_child[name])))
        self._search([name for name in names if name in free], low, middle, since)
        self._search([name for name in names if name not in free], middle + 1, high, since)

    @cached_property
    def _manifests(self) -> Mapping[str, list[str]]:
        manifests: dict[str, list[str]] = {}
        for name in self._ages.times:
            if target := manifest_for(name):
                manifests.setdefault(target, []).append(name)
        return manifests

    def _free(self, listing: Listing) -> set[str]:
        state = self._cleaner.select(listing)
        if state.history_problem:
            return set()
        return {verdict.name for verdict in state.removable} - self._doubts(listing, state).keys()

    @cached_property
    def _visible(self) -> int:
        """Return the number of children that are not hidden."""
        return sum(not is_hidden(name) for name in self._ages.times)

    @cached_property
    def _moments(self) -> list[float]:
        """Return, in order, the times of directories that may have made others obsolete."""
        return sorted({time for time, _ in self._came})

    @cached_property
    def _came(self) -> list[tuple[float, str]]:
        """Return the directories that may have made others obsolete, each with its time, in order."""
        times = self._ages.times
        return sorted((time, name) for name, time in times.items() if time is not None and may_supersede(name))

    @cached_property
    def _now(self) -> AcidState:
        """Return the state by the cleaner's lists, which mostly equal the reader's."""
        if self._is_reader:
            return self._snapshot.state
        return self._cleaner.select(self._snapshot.listing)

    @cached_property
    def _reasons(self) -> dict[str, Reason]:
        """Return why names stay that the cleaner's or the reader's state calls obsolete."""
        listing, reader = self._snapshot.listing, self._snapshot.state
        reasons = self._doubts(listing, self._now)
        return reasons if self._now == reader else reasons | self._doubts(listing, reader)

    def _doubts(self, listing: Listing, state: AcidState) -> dict[str, Reason]:
        """Return the names that stay although a state calls them obsolete, with the reason."""
        kept = unproven(listing, state, self._snapshot.lists, self._unreadable)
        kept |= self._lost
        everything = self._snapshot.listing.by_child  # whenever it came: a strange entry may never be removed
        for verdict in state.removable:
            strange = next(strange_paths(everything.get(verdict.name, ()), listing.table_type), "")
            if strange:
                kept[verdict.name] = reason(Code.STRANGE_PATH, path=strange)
        return kept

    def _unreadable(self, state: AcidState) -> Iterator[tuple[str, Reason]]:
        entries = self._snapshot.listing.by_child
        for name in sorted({by for verdict in state.removable for by in verdict.reason.by}):
            directory = self._verdicts[name].directory
            if directory and (why := self._contents.fault(directory, entries.get(name, ()))):
                yield name, why

    @cached_property
    def _lost(self) -> dict[str, Reason]:
        """Return empty compaction results, and the entries that have rows which these lack, with the reason."""
        if not empty_results(self._snapshot.listing, self._snapshot.state):
            return {}
        from acidctl.rows.read.lost_rows import find_lost_rows  # noqa: PLC0415 - most locations need no row of theirs

        reasons: dict[str, Reason] = {}
        for lost in find_lost_rows(self._snapshot):
            why = reason(Code.LOST_ROWS, by=(lost.result.name,), rows=lost.rows, deletes=lost.deletes)
            reasons |= dict.fromkeys((*lost.result.replaced, lost.result.name), why)
        return reasons

    def _beyond_cleaner(self) -> Reason:
        given, lowered = self._snapshot.txns, self._cleaner.txns
        if given is not None and lowered is not None and given.high_watermark > lowered.high_watermark:
            txn = lowered.high_watermark + 1
            holder = next((reader for reader in self._snapshot.readers if reader.txn == txn), None)
            if holder is None:
                return reason(Code.READER_HOLDS, ids=(txn,), how="queries")
            since, agent = holder.since, holder.agent
            return reason(Code.READER_HOLDS, ids=(txn,), who=holder.who, since=since, agent=agent, how="queries")
        return reason(Code.ABOVE_CLEANER, high_watermark=self._cleaner.write_ids.high_watermark)


def _held_by(reader: Reader) -> Reason:
    if reader.compaction:
        return reason(Code.HIVE_COMPACTS, ids=(reader.number,), state=reader.compaction)
    return reason(
        Code.READER_HOLDS,
        ids=(reader.txn,),
        who=reader.who,
        agent=reader.agent,
        how="lock" if reader.lock else "no-lock",
    )
