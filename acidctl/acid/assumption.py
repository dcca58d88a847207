"""What counts as committed when nobody gives Hive's lists, and the user says that old directories may.

Nothing on disk tells a committed write id from an open or an aborted one. Who changes a table must be told; who has no
list can only say that whatever is old enough was committed. So the answer is a list like Hive's: a high watermark below
the first directory of which that cannot be said, and every ``_v`` directory that is old enough as committed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from acidctl.acid.layout import data_bytes_of
from acidctl.acid.listing import Ages, Entry, Listing
from acidctl.acid.names import (
    ACID_PREFIXES,
    FLUSH_LENGTH_SUFFIX,
    MAXL,
    METADATA_ACID,
    AcidDirectory,
    Kind,
    acid_directory,
    is_hidden,
    manifest_for,
    parse_partition,
)
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.sidefiles import BaseFormat
from acidctl.acid.writeids import ValidTxns, ValidWriteIds

DEFAULT_AGE_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Assumption:
    """What the user says: all that was last written so long ago is committed.

    Attributes:
        age: seconds; 0 for everything that is there.
        force: signs of a writer, such as an empty directory, are those of a dead one.
    """

    age: float = DEFAULT_AGE_SECONDS
    force: bool = False


@dataclass(frozen=True, slots=True)
class Undecided:
    """A directory that may be a writer's at work.

    Attributes:
        first: the first write id that it may hold; 0 for a compaction's base, and for what was there before the table
            was ACID.
        is_original: it is of the latter.
    """

    name: str
    why: Reason
    first: int
    is_original: bool = False


@dataclass(frozen=True, slots=True)
class Assumed:
    """What follows for one location.

    Attributes:
        write_ids: with a high watermark below everything undecided.
        txns: the ``_v`` directories that count, the others as open.
        undecided: the directories that stop it, the lowest first.
        of_write_ids: False where a list of write ids was given, and only the transactions are assumed.
        newest: the youngest of those that count: its name, and its time in seconds since the epoch; None where there
            is none, or its store gives no times.
    """

    assumption: Assumption
    write_ids: ValidWriteIds
    txns: ValidTxns
    undecided: tuple[Undecided, ...] = ()
    of_write_ids: bool = True
    newest: tuple[str, float] | None = None

    @property
    def notes(self) -> tuple[Reason, ...]:
        """What was assumed."""
        if not self.of_write_ids:
            return (reason(Code.ASSUMED_COMMITTED, how="transactions", age=self.assumption.age),)
        stop = self.stop
        return (reason(Code.ASSUMED_COMMITTED, how="write-ids", age=self.assumption.age), *([stop] if stop else ()))

    @property
    def stop(self) -> Reason | None:
        """Why not everything counts; None when everything does."""
        if not self.undecided:
            return None
        first = self.undecided[0]
        return reason(Code.STOPPED_BY, first.why, by=(first.name,), ids=(first.first,))


@dataclass(slots=True)
class _Location:
    """A listing with what the rules below look at."""

    listing: Listing
    formats: Mapping[str, BaseFormat]
    cutoff: float
    now: float
    force: bool = False
    ages: Ages = field(init=False)
    files: Mapping[str, list[Entry]] = field(init=False)
    directories: list[AcidDirectory] = field(init=False)
    manifests: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.ages, self.files = Ages.of(self.listing), self.listing.files_by_child
        self.directories = [d for d in map(acid_directory, self.ages.times) if d]
        self.manifests = {target: name for name in self.ages.times if (target := manifest_for(name))}

    def doubt(self, name: str) -> Reason | None:
        """Why a directory may be a writer's at work; None when it is finished, as far as its age tells."""
        time = self.ages.times.get(name)
        if time is None and self.cutoff < math.inf:
            return reason(Code.WRITER_AT_WORK, by=(name,), how="no-time")
        if time is not None and time > self.cutoff:
            return reason(Code.WRITER_AT_WORK, by=(name,), how="young", ago=self.now - time)
        if name in self.manifests and not self.force:
            return reason(Code.WRITER_AT_WORK, by=(self.manifests[name],), how="manifest-beside")
        return None

    def doubt_of(self, directory: AcidDirectory) -> Reason | None:
        """The same, and what the files in an ACID directory tell."""
        name, files = directory.name, self.files.get(directory.name, [])
        if (why := self.doubt(name)) or self.force:
            return why
        if any(entry.path.endswith(FLUSH_LENGTH_SUFFIX) for entry in files) and directory.kind is Kind.DELTA:
            return reason(Code.WRITER_AT_WORK, by=(name,), how="open-stream")
        says_what_it_is = any(entry.path == f"{name}/{METADATA_ACID}" for entry in files)
        if says_what_it_is or data_bytes_of(files):
            return None
        return reason(Code.WRITER_AT_WORK, by=(name,), how="empty")

    def is_compacted(self, directory: AcidDirectory) -> bool:
        """Whether a base says that a compaction made it, of which everything below was decided."""
        marked = self.formats.get(directory.name) is BaseFormat.COMPACTED
        # Before Hive 4 a compaction appears whole, by a rename; a later one must be old enough, as anything else.
        return marked and not directory.visibility_txn


def assume(listing: Listing, formats: Mapping[str, BaseFormat], assumption: Assumption, now: float) -> Assumed:
    """What counts as committed in a location.

    Args:
        formats: content of ``_metadata_acid`` by base name.
        now: seconds since the epoch.
    """
    here = _Location(listing, formats, now - assumption.age if assumption.age > 0 else math.inf, now, assumption.force)
    doubts = {directory.name: here.doubt_of(directory) for directory in here.directories}
    compacted = (d for d in here.directories if here.is_compacted(d) or (d.visibility_txn and not doubts[d.name]))
    settled = max([0, *(d.max_write_id for d in compacted if d.kind is Kind.BASE)])
    undecided = [
        Undecided(directory.name, why, _first_id(directory))
        for directory in here.directories
        if (why := doubts[directory.name]) and directory.max_write_id > settled and not here.is_compacted(directory)
    ]
    if not any(directory.kind is Kind.BASE for directory in here.directories):
        undecided += [
            Undecided(name, why, 0, is_original=True) for name in _originals(here) if (why := here.doubt(name))
        ]
    undecided += [one for one in _announced(here) if one.first > settled]
    undecided.sort(key=lambda one: (one.first, one.name))
    highest = max([settled, *(directory.max_write_id for directory in here.directories)])
    limit = max(settled, min([highest, *(one.first - 1 for one in undecided)]))
    txns = _transactions(here, doubts)
    return Assumed(assumption, ValidWriteIds(limit), txns, tuple(undecided), newest=_newest(here, limit))


def _announced(here: _Location) -> list[Undecided]:
    """Directories that a writer is about to make: so far there is only its manifest."""
    if here.force:
        return []
    missing = [d for d in map(acid_directory, here.manifests.keys() - here.ages.times.keys()) if d]
    why = {d.name: reason(Code.WRITER_AT_WORK, by=(d.name,), how="manifest") for d in missing}
    return [Undecided(here.manifests[d.name], why[d.name], _first_id(d)) for d in missing]


def _first_id(directory: AcidDirectory) -> int:
    """A compaction's base, whose transaction may be open, holds all from the beginning; an INSERT OVERWRITE its own."""
    if directory.kind is Kind.BASE and directory.visibility_txn:
        return 0
    return max(0, directory.min_write_id)


def _transactions(here: _Location, doubts: Mapping[str, Reason | None]) -> ValidTxns:
    young = {d.visibility_txn for d in here.directories if d.visibility_txn and doubts[d.name]}
    highest = max((d.visibility_txn for d in here.directories), default=0)
    return ValidTxns(highest, min(young, default=MAXL), tuple(sorted(young)))


def _newest(here: _Location, limit: int) -> tuple[str, float] | None:
    names = [*(d.name for d in here.directories if d.max_write_id <= limit), *_originals(here)]
    times = [(time, name) for name in names if (time := here.ages.times[name]) is not None]
    return max(times)[::-1] if times else None


def _originals(here: _Location) -> list[str]:
    """The children that hold files from before the table was ACID."""
    return [
        name
        for name in here.ages.times
        if not is_hidden(name) and parse_partition(name) is None and not name.startswith(ACID_PREFIXES)
    ]
