"""What a metastore says about the files of one location: the table's columns, and how lines of text hold them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from acidctl.acid.compaction_kind import Hive
from acidctl.acid.listing import TableType

if TYPE_CHECKING:
    from acidctl.metastore.tables import HivePartition, HiveTable, StoredAs

TEXT, PARQUET = "text", "Parquet"

_TEXT_INPUT = "org.apache.hadoop.mapred.TextInputFormat"


@dataclass(frozen=True, slots=True)
class TextLayout:
    """How Hive's LazySimpleSerDe splits a line into columns.

    Attributes:
        columns: name and type, in the order of the fields; those of the partition, which may be fewer than the table's.
        separator: the byte between fields.
        escape: the byte before a byte that is data, not a delimiter; None if there is no escaping.
        null: the text that stands for NULL.
        header, footer: number of lines at the beginning and the end of a file that are not rows.
        problem: why acidctl cannot read the files; empty if it can.
    """

    columns: tuple[tuple[str, str], ...]
    separator: int = 1
    escape: int | None = None
    null: str = "\\N"
    header: int = 0
    footer: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Declared:
    """What a metastore says about the files of one location.

    Attributes:
        columns: name and type (as Hive spells it) of each column of the table.
        text: the layout of text files; None for other formats.
        hive: the version of Hive that reads the table; None if it is not known.
    """

    columns: tuple[tuple[str, str], ...]
    format: str
    text: TextLayout | None = None
    hive: Hive | None = None


def declared_by(table: HiveTable, partition: HivePartition | None = None, hive: Hive | None = None) -> Declared:
    """Return what a metastore says about the files of a table without partitions, or of one partition."""
    stored = partition.stored_as if partition and partition.stored_as.format else table.stored_as
    columns = tuple((column.name, column.type) for column in table.columns)
    is_text = table.table_type is TableType.INSERT_ONLY and stored.format == TEXT
    return Declared(columns, stored.format, _text_layout(table, stored) if is_text else None, hive)


def _text_layout(table: HiveTable, stored: StoredAs) -> TextLayout:
    # A partition inherits what it does not set from its table.
    properties = {**table.stored_as.properties, **stored.properties}
    fields = properties.get("field.delim", properties.get("serialization.format"))
    escape = properties.get("escape.delim")
    return TextLayout(
        columns=tuple((column.name, column.type) for column in stored.columns or table.columns),
        separator=_byte(fields, 1),
        escape=None if escape is None else _byte(escape, ord("\\")),
        null=properties.get("serialization.null.format", "\\N"),
        header=_count(table.parameters, "skip.header.line.count"),
        footer=_count(table.parameters, "skip.footer.line.count"),
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
