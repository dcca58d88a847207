"""Files and directories that look like data of a location, but that Hive ignores (format sections 1.4, 5 and 11).

No compaction includes them, because Hive does not read them. They are reported because their author probably expects
otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from acidctl.acid.layout import shows_full_acid
from acidctl.acid.listing import Entry, Listing, TableType
from acidctl.acid.names import (
    FLUSH_LENGTH_SUFFIX,
    AcidDirectory,
    Kind,
    is_visible_path,
    parse_file,
)
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.state import AcidState, EntryKind


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A path that Hive does not read.

    Attributes:
        path: relative to the location.
        is_certain: the type of the table is known, so Hive surely ignores the path.
    """

    path: str
    reason: Reason
    is_certain: bool = True


def passed_over(listing: Listing, state: AcidState) -> Iterator[PassedOver]:
    """Yield visible paths in places for data that Hive does not read, sorted by directory.

    If the type of the table is unknown, files beside its ACID directories count as files of a full-ACID table. If no
    file shows that it is one, this assumption is reported, too, as uncertain.
    """
    yield from _beside_directories(listing, state)
    if listing.table_type is TableType.INSERT_ONLY:
        return
    is_full = listing.table_type is TableType.FULL_ACID or shows_full_acid(listing)
    for verdict in (state.base, *state.deltas):
        if is_full and verdict and verdict.directory:
            for entry in listing.files_by_child.get(verdict.name, ()):
                if not _is_data_name(verdict.directory, entry):
                    why = reason(Code.STRAY_FILE, by=(verdict.name,), path=entry.path, how="name")
                    yield PassedOver(entry.path, why)


def _beside_directories(listing: Listing, state: AcidState) -> Iterator[PassedOver]:
    """Yield original files and folders of an insert-only table, or of one that may be insert-only."""
    originals = [verdict.name for verdict in state.verdicts if verdict.kind is EntryKind.ORIGINAL]
    if listing.table_type is TableType.INSERT_ONLY:
        for name in originals:
            yield PassedOver(name, reason(Code.BESIDE_DIRECTORIES))
        return
    has_directories = any(verdict.directory for verdict in state.verdicts)
    if originals and has_directories and listing.table_type is None and not shows_full_acid(listing):
        yield PassedOver(originals[0], reason(Code.TYPE_ASSUMED, path=originals[0]), is_certain=False)


def _is_data_name(directory: AcidDirectory, entry: Entry) -> bool:
    """Return whether Hive reads a file of a directory of a full-ACID table; hidden and side files are fine, too."""
    path, name = entry.path, entry.path.rpartition("/")[2]
    if directory.kind is Kind.BASE or not is_visible_path(path) or name.endswith(FLUSH_LENGTH_SUFFIX):
        return True
    if directory.kind is Kind.DELETE_DELTA and not name.startswith("bucket_"):
        return False
    if directory.kind is Kind.DELETE_DELTA and path.count("/") > 1:
        return False
    return parse_file(name) is not None or name.startswith("bucket_")
