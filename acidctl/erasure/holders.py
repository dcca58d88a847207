"""The physical files of a location, and the kinds of directories that hold them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from acidctl.acid.listing import Entry, Listing
from acidctl.acid.names import FLUSH_LENGTH_SUFFIX, acid_directory, is_hidden
from acidctl.acid.state import Verdict
from acidctl.cleaning.trash import TRASH
from acidctl.erasure.small_files import is_small_file
from acidctl.repair.backup import BACKUP
from acidctl.storage.port import FileSystem, base_name, join, parent_of


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

    Empty files, Hive's and acidctl's small files, and checksums beside their files are left out, each by its whole
    content.
    """
    paths = {entry.path: entry.size for entry in listing.entries if not entry.is_dir}
    for entry in listing.entries:
        if entry.is_dir or not entry.size or is_small_file(fs, listing.location, entry, paths):
            continue
        side = entry.path + FLUSH_LENGTH_SUFFIX
        absolute = join(listing.location, side) if side in paths else ""
        yield PhysicalFile(_holder(entry.path, verdicts), join(listing.location, entry.path), entry, absolute)


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
