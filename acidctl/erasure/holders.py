"""The physical files of a location, and the kinds of directories that hold them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from acidctl.acid.listing import Entry, Listing
from acidctl.acid.names import FLUSH_LENGTH_SUFFIX, METADATA_ACID, ORC_ACID_VERSION, acid_directory, is_hidden
from acidctl.acid.state import Verdict
from acidctl.base.errors import AcidctlError
from acidctl.cleaning.trash import TRASH
from acidctl.location.change.journal import MANIFEST
from acidctl.location.change.lock import LOCK
from acidctl.location.change.own_files import OWNER, TORN
from acidctl.location.change.publication import INTENT
from acidctl.location.walk import is_log
from acidctl.orc.byte_source import ByteSource
from acidctl.repair.backup import BACKUP
from acidctl.storage.port import FileSystem, base_name, join, parent_of

_NOTES = frozenset((MANIFEST, TORN, OWNER, INTENT, "undo.json", "done.json", "restored.json", "purged.json"))
"""The files that acidctl writes into its hidden directories for itself."""
_CHECKSUM = ".crc"
_MOST_OF_A_VERSION = 16
"""Files with rows have more bytes."""

_LOOKED_AT = 64
"""The number of bytes to read at the beginning of a small file."""


class HolderKind(StrEnum):
    """The kinds of directories that may hold rows; the first four are the states of a location's entries."""

    CURRENT = "current"
    OBSOLETE = "obsolete"
    ABORTED = "aborted"
    IGNORED = "ignored"
    TRASH = "trash"
    BACKUP = "backup"
    STAGING = "staging"
    HDFS_TRASH = "hdfs-trash"
    OTHER = "other"
    """Beside the locations of a table, with an unknown owner."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A directory, or an original file, that may hold rows.

    Attributes:
        name: its path relative to the location; absolute beside locations and in HDFS' trash.
        child: the entry of the location that it is, or is in.
    """

    kind: HolderKind
    name: str
    child: str


@dataclass(frozen=True, slots=True)
class PhysicalFile:
    """A file that may hold rows.

    Attributes:
        path: absolute inside its store.
        side: the absolute path of its flush length (format section 12); empty without one.
    """

    holder: Holder
    path: str
    entry: Entry
    side: str = ""

    @property
    def is_of_table(self) -> bool:
        """Return whether it lies in a directory where all files have the columns of the table."""
        if self.holder.kind in (HolderKind.CURRENT, HolderKind.OBSOLETE, HolderKind.ABORTED, HolderKind.IGNORED):
            return True
        folder = parent_of(self.path)
        while folder != parent_of(folder):
            if acid_directory(base_name(folder)):
                return True
            folder = parent_of(folder)
        return False


def physical_files(fs: FileSystem, listing: Listing, verdicts: Mapping[str, Verdict]) -> Iterator[PhysicalFile]:
    """Yield all files of a location that may hold rows.

    Empty files, Hive's and acidctl's small files, and checksums beside their files are left out. The name alone proves
    nothing: a small file is left out only if its content also begins as it should.
    """
    paths = {entry.path for entry in listing.entries if not entry.is_dir}
    for entry in listing.entries:
        if entry.is_dir or not entry.size:
            continue
        start = _start_of_small_file(entry.path, entry.size, paths)
        if start is not None and _begins_with(fs, join(listing.location, entry.path), entry.size, start):
            continue
        side = entry.path + FLUSH_LENGTH_SUFFIX
        absolute = join(listing.location, side) if side in paths else ""
        yield PhysicalFile(_holder(entry.path, verdicts), join(listing.location, entry.path), entry, absolute)


def _start_of_small_file(path: str, size: int, paths: set[str]) -> bytes | None:
    """Return the bytes with which a small file of this name begins; None if this is not the name of one."""
    folder, slash, name = path.rpartition("/")
    if name.startswith(".") and name.endswith(_CHECKSUM):
        return b"crc\0" if f"{folder}{slash}{name[1 : -len(_CHECKSUM)]}" in paths else None
    if name.endswith(FLUSH_LENGTH_SUFFIX):  # lengths of 8 bytes, none of them above 2^48
        return b"\0\0" if path.removesuffix(FLUSH_LENGTH_SUFFIX) in paths else None
    if name == ORC_ACID_VERSION and size <= _MOST_OF_A_VERSION:  # Hive 2 puts one into the location, too
        return b""
    parts = folder.split("/")
    is_own = parts[0] in (TRASH, BACKUP) and len(parts) <= 2
    is_json = name in _NOTES and (is_own or (parts[0].startswith((LOCK, "_tmp_")) and len(parts) == 1))
    if not slash:
        is_json = is_log(path) or path == LOCK
    elif name == METADATA_ACID:
        is_json = acid_directory(base_name(folder)) is not None
    return b"{" if is_json else None


def _begins_with(fs: FileSystem, path: str, size: int, start: bytes) -> bool:
    """Return whether a file begins with `start` after blanks; False if it cannot be read: its search reports that."""
    if not start:
        return True
    try:
        return ByteSource(fs, path, None, size).read(0, min(size, _LOOKED_AT)).lstrip().startswith(start)
    except AcidctlError:
        return False


def _holder(path: str, verdicts: Mapping[str, Verdict]) -> Holder:
    child, *inside = path.split("/")
    if child in (TRASH, BACKUP):
        kept = 2 if child == TRASH else 1  # a run of the trash holds entries of the location, each with its name
        name = "/".join([child, *inside[: min(kept, max(1, len(inside) - 1))]])
        return Holder(HolderKind.TRASH if child == TRASH else HolderKind.BACKUP, name, child)
    if is_hidden(child):
        return Holder(HolderKind.STAGING, child, child)
    verdict = verdicts.get(child)
    return Holder(HolderKind(verdict.state.value) if verdict else HolderKind.IGNORED, child, child)
