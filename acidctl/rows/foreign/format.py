"""The format of a data file, ORC, Parquet or text (format sections 1.4 and 11), and its footer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from acidctl.acid.layout import DataFile
from acidctl.base.errors import BadDataError
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.read.reader import elsewhere_of
from acidctl.orc.tail import MAGIC, Tail, read_tail
from acidctl.rows.foreign.foreign_reader import ForeignReader, text_extension
from acidctl.storage import registry
from acidctl.storage.port import FileSystemSpec

if TYPE_CHECKING:
    from acidctl.location.metastore_schema import Declared
    from acidctl.location.snapshot import Snapshot
    from acidctl.rows.foreign.parquet_reader import ParquetReader
    from acidctl.rows.foreign.text_reader import TextReader

_REFUSED = {b"Obj\x01": "Avro", b"SEQ": "a Hadoop SequenceFile", b"RCF": "RCFile", b"PARE": "encrypted Parquet"}


class Format(StrEnum):
    """The encoding of a data file."""

    ORC = "ORC"
    PARQUET = "Parquet"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class TableFile:
    """The format of a data file and its footer: its own, or the one that an ORC file of these rows would have."""

    format: Format
    tail: Tail


def read_any_tail(source: ByteSource, declared: Declared | None = None) -> TableFile:
    """Return the format and footer of a data file of any format; text is read once, to count its lines.

    Args:
        declared: the table in the metastore.

    Raises:
        BadDataError: the file is damaged, or its format is not supported or not the one in the metastore.
    """
    if declared and declared.format not in ("", *Format):
        raise BadDataError(
            f"{source.path} cannot be read",
            f"it is {declared.format} in the metastore, and acidctl reads ORC, Parquet and text",
            "read the table with Hive",
        )
    if declared and declared.text:
        return TableFile(Format.TEXT, _reader(Format.TEXT).describe(source, declared))
    try:
        file = TableFile(Format.ORC, read_tail(source))
    except BadDataError:
        format_ = sniff(source)
        if format_ is Format.ORC:
            raise
        file = TableFile(format_, _reader(format_).describe(source, declared))
    if declared and declared.format and file.format != declared.format:
        raise other_format(source.path, file.format, declared.format)
    return file


def other_format(shown: str, format_: Format, declared: str) -> BadDataError:
    """Return the error of a file that has another format than the metastore declares."""
    return BadDataError(
        f"{shown} is {format_}",
        f"in the metastore it is {declared}, and so Hive reads it",
        "the file does not belong here, or the format of the table was changed: read the path without a metastore",
    )


def read_orc_tail(source: ByteSource) -> Tail:
    """Return the tail of a file that must be ORC.

    Raises:
        BadDataError: the file is damaged, or of another format, which is named if it is known.
    """
    try:
        return read_tail(source)
    except BadDataError as error:
        if (format_ := sniff(source)) is Format.ORC:
            raise
        hint = "it does not belong here, or was overwritten: move it away, or restore it"
        raise BadDataError(f"{source.path} is not an ORC file", f"it is {format_}", hint) from error


def unnamed_text(shown: str) -> BadDataError:
    """Return the error of a text file at the top of a location that is not named like a data file."""
    return BadDataError(
        f"{shown} is text, and not named like a data file",
        "nothing shows that its lines are rows of a table",
        "move it away; if it is data, name the table of a metastore: hive:db.table",
    )


def text_beside(shown: str, other: str, format_: Format) -> BadDataError:
    """Return the error of a text file in a table that has the file `other` of another format."""
    return BadDataError(
        f"{shown} is text, and {other} is {format_}",
        "only a metastore says which columns the lines have",
        "move away what is not data, or name the table: hive:db.table",
    )


def footer_rows(snapshot: Snapshot, file: DataFile, *, full: bool) -> int | None:
    """Return the number of rows of a data file by its footer; None for text.

    Args:
        full: whether the table is known to be full ACID, so that every file is ORC.

    Raises:
        BadDataError: the file is damaged, or its format is not supported.
    """
    length = snapshot.logical_length(file)
    if length == 0:
        return 0
    source = ByteSource(snapshot.fs, snapshot.absolute(file.path), length)
    try:
        return read_tail(source).rows
    except BadDataError:
        format_ = Format.ORC if full else sniff(source)
        if format_ is Format.ORC:
            raise
    return _reader(format_).describe(source).rows if format_ is Format.PARQUET else None


def sniff(source: ByteSource) -> Format:
    """Return the format of a file without an ORC footer; ORC if it once was ORC, or has no known format.

    Raises:
        BadDataError: the format is known but not supported.
    """
    head = source.read(0, min(4096, source.size))
    for magic, name in _REFUSED.items():
        if head.startswith(magic):
            raise BadDataError(f"{source.path} is {name}", "acidctl reads ORC, Parquet and text", "read it with Hive")
    if head.startswith(b"PAR1"):
        return Format.PARQUET
    tail = source.read_end(16)
    if head.startswith(MAGIC) or MAGIC in tail or not head:
        return Format.ORC
    return Format.TEXT if b"\0" not in head or text_extension(source.path) else Format.ORC


def open_foreign(source: ByteSource, format_: Format, tail: Tail, declared: Declared | None = None) -> ForeignReader:
    """Open a Parquet or text file whose footer `tail` was made with the same `declared`."""
    elsewhere: ForeignReader | None = elsewhere_of(source, len(tail.stripes), _opened, format_, declared)
    return elsewhere or _reader(format_)(source, tail, declared)


def _opened(spec: FileSystemSpec, path: str, size: int, format_: Format, declared: Declared | None) -> ForeignReader:
    source = ByteSource(registry.open_file_system(spec), path, size)
    return open_foreign(source, format_, _reader(format_).describe(source, declared), declared)


def _reader(format_: Format) -> type[ParquetReader | TextReader]:
    if format_ is Format.PARQUET:
        from acidctl.rows.foreign.parquet_reader import ParquetReader  # noqa: PLC0415 - Arrow's Parquet is slow to import

        return ParquetReader
    from acidctl.rows.foreign.text_reader import TextReader  # noqa: PLC0415 - with Arrow's CSV; few tables are text

    return TextReader
