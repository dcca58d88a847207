"""One file of any kind: opened, searched, and with a note of what could not be read."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

from acidctl.acid.layout import NO_BUCKET, DataFile, Role
from acidctl.acid.sidefiles import parse_flush_length
from acidctl.base.errors import AcidctlError, BadDataError
from acidctl.erasure.holders import Holder, PhysicalFile
from acidctl.location.metastore_schema import Declared
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.tail import MAGIC
from acidctl.rows.foreign.format import Format, read_any_tail
from acidctl.rows.past.event_search import EventSearch, Matched
from acidctl.rows.read.events import EventFile
from acidctl.rows.read.row_numbers import Synthetic
from acidctl.storage.port import FileSystem
from acidctl.storage.ranged import MOST_LENGTHS, read_small
from acidctl.wording import iso_time

_BLOCK = 8 << 20
_NO_IDS = Synthetic(0, NO_BUCKET, 0)
"""The placeholder ids of a file without ids, which are not used."""


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A file and its parsed footer, or why that is not known.

    Attributes:
        source: None if the file cannot be read.
        problem: what could not be read; empty if everything could.
    """

    file: PhysicalFile
    source: EventFile | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SearchedFile:
    """The result of searching a file.

    Attributes:
        path: as a user would type it.
        absolute: the path inside its store.
        modified: seconds since the epoch; None if the store has no times.
        problem: why the file may hold further rows; empty if it does not.
        sha256: of all of its bytes; empty if it was not requested.
    """

    holder: Holder
    path: str
    absolute: str
    size: int
    modified: float | None
    matched: Matched
    problem: str = ""
    sha256: str = ""

    @property
    def record(self) -> dict[str, Any]:
        """Return its JSON form."""
        return {
            "path": self.path,
            "size": self.size,
            "modified": iso_time(self.modified),
            "sha256": self.sha256 or None,
            "events": self.matched.events,
            "stripes": self.matched.stripes,
            "stripesRead": self.matched.read,
            "notKnown": self.problem or None,
        }


def open_file(
    fs: FileSystem, file: PhysicalFile, declared: Declared | None, *, is_insert_only: bool = False
) -> OpenedFile:
    """Read the footer of a file; problems with it are never raised.

    Args:
        is_insert_only: the table is insert-only: no column is an id, whatever its name.
    """
    try:
        source = _opened(fs, file, declared, None, is_insert_only)
        return OpenedFile(file, source, _unaccounted(source))
    except AcidctlError as error:
        if not file.side:
            return OpenedFile(file, None, str(error))
        whole = error
    try:
        length = parse_flush_length(read_small(fs, file.side, MOST_LENGTHS), fs.display(file.side)) or 0
        if not 0 < length <= file.entry.size:
            return OpenedFile(file, None, str(whole))
        rest = "" if length == file.entry.size else f"what a writer put behind byte {length} cannot be read"
        return OpenedFile(file, _opened(fs, file, declared, length, is_insert_only), rest)
    except AcidctlError as error:
        return OpenedFile(file, None, str(error))


def _opened(
    fs: FileSystem, file: PhysicalFile, declared: Declared | None, length: int | None, is_insert_only: bool
) -> EventFile:
    source = ByteSource(fs, file.path, length, file.entry.size)
    table_file = read_any_tail(source, replace(declared, format="", text=None) if declared else None)
    if table_file.format is Format.TEXT and declared is not None and declared.text is not None:
        table_file = read_any_tail(source, declared)
    is_native = table_file.format is Format.ORC and table_file.tail.is_acid and not is_insert_only
    data = DataFile(file.entry.path, file.entry.size, Role.INSERT, None, NO_BUCKET, is_native)
    synthetic = None if is_native else _NO_IDS
    return EventFile(fs, data, file.path, length, table_file.tail, synthetic, table_file.format, declared)


def _unaccounted(source: EventFile) -> str:
    """Return a warning if a file may hold rows that are not found in it; else empty.

    It is text of an undeclared layout, or a footer does not describe all bytes before it, which may be another
    file. Footers count their content with or without the three bytes of the header, or leave the count out.
    """
    if source.format is Format.TEXT and source.declared is None:
        return "it is text, and no metastore says how its columns are written"
    footer, end = source.tail.footer, source.tail.content_end
    last = max((s.offset + s.indexLength + s.dataLength + s.footerLength for s in footer.stripes), default=3)
    if source.format is not Format.ORC or last == end or abs(footer.contentLength - end) <= len(MAGIC):
        return ""
    return "its footer does not describe all bytes before it, which may be another file"


def search_file(fs: FileSystem, opened: OpenedFile, search: EventSearch, *, checksum: bool) -> SearchedFile:
    """Search a file for the rows; problems with it are never raised."""
    file, source, problem = opened.file, opened.source, opened.problem
    matched, digest = Matched(), ""
    try:
        if source:
            matched = search.search(source, by_name=not file.is_of_table)
            if matched.undecided and not problem:
                lacks = ", ".join(matched.lacks)
                problem = f"it has no column {lacks}, which decides on {matched.undecided} of its events"
        digest = _sha256(fs, file) if checksum else ""
    except AcidctlError as error:
        problem = str(error)
    entry = file.entry
    return SearchedFile(
        file.holder, fs.display(file.path), file.path, entry.size, entry.modified, matched, problem, digest
    )


def _sha256(fs: FileSystem, file: PhysicalFile) -> str:
    """Return the checksum of all bytes of a file, including those behind a flush length.

    Raises:
        BadDataError: the size changed since the file was listed.
    """
    size = fs.stat(file.path).size
    if size != file.entry.size:
        raise BadDataError(f"{fs.display(file.path)} changed while it was read", "", "search once more")
    digest = hashlib.sha256()
    source = ByteSource(fs, file.path, None, size)
    for start in range(0, size, _BLOCK):
        digest.update(source.read(start, min(_BLOCK, size - start)))
    return digest.hexdigest()
