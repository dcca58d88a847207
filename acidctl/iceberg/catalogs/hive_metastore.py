"""Iceberg tables in a Hive metastore, by acidctl's own client: with its logins, and without loss of what others set."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from typing import Any

from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.serializers import FromInputFile, ToOutputFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties

from acidctl.acid.compaction_kind import Hive
from acidctl.base.errors import AcidctlError, NotFoundError, RefusedError
from acidctl.iceberg.catalogs.store_io import store_io
from acidctl.iceberg.private_api import url_of
from acidctl.iceberg.target import hive_columns
from acidctl.location.warehouse import overlap
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import AlreadyExists, Unreachable, Unreadable
from acidctl.metastore.lossless import RawStruct, struct_value, structs_value, text_value
from acidctl.metastore.tables import HiveTable, create_table, find_tables, get_table
from acidctl.metastore.txn.transaction import Heartbeats, LockedTransaction
from acidctl.storage.port import base_name
from acidctl.storage.registry import open_location
from acidctl.writing.transaction import raw_table

METADATA, PREVIOUS = "metadata_location", "previous_metadata_location"

_SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
_INPUT, _OUTPUT = "org.apache.hadoop.mapred.FileInputFormat", "org.apache.hadoop.mapred.FileOutputFormat"
"""Iceberg's own catalog writes these for tables that Hive does not read."""

_WAIT = 60.0
"""Seconds to wait for the lock of another commit."""

_STORAGE, _COLUMNS = 7, 1
"""Numbers of the field of a table with its descriptor, and of that with the columns there."""


class MetastoreCatalog(NoopCatalog):
    """The Iceberg tables of a metastore, which has the place of the newest metadata of each.

    A commit moves this place forward under the lock that Iceberg's own catalog takes.

    Args:
        storage: options of the stores.
    """

    def __init__(self, metastore: Metastore, storage: Mapping[str, str] | None) -> None:
        super().__init__("hive")
        self._metastore, self._io = metastore, store_io(storage)
        self._storage = storage

    def load_table(self, identifier: str | Identifier) -> Table:
        """Return a table as of its newest metadata.

        Raises:
            NoSuchTableError: the metastore has no table of this name.
            RefusedError: it is not an Iceberg table.
        """
        found = self._found(identifier)
        place = found.parameters.get(METADATA, "")
        if found.parameters.get("table_type", "").lower() != "iceberg" or not place:
            hint = "name a table that does not exist, or one that migrate made"
            raise RefusedError(f"will not write to {found.full_name}", "it is not an Iceberg table", hint)
        metadata = FromInputFile.table_metadata(self._io.new_input(place))
        return Table((found.database, found.name), metadata, place, self._io, self)

    def has(self, name: str) -> bool:
        """Return whether there is a table of this name, of whatever kind."""
        try:
            self._found(name)
        except NoSuchTableError:
            return False
        return True

    def location_for(self, name: str, given: str | None) -> str:
        """Return the directory of a new table, which is empty: as given, or beside the other tables of its database.

        Raises:
            NotFoundError: the metastore does not have the database.
            RefusedError: the directory holds files, or is that of a transactional table, or in or around it.
        """
        database, _, table = name.partition(".")
        url = given
        if not url:
            home = self._metastore.call(interface.GET_DATABASE, database)
            url = f"{(home.location or '').rstrip('/')}/{table}"
        fs, path = open_location(url, self._storage)
        what, hint = f"will not write to {fs.display(path)}", "choose another directory by --target-location"
        with suppress(NotFoundError):
            if not fs.stat(path).is_dir or fs.list_dir(path).entries:
                why = "it holds files, and is not of an Iceberg table in this metastore"
                raise RefusedError(what, why, f"remove it if a run that failed left it, or {hint}")
        for other in find_tables(self._metastore) if given else ():
            if other.location and overlap(other.location, url):
                raise RefusedError(what, f"it is at, in or around the directory of {other.full_name}", hint)
        return url_of(fs, path)

    def create_table(  # noqa: PLR0917 - PyIceberg's signature
        self,
        identifier: str | Identifier,
        schema: Any,
        location: str | None = None,
        partition_spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
        sort_order: SortOrder = UNSORTED_SORT_ORDER,
        properties: Properties = EMPTY_DICT,
    ) -> Table:
        """Create a table without rows, see :class:`pyiceberg.catalog.Catalog`.

        Raises:
            TableAlreadyExistsError: there is a table of this name.
        """
        database, name = _names(identifier)
        place = self.location_for(f"{database}.{name}", location)
        metadata = new_table_metadata(schema, partition_spec, sort_order, place, dict(properties))
        file = self._write(metadata, 0)
        new = interface.NewTable(
            name,
            database,
            self._metastore.settings.user_name,
            interface.NewStorage(
                tuple(interface.FieldSchema(*column) for column in hive_columns(metadata.schema())),
                place,
                _INPUT,
                _OUTPUT,
                serde=interface.SerDeInfo(None, _SERDE, {}),
            ),
            parameters={"EXTERNAL": "TRUE", "table_type": "ICEBERG", METADATA: file},
            table_type="EXTERNAL_TABLE",
        )
        try:
            create_table(self._metastore, new)
        except AcidctlError as error:
            now = self._place_now(identifier)
            if now != file:  # else it was made, and the answer was lost or is that of a second request
                self._forget_unless_named(file, now, error)
                self._remove_empty(place)
                if isinstance(error, AlreadyExists):
                    raise TableAlreadyExistsError(str(error)) from error
                raise
        return self.load_table(identifier)

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Commit changes of a table as it was loaded, see :class:`pyiceberg.catalog.Catalog`.

        Raises:
            CommitFailedException: somebody else committed meanwhile.
            ConflictError: another commit held the lock all the time.
            RefusedError: the metastore does not let the table be changed.
        """
        before = table.metadata
        for requirement in requirements:
            requirement.validate(before)
        after = update_table_metadata(before, updates, metadata_location=table.metadata_location)
        if after == before:
            return _response(before, table.metadata_location)
        with self._locked(table.name()) as held:
            raw = raw_table(self._metastore, self._found(table.name()))
            parameters = raw.texts(interface.TABLE_PARAMETERS)
            if parameters.get(METADATA) != table.metadata_location:
                raise CommitFailedException(f"its metadata is {parameters.get(METADATA)} now")
            version = re.match(r"[0-9]{1,9}(?=-)", base_name(table.metadata_location))
            place = self._write(after, int(version[0]) + 1 if version else 0)
            try:
                places = {METADATA: place, PREVIOUS: table.metadata_location}
                raw.set_texts(interface.TABLE_PARAMETERS, parameters | _described(after, parameters) | places)
                if hive_columns(before.schema()) != hive_columns(after.schema()):
                    _set_columns(raw, hive_columns(after.schema()))
                held.beat()
            except BaseException:
                self._forget(place)
                raise
            self._alter(table, raw, place)
        return _response(after, place)

    def _alter(self, table: Table, raw: RawStruct, place: str) -> None:
        names = _names(table.name())
        context = expecting(table.metadata_location, table.properties)
        try:
            alter(self._metastore, names, raw, context)
        except AcidctlError as error:
            now = self._place_now(table.name())
            if now == place:
                return  # it was altered, and the answer was lost or is that of a second request
            self._forget_unless_named(place, now, error)
            if "has been modified" in error.why:
                raise CommitFailedException(error.why) from error
            raise RefusedError(f"cannot commit to {'.'.join(names)}", str(error), error.hint) from error

    def _locked(self, identifier: Identifier) -> AbstractContextManager[LockedTransaction]:
        return locked(self._metastore, [_names(identifier)], _WAIT)

    def _found(self, identifier: str | Identifier) -> HiveTable:
        database, table = _names(identifier)
        try:
            return get_table(self._metastore, database, table)
        except NotFoundError as error:
            raise NoSuchTableError(str(error)) from error

    def _place_now(self, identifier: str | Identifier) -> str | None:
        """Return the place of the metadata of a table; empty if the table does not exist, None if nobody knows."""
        try:
            return self._found(identifier).parameters.get(METADATA, "")
        except NoSuchTableError:
            return ""
        except AcidctlError:
            return None

    def _forget_unless_named(self, place: str, now: str | None, error: AcidctlError) -> None:
        """Remove metadata that the metastore refused with `error`; raise it if the table may have this metadata."""
        if now is None or isinstance(error, (Unreachable, Unreadable)):
            raise error
        self._forget(place)

    def _remove_empty(self, place: str) -> None:
        """Remove the directory of a table that could not be made, if it is empty: the next run wants it so."""
        fs, path = open_location(place, self._storage)
        with suppress(AcidctlError):
            fs.remove_empty(f"{path}/metadata")
            fs.remove_empty(path)

    def _write(self, metadata: TableMetadata, version: int) -> str:
        provider = load_location_provider(metadata.location, metadata.properties)
        place = provider.new_table_metadata_file_location(version)
        ToOutputFile.table_metadata(metadata, self._io.new_output(place))
        return place

    def _forget(self, place: str) -> None:
        with suppress(AcidctlError):  # it stays as a file that nothing names
            self._io.delete(place)


@contextmanager
def locked(metastore: Metastore, tables: Iterable[tuple[str, str]], wait: float) -> Iterator[LockedTransaction]:
    """Hold exclusive locks on tables.

    Args:
        tables: the database and the name of each.
        wait: seconds to wait for statements that are at work.

    Raises:
        ConflictError: somebody held a lock all the time.
    """
    with closing(Heartbeats(metastore)) as heartbeats:
        held = LockedTransaction(metastore, heartbeats, locks_on(tables), interface.TxnType.DEFAULT, wait=wait)
        try:
            yield held
        finally:
            held.release()


def locks_on(tables: Iterable[tuple[str, str]]) -> tuple[interface.LockComponent, ...]:
    """Return the exclusive locks on tables, given by database and name."""
    kind = interface.LockType.EXCLUSIVE
    return tuple(interface.LockComponent(kind, database=database, table=table) for database, table in tables)


def alter(metastore: Metastore, names: tuple[str, str], raw: RawStruct, context: Mapping[str, str]) -> None:
    """Alter a table.

    Args:
        names: of its database and of the table, as they are now.
        raw: the table as it is to be.
        context: what the metastore is to do besides, by its names.
    """
    environment = interface.EnvironmentContext(dict(context))
    if metastore.features.hive is Hive.HIVE4:
        metastore.call(interface.ALTER_TABLE, interface.AlterTableRequest(*names, raw, environment))
    else:
        metastore.call(interface.ALTER_TABLE_BEFORE_4, *names, raw, environment)


def expecting(place: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return what :func:`alter` needs to keep a commit of somebody else.

    If the others do without the lock, Hive 4 compares the place of the metadata; on Derby it cannot.

    Args:
        place: of the metadata that the table has.
        properties: of the table in Iceberg, which are among its parameters in the metastore.
    """
    context = {"DO_NOT_UPDATE_STATS": "true"}
    if properties.get("engine.hive.lock-enabled", "").lower() == "false":
        context |= {"expected_parameter_key": METADATA, "expected_parameter_value": place}
    return context


def _names(identifier: str | Identifier) -> tuple[str, str]:
    database, table = identifier.split(".") if isinstance(identifier, str) else identifier
    return database, table


def _response(metadata: TableMetadata, place: str) -> CommitTableResponse:
    return CommitTableResponse.model_validate({"metadata": metadata, "metadata-location": place})


def _described(metadata: TableMetadata, before: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters by which Iceberg's own catalog describes the newest snapshot, where a table has them."""
    snapshot = metadata.current_snapshot()
    current = {"snapshot-count": str(len(metadata.snapshots)), "current-schema": metadata.schema().model_dump_json()}
    if snapshot:
        summary = snapshot.summary.model_dump_json() if snapshot.summary else "{}"
        current |= {
            "current-snapshot-id": str(snapshot.snapshot_id),
            "current-snapshot-timestamp-ms": str(snapshot.timestamp_ms),
            "current-snapshot-summary": summary,
        }
    return {name: value for name, value in current.items() if name in before}


def _set_columns(raw: RawStruct, columns: Sequence[tuple[str, str]]) -> None:
    """Replace the columns of a table, with the comments of those that it has."""
    storage = raw.struct(_STORAGE)
    known = {column.text(1): column for column in storage.structs(_COLUMNS)}
    fields = []
    for name, kind in columns:
        column = known.get(name, RawStruct())
        column.fields |= {1: text_value(name), 2: text_value(kind)}
        fields.append(column)
    storage.fields[_COLUMNS] = structs_value(fields)
    raw.fields[_STORAGE] = struct_value(storage)
