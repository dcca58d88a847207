"""What one location needs before a newer Hive reads it, by the rules of Hive's own tools, without Hive.

The main one is that of Hive 3's PreUpgradeTool [org.apache.hadoop.hive.upgrade.acid]: a location has to be compacted,
major, when a bucket file of a current delta has updates or deletes by its ``hive.acid.stats``; a delta beside which a
flush length lies is of a streaming writer, who writes inserts only; bases and original files hold none. Where a footer
counts some, or counts nothing, the events themselves decide: Hive 2.3 gives the inserts of an UPDATE of version 2 the
figures of its deletes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import pyarrow.compute as pc

from acidctl.acid.layout import NO_BUCKET, DataFile, Role
from acidctl.acid.names import Kind
from acidctl.errors import AcidctlError
from acidctl.location.find import Found
from acidctl.location.lists import SnapshotLists
from acidctl.location.snapshot import Snapshot
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.read.reader import open_orc
from acidctl.orc.tail import Tail, read_tail
from acidctl.rows.read.events import EventFile, open_event_files
from acidctl.storage.tail_cache import fetch_tails

_COPY = "_copy_"
_AT_ONCE = 256


class Need(StrEnum):
    """A kind of finding; those in :data:`BLOCKING` must be settled before the upgrade."""

    COMPACT = "compact"
    """Updates or deletes of ACID v1 stand among the inserts, and Hive 3 reads them as rows."""
    NOT_KNOWN = "not-known"
    """It cannot be read whether there are some."""
    COUNTED = "counted"
    """Hive's tool asks for a compaction by footers that count wrongly: all events are inserts."""
    OPEN = "open-transactions"
    """Write ids are open, as the snapshot says."""
    STREAM = "open-stream"
    """Flush lengths lie beside current files: a streaming writer is at work, or died."""
    ODD_NAMES = "odd-names"
    """Original files whose names say no bucket: they have no ROW__ID, and Hive's compactor fails on them."""
    COPIES = "copies"
    """Original files ``_copy_N``: their rows are numbered by the order of the names until a compaction."""
    NESTED = "nested"
    """Original files in folders, as UNION ALL leaves them."""
    EARLY_DELETES = "early-deletes"
    """Delete events of lower write ids than their rows: Hive 4 does not apply them, so that the rows come back."""
    BUCKETING = "bucketing"
    """A clustered table without ``bucketing_version`` 2: Hive 3 reads it by the old hash, and joins it to new ones the
    long way."""


BLOCKING = (Need.COMPACT, Need.NOT_KNOWN, Need.OPEN, Need.EARLY_DELETES)
"""What has to be settled before."""


@dataclass(frozen=True, slots=True)
class UpgradeFinding:
    """One thing about a location.

    Attributes:
        paths: the first files that it is about, relative to the location; or write ids.
        count: of how many.
        why: an error's words, where there is one.
    """

    need: Need
    paths: tuple[str, ...] = ()
    count: int = 0
    why: str = ""

    @property
    def is_blocking(self) -> bool:
        """Whether it has to be settled before the upgrade."""
        return self.need in BLOCKING


@dataclass(frozen=True, slots=True)
class UpgradeNeeds:
    """One location.

    Attributes:
        path: as a user would type it.
        bytes: of its current files, which a compaction reads.
        events: updates and deletes of ACID v1 that are known by the footers.
        hive_name: the name that a metastore has for it; empty where none knows it.
    """

    path: str
    table: str
    bytes: int
    files: int
    events: int
    findings: tuple[UpgradeFinding, ...]
    hive_name: str = ""

    def needs(self, need: Need) -> bool:
        """Whether something of that kind was found."""
        return any(finding.need is need for finding in self.findings)

    @property
    def is_ready(self) -> bool:
        """Whether nothing is in the way."""
        return not any(finding.is_blocking for finding in self.findings)


def upgrade_needs(found: Found, lists: SnapshotLists) -> UpgradeNeeds:
    """Look at one location: its listing, and the tails of its current deltas.

    Raises:
        NotFoundError, AccessError, StorageError, BadDataError, RefusedError, HistoryError: no snapshot can be taken.
    """
    snapshot = found.snapshot(lists)
    snapshot.require_history()
    files = snapshot.files()
    events, findings = _changes(snapshot, files)
    findings += _open(snapshot)
    findings += _by_names(files)
    findings += _early_deletes(snapshot, files)
    table = found.hive
    if table and table.buckets > 0 and table.parameters.get("bucketing_version") != "2":
        findings.append(UpgradeFinding(Need.BUCKETING, count=table.buckets))
    size = sum(file.size for file in files)
    at = found.location
    return UpgradeNeeds(found.shown, at.table, size, len(files), events, tuple(findings), found.hive_name)


def _changes(snapshot: Snapshot, files: Sequence[DataFile]) -> tuple[int, list[UpgradeFinding]]:
    """Updates and deletes in current deltas, where Hive 3 expects inserts alone."""
    asked = [file for file in files if file.native_name and file.directory and file.directory.kind is Kind.DELTA]
    streams = {file.directory for file in asked if file.flush_length_path}
    asked = [file for file in asked if file.directory not in streams]
    events = 0
    changed, counted = list[str](), list[str]()
    unread = list[tuple[str, str]]()
    for index, file in enumerate(asked):
        if index % _AT_ONCE == 0:
            fetch_tails(
                snapshot.fs, [(snapshot.absolute(one.path), one.size) for one in asked[index : index + _AT_ONCE]]
            )
        try:
            tail = read_tail(ByteSource(snapshot.fs, snapshot.absolute(file.path), None, file.size))
            said = changes_in(tail)
            count = 0 if said == 0 else _changes_read(snapshot, file, tail)
        except AcidctlError as error:
            unread.append((file.path, f"{error.what}: {error.why}"))
            continue
        events += count
        changed += [file.path] * bool(count)
        counted += [file.path] * bool(said and not count)
    findings = []
    if changed:
        findings.append(UpgradeFinding(Need.COMPACT, tuple(changed[:10]), len(changed)))
    if counted:
        findings.append(UpgradeFinding(Need.COUNTED, tuple(counted[:10]), len(counted)))
    if unread:
        paths = tuple(path for path, _ in unread[:10])
        findings.append(UpgradeFinding(Need.NOT_KNOWN, paths, len(unread), unread[0][1]))
    return events, findings


def changes_in(tail: Tail) -> int | None:
    """Updates and deletes in a file by its footer, as Hive's tool counts them; None where it does not count.

    Raises:
        BadDataError: the count is malformed.
    """
    if not tail.is_acid or not tail.rows:
        return 0
    stats = tail.acid_stats()
    return None if stats is None else stats[1] + stats[2]


def _changes_read(snapshot: Snapshot, file: DataFile, tail: Tail) -> int:
    """The same by the events."""
    with open_orc(snapshot.fs, snapshot.absolute(file.path), None, tail) as orc:
        stripes = (orc.read_stripe(stripe, ["operation"]).column("operation") for stripe in range(orc.stripe_count))
        return sum(len(one) - (pc.sum(pc.equal(one, 0)).as_py() or 0) for one in stripes)


def _early_deletes(snapshot: Snapshot, files: Sequence[DataFile]) -> Iterator[UpgradeFinding]:
    """Delete deltas with events that are older than the rows they name (format section 4.2).

    The ids of a stripe are read only if its statistics do not settle it.
    """
    found, unread = list[str](), list[tuple[str, str]]()
    for file in files:
        if file.role is not Role.DELETE:
            continue
        try:
            if any(_has_early(source) for source in open_event_files(snapshot, [file])):
                found.append(file.path)
        except AcidctlError as error:
            unread.append((file.path, f"{error.what}: {error.why}"))
    if found:
        yield UpgradeFinding(Need.EARLY_DELETES, tuple(found[:10]), len(found))
    if unread:
        yield UpgradeFinding(Need.NOT_KNOWN, tuple(path for path, _ in unread[:10]), len(unread), unread[0][1])


def _has_early(source: EventFile) -> bool:
    ranges = source.ranges
    asked = [place for place, known in enumerate(ranges) if known is None or known.original[1] > known.current[0]]
    if not asked:
        return False
    with source.open() as events:
        return any(bool((ids.current < ids.keys.original).any()) for ids in map(events.ids, asked))


def _open(snapshot: Snapshot) -> list[UpgradeFinding]:
    ids = snapshot.write_ids
    if ids.is_everything or not ids.open:
        return []
    return [UpgradeFinding(Need.OPEN, tuple(map(str, sorted(ids.open)[:10])), len(ids.open))]


def _by_names(files: Sequence[DataFile]) -> Iterator[UpgradeFinding]:
    originals = [file for file in files if file.role is Role.ORIGINAL]
    kinds = {
        Need.STREAM: [file.path for file in files if file.flush_length_path],
        Need.ODD_NAMES: [file.path for file in originals if file.bucket == NO_BUCKET],
        Need.COPIES: [file.path for file in originals if _COPY in file.path],
        Need.NESTED: [file.path for file in originals if "/" in file.path],
    }
    for need, paths in kinds.items():
        if paths:
            yield UpgradeFinding(need, tuple(paths[:10]), len(paths))
