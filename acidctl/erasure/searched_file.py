"""One file of whatever kind: opened, searched, and what cannot be known of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from acidctl.acid.layout import NO_BUCKET, DataFile, Role
from acidctl.acid.sidefiles import parse_flush_length
from acidctl.erasure.event_search import EventSearch, Matched
from acidctl.erasure.holders import Holder, PhysicalFile
from acidctl.errors import AcidctlError, BadDataError
from acidctl.location.declared import Declared
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.tail import MAGIC
from acidctl.rows.foreign.format import Format, read_any_tail
from acidctl.rows.read.events import EventFile, Synthetic
from acidctl.storage.port import FileSystem
from acidctl.storage.ranged import MOST_LENGTHS, read_small
from acidctl.wording import iso_time

_BLOCK = 8 << 20
_NO_IDS = Synthetic(0, NO_BUCKET, 0)
"""Of a file without ids: nobody asks for them."""


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A file, and what its tail says, or why that is not known.

    Attributes:
        source: None where it cannot be read.
        problem: what of it is not known; empty where all of it is.
    """

    file: PhysicalFile
    source: EventFile | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SearchedFile:
    """What is known of a file.

    Attributes:
        path: as a user would type it.
        absolute: the same inside its store.
        modified: seconds since the epoch; None where the store has no times.
        problem: why it is not known whether it holds further rows; empty where that is known.
        sha256: of all of its bytes; empty where that was not asked for.
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
        """Its JSON form."""
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


def open_file(fs: FileSystem, file: PhysicalFile, declared: Declared | None) -> OpenedFile:
    """Read the tail of a file; nothing that is wrong with it is raised."""
    try:
        source = _opened(fs, file, declared, None)
        return OpenedFile(file, source, _unaccounted(source))
    except AcidctlError as error:
        if not file.side:
            return OpenedFile(file, None, _said(error))
        whole = error
    try:
        length = parse_flush_length(read_small(fs, file.side, MOST_LENGTHS), fs.display(file.side)) or 0
        if not 0 < length <= file.entry.size:
            return OpenedFile(file, None, _said(whole))
        rest = "" if length == file.entry.size else f"what a writer put behind byte {length} cannot be read"
        return OpenedFile(file, _opened(fs, file, declared, length), rest)
    except AcidctlError as error:
        return OpenedFile(file, None, _said(error))


def _opened(fs: FileSystem, file: PhysicalFile, declared: Declared | None, length: int | None) -> EventFile:
    source = ByteSource(fs, file.path, length, file.entry.size)
    found = read_any_tail(source, replace(declared, format="", text=None) if declared else None)
    is_text = found.format is Format.TEXT and declared is not None and declared.text is not None
    if is_text:
        found = read_any_tail(source, declared)
    is_native = found.format is Format.ORC and found.tail.is_acid
    data = DataFile(file.entry.path, file.entry.size, Role.INSERT, None, NO_BUCKET, is_native)
    synthetic = None if is_native else _NO_IDS
    return EventFile(fs, data, file.path, length, found.tail, synthetic, found.format, declared)


def _unaccounted(source: EventFile) -> str:
    """Return a warning if a file may hold rows that are not found in it; else empty.

    It is text of a layout that nobody declares, or a footer does not describe all bytes before it, which may be another
    file. Footers count their content with or without the three bytes of the header, or leave the count out.
    """
    if source.format is Format.TEXT and source.declared is None:
        return "it is text, and no metastore says how its columns are written"
    footer, end = source.tail.footer, source.tail.content_end
    last = max((one.offset + one.indexLength + one.dataLength + one.footerLength for one in footer.stripes), default=3)
    if source.format is not Format.ORC or last == end or abs(footer.contentLength - end) <= len(MAGIC):
        return ""
    return "its footer does not describe all bytes before it, which may be another file"


def _said(error: AcidctlError) -> str:
    return f"{error.what}: {error.why}" if error.why else error.what


def search_file(fs: FileSystem, opened: OpenedFile, search: EventSearch, *, checksum: bool) -> SearchedFile:
    """Look for the rows in a file; nothing that is wrong with it is raised."""
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
        problem = _said(error)
    entry = file.entry
    return SearchedFile(
        file.holder, fs.display(file.path), file.path, entry.size, entry.modified, matched, problem, digest
    )


def _sha256(fs: FileSystem, file: PhysicalFile) -> str:
    """Of all bytes of a file, those behind a flush length too.

    Raises:
        BadDataError: it has another size now than when it was listed.
    """
    size = fs.stat(file.path).size
    if size != file.entry.size:
        raise BadDataError(f"{fs.display(file.path)} changed while it was read", "", "search once more")
    digest = hashlib.sha256()
    for block in _blocks(ByteSource(fs, file.path, None, size), size):
        digest.update(block)
    return digest.hexdigest()


def _blocks(source: ByteSource, size: int) -> Iterator[bytes]:
    for at in range(0, size, _BLOCK):
        yield source.read(at, min(_BLOCK, size - at))
