"""CREATE TABLE: an empty transactional table, as Hive's own statement makes it on the same version."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from acidctl.acid.compaction_kind import Hive
from acidctl.acid.listing import TableType
from acidctl.base.errors import ConflictError, NotFoundError, RefusedError, UsageProblem
from acidctl.base.printable import printable
from acidctl.location.warehouse import overlap
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.metastore.tables import Column, HiveTable, create_table, find_tables, get_table
from acidctl.storage.registry import open_location, split_url

_OUTPUTS = {
    "ORC": "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
    "Parquet": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
    "text": "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
}
_CAPABILITIES = ("HIVEFULLACIDWRITE", "HIVEMANAGEDINSERTWRITE")
"""The capabilities that Hive 4 asks of a client that creates transactional tables."""

_STATISTICS = ("numRows", "rawDataSize", "totalSize", "numFiles", "numFilesErasureCoded")
_FILES = "clear the directory if nobody needs its files, or choose another location or name"


class Create:
    """One CREATE TABLE.

    Args:
        storage: options of the stores.

    Attributes:
        table: the table, with the location that it is expected to get.

    Raises:
        NotFoundError: there is no such database.
        UsageProblem: the location cannot be one.
    """

    def __init__(self, metastore: Metastore, table: HiveTable, storage: Mapping[str, str]) -> None:
        self._metastore, self._storage = metastore, storage
        self._given = bool(table.location)
        database = metastore.call(interface.GET_DATABASE, table.database)
        self.table = replace(table, location=self._location(table, database))

    def existing(self) -> HiveTable | None:
        """Return the table that has this name already, if there is one."""
        with suppress(NotFoundError):
            return get_table(self._metastore, self.table.database, self.table.name)
        return None

    def check(self) -> None:
        """Refuse what would fail, or would make rows of files that are there.

        Raises:
            ConflictError: a table has this name already.
            RefusedError: the metastore is older than Hive 3, or the location holds files or another table.
        """
        if not self._metastore.features.write_ids:
            what, why = f"will not create {self.table.full_name}", "the metastore is older than Hive 3"
            raise RefusedError(what, f"{why} and has no write ids", "create it with Hive")
        if self.existing():
            hint = "choose another name, or give --if-not-exists"
            raise ConflictError(f"there is a table {self.table.full_name} already", "", hint)
        self._refuse_files(self.table.location)
        for other in find_tables(self._metastore) if self._given else ():
            if other.location and overlap(other.location, self.table.location):
                what = f"will not create {self.table.full_name}"
                why = f"its location overlaps that of {other.full_name}: {printable(other.location)}"
                raise RefusedError(what, why, "choose another location")

    def run(self) -> HiveTable:
        """Create the table, and return it as the metastore has it.

        Raises:
            ConflictError: a table has this name already.
            RefusedError: as for :meth:`check`.
            MetastoreError: the metastore refused the definition, with its reason.
        """
        self.check()
        create_table(self._metastore, self._new(), _CAPABILITIES)
        made = get_table(self._metastore, self.table.database, self.table.name)
        if made.location != self.table.location:
            try:
                self._refuse_files(made.location)
            except BaseException:
                context = interface.EnvironmentContext()
                self._metastore.call(interface.DROP_TABLE, made.database, made.name, False, context)
                raise
        return made

    def _new(self) -> interface.NewTable:
        table = self.table
        hive, is_full = self._metastore.features.hive, table.table_type is TableType.FULL_ACID
        # Hive 4 leaves the property out for tables of full ACID alone.
        properties = {} if hive is Hive.HIVE4 and is_full else {"serialization.format": "1"}
        storage = interface.NewStorage(
            _fields(table.columns),
            table.location if self._given else None,
            table.stored_as.input_format,
            _OUTPUTS[table.stored_as.format],
            buckets=table.buckets or -1,
            serde=interface.SerDeInfo(None, table.stored_as.serde, properties),
            bucket_columns=table.bucket_columns,
        )
        parameters = {**table.parameters, **self._statistics()}
        keys = _fields(table.partition_keys)
        return interface.NewTable(table.name, table.database, table.owner, storage, keys, parameters)

    def _statistics(self) -> dict[str, str]:
        """Return what Hive 4 claims of an empty table; Hive 3 would still claim it after inserts of acidctl."""
        gathers = self._metastore.configured("hive.stats.autogather", "true").lower() == "true"
        if self._metastore.features.hive is not Hive.HIVE4 or self.table.partition_keys or not gathers:
            return {}
        columns = {column.name: "true" for column in sorted(self.table.columns, key=lambda column: column.name)}
        accurate = {"BASIC_STATS": "true", "COLUMN_STATS": columns}
        return dict.fromkeys(_STATISTICS, "0") | {
            "COLUMN_STATS_ACCURATE": json.dumps(accurate, separators=(",", ":"), ensure_ascii=False)
        }

    def _location(self, table: HiveTable, database: interface.Database) -> str:
        """Return the URL of the table's directory: as given, or where the metastore will put it.

        Raises:
            UsageProblem: the given location is not absolute.
        """
        if self._given:
            if not _is_directory(table.location):
                raise UsageProblem(
                    f"cannot create a table at {printable(table.location)}",
                    "it is not the absolute URL of a directory",
                    "write it as hdfs://nameservice/path, s3a://bucket/path or file:///path",
                )
            return _in_store_of(database.location or "", table.location.rstrip("/"))
        folder = database.managed_location or database.location or ""
        if not database.managed_location and self._metastore.features.hive is Hive.HIVE4:
            # The location of a database is that of its external tables there.
            warehouse = self._metastore.configured("metastore.warehouse.dir", "").rstrip("/")
            below = "" if table.database == "default" else f"/{table.database}.db"
            folder = f"{warehouse}{below}" if warehouse else folder
        return _in_store_of(database.location or "", f"{folder.rstrip('/')}/{table.name}")

    def _refuse_files(self, location: str) -> None:
        """Refuse a location with anything in it: its files would be rows of the table.

        Raises:
            RefusedError: the location holds files.
        """
        try:
            fs, path = open_location(location, self._storage)
            is_empty = fs.stat(path).is_dir and not fs.list_dir(path).entries
        except NotFoundError:
            return
        if not is_empty:
            what = f"will not create {self.table.full_name}"
            raise RefusedError(
                what, f"{fs.display(path)} is not an empty directory, and its files would be rows", _FILES
            )


def _is_directory(url: str) -> bool:
    """Return whether a text is an absolute path or URL of a directory below the root of a store."""
    path = url if url.startswith("/") else (split_url(url) or ("", "", ""))[2]
    return path.startswith("/") and bool(path.strip("/")) and not {"..", "."} & {*path.split("/")} and url.isprintable()


def _in_store_of(url: str, place: str) -> str:
    """Return the URL of a place; one without a store is in that of another URL, as Hive's default store is."""
    parts = split_url(url)
    if split_url(place) or not parts or not place.startswith("/"):
        return place
    scheme, authority, _ = parts
    return f"{scheme}:{'//' if authority else ''}{authority}{place}"


def _fields(columns: Sequence[Column]) -> tuple[interface.FieldSchema, ...]:
    return tuple(interface.FieldSchema(column.name, column.type) for column in columns)
