"""The locations that a statement writes to: their staging directories, new partitions, and publication."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from acidctl.acid.listing import TableType
from acidctl.acid.names import partition_name, unescape
from acidctl.acid.reasons import Code
from acidctl.base import parallel
from acidctl.base.errors import AcidctlError, ConflictError, NotFoundError, RefusedError
from acidctl.base.printable import printable
from acidctl.location.change.own_files import OWNER, Owner, write_checked
from acidctl.location.change.publication import show, shows_by_copies
from acidctl.location.metastore_state import AllocatedIds
from acidctl.location.snapshot import files_ahead
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore, batches
from acidctl.metastore.lossless import RawStruct, struct_value, text_value, texts_value
from acidctl.metastore.tables import BATCH, HivePartition, HiveTable, partitions_of_values
from acidctl.storage.port import FileSystem, join, parent_of
from acidctl.storage.registry import open_location
from acidctl.writing.insert_only.plain_files import partition_reasons
from acidctl.writing.rows.files import FileKind, StagedFile
from acidctl.writing.statistics import Growth
from acidctl.writing.transaction import Seen, WriteTransaction, raw_table

_STORAGE, _STORAGE_OF_PARTITION, _LOCATION = 7, 6, 2
_TRIES = 5  # removals of a room in which a task of a failed job may make one more file meanwhile
"""Numbers of the fields of a table, of a partition, and of their storage descriptors."""


def partition_to_add(
    table: HiveTable, raw: RawStruct, location: str, values: Sequence[str], write_id: int = 0
) -> RawStruct:
    """Return a partition for the metastore, stored like the files of its table.

    Args:
        raw: the table, by :func:`acidctl.writing.transaction.raw_table`.
        location: its URL.
        values: unescaped, in the order of the keys.
        write_id: of the statement that adds it; 0 for none.
    """
    storage = RawStruct(dict(raw.struct(_STORAGE).fields))
    storage.fields[_LOCATION] = text_value(location)
    partition = RawStruct({1: texts_value(values), 2: text_value(table.database), 3: text_value(table.name)})
    partition.fields[_STORAGE_OF_PARTITION] = struct_value(storage)
    partition.set_texts(interface.PARTITION_PARAMETERS, {})
    partition.set_long(interface.PARTITION_WRITE_ID, write_id)
    return partition


@dataclass(slots=True)
class Place:
    """A location that gets rows.

    Attributes:
        is_new: the metastore does not have the partition yet.
        is_made: this statement made the directory.
    """

    fs: FileSystem
    path: str
    staging: str
    values: Mapping[str, str]
    is_new: bool
    has_staging: bool = False
    is_made: bool = False
    published: list[str] = field(default_factory=list)


def _remove_staging(place: Place) -> None:
    with suppress(AcidctlError):
        place.fs.remove_tree(place.staging)


def _remove_room(fs: FileSystem, path: str) -> None:
    for _ in range(_TRIES):
        with suppress(AcidctlError):
            fs.remove_tree(path)
        with suppress(AcidctlError):
            if not fs.exists(path):
                return


def _was_shown(place: Place, directory: str) -> bool:
    """Return whether a directory of this name in the location is the statement's, and not one that was there before."""
    return shows_by_copies(place.fs) or not place.fs.exists(join(place.staging, directory))


def _copy(place: Place, directory: str) -> None:
    """Copy the files of a staged directory, one by one: until the commit readers skip what is there."""
    for entry in place.fs.list_tree(join(place.staging, directory)).entries:
        if not entry.is_dir:
            name = join(directory, entry.path)
            place.fs.copy(join(place.staging, name), join(place.path, name))


class Places:
    """All locations of one statement, by the names of their partitions; the name of an unpartitioned table is empty."""

    def __init__(self, metastore: Metastore, table: HiveTable, storage: Mapping[str, str]) -> None:
        self._metastore, self._table, self._storage = metastore, table, storage
        self._keys = [column.name for column in table.partition_keys]
        self._places: dict[str, Place] = {}
        self._allocated = AllocatedIds(metastore)
        self._floor = self._own = (0, 0)
        self._room: tuple[FileSystem, str] | None = None

    def begin(self, seen: Seen, txn: int) -> None:
        """Take the view of the statement, whose lists set a lower bound to what was allocated.

        Args:
            txn: its transaction; 0 for a rehearsal.
        """
        self._floor = seen.write_ids.high_watermark, seen.txns.high_watermark
        self._own = (seen.write_id, txn) if txn else (0, 0)

    def require_agreement(self, name: str) -> None:
        """Refuse a location whose files are newer than the metastore: Hive gives their ids to others.

        Raises:
            RefusedError: a name there holds an id that was never allocated, or that is the statement's own.
        """
        self.expect([name])
        place = self._places[name]
        try:
            listing = place.fs.list_dir(place.path)
        except NotFoundError:  # a new partition, or a table whose first rows these are
            return
        again = partial(place.fs.list_dir, place.path)
        ahead = self._allocated.exceeded_by(listing, self._table, self._floor, again, self._own)
        if ahead := tuple(why for why in ahead if why.code is Code.ABOVE_GIVEN):
            raise files_ahead(place.fs.display(place.path), ahead)

    def stage(self, name: str) -> tuple[FileSystem, str]:
        """Make the staging directory of a location, and return its store and its path.

        Raises:
            RefusedError: the store can neither rename nor copy, or the files are newer than the metastore.
        """
        self.expect([name])
        place = self._places[name]
        if not place.has_staging:
            self.require_agreement(name)
            if not (place.fs.can_rename or place.fs.can_copy):
                what = f"will not write to {self._table.full_name}"
                raise RefusedError(what, "its store can neither rename nor copy", "write it with Hive")
            place.is_made = place.is_new and not place.fs.exists(place.path)
            place.fs.make_dirs(place.staging)
            write_checked(place.fs, f"{place.staging}/{OWNER}", Owner.this().to_bytes())
            place.has_staging = True
        return place.fs, place.staging

    def room(self) -> tuple[FileSystem, str]:
        """Make a hidden directory of the table where other processes write files, and return its store and path.

        It has the prefix of Hive's staging of queries, by which :mod:`acidctl.cleaning.leftovers` finds it.
        """
        fs, path = open_location(self._table.location, self._storage)
        self._room = fs, join(path, f".hive-staging_acidctl_{uuid.uuid4()}")
        fs.make_dirs(self._room[1])
        return self._room

    def adopt(self, files: Sequence[tuple[str, StagedFile]], kind: FileKind) -> None:
        """Move files from the room to the staging directories of their locations.

        Args:
            files: each with its path, relative to the room.

        Raises:
            ConflictError: two of them have the same name.
            RefusedError: a location is in another store than the table.
        """
        assert self._room
        room_fs, room = self._room
        locations = list(dict.fromkeys(file.location for _, file in files))
        self.expect(locations)
        staged = dict(zip(locations, parallel.results(self.stage, locations), strict=True))

        def made(key: tuple[str, str]) -> str:
            fs, staging = staged[key[0]]
            if fs.url != room_fs.url:
                what = f"the partition {key[0]} cannot be written"
                raise RefusedError(what, "it is in another store than the table", "write it with Hive")
            fs.make_dirs(join(staging, key[1]))
            kind.prepare(fs, join(staging, key[1]))
            return join(staging, key[1])

        keys = list(dict.fromkeys((file.location, file.directory) for _, file in files))
        directories = dict(zip(keys, parallel.results(made, keys), strict=True))
        move = room_fs.rename if room_fs.can_rename else room_fs.copy

        def moved(item: tuple[str, StagedFile]) -> None:
            path, file = item
            move(join(room, path), join(directories[file.location, file.directory], file.name))

        deque(parallel.results(moved, files), maxlen=0)

    def expect(self, names: Sequence[str]) -> None:
        """Look up locations that are about to be staged, in few calls.

        Raises:
            RefusedError: a partition's files are stored in another way than the table's.
        """
        new = [name for name in dict.fromkeys(names) if name not in self._places]
        values = {name: self._values(name) for name in new}
        wanted = [values[name] for name in new if name]
        partitions = partitions_of_values(self._metastore, self._table, wanted) if wanted else ()
        existing = {tuple(value for _, value in partition.values): partition for partition in partitions}
        for name in new:
            partition = existing.get(tuple(values[name].values())) if name else None
            if partition:
                self._refuse_other_storage(partition)
            fs, path = open_location(partition.location if partition else self._table.location, self._storage)
            is_new = bool(name) and partition is None
            path = join(path, name) if is_new else path  # by the store of the table: the directory is not there yet
            self._places[name] = Place(fs, path, join(path, f"_tmp_{uuid.uuid4()}"), values[name], is_new)

    def _refuse_other_storage(self, partition: HivePartition) -> None:
        if self._table.table_type is TableType.INSERT_ONLY:
            for why, hint in partition_reasons(self._table, partition):
                raise RefusedError(f"will not write to {self._table.full_name}", why, hint)

    def _values(self, name: str) -> dict[str, str]:
        texts = [part.partition("=")[2] for part in name.split("/")] if name else []
        return dict(zip(self._keys, map(unescape, texts), strict=True))

    def publish(
        self, transaction: WriteTransaction, directories: Mapping[str, Sequence[str]], growth: Mapping[str, Growth]
    ) -> None:
        """Register the partitions with the metastore, move the files, and commit.

        Args:
            directories: the staged directories of each location, in the order in which they appear.
            growth: the effect on each location.
        """
        names = [name for name in directories if name]
        new = [name for name in names if self._places[name].is_new]
        ours = self._add_partitions(transaction, new)
        ours = {name for name in ours if self._places[name].is_made}  # elsewhere files of somebody else may be
        for name in new:
            self._places[name].is_made = False  # the directory belongs to the new partition now, and stays
        transaction.register_partitions(names)
        transaction.give_up_statistics([name for name in names if name not in ours])
        deque(parallel.results(self._show, directories.items()), maxlen=0)
        transaction.check()
        first = next(iter(self._places[name] for name in directories))
        transaction.commit(first.fs.display(join(first.path, first.published[0])))
        transaction.restore_counts(
            {name: replace(grown, replaces=grown.replaces or name in ours) for name, grown in growth.items()}
        )

    def _show(self, staged: tuple[str, Sequence[str]]) -> None:
        place = self._places[staged[0]]
        for directory in staged[1]:  # readers see neither before the commit
            is_copied = shows_by_copies(place.fs)
            if is_copied and place.fs.exists(join(place.path, directory)):
                raise ConflictError(f"cannot write {join(place.path, directory)}", "it exists already", "")
            place.published.append(directory)  # first, so that take_back() finds it after an interruption
            if is_copied:
                _copy(place, directory)
            else:
                show(place.fs, place.path, place.staging, (directory,))

    def take_back(self) -> None:
        """Remove what was published and staged; the caller aborts the transaction afterwards."""
        for place in self._places.values():
            for directory in place.published:
                with suppress(AcidctlError):
                    if _was_shown(place, directory):
                        place.fs.remove_tree(join(place.path, directory))
        self.clear()

    def clear(self) -> None:
        """Remove the staging directories."""
        staged = [place for place in self._places.values() if place.has_staging]
        deque(parallel.results(_remove_staging, staged), maxlen=0)
        if self._room:
            _remove_room(*self._room)
        for place in self._places.values():
            if place.is_made:
                for directory in self._above(place.path):
                    with suppress(AcidctlError):
                        place.fs.remove_empty(directory)

    def _above(self, path: str) -> Iterator[str]:
        """Yield the directory of a partition and those between it and the table."""
        for _ in self._keys:
            yield path
            path = parent_of(path)

    def _add_partitions(self, transaction: WriteTransaction, new: Sequence[str]) -> set[str]:
        """Add new partitions, and return the names of those that nobody else had made meanwhile."""
        table: RawStruct | None = None
        table_name = self._table.database, self._table.name
        made = []
        for name in new:
            table = table or raw_table(self._metastore, self._table)
            values = [self._places[name].values[key] for key in self._keys]
            location = f"{self._table.location}/{name}"
            partition = partition_to_add(self._table, table, location, values, transaction.write_id)
            made.append(partition)
        added: set[str] = set()
        for batch in batches(made, BATCH):
            request = interface.AddPartitionsRequest(*table_name, tuple(batch), need_result=True)
            answer = self._metastore.call(interface.ADD_PARTITIONS, request)
            added.update(map(self._require_here, answer.partitions))
        for names in batches([name for name in new if name not in added], BATCH):
            for partition in self._metastore.call(interface.GET_PARTITIONS_BY_NAMES, *table_name, tuple(names)):
                self._require_here(partition)
        return added

    def _require_here(self, partition: interface.Partition) -> str:
        """Return a partition's name; refuse one that somebody else has made meanwhile, at another place."""
        name = "/".join(map(partition_name, self._keys, partition.values))
        location = (partition.storage and partition.storage.location) or ""
        fs, path = open_location(location, self._storage)
        place = self._places.get(name)
        if place and (fs.url, path) != (place.fs.url, place.path):
            what = f"the partition {name} was made meanwhile, at {printable(location)}"
            raise ConflictError(what, "its rows were staged elsewhere", "nothing was written; run it again")
        return name
