"""The proof of a plan: every reader that may still be running finds what its snapshot selects.

A reader that began at a moment knew the write ids of that moment; it listed the location then, or lists it only after
the cleaning. Both listings must read the same without what the plan removes, and the first must select none of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from acidctl.acid.listing import Ages, Entry, Listing, with_entries, without
from acidctl.acid.names import MINL, NO_STATEMENT, Kind, acid_directory
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.sidefiles import BaseFormat
from acidctl.acid.state import AcidState, State, select
from acidctl.acid.writeids import ValidTxns, ValidWriteIds, holes, ids_between
from acidctl.cleaning.retention import Policy

_MOMENTS = 16
"""So many moments are replayed at most; between two of them the location only grew by what no reader confuses."""


@dataclass(frozen=True, slots=True)
class ReaderLists:
    """What decides a state besides the listing."""

    write_ids: ValidWriteIds
    txns: ValidTxns | None
    formats: Mapping[str, BaseFormat]

    def select(self, listing: Listing) -> AcidState:
        return select(listing, self.write_ids, self.txns, self.formats)

    def for_cleaner(self) -> ReaderLists:
        """Those of section 10: nothing above the high watermark counts, nor a transaction above the oldest open one.

        A query of that open transaction does not see what was committed after it began. Where no list was given, all
        answers are the same for a reader and for the cleaner.
        """
        txns = self.txns
        if txns is None and self.write_ids.is_everything:
            return self
        if txns is not None:
            oldest = min((txns.min_open, *txns.open[:1]))
            txns = replace(txns, high_watermark=min(txns.high_watermark, oldest - 1))
        return replace(self, write_ids=self.write_ids.for_cleaner(), txns=txns)


def broken_reader(
    state: AcidState, ages: Ages, lists: ReaderLists, names: set[str], *, policy: Policy, now: float
) -> Reason | None:
    """Why a plan may not be carried out; None when no reader is hurt.

    Args:
        state: what the lists make of the listing.
        names: what the plan removes.
        now: seconds since the epoch.
    """
    names_only = _directories(ages.listing)
    after = without(names_only, names)
    cleaner = lists.for_cleaner()
    left = lists.select(after)
    if what_is_read(state) != what_is_read(left):
        return reason(Code.UNSAFE_PLAN, how="new-reader")
    if cleaner is not lists and what_is_read(cleaner.select(names_only)) != what_is_read(cleaner.select(after)):
        return reason(Code.UNSAFE_PLAN, how="cleaner")
    if policy.older_than <= 0:
        return None
    skeleton = Ages(names_only, ages.times)
    for moment in _moments(ages, policy.cutoff(now)):
        young = skeleton.young_at(moment)
        then = skeleton.listing_without(young)
        reader = _reader_at(then, young, lists)
        seen = state if reader is lists else reader.select(then)
        hurt = min(names & seen.current_names, default="") if seen.history_problem is None else ""
        if hurt:
            return reason(Code.UNSAFE_PLAN, by=(hurt,), how="old-reader-reads")
        if what_is_read(seen) != what_is_read(left if reader is lists else reader.select(without(then, names))):
            return reason(Code.UNSAFE_PLAN, how="old-reader")
        late = without(names_only, _invisible(young)) if young else then
        if late != then and what_is_read(reader.select(late)) != what_is_read(reader.select(without(late, names))):
            return reason(Code.UNSAFE_PLAN, how="old-reader")
    return None


def what_is_read(state: AcidState) -> tuple[object, ...]:
    """All of a state that a reader can tell."""
    return (
        state.base and state.base.name,
        [verdict.name for verdict in state.deltas],
        state.originals,
        {verdict.name for verdict in state.in_state(State.IGNORED) if verdict.reason.code is not Code.HIDDEN},
        state.history_problem is None,
    )


def may_supersede(name: str) -> bool:
    """Whether a directory of that name can make others obsolete: bases, ranges, and deltas without a statement id."""
    directory = acid_directory(name)
    return directory is not None and (
        directory.kind is Kind.BASE
        or directory.min_write_id != directory.max_write_id
        or directory.statement_id == NO_STATEMENT
    )


def _directories(listing: Listing) -> Listing:
    """The same for every rule of selection, without the files of ACID directories: states are found much faster."""
    entries: list[Entry] = []
    seen: set[str] = set()
    for entry in listing.entries:
        name, slash, _ = entry.path.partition("/")
        if acid_directory(name) is None or not (slash or entry.is_dir):
            entries.append(entry)
        elif name not in seen:
            seen.add(name)
            entries.append(Entry(name, 0, None, True))
    return with_entries(listing, entries)


def _moments(ages: Ages, cutoff: float) -> list[float]:
    """The cutoff, and the times at which directories came since; those that made others obsolete go first."""
    young = {time: False for time in ages.times.values() if time is not None and time > cutoff}
    for name, time in ages.times.items():
        if time in young and may_supersede(name):
            young[time] = True
    weighty = sorted(time for time, weighs in young.items() if weighs)
    others = sorted(time for time, weighs in young.items() if not weighs)
    return [cutoff, *_spread(weighty, _MOMENTS), *_spread(others, max(0, _MOMENTS - len(weighty)))]


def _spread(times: list[float], count: int) -> list[float]:
    if len(times) <= count:
        return times
    return [times[i * (len(times) - 1) // max(1, count - 1)] for i in range(count)]


def _reader_at(then: Listing, young: Collection[str], lists: ReaderLists) -> ReaderLists:
    """What a reader that began at a moment knew of the write ids.

    All up to the highest on disk were given out; of those of which everything came later the writer was still at work.

    Args:
        then: the location at that moment.
        young: what came later.

    Returns:
        The lists themselves for a reader that is as good as a new one.
    """
    ids = lists.write_ids
    if not young and ids.is_everything:
        return lists
    there = [d for d in map(acid_directory, {entry.path.partition("/")[0] for entry in then.entries}) if d]
    highest = max((d.max_write_id for d in there), default=0)
    later = (acid_directory(name) for name in young)
    alone = tuple(sorted({d.max_write_id for d in later if d and d.min_write_id == d.max_write_id <= highest}))
    free = holes([(0 if d.kind is Kind.BASE else d.min_write_id, d.max_write_id) for d in there], MINL, highest)
    at_work = {write_id for low, high in free for write_id in ids_between(alone, low, high)}
    open_ids = tuple(sorted({*ids.open, *at_work} - set(ids.aborted)))
    min_open = min((ids.min_open, *open_ids[:1]))
    return replace(lists, write_ids=replace(ids.at(highest), open=open_ids, min_open=min_open))


def _invisible(young: Iterable[str]) -> set[str]:
    """What a reader never sees that began before it came: the results of transactions."""
    return {name for name in young if (found := acid_directory(name)) and found.visibility_txn}
