"""One listing of a location, the small side files that decide its state, and the state itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from acidctl.acid.assumption import Assumed
from acidctl.acid.layout import DataFile, current_files, empty_files
from acidctl.acid.listing import Listing, TableType, without
from acidctl.acid.names import acid_directory, is_native_data_file
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.sidefiles import BaseFormat, parse_flush_length, parse_metadata_acid
from acidctl.acid.state import AcidState, base_metadata, select
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.errors import AcidctlError, HistoryError, NotFoundError, RefusedError, UsageProblem
from acidctl.location.declared import Declared
from acidctl.location.walk import is_log, list_location
from acidctl.storage.port import FileSystem, base_name, join, parent_of
from acidctl.storage.ranged import MOST_LENGTHS, MOST_METADATA, read_small
from acidctl.wording import iso_time, joined, text_of

_LOOKS_AGAIN = 3
"""At a location from which something vanishes while it is looked at."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Somebody who may read what was there before: he holds a lock of Hive's on a location, or a transaction of his is
    open that began before something was compacted, or it is a compaction of Hive 3, which has neither.

    Attributes:
        txn: his transaction; 0 without one.
        lock: the id of his lock on the location, its table or database; 0 without one.
        who: user and host.
        since: when it began, or he took the lock, in seconds since the epoch; None where that is not known.
        agent: what it says of the query.
        compaction: its state in Hive's queue; empty for all others.
        number: its id there.
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
    """Who says what counts as committed.

    Attributes:
        kind: ``metastore``; ``write-ids``, lists that were given; ``assumption``, of everything that is old enough;
            ``saved-plan``, what one was made by; ``everything``, nobody: all on disk counts.
        server: of a metastore.
        at: when it said so, in seconds since the epoch; None of others.
    """

    kind: str = "everything"
    server: str = ""
    at: float | None = None

    @property
    def record(self) -> dict[str, Any]:
        """Its JSON form, the same for all commands."""
        return {"from": self.kind, "server": self.server or None, "at": iso_time(self.at)}


EVERYTHING, GIVEN = SnapshotSource(), SnapshotSource("write-ids")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A location as it was listed, seen by one snapshot.

    Attributes:
        path: the location, absolute inside `fs`.
        write_ids: the write ids that count as committed; all of them when the user gave no list.
        txns: the transactions that count as committed; None counts all.
        base_formats: content of ``_metadata_acid`` by base name.
        assumed: what the user assumes where no list says it.
        readers: who holds locks there, where a metastore was asked for them.
        declared: what a metastore says of the files; None where none does.
        source: who says what counts.
        ahead: why the files are newer than the metastore; empty if they are not, or if no metastore was asked.
        table_columns: names and types of the table's columns, if a metastore says them.
        no_cleanup: who says in a metastore that nothing is cleaned there, where it was asked; empty for nobody.
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
    table_columns: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        return f"<snapshot of {self.fs.display(self.path)}: {len(self.state.verdicts):,} entries>"

    @property
    def table_type(self) -> TableType | None:
        """The type of the table, if it is known."""
        return self.listing.table_type

    def again(self) -> Snapshot:
        """The location listed again, seen by the same lists; errors as for :func:`take_snapshot`."""
        look = look_at(self.fs, self.path).of_type(self.table_type)
        return take_snapshot(self.fs, self.path, self.write_ids, self.txns, look=look)

    def absolute(self, relative: str) -> str:
        """A path of the file system from one relative to the location."""
        return join(self.path, relative)

    def display(self, relative: str) -> str:
        """The path as a user would type it."""
        return self.fs.display(self.absolute(relative))

    def files(self) -> list[DataFile]:
        """The data files that a reader opens."""
        return current_files(self.state, self.listing)

    def require_history(self) -> None:
        """Refuse to read where Hive refuses.

        Raises:
            HistoryError: there is no base that this snapshot may use and the oldest is compacted (section 6.2).
        """
        if self.state.history_problem:
            raise HistoryError(
                f"not enough history available in {self.fs.display(self.path)}",
                text_of(self.state.history_problem),
                "use a newer snapshot: a higher high watermark, without the open write ids below the base",
            )

    def require_agreement(self) -> None:
        """Refuse to change files that are newer than their metastore.

        Raises:
            RefusedError: the files are newer than the metastore.
        """
        if self.ahead:
            raise files_ahead(self.fs.display(self.path), self.ahead)

    def logical_length(self, file: DataFile) -> int | None:
        """Bytes of the file that count; None for all of them (section 12: a streaming writer's side file).

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
    """The error for a location whose files are newer than its metastore."""
    return RefusedError(
        f"{shown} has ids that the metastore never gave",
        joined(ahead),
        "stop all writers of the table first: Hive's next write takes a number that is on disk, and removes that file; "
        "then find out whether the metastore was restored from a backup, the table dropped and created again, or the "
        "files copied from elsewhere",
    )


@dataclass(frozen=True, slots=True)
class Look:
    """What a location holds, before anybody's snapshot of it.

    Attributes:
        base_formats: content of ``_metadata_acid`` by base name.
        bad_metadata: what is wrong with one that cannot be used, by its path relative to the location.
        log: the newest file of what acidctl did there, which is not in the listing; empty where there is none.
    """

    listing: Listing
    base_formats: dict[str, BaseFormat]
    bad_metadata: dict[str, AcidctlError]
    log: str = ""

    def of_type(self, table_type: TableType | None) -> Look:
        """Set the type of the table, which decides what Hive reads."""
        return replace(self, listing=replace(self.listing, table_type=table_type))


def look_at(
    fs: FileSystem,
    path: str,
    top: Listing | None = None,
    on_unreadable: Callable[[str, AcidctlError], None] | None = None,
    *,
    hidden: bool = False,
) -> Look:
    """List a location once, and read the small files that decide its state.

    Where one of them is gone by then, a cleaner is at work, and it is listed again.

    Args:
        top: the location's own children, where they were listed a moment ago.
        on_unreadable, hidden: see :func:`~acidctl.location.walk.list_location`.

    Raises:
        NotFoundError, AccessError, StorageError: the location cannot be listed.
        UsageProblem: the path is a directory *of* a location, ``base_N`` for example.
    """
    unreadable: dict[str, AcidctlError] = {}
    tell = None if on_unreadable is None else unreadable.__setitem__
    look, before = _look_once(fs, path, top, tell, hidden=hidden), set[str]()
    for _ in range(_LOOKS_AGAIN):
        missing = {name for name, error in look.bad_metadata.items() if isinstance(error, NotFoundError)}
        if missing <= before:  # none, or what is listed and never there, as a link to nothing
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
) -> Look:
    listing = list_location(fs, path, top, on_unreadable, hidden=hidden)
    logs = [entry.path for entry in listing.entries if not entry.is_dir and is_log(entry.path)]
    if logs and not hidden:
        listing = without(listing, set(logs))
    _refuse_acid_directory(fs, path, listing)
    look = Look(listing, {}, {}, max(logs, default=""))
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
    look: Look | None = None,
    assumed: Assumed | None = None,
    said: Reason | None = None,
    declared: Declared | None = None,
    source: SnapshotSource | None = None,
) -> Snapshot:
    """List a location once and select its state.

    Args:
        on_bad_metadata: called with the path, relative to the location, of a ``_metadata_acid`` that cannot be used;
            its base then counts as one without.  Without it, that is raised.
        look: at the location, where there was one a moment ago.
        assumed: what the lists were made from, where nobody gave them.
        said: where they are from, for the notes of the state.
        declared: what a metastore says of the files.
        source: who says what counts; without it lists that were given, or nobody.

    Raises:
        NotFoundError, AccessError, StorageError: the location cannot be listed.
        BadDataError: a ``_metadata_acid`` that Hive would refuse too.
        UsageProblem: the path is a directory *of* a location, ``base_N`` for example.
    """
    look = look or look_at(fs, path)
    for relative, error in look.bad_metadata.items():
        if on_bad_metadata is None:
            raise error
        on_bad_metadata(relative, error)
    state = select(look.listing, write_ids, txns, look.base_formats)
    if assumed:
        state = replace(state, notes=assumed.notes)
    if said:
        state = replace(state, notes=(said, *state.notes))
    if empty := empty_files(look.listing, state):
        state = replace(state, notes=(*state.notes, reason(Code.EMPTY_FILES, path=empty[0], count=len(empty))))
    ids = write_ids or ValidWriteIds()
    source = source or (GIVEN if write_ids else EVERYTHING)
    return Snapshot(
        fs, path, look.listing, state, ids, txns, look.base_formats, assumed, declared=declared, source=source
    )


def seen_below(snapshot: Snapshot, write_id: int, why: Reason | None = None) -> Snapshot:
    """The same listing by a lower high watermark.

    Args:
        why: for the notes of the state.
    """
    ids = snapshot.write_ids.at(write_id)
    state = select(snapshot.listing, ids, snapshot.txns, snapshot.base_formats)
    notes = (*snapshot.state.notes, *([why] if why else ()))
    return replace(snapshot, write_ids=ids, state=replace(state, notes=notes))


def _refuse_acid_directory(fs: FileSystem, path: str, listing: Listing) -> None:
    """``base_5`` taken for a location would turn its files into originals; a *table* of that name has directories."""
    named = acid_directory(base_name(path))
    if named and any("/" not in entry.path and is_native_data_file(entry.path) for entry in listing.entries):
        raise UsageProblem(
            f"{fs.display(path)} is a directory of a location, not a location",
            "its files are bucket files",
            f"give the location: {fs.display(parent_of(path))}",
        )
