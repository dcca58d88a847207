"""Use private names of PyIceberg: for position deletes, and for tables without a catalog.

PyIceberg's version is pinned for this module; tests/iceberg reads what it writes by PyIceberg and by Spark.
"""

from __future__ import annotations

import re
import struct
import uuid
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from pyiceberg.avro.decoder import BinaryDecoder
from pyiceberg.avro.reader import DoubleReader
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, ValidationException
from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
)
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import CommitTableResponse, Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata
from pyiceberg.table.update.snapshot import _FastAppendFiles

from acidctl.base.errors import AcidctlError, ConflictError, NotFoundError, RefusedError
from acidctl.storage.port import FileSystem, base_name

_HINT = "version-hint.text"
_METADATA = re.compile(r"v([0-9]{1,9})\.metadata\.json")


def _read_double(_: DoubleReader, decoder: BinaryDecoder) -> float:
    value: float = struct.unpack("<d", decoder.read(8))[0]
    return value


# PyIceberg's compiled decoder reads doubles as 32 bits: other values of a partition, by which readers choose files.
DoubleReader.read = _read_double  # type: ignore[method-assign, assignment]


class _DeleteManifest(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class RowDelta(_FastAppendFiles):
    """Data files and position deletes in one snapshot, which must follow the snapshot that it was made from."""

    def __init__(self, transaction: Transaction, operation: Operation, properties: dict[str, str]) -> None:
        super().__init__(operation, transaction, transaction._table.io, snapshot_properties=properties)
        self.deletes: Sequence[DataFile] = ()

    def _validate_concurrency(self) -> None:
        raise ValidationException("another snapshot was committed meanwhile")

    def _existing_manifests(self) -> list[ManifestFile]:
        return [*self._deletes(), *super()._existing_manifests()]

    def _deletes(self) -> list[ManifestFile]:
        if not self.deletes:
            return []
        spec = self._transaction.table_metadata.spec()
        output = self.new_manifest_output()
        with _DeleteManifest(spec, self.schema(), output, self._snapshot_id, self._compression) as writer:
            for file in self.deletes:
                writer.add(
                    ManifestEntry.from_args(
                        status=ManifestEntryStatus.ADDED,
                        snapshot_id=self._snapshot_id,
                        sequence_number=None,
                        file_sequence_number=None,
                        data_file=file,
                    )
                )
        return [writer.to_manifest_file()]

    def _summary(self, snapshot_properties: dict[str, str] | None = None) -> Summary:
        data = self._added_data_files
        self._added_data_files = [*data, *self.deletes]
        try:
            return super()._summary(snapshot_properties or {})
        finally:
            self._added_data_files = data


class DirectoryCatalog(NoopCatalog):
    """One Iceberg table in a directory, without a catalog: ``metadata/vN.metadata.json`` and a hint of the newest N.

    A version is made by a step that fails if it exists, so that of two commits only one succeeds: a renaming, or in a
    store without them the creation of an object, which appears whole.

    Args:
        io: reads and writes the metadata.

    Raises:
        RefusedError: the store has no such step.
    """

    def __init__(self, fs: FileSystem, path: str, io: FileIO) -> None:
        super().__init__("directory")
        self._fs, self._path, self._io = fs, path, io
        if not (fs.can_rename or fs.can_lock):
            what, why = f"will not write to {fs.display(path)}", "its store lets two commits at once replace each other"
            raise RefusedError(what, why, "name a table in a catalog: iceberg:CATALOG/db.table")

    def load_table(self, identifier: Any = None) -> Table:  # noqa: ARG002 - there is one table
        """Return the table as of its newest version.

        Raises:
            NoSuchTableError: the directory has no metadata.
            RefusedError: the metadata names another directory.
        """
        version = self._newest()
        if not version:
            raise NoSuchTableError(f"there is no Iceberg table at {self._fs.display(self._path)}")
        place = f"{self.url}/metadata/v{version}.metadata.json"
        metadata = FromInputFile.table_metadata(self._io.new_input(place))
        if metadata.location.rstrip("/") != self.url:  # its files would be written where the metadata says
            what, why = f"will not write to {self._fs.display(self._path)}", f"its metadata is of {metadata.location}"
            raise RefusedError(what, why, "name the directory by which the copy was made")
        return Table(("table",), metadata, place, self._io, self)

    def create(self, metadata: TableMetadata) -> Table:
        """Write the first version.

        Raises:
            ConflictError: there is one.
        """
        self._fs.make_dirs(f"{self._path}/metadata")
        self._write(1, metadata)
        return self.load_table()

    def commit_table(
        self,
        table: Table,  # noqa: ARG002 - there is one table
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> CommitTableResponse:
        """Write the next version, see :class:`pyiceberg.catalog.Catalog`."""
        current = self.load_table()
        for requirement in requirements:
            requirement.validate(current.metadata)
        version = _version(current.metadata_location)
        changed = update_table_metadata(current.metadata, updates, metadata_location=current.metadata_location)
        try:
            self._write(version + 1, changed)
        except ConflictError as error:
            raise CommitFailedException(error.what) from error
        place = f"{self.url}/metadata/v{version + 1}.metadata.json"
        return CommitTableResponse.model_validate({"metadata": changed, "metadata-location": place})

    @property
    def url(self) -> str:
        """Return the directory, with its scheme."""
        return url_of(self._fs, self._path)

    def _newest(self) -> int:
        try:
            listing = self._fs.list_dir(f"{self._path}/metadata")
        except NotFoundError:
            return 0
        return max((_version(entry.path) for entry in listing.entries), default=0)

    def _write(self, version: int, metadata: TableMetadata) -> None:
        folder = f"{self._path}/metadata"
        content = metadata.model_dump_json(exclude_none=True).encode()
        place = f"{folder}/v{version}.metadata.json"
        if self._fs.can_rename:  # else a reader, or a run after a kill, could find half of it
            written = f"{folder}/{uuid.uuid4()}.metadata.json"
            self._fs.write_bytes(written, content)
            try:
                self._fs.rename(written, place)
            except ConflictError:
                self._fs.remove_tree(written)
                raise
        else:
            self._fs.create_exclusive(place, content)
        with suppress(AcidctlError):  # Iceberg lists the directory if the hint is missing or old
            hint = f"{folder}/{_HINT}"
            if self._fs.exists(hint):
                self._fs.remove_tree(hint)
            self._fs.write_bytes(hint, str(version).encode())


def _version(path: str) -> int:
    """Return the number in the name of a metadata file; 0 for other names."""
    match = _METADATA.fullmatch(base_name(path))
    return int(match[1]) if match else 0


def url_of(fs: FileSystem, path: str) -> str:
    """Return a path as Iceberg's metadata names it, with its scheme."""
    shown = fs.display(path)
    return shown if "://" in shown else f"file://{shown}"
