"""Decide which write ids count as committed when the user, without a list, says that old directories do.

Nothing on disk distinguishes a committed write id from an open or an aborted one. A command that changes a table needs
that answer; without a list, the user can only say that everything old enough was committed. The answer has the form of
Hive's lists: a high watermark below the first undecided directory, and every ``_v`` directory that is old enough.
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
    """The user's statement that everything last written more than `age` seconds ago is committed.

    Attributes:
        age: seconds; 0 for everything on disk.
        force: signs of a writer, such as an empty directory, are those of a dead writer.
    """

    age: float = DEFAULT_AGE_SECONDS
    force: bool = False


@dataclass(frozen=True, slots=True)
class Undecided:
    """A directory that may belong to a writer at work.

    Attributes:
        first: the first write id that it may hold; 0 for a compaction's base, and for original files.
        is_original: it holds original files.
    """

    name: str
    why: Reason
    first: int
    is_original: bool = False


@dataclass(frozen=True, slots=True)
class Assumed:
    """The lists that follow from an assumption for one location.

    Attributes:
        write_ids: have a high watermark below everything undecided.
        txns: have the ``_v`` directories that count as committed, and the others as open.
        undecided: the directories that limit the high watermark, the lowest first.
        of_write_ids: False if a list of write ids was given, and only the transactions are assumed.
    """

    assumption: Assumption
    write_ids: ValidWriteIds
    txns: ValidTxns
    undecided: tuple[Undecided, ...] = ()
    of_write_ids: bool = True

    @property
    def notes(self) -> tuple[Reason, ...]:
        """Return notes about what was assumed."""
        if not self.of_write_ids:
            return (reason(Code.ASSUMED_COMMITTED, how="transactions", age=self.assumption.age),)
        stop = self.stop
        return (reason(Code.ASSUMED_COMMITTED, how="write-ids", age=self.assumption.age), *([stop] if stop else ()))

    @property
    def stop(self) -> Reason | None:
        """Return why not everything counts; None if everything does."""
        if not self.undecided:
            return None
        first = self.undecided[0]
        return reason(Code.STOPPED_BY, first.why, by=(first.name,), ids=(first.first,))


@dataclass(slots=True)
class _Location:
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
        """Return why a directory may belong to a writer at work; None if its age and name show that it is finished."""
        time = self.ages.times.get(name)
        if time is None and self.cutoff < math.inf:
            return reason(Code.WRITER_AT_WORK, by=(name,), how="no-time")
        if time is not None and time > self.cutoff:
            return reason(Code.WRITER_AT_WORK, by=(name,), how="young", ago=self.now - time)
        if name in self.manifests and not self.force:
            return reason(Code.WRITER_AT_WORK, by=(self.manifests[name],), how="manifest-beside")
        return None

    def doubt_of(self, directory: AcidDirectory) -> Reason | None:
        """Return why an ACID directory may belong to a writer at work, by its files, too; else None."""
        name, files = directory.name, self.files.get(directory.name, [])
        if (why := self.doubt(name)) or self.force:
            return why
        if any(entry.path.endswith(FLUSH_LENGTH_SUFFIX) for entry in files) and directory.kind is Kind.DELTA:
            return reason(Code.WRITER_AT_WORK, by=(name,), how="open-stream")
        is_marked = any(entry.path == f"{name}/{METADATA_ACID}" for entry in files)
        if is_marked or data_bytes_of(files):
            return None
        return reason(Code.WRITER_AT_WORK, by=(name,), how="empty")

    def is_compacted(self, directory: AcidDirectory) -> bool:
        """Return whether a compaction surely made a base, so that everything below it was decided."""
        marked = self.formats.get(directory.name) is BaseFormat.COMPACTED
        # Before Hive 4 a rename publishes a whole compaction; a later compaction must be old enough, like a write.
        return marked and not directory.visibility_txn


def assume(listing: Listing, formats: Mapping[str, BaseFormat], assumption: Assumption, now: float) -> Assumed:
    """Return which write ids count as committed in a location.

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
    undecided += [directory for directory in _announced(here) if directory.first > settled]
    undecided.sort(key=lambda directory: (directory.first, directory.name))
    highest = max([settled, *(directory.max_write_id for directory in here.directories)])
    limit = max(settled, min([highest, *(directory.first - 1 for directory in undecided)]))
    txns = _transactions(here, doubts)
    return Assumed(assumption, ValidWriteIds(limit), txns, tuple(undecided))


def _announced(here: _Location) -> list[Undecided]:
    """Return the directories that a writer is about to make: only their manifests exist so far."""
    if here.force:
        return []
    missing = [d for d in map(acid_directory, here.manifests.keys() - here.ages.times.keys()) if d]
    why = {d.name: reason(Code.WRITER_AT_WORK, by=(d.name,), how="manifest") for d in missing}
    return [Undecided(here.manifests[d.name], why[d.name], _first_id(d)) for d in missing]


def _first_id(directory: AcidDirectory) -> int:
    """Return the first write id a directory may hold: 0 for a compaction's base, whose transaction may be open."""
    if directory.kind is Kind.BASE and directory.visibility_txn:
        return 0
    return max(0, directory.min_write_id)


def _transactions(here: _Location, doubts: Mapping[str, Reason | None]) -> ValidTxns:
    young = {d.visibility_txn for d in here.directories if d.visibility_txn and doubts[d.name]}
    highest = max((d.visibility_txn for d in here.directories), default=0)
    return ValidTxns(highest, min(young, default=MAXL), tuple(sorted(young)))


def _originals(here: _Location) -> list[str]:
    """Return the children that hold files from before the table was ACID."""
    return [
        name
        for name in here.ages.times
        if not is_hidden(name) and parse_partition(name) is None and not name.startswith(ACID_PREFIXES)
    ]
