"""The definition of a new table: its columns, from text or from a schema of Arrow, and everything that is checked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from acidctl.acid.bucket import MAX_BUCKET
from acidctl.acid.listing import TableType
from acidctl.base.errors import AcidctlError, BadDataError, UsageProblem
from acidctl.base.nearest import did_you_mean
from acidctl.metastore.tables import Column, HiveTable, StoredAs
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.tail import read_tail
from acidctl.orc.types import OrcType, columns_of, hive_type, like_arrow, row_of
from acidctl.storage.registry import open_location
from acidctl.writing.insert_only.plain_files import INPUTS, format_reasons
from acidctl.writing.rows.bucket_hashes import VERSIONS, check_bucket_type
from acidctl.writing.rows.partition_values import KINDS
from acidctl.writing.rows.sources import FileSource, form_of

SERDES = {
    "ORC": "org.apache.hadoop.hive.ql.io.orc.OrcSerde",
    "Parquet": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    "text": "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
}
"""Hive's class for rows of each format that acidctl writes."""

_VIRTUAL = frozenset((
    "block__offset__inside__file", "input__file__name", "row__offset__inside__block", "raw__data__size", "row__id",
    "grouping__id", "row__is__deleted", "partition__spec__id", "partition__hash", "file__path", "row__position",
    "partition__projection", "snapshot__id",
))  # fmt: skip
"""Columns that Hive adds to every table."""

_MANAGED = (
    "transactional", "transactional_properties", "external", "bucketing_version", "comment", "storage_handler",
    "table_type", "column_stats_accurate", "numrows", "numfiles", "totalsize", "rawdatasize", "transient_lastddltime",
)  # fmt: skip
"""Properties that follow from the definition, or belong to Hive."""

_OF_OTHERS = ("spark.sql.", "orc.encrypt", "orc.mask")

NOT_WRITTEN = ("uniontype", "timestamp with local time zone")
"""Types that acidctl has never written and then read back with Hive."""

_LONGEST = {"char": 255, "varchar": 65535}
_NAME = re.compile(r"[a-z0-9_]{1,128}", re.ASCII)
_NOT_IN_NAMES = re.compile(r"[.,:`\x00-\x1f\x7f]")
_FIELD_NAME = re.compile(r"\w+", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Definition:
    """The definition of a table, as a user gave it.

    Attributes:
        columns: its columns, those of `partitioned_by` too if they come from a file.
        partitioned_by: the partition keys as in CREATE TABLE, ``day date, n int``.
        clustered_by: the columns whose hash decides the bucket of a row.
        stored_as: ORC, Parquet or text.
        location: a URL; empty for the directory of the database.
    """

    columns: OrcType
    partitioned_by: str = ""
    clustered_by: Sequence[str] = ()
    buckets: int = 0
    table_type: TableType = TableType.FULL_ACID
    stored_as: str = "ORC"
    location: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str = ""

    def table(self, database: str, name: str, owner: str) -> HiveTable:
        """Return the table that it defines, with names in lower case, as Hive stores them.

        Raises:
            UsageProblem: Hive refuses such a table.
        """
        keys = parse_columns(self.partitioned_by, "--partitioned-by") if self.partitioned_by else row_of(())
        key_names = [key.lower() for key in keys.names]
        row = row_of((column, kind) for column, kind in self.columns.fields() if column.lower() not in key_names)
        if not row.names:
            raise UsageProblem("the table has no column", "only partition keys are left", "give at least one column")
        _check_names(name, (*row.names, *keys.names))
        for column, kind in (*row.fields(), *keys.fields()):
            _check_type(column, kind)
        for column, kind in keys.fields():
            if kind.kind not in KINDS:
                why = f"acidctl writes partitions by {', '.join(KINDS)}"
                raise UsageProblem(f"{column} {hive_type(kind)} cannot be a partition key", why, "choose another")
        serde = SERDES[self.stored_as]
        table = HiveTable(
            database,
            name,
            self.location,
            self.table_type,
            _columns(row),
            _columns(keys),
            self._parameters(),
            owner,
            self.buckets,
            tuple(column.lower() for column in self.clustered_by),
            (),
            StoredAs(self.stored_as, serde, INPUTS[self.stored_as], columns=_columns(row)),
        )
        if self.table_type is TableType.FULL_ACID and self.stored_as != "ORC":
            why = f"a table of full ACID is ORC, not {self.stored_as}"
            raise UsageProblem("such a table does not exist", why, "give --type insert_only, too")
        for why, _ in format_reasons(table):
            raise UsageProblem("acidctl could not write to such a table", why, "leave the property out")
        self._check_buckets(row)
        return table

    def _parameters(self) -> dict[str, str]:
        for key in self.properties:
            if key.lower() in _MANAGED or key.startswith(_OF_OTHERS):
                why = "it follows from the definition, or acidctl could not write to the table"
                raise UsageProblem(f"--property {key} cannot be set", why, "leave it out; --help shows the options")
        given = {**self.properties, "transactional": "true", "bucketing_version": str(max(VERSIONS))}
        if self.table_type is TableType.INSERT_ONLY:
            given["transactional_properties"] = "insert_only"
        return given | ({"comment": self.comment} if self.comment else {})

    def _check_buckets(self, row: OrcType) -> None:
        if bool(self.clustered_by) != bool(self.buckets):
            given, other = ("--clustered-by", "--buckets") if self.clustered_by else ("--buckets", "--clustered-by")
            why = "buckets need columns and a number"
            raise UsageProblem(f"{given} has no effect alone", why, f"give {other}, too")
        if self.buckets > MAX_BUCKET + 1:
            why = f"a row's id has twelve bits for the bucket: {MAX_BUCKET + 1:,} are possible"
            raise UsageProblem(f"{self.buckets:,} buckets are too many", why, "choose fewer")
        types = {name.lower(): kind for name, kind in row.fields()}
        for name in self.clustered_by:
            if name.lower() not in types:
                raise UsageProblem(f"there is no column {name} to cluster by", "", did_you_mean(name, list(types)))
            try:
                check_bucket_type(types[name.lower()], max(VERSIONS))
            except AcidctlError as error:
                raise UsageProblem(f"cannot cluster by {name}", str(error), error.hint) from error
        _refuse_twice(self.clustered_by, "--clustered-by")


def parse_columns(text: str, option: str) -> OrcType:
    """Return columns from text as in CREATE TABLE, ``id bigint, name string``.

    Raises:
        UsageProblem: the text has another form, or an unknown type.
    """
    try:
        row = columns_of(text)
    except BadDataError as error:
        why = "it is not a list of columns with types of Hive"
        raise UsageProblem(f"cannot use {option} {text[:200]!r}", why, _FORM) from error
    if not row.names:
        raise UsageProblem(f"{option} names no column", "", _FORM)
    return row


_FORM = "write NAME TYPE, NAME TYPE: 'id bigint, name string, price decimal(10,2)'"


def columns_of_file(source: FileSource) -> OrcType:
    """Return the columns of one Parquet, ORC or Arrow file, from its footer alone.

    Raises:
        UsageProblem: the file is of another format, or has a type that acidctl does not write.
        BadDataError: the file is damaged.
    """
    (path,) = source.paths
    form = form_of(path, source.storage)
    if form == "orc":  # Arrow does not know the lengths of CHAR and VARCHAR
        return read_tail(ByteSource(*open_location(path, source.storage))).schema.row_type
    if form not in ("parquet", "arrow"):
        what = f"cannot take the columns of {path}"
        raise UsageProblem(what, f"{form} has no types of columns", "give the columns as --schema")
    return columns_like(next(source({})).rows.schema)


def columns_like(schema: pa.Schema) -> OrcType:
    """Return the columns that hold every value of an Arrow schema.

    Raises:
        UsageProblem: Hive has no type that acidctl writes for one of them.
    """
    return row_of((column.name, _type_like(column.name, column.type)) for column in schema)


def _type_like(name: str, kind: pa.DataType) -> OrcType:
    found = like_arrow(kind)
    if found and not any(node.kind in NOT_WRITTEN for node in found.walk()):
        return found
    for inner in kind if pa.types.is_struct(kind) else ():
        _type_like(f"{name}.{inner.name}", inner.type)  # names the field
    raise UsageProblem(
        f"column {name} has the type {kind} in the file",
        "no type of Hive that acidctl writes holds all its values",
        "convert it in the file, or give the columns as --schema",
    )


def _columns(row: OrcType) -> tuple[Column, ...]:
    return tuple(Column(name.lower(), hive_type(kind)) for name, kind in row.fields())


def _check_names(table: str, columns: Sequence[str]) -> None:
    if not _NAME.fullmatch(table):
        why = "names of tables have letters without accents, digits and _, at most 128"
        raise UsageProblem(f"{table} cannot be the name of a table", why, "choose another name")
    for name in columns:
        if name.lower() in _VIRTUAL:
            raise UsageProblem(f"{name} cannot be a column", "Hive adds a column of this name itself", "rename it")
        if not name.strip() or _NOT_IN_NAMES.search(name):
            why = "names are not empty, and have no dot, comma, colon, back quote or control character"
            raise UsageProblem(f"{name!r} cannot be a column", why, "rename it")
    _refuse_twice(columns, "the table")


def _refuse_twice(names: Sequence[str], where: str) -> None:
    for name, count in Counter(name.lower() for name in names).items():
        if count > 1:
            raise UsageProblem(f"{where} has {name} twice", "Hive's names have no case", "rename one, or leave it out")


def _check_type(name: str, kind: OrcType) -> None:
    for node in kind.walk():
        if node.kind in NOT_WRITTEN:
            why = f"acidctl does not write {node.kind}"
            raise UsageProblem(f"column {name} cannot be {hive_type(kind)}", why, "create the table with Hive")
        if node.max_length > _LONGEST.get(node.kind, node.max_length):
            why = f"a {node.kind} has at most {_LONGEST[node.kind]} characters"
            raise UsageProblem(f"column {name} cannot be {hive_type(node)}", why, "take STRING, or a shorter one")
        if node.kind == "map" and node.children[0].children:
            raise UsageProblem(f"column {name} cannot be {hive_type(kind)}", "keys of a MAP are plain values", "")
        for each in _bad_fields(node):
            why = "names inside a STRUCT have letters without accents, digits and _, each once in any case"
            raise UsageProblem(f"column {name} cannot have a field {each!r}", why, "rename it")


def _bad_fields(node: OrcType) -> Iterator[str]:
    lower = [name.lower() for name in node.names]
    yield from (name for name in node.names if not _FIELD_NAME.fullmatch(name) or lower.count(name.lower()) > 1)
    if node.kind == "struct" and not node.names:
        yield ""
