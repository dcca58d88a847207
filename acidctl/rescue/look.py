"""Look at a table: its folders first, then the answers of the metastore about it."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from acidctl.acid.listing import Entry, Listing, TableType
from acidctl.acid.names import (
    AcidDirectory,
    Kind,
    acid_directory,
    is_hidden,
    is_native_data_file,
    is_visible_path,
    parse_file,
    parse_partition,
    partition_name,
    unescape,
)
from acidctl.acid.reasons import Code
from acidctl.base import parallel
from acidctl.base.errors import AcidctlError, ConflictError, GoneError, NotFoundError
from acidctl.location.metastore_state import AllocatedIds
from acidctl.location.warehouse import require_same
from acidctl.metastore import interface
from acidctl.metastore.activity import find_locks, open_txns_info, spelled_alike
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import MetastoreError
from acidctl.metastore.queue import WORKING, find_compactions
from acidctl.metastore.tables import HiveTable, find_partitions, get_table
from acidctl.metastore.transactions import Transactions, given_write_id
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.tail import read_tail
from acidctl.rescue.findings import Answers, Folder, Look
from acidctl.storage.port import FileSystem, join
from acidctl.storage.registry import open_location

_ELSEWHERE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")
_PAUSE = 1.0
"""Seconds before a second look: a store's listing, or one of several servers, may be behind."""


@dataclass(frozen=True)
class Place:
    """A table with its store: what a look needs.

    Attributes:
        root: the table's directory in its store.
        storage: options of the stores, for partitions that lie elsewhere.
    """

    table: HiveTable
    fs: FileSystem
    root: str
    storage: Mapping[str, str]

    @classmethod
    def of(cls, table: HiveTable, storage: Mapping[str, str]) -> Place:
        """Open the store of a table.

        Args:
            storage: options of the store.
        """
        return cls(table, *open_location(table.location, storage), storage)

    @property
    def name(self) -> str:
        """The name as it is typed: ``hive:db.t``."""
        return f"hive:{self.table.full_name}"

    @property
    def role(self) -> str:
        """A part of the names of our transactions, by which a later run finds those of this table."""
        return f"rescue-{hashlib.sha256(self.table.full_name.lower().encode()).hexdigest()[:8]}"

    def at(self, folder: str) -> tuple[FileSystem, str]:
        """Return the store and the path of a folder: relative to the table, or the URL of a partition elsewhere."""
        if _ELSEWHERE.match(folder):
            return open_location(folder, self.storage)
        return self.fs, join(self.root, folder) if folder else self.root


def look_twice(metastore: Metastore, place: Place) -> Look:
    """Look at a table, and where something disagrees once more: only what both looks show is found.

    Raises:
        GoneError: the table was dropped meanwhile.
        MetastoreError: the metastore cannot be reached, or failed.
    """
    first = look_at(metastore, place)
    left = tuple(txn for txn, _ in locks_of_dead(metastore, place))
    first = _with_left(first, left)
    if not first.findings:
        return first
    time.sleep(_PAUSE)
    try:
        require_same(place.table, get_table(metastore, place.table.database, place.table.name))
    except (NotFoundError, ConflictError) as error:
        raise GoneError(f"{place.name} was dropped meanwhile", str(error), "") from error
    return replace(_with_left(look_at(metastore, place), left), before=first)


def _with_left(look: Look, txns: Iterable[int]) -> Look:
    """Add the transactions by which an interrupted rescue still locks the table."""
    every = tuple(sorted({*look.answers.unfinished, *txns}))
    return replace(look, answers=replace(look.answers, unfinished=every))


def look_at(metastore: Metastore, place: Place) -> Look:
    """Look at a table once.

    Raises:
        MetastoreError: the metastore cannot be reached, or failed.
    """
    table = place.table
    before = partitions_of(metastore, table) if table.partition_keys else {}
    listings = dict(_listings(place, before))
    lists = Transactions(metastore)
    ids = lists.write_ids(table.full_name)
    given = given_write_id(metastore, table.database, table.name)
    known = partitions_of(metastore, table) if table.partition_keys else {}
    allocated = AllocatedIds(metastore)
    folders = []
    for name, listing in sorted(listings.items()):
        again = partial(_listed_again, metastore, place, name)
        ahead = allocated.exceeded_by(listing, table, (given, lists.txns.high_watermark), again)
        if why := next((reason for reason in ahead if reason.code == Code.GIVEN_UNKNOWN), None):
            what = f"the ids that were given for {table.full_name} are not known"
            raise MetastoreError(what, str(why.value("why")), "nothing was changed; run it again")
        folder = _folder(name, listing, is_known=not table.partition_keys or name in known)
        folder = replace(folder, ahead=ahead)
        if not folder.known:  # a partition of this name may lie elsewhere
            may_be_lost = _partition_of(name) not in known.values() and _holds_rows(*place.at(name), folder)
            folder = replace(folder, has_rows=may_be_lost)
        folders.append(folder)
    given = max([given, *(why.value("given") for f in folders for why in f.ahead if why.value("what") == "write id")])
    sequence = [why.value("given") for f in folders for why in f.ahead if why.value("what") == "transaction"]
    compacting, succeeded = _compactions(metastore, table, set(listings))
    answers = Answers(
        given=given,
        sequence=max([lists.txns.high_watermark, *sequence]),
        write_ids=ids,
        txns=lists.txns,
        compacting=compacting,
        succeeded=succeeded,
        missing=tuple(sorted((known.keys() & before.keys()) - listings.keys())),
        unfinished=unfinished(metastore, place) if ids.open else (),
    )
    return Look(tuple(folders), answers)


def unfinished(metastore: Metastore, place: Place) -> tuple[int, ...]:
    """Return the open transactions that earlier rescues of this table began."""
    mark = f"-{place.role}-"
    txns = open_txns_info(metastore).txns
    return tuple(sorted(txn.id for txn in txns if txn.state == interface.TxnState.OPEN and mark in txn.host))


def locks_of_dead(metastore: Metastore, place: Place) -> list[tuple[int, bool]]:
    """Return the transactions of earlier rescues with locks of this table, and whether each locks it for a rescue."""
    marks = "-rescue-lock-", f"-{place.role}-"
    locks = find_locks(metastore, place.table.database, place.table.name)
    ours = {(lock.txn, marks[0] in lock.host) for lock in locks if lock.txn and any(m in lock.host for m in marks)}
    return sorted(ours)


def rows_of(place: Place, directories: Iterable[str]) -> dict[str, int | None]:
    """Return how many rows or deletes directories of a table hold, by their paths; None where footers do not say."""

    def count(path: str) -> int | None:
        if place.table.table_type is TableType.INSERT_ONLY:
            return None
        folder, _, name = path.rpartition("/")
        rows = 0
        try:
            fs, above = place.at(folder)
            directory = join(above, name)
            for entry in fs.list_tree(directory).entries:
                if not entry.is_dir and is_native_data_file(entry.path):
                    rows += read_tail(ByteSource(fs, join(directory, entry.path), size=entry.size)).rows
        except AcidctlError:  # another format, or a damaged file
            return None
        return rows

    paths = list(directories)
    return dict(zip(paths, parallel.results(count, paths), strict=True))


def partitions_of(metastore: Metastore, table: HiveTable) -> dict[str, str]:
    """Return the names of partitions by their folders, relative to the table's directory, or by a URL elsewhere."""
    root = table.location.rstrip("/") + "/"
    return {
        partition.location.removeprefix(root).rstrip("/"): "/".join(partition_name(*pair) for pair in partition.values)
        for partition in find_partitions(metastore, table)
    }


def _listings(place: Place, partitions: Mapping[str, str]) -> Iterator[tuple[str, Listing]]:
    """Yield the listing of each location's children, by its name; folders deeper than the partition keys are not."""
    names = [""]
    for key in place.table.partition_keys:
        found = zip(names, parallel.results(lambda name: _children(place, name), names), strict=True)
        names = [
            f"{name}/{entry.path}".lstrip("/")
            for name, listing in found
            for entry in (listing.entries if listing else ())
            if entry.is_dir and (pair := parse_partition(entry.path)) and unescape(pair[0]).lower() == key.name.lower()
        ]
    every = list(dict.fromkeys([*names, *sorted(partitions)]))
    for name, listing in zip(every, parallel.results(lambda name: _children(place, name), every), strict=True):
        if listing is not None and (_has_acid(listing) or name in partitions or not place.table.partition_keys):
            yield name, listing


def _partition_of(folder: str) -> str:
    """Return the name of the partition that a folder would be, spelled as :func:`partitions_of` spells it."""
    pairs = (part.partition("=") for part in folder.split("/"))
    return "/".join(partition_name(unescape(key).lower(), unescape(value)) for key, _, value in pairs)


def _has_acid(listing: Listing) -> bool:
    return any(entry.is_dir and acid_directory(entry.path) for entry in listing.entries)


def _children(place: Place, name: str) -> Listing | None:
    """Return the children of a folder; None if there is none."""
    with suppress(NotFoundError):
        fs, path = place.at(name)
        return fs.list_dir(path)
    return None


def _listed_again(metastore: Metastore, place: Place, name: str) -> Listing:
    get_table(metastore, place.table.database, place.table.name)
    fs, path = place.at(name)
    return fs.list_dir(path)


def _folder(name: str, listing: Listing, *, is_known: bool) -> Folder:
    directories = tuple(d for entry in listing.entries if entry.is_dir and (d := acid_directory(entry.path)))
    return Folder(
        name,
        directories,
        known=is_known,
        has_originals=any(not e.is_dir and not is_hidden(e.path) and parse_file(e.path) for e in listing.entries),
        times={e.path: e.modified for e in listing.entries if e.is_dir and e.modified is not None},
    )


def _holds_rows(fs: FileSystem, path: str, folder: Folder) -> bool:
    """Return whether a folder has files that readers would see: a dropped partition may leave an empty base behind."""

    def holds(directory: AcidDirectory) -> bool:
        with suppress(NotFoundError):
            entries: tuple[Entry, ...] = fs.list_tree(join(path, directory.name)).entries
            return any(not e.is_dir and e.size and is_visible_path(e.path) for e in entries)
        return False

    # With the same id, a base replaces what deltas hold.
    return any(
        holds(d)
        for d in folder.directories
        if d.max_write_id > folder.base or d.kind is Kind.BASE or not folder.has_base
    )


def _compactions(metastore: Metastore, table: HiveTable, names: set[str]) -> tuple[frozenset[int], dict[str, int]]:
    """Return the transactions of compactions at work, and the highest write id of succeeded major ones by folder."""
    spelled = {spelled_alike(name): name for name in names}
    compacting, succeeded = set(), dict[str, int]()
    for entry in find_compactions(metastore, database=table.database, table=table.name):
        if entry.state == WORKING and entry.txn:
            compacting.add(entry.txn)
        # An entry of a former table of this name says nothing about this one.
        is_of_this = (entry.enqueued or entry.started or 0.0) >= table.made[0]
        name = spelled.get(spelled_alike(entry.partition))
        if entry.state == "succeeded" and entry.kind == "major" and is_of_this and name is not None:
            succeeded[name] = max(succeeded.get(name, 0), entry.highest_write_id)
    return frozenset(compacting), succeeded
