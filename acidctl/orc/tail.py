"""Read the footer of an ORC file: everything that is known without reading a row.

``"ORC" stripes... [stripe statistics] [footer] [postscript] [1 byte: length of the postscript]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeVar

from google.protobuf.message import DecodeError, Message

from acidctl.base.errors import BadDataError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.byte_source import ByteSource, damaged
from acidctl.orc.codecs import COMPRESSION_NAMES, DEFAULT_BLOCK_SIZE, ChunkError, TooLarge, decompress
from acidctl.orc.limits import COLUMNS, STRIPES, TAIL, LimitError
from acidctl.orc.types import OrcType, Schema, schema_of
from acidctl.orc.varint import LEAST_PART, count_parts

KEY_INDEX = "hive.acid.key.index"
ACID_STATS = "hive.acid.stats"
ACID_VERSION = "hive.acid.version"

MAGIC = b"ORC"
FIRST_READ = 16 * 1024
"""Bytes of the first read; nearly every footer fits into them."""

KNOWN_VERSIONS = ((0, 11), (0, 12))
CALENDARS = {1: "julian_gregorian", 2: "proleptic_gregorian"}
_FEW_BYTES = 64 * 1024
"""Messages of at most this size cannot take much memory when parsed."""
_PARTS_A_COLUMN, _PARTS_A_STRIPE = 24, 3
"""The most messages and texts in one message, for each column and stripe that a file may have."""

WRITERS = ("ORC Java", "ORC C++", "Presto", "Scritchley Go", "Trino", "cuDF")

_KEY = re.compile(r"(-?\d{1,19}),(-?\d{1,19}),(-?\d{1,19})", re.ASCII)
_COUNTS = re.compile(r"(\d{1,19}),(\d{1,19}),(\d{1,19})", re.ASCII)
_VERSION = re.compile(r"\d{1,9}", re.ASCII)

_Parsed = TypeVar("_Parsed", bound=Message)


class RecordKey(NamedTuple):
    """The key of a row: original write id, encoded bucket, row id (format section 4)."""

    original_write_id: int
    bucket: int
    row_id: int


@dataclass(frozen=True)
class Tail:
    """The parsed footer of a file.  The messages are shared: copy them before changing them.

    Attributes:
        postscript: the last message; never compressed.
        footer: schema, stripes, user metadata, statistics.
        file_length: bytes, up to the logical length.
        content_end: the offset where the stripes end and the tail begins.
        metadata_start: the offset of the stripe statistics.
        compression: one of codecs.COMPRESSION_NAMES.
        block_size: the compression block size in bytes.
        notes: unusual facts that are not a reason to refuse the file (an unknown version).
    """

    source: ByteSource = field(repr=False, compare=False)
    postscript: pb.PostScript
    footer: pb.Footer
    file_length: int
    content_end: int
    metadata_start: int
    compression: str
    block_size: int
    notes: tuple[str, ...] = ()
    _raw_metadata: bytes | None = field(default=None, repr=False, compare=False)

    @property
    def path(self) -> str:
        """Return the path of the file, for messages."""
        return self.source.path

    @property
    def length(self) -> int:
        """Return the length of the tail in bytes."""
        return self.file_length - self.metadata_start

    @cached_property
    def rows(self) -> int:
        """Return the rows of all stripes; these are what is read, should the footer's own count differ."""
        return sum(stripe.numberOfRows for stripe in self.footer.stripes)

    @cached_property
    def stripes(self) -> tuple[pb.StripeInformation, ...]:
        """Return offset, lengths and rows of every stripe, in file order."""
        return tuple(self.footer.stripes)

    @cached_property
    def types(self) -> list[pb.Type]:
        """Return the flat type list, as a writer copies it."""
        return list(self.footer.types)

    @cached_property
    def schema(self) -> Schema:
        """Return the type tree and what follows from it.  Raises BadDataError if the types do not make a tree."""
        return schema_of(self.footer.types, self.path)

    @property
    def type_tree(self) -> OrcType:
        """Return the type tree.  Raises BadDataError if the types do not make a tree."""
        return self.schema.tree

    @property
    def is_acid(self) -> bool:
        """Return whether the rows are wrapped in the six ACID columns (format section 3.1)."""
        return self.schema.is_acid

    @property
    def stride(self) -> int:
        """Return the rows per row-index entry; 0 means that there is no row index."""
        return self.footer.rowIndexStride

    @property
    def calendar(self) -> str | None:
        """Return the calendar of dates and timestamps; None if the file does not say: old Hive's Julian/Gregorian."""
        return CALENDARS.get(self.footer.calendar)

    @property
    def version(self) -> tuple[int, ...]:
        """Return the format version, usually (0, 12); (0, 11) if the file does not say."""
        return tuple(self.postscript.version) or (0, 11)

    @property
    def writer(self) -> str:
        """Return the name of the library that wrote the file."""
        code = self.footer.writer
        return WRITERS[code] if code < len(WRITERS) else f"unknown writer {code}"

    @property
    def writer_version(self) -> int:
        """Return the writer's own version number, a list of its bug fixes."""
        return self.postscript.writerVersion

    @cached_property
    def software_version(self) -> str | None:
        """Return the release of the writing library, None if the file does not say."""
        if not self.footer.HasField("softwareVersion"):
            return None
        return as_text(self.footer.softwareVersion)

    @property
    def encrypted(self) -> bool:
        """Return whether some column is encrypted; such a file is refused, never decoded to masked values."""
        return self.footer.HasField("encryption")

    @cached_property
    def user_metadata(self) -> dict[str, bytes]:
        """Return the writer's key and value pairs; of equal keys the first counts, as in Hive."""
        pairs: dict[str, bytes] = {}
        for item in self.footer.metadata:
            pairs.setdefault(as_text(item.name), item.value)
        return pairs

    @cached_property
    def metadata(self) -> pb.Metadata:
        """Return the statistics of all stripes; empty if there are none.  Reads from the file if the tail was long."""
        length = self.postscript.metadataLength
        raw = self._raw_metadata
        if raw is None:
            raw = self.source.read(self.metadata_start, length)
        metadata = _parse(pb.Metadata, raw, (self.compression, self.block_size), self.path, "stripe statistics")
        most = max((len(stripe.colStats) for stripe in metadata.stripeStats), default=0)
        COLUMNS.check(most, self.path, "number of the columns of its stripe statistics")
        return metadata

    def stripe_statistics(self, i: int) -> list[pb.ColumnStatistics] | None:
        """Return statistics of the columns of stripe `i` by column id, None if the file has none for it."""
        statistics = self.metadata.stripeStats
        return list(statistics[i].colStats) if i < len(statistics) else None

    def column_statistics(self, column_id: int) -> pb.ColumnStatistics | None:
        """Return the file's statistics of a column, None if it has none."""
        statistics = self.footer.statistics
        return statistics[column_id] if 0 <= column_id < len(statistics) else None

    def true_statistics(self, column_id: int) -> pb.ColumnStatistics | None:
        """Return the file's statistics of a column, None if it has none, or no row index.

        Java's ORC counts no values for files without an index, as Hive 3's compactor writes them, and says so: 0.
        """
        return self.column_statistics(column_id) if self.stride else None

    def stripe_footer(self, i: int) -> pb.StripeFooter:
        """Return streams and encodings of stripe `i`: one ranged read.  Raises BadDataError if it is damaged."""
        return self.parse_stripe_footer(i, self.raw_stripe_footer(i))

    def raw_stripe_footer(self, i: int) -> bytes:
        """Return the bytes of the footer of stripe `i` as they are in the file."""
        stripe = self.stripes[i]
        return self.source.read(stripe.offset + stripe.indexLength + stripe.dataLength, stripe.footerLength)

    def parse_stripe_footer(self, i: int, raw: bytes | memoryview) -> pb.StripeFooter:
        """Parse the footer of stripe `i` from its bytes in the file; check that its streams fit into the stripe.

        Raises BadDataError if it cannot be parsed, or its streams are longer than the stripe.
        """
        stripe = self.stripes[i]
        footer = _parse(pb.StripeFooter, raw, (self.compression, self.block_size), self.path, f"footer of stripe {i}")
        if sum(stream.length for stream in footer.streams) > stripe.indexLength + stripe.dataLength:
            raise damaged(self.path, f"the streams of stripe {i} are longer than the stripe")
        return footer

    def key_index(self) -> list[RecordKey | None] | None:
        """Return ``hive.acid.key.index``: the key of the last row of each stripe (format section 3.2).

        Returns:
            The entries of the index, None for an empty entry ("unknown"); None if there is no index.
            The list may be shorter or longer than the stripes: known Hive versions lose the last entry.

        Raises:
            BadDataError: the index is not a list of three integers.
            LimitError: it has more entries than a file may have stripes.
        """
        raw = self.user_metadata.get(KEY_INDEX)
        if raw is None:
            return None
        STRIPES.check(raw.count(b";"), self.path, f"number of entries of its {KEY_INDEX}")
        parts = raw.decode("utf-8", "replace").split(";")
        if parts[-1] == "":
            parts.pop()
        keys: list[RecordKey | None] = []
        for part in parts:
            match = _KEY.fullmatch(part)
            if part and match is None:
                raise damaged(self.path, f"{KEY_INDEX} holds {part[:60]!r}, not a write id, a bucket and a row id")
            keys.append(RecordKey(*map(int, match.groups())) if match else None)
        return keys

    def acid_stats(self) -> tuple[int, int, int] | None:
        """Return ``hive.acid.stats``: (inserts, updates, deletes), None if missing.

        Raises BadDataError if it is malformed.
        """
        match = self._matched(ACID_STATS, _COUNTS, "three counts")
        return (int(match[1]), int(match[2]), int(match[3])) if match else None

    @property
    def acid_version(self) -> int | None:
        """Return ``hive.acid.version``, None if missing.  Raises BadDataError if it is not a number."""
        match = self._matched(ACID_VERSION, _VERSION, "a number")
        return int(match[0]) if match else None

    def _matched(self, name: str, pattern: re.Pattern[str], what: str) -> re.Match[str] | None:
        raw = self.user_metadata.get(name)
        match = None if raw is None else pattern.fullmatch(raw.decode("utf-8", "replace"))
        if raw is not None and match is None:
            raise damaged(self.path, f"{name} holds {raw[:60]!r}, not {what}")
        return match


def key_index_of(keys: Sequence[RecordKey | None]) -> bytes:
    """Return :meth:`Tail.key_index` as bytes for a file; an empty entry means "unknown"."""
    return "".join(f"{','.join(map(str, key)) if key else ''};" for key in keys).encode()


def stripe_length(info: pb.StripeInformation) -> int:
    """Return the bytes of a stripe: its index, its data and its footer."""
    return int(info.indexLength + info.dataLength + info.footerLength)


def placed_streams(footer: pb.StripeFooter, start: int = 0) -> Iterator[tuple[pb.Stream, int]]:
    """Yield the streams of a stripe with the offset of each; the first is at `start`."""
    for stream in footer.streams:
        yield stream, start
        start += stream.length


def read_tail(source: ByteSource, end: bytes | None = None) -> Tail:
    """Read the tail of an ORC file: one ranged read of the last 16 KB, a second one only if the footer is longer.

    Args:
        end: the last bytes of the file, if the caller has read them already.

    Raises:
        BadDataError: the file is empty, too short, not ORC, cut short, or its tail contradicts itself.
    """
    path, size = source.path, source.size
    if size == 0:
        why, hint = "an ORC file is never 0 bytes long", "a writer died before it wrote anything"
        raise BadDataError(f"{path} is empty", why, hint)
    buffer = source.read_end(FIRST_READ) if end is None else end  # before the check: a pipe has no true size
    if size < 5:
        raise _not_orc(path, "it is shorter than 5 bytes")
    start = size - len(buffer)
    postscript = _postscript(source, buffer)
    footer_end = size - 1 - buffer[-1]
    footer_start = footer_end - postscript.footerLength
    metadata_start = footer_start - postscript.metadataLength
    # Only files with encrypted columns have this further section.
    content_end = metadata_start - postscript.stripeStatisticsLength
    if content_end < 0:
        raise damaged(path, f"its tail claims to be longer than the file's {size} bytes")
    if footer_start < start:
        start = footer_start
        buffer = source.read(start, size - start)
    compression = COMPRESSION_NAMES[postscript.compression]
    block_size = postscript.compressionBlockSize or DEFAULT_BLOCK_SIZE
    raw_footer = memoryview(buffer)[footer_start - start : footer_end - start]
    footer = _parse(pb.Footer, raw_footer, (compression, block_size), path, "footer")
    COLUMNS.check(max(len(footer.types), len(footer.statistics)), path, "number of its columns")
    STRIPES.check(len(footer.stripes), path, "number of its stripes")
    _check_stripes(footer, content_end, path)
    return Tail(
        source=source,
        postscript=postscript,
        footer=footer,
        file_length=size,
        content_end=content_end,
        metadata_start=metadata_start,
        compression=compression,
        block_size=block_size,
        notes=_notes(postscript, footer),
        _raw_metadata=buffer[metadata_start - start : footer_start - start] if metadata_start >= start else None,
    )


def _postscript(source: ByteSource, buffer: bytes) -> pb.PostScript:
    """Return the postscript at the end of `buffer`, with a known compression and lengths that can be added up."""
    path = source.path
    length = buffer[-1]
    if length >= len(buffer):
        raise _not_orc(path, "its last byte is not the length of a postscript")
    try:
        postscript = pb.PostScript.FromString(buffer[-1 - length : -1])
    except (DecodeError, ValueError) as error:
        raise _not_orc(path, "it ends with no ORC postscript") from error
    # The first releases wrote no magic into the postscript; the header of the file has it always.
    magic = postscript.magic if postscript.HasField("magic") else source.read(0, 3)
    if magic not in (MAGIC, MAGIC.decode()):
        raise _not_orc(path, "the ORC magic is missing")
    if not postscript.HasField("footerLength"):
        raise damaged(path, "its footer claims 0 bytes")
    TAIL.check(max(postscript.footerLength, postscript.metadataLength), path, "size of its tail")
    if postscript.compression >= len(COMPRESSION_NAMES):
        why = f"the postscript names codec {postscript.compression}"
        raise BadDataError(f"{path} is compressed by an unknown codec", why, "the file is damaged or of a newer writer")
    return postscript


def _check_stripes(footer: pb.Footer, content_end: int, path: str) -> None:
    """Refuse stripes that overlap each other or the tail."""
    at = 0
    for i, stripe in enumerate(footer.stripes):
        end = stripe.offset + stripe_length(stripe)
        if stripe.offset < at or end > content_end:
            raise damaged(path, f"stripe {i} claims the bytes {stripe.offset} to {end}; {at} to {content_end} are left")
        at = end


def _notes(postscript: pb.PostScript, footer: pb.Footer) -> tuple[str, ...]:
    notes = []
    version = tuple(postscript.version)
    if version and version not in KNOWN_VERSIONS:
        notes.append(f"unknown format version {'.'.join(map(str, version))}")
    rows = sum(stripe.numberOfRows for stripe in footer.stripes)
    if rows != footer.numberOfRows:
        notes.append(f"the stripes hold {rows} rows, the footer says {footer.numberOfRows}")
    if footer.calendar not in (0, *CALENDARS):
        notes.append(f"unknown calendar {footer.calendar}")
    if footer.writer >= len(WRITERS):
        notes.append(f"unknown writer {footer.writer}")
    return tuple(notes)


def _parse(message: type[_Parsed], raw: bytes | memoryview, codec: tuple[str, int], path: str, what: str) -> _Parsed:
    try:
        plain = decompress(raw, *codec)
        _check_parts(message, plain, path, what)
        return message.FromString(plain)
    except TooLarge as error:
        raise TAIL.error(path, f"decompressed size of its {what}") from error
    except ChunkError as error:
        raise damaged(path, f"its {what} cannot be decompressed: {error}") from error
    except (DecodeError, ValueError) as error:
        raise damaged(path, f"its {what} is not what ORC defines") from error
    except LimitError:
        raise
    except BadDataError as error:
        raise type(error)(f"{path}: {error.what}", error.why, error.hint) from error


def _check_parts(message: type[Message], plain: bytes, path: str, what: str) -> None:
    """Refuse a message of very many parts: an empty part takes two bytes here, and a hundred in memory."""
    if len(plain) <= _FEW_BYTES:
        return
    most = _PARTS_A_COLUMN * COLUMNS.value + _PARTS_A_STRIPE * STRIPES.value
    if len(plain) > LEAST_PART * most and count_parts(message.DESCRIPTOR, plain, most) > most:
        raise COLUMNS.error(path, f"number of the parts of its {what}")


def as_text(value: str | bytes) -> str:
    """Return a protobuf string as text; the run-time returns bytes if a damaged file holds invalid UTF-8."""
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def _not_orc(path: str, why: str) -> BadDataError:
    return BadDataError(f"{path} is not an ORC file", why, "the file is of another format, or was cut short")
