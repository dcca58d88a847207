"""The proof of a plan: every reader that may still be running finds what its snapshot selects.

A reader that began at some moment has the write ids of that moment; it listed the location then, or lists it only after
the cleaning. Both listings must read the same without the planned entries, and the first must select none of these.
What supersedes the planned entries must be readable itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from acidctl.acid.layout import DataFile, data_files_of
from acidctl.acid.listing import Ages, Entry, Listing, with_entries, without
from acidctl.acid.names import METADATA_ACID, MINL, NO_STATEMENT, ORC_ACID_VERSION, AcidDirectory, Kind, acid_directory
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.state import AcidState, Lists, State
from acidctl.acid.writeids import holes, ids_between
from acidctl.base.errors import AcidctlError, BadDataError, NotFoundError
from acidctl.cleaning.retention import Policy
from acidctl.location.snapshot import Snapshot

_MOMENTS = 16
"""At most this many moments are replayed; between two of them nothing came that could change what a reader chooses."""


def broken_reader(
    state: AcidState, ages: Ages, lists: Lists, names: set[str], *, policy: Policy, now: float
) -> Reason | None:
    """Return the reason why a plan may not be carried out; None if it harms no reader.

    Args:
        state: the state that the lists give for the listing.
        names: the names that the plan removes.
        now: seconds since the epoch.
    """
    names_only = _directories(ages.listing)
    after = without(names_only, names)
    cleaner = lists.for_cleaner()
    remaining = lists.select(after)
    if what_is_read(state) != what_is_read(remaining):
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
        if what_is_read(seen) != what_is_read(remaining if reader is lists else reader.select(without(then, names))):
            return reason(Code.UNSAFE_PLAN, how="old-reader")
        # A reader that began before the results of transactions came never sees them.
        unseen = {name for name in young if (directory := acid_directory(name)) and directory.visibility_txn}
        late = without(names_only, unseen) if young else then
        if late != then and what_is_read(reader.select(late)) != what_is_read(reader.select(without(late, names))):
            return reason(Code.UNSAFE_PLAN, how="old-reader")
    return None


def what_is_read(state: AcidState) -> tuple[object, ...]:
    """Return everything in a state that affects a reader."""
    return (
        state.base and state.base.name,
        [verdict.name for verdict in state.deltas],
        state.originals,
        {verdict.name for verdict in state.in_state(State.IGNORED) if verdict.reason.code is not Code.HIDDEN},
        state.history_problem is None,
    )


def may_supersede(name: str) -> bool:
    """Say if a directory of that name can make others obsolete: a base, a range, or a delta without a statement id."""
    directory = acid_directory(name)
    return directory is not None and (
        directory.kind is Kind.BASE
        or directory.min_write_id != directory.max_write_id
        or directory.statement_id == NO_STATEMENT
    )


def _directories(listing: Listing) -> Listing:
    """Drop the files of ACID directories: selection does not need them, and finds states much faster."""
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
    """Return the cutoff, and the later times at which directories came; those that made others obsolete go first."""
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


def _reader_at(then: Listing, young: Collection[str], lists: Lists) -> Lists:
    """Return the lists of a reader that began at a moment; `lists` itself if they are the same.

    All write ids up to the highest on disk were given out; an id whose directories all came later was still open.

    Args:
        then: the location at that moment.
        young: names that came later.
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


_LOOKED_INTO = 16
"""Number of files of one directory that are opened, evenly spread over it."""


class Contents:
    """Examines the directories of one location, each at most once: what supersedes others must be readable itself."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot, self._is_full_acid = snapshot, snapshot.listing.is_full_acid
        self._faults: dict[str, Reason | None] = {}

    def fault(self, directory: AcidDirectory, entries: Iterable[Entry]) -> Reason | None:
        """Return why readers cannot read a directory of a full-ACID table; None if no fault shows.

        A directory that has a marker file of Hive's writers is trusted without opening its data files.

        Args:
            entries: everything in the directory, with paths relative to the location.
        """
        if not self._is_full_acid:  # only the metastore has the format of other tables
            return None
        if (name := directory.name) not in self._faults:
            self._faults[name] = self._first_fault(directory, [entry for entry in entries if not entry.is_dir])
        return self._faults[name]

    def _first_fault(self, directory: AcidDirectory, entries: list[Entry]) -> Reason | None:
        marks = (f"{directory.name}/{ORC_ACID_VERSION}", f"{directory.name}/{METADATA_ACID}")
        if any(entry.path in marks and entry.size for entry in entries):
            return None
        files = data_files_of(directory, entries)
        faults = (self._fault_of(file, directory) for file in files[:: max(1, len(files) // _LOOKED_INTO)] if file.size)
        return next(filter(None, faults), None)

    def _fault_of(self, file: DataFile, directory: AcidDirectory) -> Reason | None:
        # Most directories have a marker file, so the readers of ORC are rarely needed.
        from acidctl.orc.byte_source import ByteSource  # noqa: PLC0415 - most locations need no tail for it
        from acidctl.orc.tail import read_tail  # noqa: PLC0415 - ORC's messages

        snapshot = self._snapshot
        try:
            length = snapshot.logical_length(file)
            if length == 0:  # nothing was committed, so readers do not open it
                return None
            tail = read_tail(ByteSource(snapshot.fs, snapshot.absolute(file.path), length))
        except NotFoundError:  # gone since it was listed, which applying the plan will find
            return None
        except BadDataError as error:
            return _not_readable(directory, file, "bad-data", error.why or error.what)
        except AcidctlError as error:
            return _not_readable(directory, file, "error", error.what)
        return _not_readable(directory, file, "not-acid") if file.native_name and not tail.is_acid else None


def _not_readable(directory: AcidDirectory, file: DataFile, fault: str, why: str = "") -> Reason:
    return reason(Code.NOT_READABLE, by=(directory.name,), how=fault, path=file.path, why=why)
