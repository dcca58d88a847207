"""An Iceberg table that acidctl writes, by PyIceberg: found or made, its columns, its files, and new snapshots."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from pyiceberg import manifest, types
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationException,
)
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table import Table
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record

from acidctl.base.errors import AcidctlError, ConflictError, NotFoundError, RefusedError, StorageError, VerifyError
from acidctl.iceberg.column_changes import ColumnChange, is_alike
from acidctl.iceberg.fields import Field
from acidctl.iceberg.orc_files.metrics import Metrics
from acidctl.iceberg.private_api import DirectoryCatalog, RowDelta
from acidctl.orc.types import hive_type
from acidctl.rows.scan.partition_values import PartitionValue

SOURCE = "acidctl.source"
"""The table property that names the Hive table."""

SOURCE_ID = "acidctl.source-id"
"""The table property that differs if the Hive table was dropped and made again; empty without a metastore."""

DROPPED = "acidctl.dropped"
"""The table property with the names of the columns that were left out, as JSON."""

FORMAT = "acidctl.format"
"""The table property with the format of the data files, which catch-ups keep."""

_WRITTEN_AS = "write.format.default"

SEEN = "acidctl.seen"
"""The table property with the id of a snapshot, a digest of the files and write ids of the source that it shows, and
marks by which its partitions are known again."""

PROVEN = "acidctl.proven"
"""The table property with the snapshot and the schema, by their ids, that were last compared after the commit."""

PROOF = "acidctl.proof"
"""The property of a snapshot that says how it was compared: full, new since snapshot N, or none."""

WRITE_IDS = "acidctl.write-ids"
"""The property of a snapshot that holds the write-id list of the source."""

TAG = "acidctl-cutover"
"""The tag of the snapshot with which the copy took the name of the Hive table."""

FILE_PATH, POSITION = 2147483546, 2147483545
"""The field ids of position delete files."""

_SIMPLE = {
    "boolean": types.BooleanType(), "int": types.IntegerType(), "long": types.LongType(), "float": types.FloatType(),
    "double": types.DoubleType(), "string": types.StringType(), "binary": types.BinaryType(), "date": types.DateType(),
    "timestamp": types.TimestampType(), "timestamptz": types.TimestamptzType(),
}  # fmt: skip

_LARGE = 64 << 20
"""Bytes of a data file."""

Values = tuple[Any, ...]
"""The values of a partition, as manifests hold them."""


def _type_of(field: Field) -> types.IcebergType:
    if field.kind == "decimal":
        return types.DecimalType(field.precision, field.scale)
    children = [_type_of(child) for child in field.children]
    ids = [child.id for child in field.children]
    if field.kind == "struct":
        return types.StructType(*map(_nested, field.children))
    if field.kind == "list":
        return types.ListType(ids[0], children[0], element_required=False)
    if field.kind == "map":
        return types.MapType(ids[0], children[0], ids[1], children[1], value_required=False)
    return _SIMPLE[field.kind]


def _nested(field: Field) -> types.NestedField:
    return types.NestedField(field.id, field.name, _type_of(field), required=False)


def _field_of(id_: int, name: str, kind: types.IcebergType) -> Field:
    if isinstance(kind, types.DecimalType):
        return Field(id_, name, "decimal", kind.precision, kind.scale)
    children: tuple[Field, ...] = ()
    if isinstance(kind, types.StructType):
        children = tuple(_field_of(field.field_id, field.name, field.field_type) for field in kind.fields)
        return Field(id_, name, "struct", children=children)
    if isinstance(kind, types.ListType):
        return Field(id_, name, "list", children=(_field_of(kind.element_id, "element", kind.element_type),))
    if isinstance(kind, types.MapType):
        children = _field_of(kind.key_id, "key", kind.key_type), _field_of(kind.value_id, "value", kind.value_type)
        return Field(id_, name, "map", children=children)
    known = next((word for word, simple in _SIMPLE.items() if simple == kind), str(kind))
    return Field(id_, name, known)


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """A data file of the current snapshot.

    Attributes:
        url: its path, as the manifest has it.
        values: of its partition.
        delete_urls: the paths of the files with deletes of its rows.
    """

    url: str
    values: Values
    delete_urls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NewFile:
    """A data file to add."""

    url: str
    values: Values
    metrics: Metrics


@dataclass(frozen=True, slots=True)
class NewDeletes:
    """A file with the positions of deleted rows of one data file, to add."""

    url: str
    of: str
    values: Values
    rows: int
    length: int


class Target:
    """An Iceberg table that is written.

    Attributes:
        columns: without partition columns, in the order of the table.
        partition: the columns that are partition keys.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self._read_columns()

    def _read_columns(self) -> None:
        schema, keys = self.table.schema(), {field.source_id for field in self.table.spec().fields}
        every = [_field_of(field.field_id, field.name, field.field_type) for field in schema.fields]
        self.columns = tuple(field for field in every if field.id not in keys)
        self.partition = tuple(field for field in every if field.id in keys)

    @property
    def source(self) -> tuple[str, str]:
        """Return the name and the id of the Hive table that it is a copy of; empty if acidctl did not make it."""
        return self.table.properties.get(SOURCE, ""), self.table.properties.get(SOURCE_ID, "")

    @property
    def format(self) -> str:
        """Return the format of the data files; empty if there was never one, and nobody chose a format."""
        chosen = self.table.properties.get(FORMAT, "" if self.is_empty else "orc")
        return chosen if chosen in ("", "parquet") else "orc"

    def choose_format(self, kind: str) -> None:
        """Set :attr:`format`, also for the files of other writers.

        Raises:
            ConflictError: somebody else changed the table meanwhile.
            StorageError: the catalog fails.
        """
        with self._changing("cannot set the format of the copy"), self.table.transaction() as transaction:
            transaction.set_properties({FORMAT: kind, _WRITTEN_AS: kind})

    @property
    def write_ids(self) -> str | None:
        """Return the write-id lists that the current snapshot shows; None if acidctl did not make the snapshot."""
        return self._summary(WRITE_IDS)

    def _summary(self, name: str) -> str | None:
        snapshot = self.table.current_snapshot()
        return None if snapshot is None or snapshot.summary is None else snapshot.summary.get(name)

    @property
    def is_proven(self) -> bool:
        """Return whether all rows of the current snapshot were compared with these columns, in this run or before."""
        snapshot, metadata = self.table.current_snapshot(), self.table.metadata
        if snapshot is None:
            return False
        of_commit = snapshot.schema_id == metadata.current_schema_id and (self._summary(PROOF) or "none") != "none"
        return of_commit or self.table.properties.get(PROVEN) == self._proven_state

    @property
    def seen(self) -> tuple[str, str]:
        """Return the digest of what the copy shows, and the marks of partitions; empty if they are not known.

        They are not after a rollback.
        """
        snapshot, _, rest = self.table.properties.get(SEEN, "").partition(" ")
        digest, _, marks = rest.partition(" ") if snapshot == str(self.snapshot_id) else ("", "", "")
        return digest, marks

    def remember(self, seen: tuple[str, str]) -> None:
        """Set :attr:`seen`, without a snapshot; if somebody else commits at the same time, it stays as it is."""
        self._set({SEEN: " ".join((str(self.snapshot_id), *seen))})

    def remember_proof(self) -> None:
        """Note that all rows of the current snapshot were compared; see :meth:`remember`."""
        if not self.is_proven:
            self._set({PROVEN: self._proven_state})

    @property
    def _proven_state(self) -> str:
        return f"{self.snapshot_id} {self.table.metadata.current_schema_id}"

    def _set(self, properties: dict[str, str]) -> None:
        with suppress(CommitFailedException, ConflictError), self.table.transaction() as transaction:
            transaction.set_properties(properties)

    @property
    def snapshot_id(self) -> int | None:
        """Return the id of the current snapshot; None if it has none yet."""
        snapshot = self.table.current_snapshot()
        return snapshot.snapshot_id if snapshot else None

    @property
    def dropped(self) -> tuple[str, ...]:
        """Return the names of the columns of the Hive table that were left out."""
        return tuple(json.loads(self.table.properties.get(DROPPED, "[]")))

    def change_columns(self, changes: Sequence[ColumnChange]) -> None:
        """Add, rename and widen columns.

        Raises:
            ConflictError: somebody else changed the table meanwhile.
            StorageError: the catalog fails.
        """
        with self._changing("cannot change the columns of the copy"), self.table.update_schema() as update:
            for change in changes:
                if change.old is None:
                    update.add_column(change.new.name, _type_of(change.new))
                    continue
                if not is_alike(change.old, change.new):
                    update.update_column(change.old.name, _type_of(change.new))
                if change.old.name != change.new.name:
                    update.rename_column(change.old.name, change.new.name)
        self._read_columns()

    @property
    def metadata(self) -> str:
        """Return the URL of its newest metadata, as it was loaded or committed last."""
        return self.table.metadata_location

    @property
    def is_as_tagged(self) -> bool:
        """Return whether the current snapshot is the one of the cut-over, or both have none."""
        tag = self.table.metadata.refs.get(TAG)
        return self.snapshot_id == (tag.snapshot_id if tag else None)

    @property
    def is_tagged(self) -> bool:
        """Return whether it has the tag of a cut-over; an expiry may have removed it."""
        return TAG in self.table.metadata.refs

    def tag(self) -> None:
        """Tag the current snapshot as that of the cut-over.

        Raises:
            ConflictError: somebody else has committed meanwhile.
        """
        with self._changing("cannot tag the snapshot"), self.table.manage_snapshots() as changes:
            if self.is_tagged:
                changes.remove_tag(TAG)
            if self.snapshot_id is not None:
                changes.create_tag(self.snapshot_id, TAG)

    def return_to_tag(self) -> None:
        """Make the snapshot of the cut-over the current one again.

        Raises:
            ConflictError: somebody else has committed meanwhile.
        """
        with self._changing("cannot discard the snapshots"), self.table.manage_snapshots() as changes:
            changes.set_current_snapshot(ref_name=TAG)

    @contextmanager
    def _changing(self, what: str) -> Iterator[None]:
        with _asking(what):
            try:
                yield
            except (CommitFailedException, ValidationException) as error:
                why = str(error)
                raise ConflictError("the copy was changed by somebody else meanwhile", why, "run it again") from error

    @property
    def location(self) -> str:
        """Return the URL of its directory."""
        return self.table.location()

    @property
    def is_empty(self) -> bool:
        """Return whether it has no snapshot yet."""
        return self.table.current_snapshot() is None

    def files(self) -> Iterator[CopiedFile]:
        """Yield the data files of the current snapshot."""
        if self.is_empty:
            return
        for task in self.table.scan().plan_files():
            deletes = sorted(file.file_path for file in task.delete_files)
            partition = task.file.partition
            values = tuple(_known(partition[at]) for at in range(len(self.partition)))
            yield CopiedFile(task.file.file_path, values, tuple(deletes))

    def files_of_all_snapshots(self) -> set[str]:
        """Return the paths of all files of all snapshots, as the manifests have them.

        Raises:
            StorageError: a manifest cannot be read.
        """
        io = self.table.io
        with _asking("cannot read the snapshots of the copy"):
            snapshots = self.table.metadata.snapshots
            manifests = {made.manifest_path: made for snapshot in snapshots for made in snapshot.manifests(io)}
            entries = (entry for made in manifests.values() for entry in made.fetch_manifest_entry(io))
            return {entry.data_file.file_path for entry in entries}

    def read(self, names: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the rows of the current snapshot as PyIceberg reads them; it raises errors of its own.

        PyIceberg holds what is read of a file in memory: large files are read column by column.

        Args:
            names: the columns; a batch may have one of them, and further batches the others.

        Returns:
            The path of each file with its rows, in their order.
        """
        table, log = self.table, logging.getLogger("pyiceberg.io.pyarrow")
        level = log.level
        log.setLevel(logging.ERROR)  # it warns of every batch that has nanoseconds
        try:
            for task in table.scan().plan_files():
                is_large = task.file.file_size_in_bytes > _LARGE
                for group in [[name] for name in names] if is_large else [names]:
                    schema = table.schema().select(*group)
                    scan = ArrowScan(table.metadata, table.io, schema, AlwaysTrue())
                    for batch in scan.to_record_batches([task]):
                        yield task.file.file_path, batch
        finally:
            log.setLevel(level)

    def commit(
        self,
        files: Iterable[NewFile],
        deletes: Iterable[NewDeletes],
        properties: Mapping[str, str],
        seen: tuple[str, str],
        check: Callable[[Target], None] = lambda _: None,
    ) -> int:
        """Commit one snapshot, and return its id.

        Args:
            properties: of the snapshot: the write-id lists of the source, and how the rows were compared.
            seen: see :attr:`seen`.
            check: called with the table as it is going to be; an error stops the commit.

        Raises:
            ConflictError: another snapshot was committed since the table was loaded; this one was not.
            VerifyError: the rows differ, as `check` found; it may raise other errors, too.
            StorageError: the catalog did not say whether it was committed.
        """
        spec = self.table.spec().spec_id
        operation = Operation.APPEND if self.is_empty else Operation.OVERWRITE
        is_checked = False
        try:
            with self.table.transaction() as transaction:
                delta = RowDelta(transaction, operation, dict(properties))
                transaction.set_properties({SEEN: " ".join((str(delta.snapshot_id), *seen))})
                delta.deletes = [_delete_file(file, spec) for file in deletes]
                for file in files:
                    delta.append_data_file(_data_file(file, spec, self.format))
                delta.commit()
                now = self.table
                check(Target(Table(now.name(), transaction.table_metadata, now.metadata_location, now.io, now.catalog)))
                is_checked = True
        except (ConflictError, RefusedError, VerifyError):
            raise
        except (CommitFailedException, ValidationException) as error:
            raise ConflictError(
                f"the copy {'.'.join(self.table.name())} was changed by somebody else meanwhile",
                str(error),
                "run it again: it compares both tables again",
            ) from error
        except Exception as error:
            if isinstance(error, AcidctlError) and not is_checked:
                raise
            what = "nobody knows whether the copy has the new snapshot"
            why = f"{type(error).__name__}: {error}"
            raise StorageError(what, why, "run it again: it compares both tables again") from error
        return delta.snapshot_id


def hive_columns(schema: Schema) -> list[tuple[str, str]]:
    """Return the name and Hive's type of each column."""
    fields = (_field_of(field.field_id, field.name, field.field_type) for field in schema.fields)
    return [(field.name, hive_type(field.stored)) for field in fields]


@contextmanager
def _asking(what: str) -> Iterator[None]:
    """Raise StorageError for whatever a catalog fails with: each has errors of its own."""
    try:
        yield
    except (AcidctlError, NoSuchTableError, NoSuchNamespaceError, TableAlreadyExistsError):
        raise
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        hint = "look at the catalog; then run it again, which compares both tables again"
        raise StorageError(what, why, hint) from error


def find_target(catalog: Catalog, name: str) -> Target | None:
    """Return a table; None if it does not exist.

    Raises:
        StorageError: the catalog does not answer, or the metadata cannot be read.
    """
    with _asking("cannot look for the Iceberg table"):
        try:
            return Target(catalog.load_table(name))
        except (NoSuchTableError, NoSuchNamespaceError):
            return None


def create_target(
    catalog: Catalog,
    name: str,
    fields: tuple[Sequence[Field], Sequence[Field]],
    location: str | None,
    properties: Mapping[str, str],
) -> Target:
    """Create an empty table of format version 2; its columns get ids of PyIceberg's choice.

    Args:
        fields: its columns, and those that are partition keys.
        location: its directory; None leaves the choice to the catalog.
        properties: further ones, by which it is known again.

    Raises:
        ConflictError: somebody else has just made it.
        NotFoundError: the catalog has no such namespace.
        StorageError: the catalog fails.
    """
    columns, partition = fields
    schema = assign_fresh_schema_ids(Schema(*map(_nested, (*columns, *partition))))
    keys = (schema.find_field(field.name) for field in partition)
    spec = PartitionSpec(
        *(PartitionField(key.field_id, 1000 + at, IdentityTransform(), key.name) for at, key in enumerate(keys))
    )
    properties = {
        **properties,
        "format-version": "2",
        _WRITTEN_AS: properties.get(FORMAT, "orc"),
        "schema.name-mapping.default": schema.name_mapping.model_dump_json(),
    }
    try:
        with _asking("cannot make the Iceberg table"):
            if isinstance(catalog, DirectoryCatalog):
                made = new_table_metadata(schema, spec, UNSORTED_SORT_ORDER, catalog.url, properties)
                return Target(catalog.create(made))
            return Target(catalog.create_table(name, schema, location, spec, properties=properties))
    except TableAlreadyExistsError as error:
        raise ConflictError(f"the table {name} exists", str(error), "run it again") from error
    except NoSuchNamespaceError as error:
        raise NotFoundError(f"cannot make the table {name}", str(error), "create the namespace first") from error


def values_of(keys: Sequence[Field], values: Mapping[str, PartitionValue]) -> Values:
    """Return the values of a partition, as manifests hold them, by the lower-case names of its columns."""
    return tuple(_stored(values[key.name], key.kind) for key in keys)


def _known(value: Any) -> Any:
    """Return a value of a partition that equals itself: the same NaN for every one."""
    return math.nan if isinstance(value, float) and math.isnan(value) else value


def _stored(value: PartitionValue, kind: str) -> Any:
    if isinstance(value, float):
        with np.errstate(over="ignore"):  # Hive has Infinity there, too
            return _known(float(np.float32(value)) if kind == "float" else value)
    if value is None or kind not in ("date", "timestamp"):
        return value
    if kind == "date":
        assert isinstance(value, date)
        return (value - date(1970, 1, 1)).days
    if isinstance(value, np.datetime64):
        return int(value.astype("datetime64[us]").astype(np.int64))
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    assert isinstance(moment, datetime)
    past = moment.replace(tzinfo=None) - datetime(1970, 1, 1)
    return (past.days * 86400 + past.seconds) * 1_000_000 + past.microseconds


def _data_file(file: NewFile, spec: int, kind: str) -> manifest.DataFile:
    found = file.metrics
    made = manifest.DataFile.from_args(
        content=manifest.DataFileContent.DATA,
        file_path=file.url,
        file_format=manifest.FileFormat(kind.upper()),
        partition=Record(*file.values),
        record_count=found.rows,
        file_size_in_bytes=found.length,
        column_sizes=found.sizes,
        value_counts=found.values,
        null_value_counts=found.nulls,
        nan_value_counts=None,
        lower_bounds=found.lower,
        upper_bounds=found.upper,
        split_offsets=found.offsets,
        sort_order_id=None,
    )
    made.spec_id = spec
    return made


def _delete_file(file: NewDeletes, spec: int) -> manifest.DataFile:
    bound = {FILE_PATH: file.of.encode()}  # the whole path in both bounds: Java's planner takes it for this file alone
    made = manifest.DataFile.from_args(
        content=manifest.DataFileContent.POSITION_DELETES,
        file_path=file.url,
        file_format=manifest.FileFormat.PARQUET,
        partition=Record(*file.values),
        record_count=file.rows,
        file_size_in_bytes=file.length,
        column_sizes=None,
        value_counts=None,
        null_value_counts=None,
        nan_value_counts=None,
        lower_bounds=bound,
        upper_bounds=bound,
        split_offsets=None,
        sort_order_id=None,
    )
    made.spec_id = spec
    return made
