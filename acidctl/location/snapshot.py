"""A location as one snapshot sees it: its listing, the small side files that decide its state, and its children."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple

from acidctl.acid.assumed_commits import Assumed
from acidctl.acid.layout import DataFile, current_files, empty_files
from acidctl.acid.listing import Ages, Listing, TableType, without
from acidctl.acid.names import acid_directory, is_native_data_file
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.sidefiles import BaseFormat, parse_flush_length, parse_metadata_acid
from acidctl.acid.state import AcidState, Lists, Verdict, base_metadata, select
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.base.errors import AcidctlError, HistoryError, NotFoundError, RefusedError, UsageProblem
from acidctl.location.metastore_schema import Declared
from acidctl.location.walk import is_log, list_entries
from acidctl.storage.port import FileSystem, base_name, join, parent_of
from acidctl.storage.ranged import MOST_LENGTHS, MOST_METADATA, read_small
from acidctl.wording import iso_time, joined, text_of

_LOOKS_AGAIN = 3
"""How many times to list a location again if files vanish while it is read."""

STOP_WRITERS = (
    "stop all writers of the table first: Hive's next write takes a number that is on disk, and removes that file; "
    "then see `acidctl hive rescue`: was the metastore restored from a backup, the table dropped and created again, or "
    "were the files copied from elsewhere"
)
"""The hint where files are newer than their metastore."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader that may still need what was there before.

    It holds a lock of Hive's on a location, or has an open transaction that began before something was compacted, or it
    is a compaction of Hive 3, which has neither.

    Attributes:
        txn: its transaction; 0 without one.
        lock: the id of its lock on the location, its table or database; 0 without one.
        who: user and host.
        since: when it began, or took the lock, in seconds since the epoch; None if that is not known.
        agent: what it says about the query.
        compaction: its state in Hive's queue; empty for all others.
        number: its id in Hive's queue.
    """

    txn: int
    lock: int
    who: str
    since: float | None
    agent: str = ""
    compaction: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True)
class SnapshotSource:
    """The source that decides which write ids count as committed.

    Attributes:
        kind: ``metastore``; ``write-ids``, lists that were given; ``assumption``, everything that is old enough;
            ``saved-plan``, the lists saved with a plan; ``everything``, which counts all on disk.
        server: the metastore.
        at: when the metastore was read, in seconds since the epoch; None for other kinds.
    """

    kind: str = "everything"
    server: str = ""
    at: float | None = None

    @property
    def record(self) -> dict[str, Any]:
        """Return its JSON form, the same for all commands."""
        return {"from": self.kind, "server": self.server or None, "at": iso_time(self.at)}


EVERYTHING, GIVEN = SnapshotSource(), SnapshotSource("write-ids")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A location as it was listed, seen by one snapshot.

    Attributes:
        path: the location, absolute inside `fs`.
        write_ids: the write ids that count as committed; all of them if no list was given.
        txns: the transactions that count as committed; None counts all.
        base_formats: content of ``_metadata_acid`` by base name.
        assumed: what the user assumes in place of a list.
        readers: holders of locks on the location, if they were read from a metastore.
        declared: what a metastore says about the files; None without one.
        ahead: why the files are newer than the metastore; empty if they are not, or without a metastore.
        table: what a metastore says about the table, also for a compaction, which reads by the files alone.
        no_cleanup: ``table``, ``database`` or ``partition`` if its properties forbid cleaning; empty otherwise.
    """

    fs: FileSystem
    path: str
    listing: Listing
    state: AcidState
    write_ids: ValidWriteIds
    txns: ValidTxns | None
    base_formats: dict[str, BaseFormat]
    assumed: Assumed | None = None
    readers: tuple[Reader, ...] = ()
    declared: Declared | None = None
    source: SnapshotSource = EVERYTHING
    no_cleanup: str = ""
    ahead: tuple[Reason, ...] = ()
    table: Declared | None = None

    def __repr__(self) -> str:
        return f"<snapshot of {self.shown}: {len(self.state.verdicts):,} entries>"

    @property
    def table_type(self) -> TableType | None:
        """Return the type of the table, if it is known."""
        return self.listing.table_type

    @property
    def shown(self) -> str:
        """Return the location, as a user would type it."""
        return self.fs.display(self.path)

    @property
    def lists(self) -> Lists:
        """Return what decides the state together with the listing."""
        return Lists(self.write_ids, self.txns, self.base_formats)

    def again(self) -> Snapshot:
        """List the location again and return it as the same lists see it; errors as for :func:`take_snapshot`."""
        look = list_location(self.fs, self.path).of_type(self.table_type)
        return take_snapshot(self.fs, self.path, self.write_ids, self.txns, look=look)

    def absolute(self, relative: str) -> str:
        """Return the absolute path of a path relative to the location."""
        return join(self.path, relative)

    def display(self, relative: str) -> str:
        """Return the path as a user would type it."""
        return self.fs.display(self.absolute(relative))

    def files(self) -> list[DataFile]:
        """Return the data files that a reader opens."""
        return current_files(self.state, self.listing)

    def require_history(self) -> None:
        """Refuse to read if Hive would refuse.

        Raises:
            HistoryError: there is no base that this snapshot may use, and the oldest is compacted (format section 6.2).
        """
        if self.state.history_problem:
            raise HistoryError(
                f"not enough history available in {self.shown}",
                "; ".join(map(text_of, (self.state.history_problem, *self.ahead))),
                STOP_WRITERS
                if self.ahead
                else "use a newer snapshot: a higher high watermark, without the open write ids below the base",
            )

    def require_agreement(self) -> None:
        """Refuse to change files that are newer than their metastore.

        Raises:
            RefusedError: the files are newer than the metastore.
        """
        if self.ahead:
            raise files_ahead(self.shown, self.ahead)

    def logical_length(self, file: DataFile) -> int | None:
        """Return how many bytes of the file count; None for all (section 12: a streaming writer's side file).

        A file of 0 bytes has no rows, unless a side file says that more was committed.

        Raises:
            BadDataError: the side file holds no length.
        """
        if file.flush_length_path is None:
            return None if file.size else 0
        path = self.absolute(file.flush_length_path)
        content = read_small(self.fs, path, MOST_LENGTHS)
        if not (content or file.size):
            return 0
        return parse_flush_length(content, self.fs.display(path))


def files_ahead(shown: str, ahead: tuple[Reason, ...]) -> RefusedError:
    """Return the error for a location whose files are newer than its metastore."""
    return RefusedError(
        f"{shown} has ids that the metastore never gave",
        joined(ahead),
        STOP_WRITERS,
    )


@dataclass(frozen=True, slots=True)
class DirectoryListing:
    """A listing of a location with its side files, independent of any snapshot.

    Attributes:
        base_formats: content of ``_metadata_acid`` by base name.
        bad_metadata: the error of each unusable ``_metadata_acid``, by its path relative to the location.
        log: the newest file of acidctl's log, which is not in the listing; empty if there is none.
    """

    listing: Listing
    base_formats: dict[str, BaseFormat]
    bad_metadata: dict[str, AcidctlError]
    log: str = ""

    def of_type(self, table_type: TableType | None) -> DirectoryListing:
        """Set the type of the table, which decides what Hive reads."""
        return replace(self, listing=replace(self.listing, table_type=table_type))


def list_location(
    fs: FileSystem,
    path: str,
    top: Listing | None = None,
    on_unreadable: Callable[[str, AcidctlError], None] | None = None,
    *,
    hidden: bool = False,
) -> DirectoryListing:
    """List a location once, and read the small files that decide its state.

    If one of them vanished meanwhile, a cleaner is at work, and the location is listed again.

    Args:
        top: the location's own children, if they were just listed.
        on_unreadable, hidden: see :func:`~acidctl.location.walk.list_entries`.

    Raises:
        NotFoundError, AccessError, StorageError: the location cannot be listed.
        UsageProblem: the path is a directory *of* a location, ``base_N`` for example.
    """
    unreadable: dict[str, AcidctlError] = {}
    tell = None if on_unreadable is None else unreadable.__setitem__
    look, before = _look_once(fs, path, top, tell, hidden=hidden), set[str]()
    for _ in range(_LOOKS_AGAIN):
        missing = {name for name, error in look.bad_metadata.items() if isinstance(error, NotFoundError)}
        if missing <= before:  # nothing new is missing; a link to nothing is always missing
            break
        unreadable.clear()
        look, before = _look_once(fs, path, None, tell, hidden=hidden), missing
    if on_unreadable is not None:
        for relative, error in unreadable.items():
            on_unreadable(relative, error)
    return look


def _look_once(
    fs: FileSystem,
    path: str,
    top: Listing | None,
    on_unreadable: Callable[[str, AcidctlError], None] | None,
    *,
    hidden: bool,
) -> DirectoryListing:
    listing = list_entries(fs, path, top, on_unreadable, hidden=hidden)
    logs = [entry.path for entry in listing.entries if not entry.is_dir and is_log(entry.path)]
    if logs and not hidden:
        listing = without(listing, set(logs))
    _refuse_acid_directory(fs, path, listing)
    look = DirectoryListing(listing, {}, {}, max(logs, default=""))
    for entry in base_metadata(listing):
        full = join(path, entry.path)
        try:
            data = read_small(fs, full, MOST_METADATA, entry.size)
            look.base_formats[entry.path.partition("/")[0]] = parse_metadata_acid(data, fs.display(full))
        except AcidctlError as error:
            look.bad_metadata[entry.path] = error
    return look


def take_snapshot(
    fs: FileSystem,
    path: str,
    write_ids: ValidWriteIds | None = None,
    txns: ValidTxns | None = None,
    on_bad_metadata: Callable[[str, AcidctlError], None] | None = None,
    *,
    look: DirectoryListing | None = None,
    assumed: Assumed | None = None,
    note: Reason | None = None,
    declared: Declared | None = None,
    source: SnapshotSource | None = None,
) -> Snapshot:
    """List a location once and select its state.

    Args:
        on_bad_metadata: called with the relative path and the error of an unusable ``_metadata_acid``, whose base then
            counts as one without; None raises the error.
        look: the listing, if there is a recent one.
        assumed: the assumption that the lists were made from.
        note: a note about the origin of the lists, added to the notes of the state.
        source: what decides which write ids count; default: the given lists, else everything on disk.

    Raises:
        NotFoundError, AccessError, StorageError: the location cannot be listed.
        BadDataError: Hive would refuse a ``_metadata_acid``, too.
        UsageProblem: the path is a directory *of* a location, ``base_N`` for example.
    """
    look = look or list_location(fs, path)
    for relative, error in look.bad_metadata.items():
        if on_bad_metadata is None:
            raise error
        on_bad_metadata(relative, error)
    state = select(look.listing, write_ids, txns, look.base_formats)
    if assumed:
        state = replace(state, notes=assumed.notes)
    if note:
        state = replace(state, notes=(note, *state.notes))
    if empty := empty_files(look.listing, state):
        state = replace(state, notes=(*state.notes, reason(Code.EMPTY_FILES, path=empty[0], count=len(empty))))
    ids = write_ids or ValidWriteIds()
    source = source or (GIVEN if write_ids else EVERYTHING)
    return Snapshot(
        fs, path, look.listing, state, ids, txns, look.base_formats, assumed, declared=declared, source=source
    )


def seen_below(snapshot: Snapshot, write_id: int, why: Reason | None = None) -> Snapshot:
    """Return the same listing as a lower high watermark sees it.

    Args:
        why: added to the notes of the state.
    """
    ids = snapshot.write_ids.at(write_id)
    state = select(snapshot.listing, ids, snapshot.txns, snapshot.base_formats)
    notes = (*snapshot.state.notes, *([why] if why else ()))
    return replace(snapshot, write_ids=ids, state=replace(state, notes=notes))


def _refuse_acid_directory(fs: FileSystem, path: str, listing: Listing) -> None:
    """Refuse ``base_5`` given as a location: its files would count as originals. A table may have that name."""
    named = acid_directory(base_name(path))
    if named and any("/" not in entry.path and is_native_data_file(entry.path) for entry in listing.entries):
        raise UsageProblem(
            f"{fs.display(path)} is a directory of a location, not a location",
            "its files are bucket files",
            f"give the location: {fs.display(parent_of(path))}",
        )


class Amount(NamedTuple):
    """The number, size and age of the files below one child, side files included.

    Attributes:
        modified: the newest time in it, seconds since the epoch; None if the store gives none.
    """

    files: int = 0
    bytes: int = 0
    modified: float | None = None


class Child(NamedTuple):
    """One directory or file at the top of a location."""

    verdict: Verdict
    amount: Amount

    def record(self) -> dict[str, Any]:
        """Return the keys of ``acidctl ls -o json`` for this child; `modified` is in seconds since the epoch."""
        verdict, directory = self.verdict, self.verdict.directory
        return {
            "name": verdict.name,
            "kind": verdict.kind.value,
            "minWriteId": directory.min_write_id if directory else None,
            "maxWriteId": directory.max_write_id if directory else None,
            "statementId": directory.statement_id if directory and directory.statement_id >= 0 else None,
            "visibilityTxnId": directory.visibility_txn or None if directory else None,
            "state": verdict.state.value,
            "reason": text_of(verdict.reason),
            "reasonCode": verdict.reason.code,
            "supersededBy": list(verdict.reason.by),
            "files": self.amount.files,
            "bytes": self.amount.bytes,
            "modified": self.amount.modified,
        }


def children_of(snapshot: Snapshot) -> list[Child]:
    """Return the children of a location in the order of their verdicts, without opening any file."""
    amounts = _amounts_by_child(snapshot)
    return [Child(verdict, amounts.get(verdict.name, Amount())) for verdict in snapshot.state.verdicts]


def superseded_since(snapshot: Snapshot) -> dict[str, float]:
    """Return since when readers do not need each obsolete or aborted child, in seconds since the epoch.

    That is the time of what took its place, else its own. A child is left out if the store has neither.
    """
    times = Ages.of(snapshot.listing).times
    since: dict[str, float] = {}
    for verdict in snapshot.state.removable:
        written = [when for name in verdict.reason.by or (verdict.name,) if (when := times.get(name)) is not None]
        if written:
            since[verdict.name] = min(written)
    return since


def _amounts_by_child(snapshot: Snapshot) -> Mapping[str, Amount]:
    amounts: dict[str, Amount] = {}
    for name, below in groupby(snapshot.listing.entries, lambda entry: entry.path.partition("/")[0]):
        before = amounts.get(name, Amount())  # a listing need not have a child's entries side by side
        files, size, newest = before.files, before.bytes, before.modified
        for _, length, modified, is_dir in below:
            if not is_dir:
                files += 1
                size += length
            if modified is not None and (newest is None or modified > newest):
                newest = modified
        amounts[name] = Amount(files, size, newest)
    return amounts
