"""The metastore's description of a location: its columns, the layout of text files, and its owners' properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from acidctl.acid.compaction_kind import Hive
from acidctl.acid.listing import TableType
from acidctl.acid.triggers import NO_AUTO, Thresholds

if TYPE_CHECKING:
    from acidctl.metastore.tables import HivePartition, HiveTable, StoredAs

TEXT, PARQUET = "text", "Parquet"

_TEXT_INPUT = "org.apache.hadoop.mapred.TextInputFormat"


@dataclass(frozen=True, slots=True)
class TextLayout:
    """The layout by which Hive's LazySimpleSerDe splits a line into columns.

    Attributes:
        columns: name and type, in the order of the fields; those of the partition, which may be fewer than the table's.
        separator: the byte between fields.
        escape: the byte before a byte that is data, not a delimiter; None if there is no escaping.
        null: the text that stands for NULL.
        nested: the bytes between the items of a collection, and between a key and its value.
        header, footer: number of lines at the beginning and the end of a file that are not rows.
        problem: why acidctl cannot read the files; empty if it can.
    """

    columns: tuple[tuple[str, str], ...]
    separator: int = 1
    escape: int | None = None
    null: str = "\\N"
    nested: tuple[int, int] = (2, 3)
    header: int = 0
    footer: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Declared:
    """The metastore's description of the files of one location.

    Attributes:
        columns: name and type (as Hive spells it) of each column of the table.
        text: the layout of text files; None for other formats.
        hive: the version of Hive that reads the table; None if it is not known.
        by_place: by its properties columns of files are found by position, not by name.
        any_case: by its properties the case of names in ORC files does not count.
        levels: down to which level Hive 4 finds fields in ORC files by position: 1 for the columns of the table alone.
    """

    columns: tuple[tuple[str, str], ...]
    format: str
    text: TextLayout | None = None
    hive: Hive | None = None
    by_place: bool = False
    any_case: bool = False
    levels: int = 1


def declared_by(table: HiveTable, partition: HivePartition | None = None, hive: Hive | None = None) -> Declared:
    """Return what a metastore says about the files of a table without partitions, or of one partition."""
    stored = partition.stored_as if partition and partition.stored_as.format else table.stored_as
    columns = tuple((column.name, column.type) for column in table.columns)
    is_text = table.table_type is TableType.INSERT_ONLY and stored.format == TEXT
    own = {**table.stored_as.properties, **table.parameters}  # those of a partition alone do not count
    by_place = "parquet.column.index.access" if stored.format == PARQUET else "orc.force.positional.evolution"
    levels = _count(own, "orc.force.positional.evolution.level") if table.table_type is TableType.INSERT_ONLY else 1
    return Declared(
        columns,
        stored.format,
        _text_layout(table, stored, own) if is_text else None,
        hive,
        by_place=own.get(by_place, "").lower() == "true",
        any_case=own.get("orc.schema.evolution.case.sensitive", "").lower() == "false",
        levels=max(levels, 1),
    )


def _text_layout(table: HiveTable, stored: StoredAs, own: Mapping[str, str]) -> TextLayout:
    # A partition inherits what it does not set from its table, whose own properties count before those of the SerDe.
    properties = {**table.stored_as.properties, **stored.properties, **table.parameters}
    fields = properties.get("field.delim", properties.get("serialization.format"))
    items = properties.get("collection.delim", properties.get("colelction.delim"))  # Hive 4's name, and Hive 3's
    escape = properties.get("escape.delim")
    return TextLayout(
        columns=tuple((column.name, column.type) for column in stored.columns or table.columns),
        separator=_byte(fields, 1),
        escape=None if escape is None else _byte(escape, ord("\\")),
        null=properties.get("serialization.null.format", "\\N"),
        nested=(_byte(items, 2), _byte(properties.get("mapkey.delim"), 3)),
        header=_count(own, "skip.header.line.count"),
        footer=_count(own, "skip.footer.line.count"),
        problem=_unsupported_property(stored, properties),
    )


def _unsupported_property(stored: StoredAs, properties: Mapping[str, str]) -> str:
    if stored.input_format not in ("", _TEXT_INPUT):
        return f"its input format is {stored.input_format}"
    if properties.get("serialization.encoding", "UTF-8").upper().replace("-", "") != "UTF8":
        return f"its encoding is {properties['serialization.encoding']}"
    if properties.get("timestamp.formats"):
        return f"it has timestamp formats of its own: {properties['timestamp.formats']}"
    if properties.get("line.delim", "\n") not in ("\n", "10"):
        return "its lines do not end with a line feed"
    return ""


def _byte(text: str | None, usual: int) -> int:
    """Read a delimiter as Hive does: a number from -128 to 127, else the first character."""
    if not text:
        return usual
    try:
        number = int(text)
    except ValueError:
        return text.encode("utf-16-le")[0]
    return number & 255 if -128 <= number <= 127 else text.encode("utf-16-le")[0]


def _count(properties: Mapping[str, str], name: str) -> int:
    text = properties.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


NO_CLEANUP = "no_cleanup"
"""While this property is true, obsolete files are kept."""

_QUEUES = ("hive.compactor.job.queue", "mapreduce.job.queuename", "mapred.job.queue.name")
_JOB = "compactor."
_POOL = "hive.compactor.worker.pool"


@dataclass(frozen=True, slots=True)
class TableProperties:
    """The properties that apply to one location.

    Attributes:
        auto_off_by: ``table`` or ``database`` if that turns automatic compaction off; else empty.
        no_cleanup_by: ``table``, ``partition`` or ``database`` if that forbids cleaning; else empty.
        job: properties of the job that compacts, without their prefix.
        pool: the worker pool that compacts it; empty for workers without a pool.
    """

    thresholds: Thresholds = field(default_factory=Thresholds)
    auto_off_by: str = ""
    no_cleanup_by: str = ""
    job: Mapping[str, str] = field(default_factory=dict)
    pool: str = ""

    @property
    def queue(self) -> str:
        """Return the YARN queue for the job that compacts; empty if none is set."""
        return next((self.job[key] for key in _QUEUES if self.job.get(key)), "")


def table_properties(
    table: Mapping[str, str],
    database: Mapping[str, str] | None = None,
    partition: Mapping[str, str] | None = None,
    *,
    database_wins: bool = True,
) -> TableProperties:
    """Return what the properties of a table, its database and a partition set.

    Args:
        database_wins: the database's setting of automatic compaction overrides the table's, as from Hive 4 on. Before,
            a database can only turn it off, which does no harm.
    """
    by_database, by_table = _auto_is_off(database or {}), _auto_is_off(table)
    by_table = by_table and (by_database is None or not database_wins)
    every = (("table", table), ("partition", partition or {}), ("database", database or {}))
    return TableProperties(
        thresholds=Thresholds().with_known(table),
        auto_off_by="database" if by_database else "table" if by_table else "",
        no_cleanup_by=next((name for name, properties in every if is_kept(properties)), ""),
        job={key.removeprefix(_JOB): value for key, value in table.items() if key.startswith(_JOB)},
        pool=table.get(_POOL) or (database or {}).get(_POOL, ""),
    )


def is_kept(properties: Mapping[str, str]) -> bool:
    """Return whether these properties forbid cleaning."""
    return properties.get(NO_CLEANUP, "").lower() == "true"


def _auto_is_off(properties: Mapping[str, str]) -> bool | None:
    """Return whether these properties turn automatic compaction off; None if they do not set it."""
    return next((properties[key].lower() == "true" for key in NO_AUTO if key in properties), None)
