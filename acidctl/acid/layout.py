"""The files that a state reads, and what their names show about the rows inside (format sections 1.4, 4.2 and 5)."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from acidctl.acid.listing import Entry, Listing, TableType
from acidctl.acid.names import (
    ACID_PREFIXES,
    FLUSH_LENGTH_SUFFIX,
    METADATA_ACID,
    NO_STATEMENT,
    ORC_ACID_VERSION,
    AcidDirectory,
    BucketFile,
    Kind,
    OriginalFile,
    acid_directory,
    is_hidden,
    is_union_subdirectory,
    is_visible_path,
    parse_file,
)
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.state import AcidState, EntryKind

_DATA = re.compile(r"[0-9]{6,}_[0-9]+(?:_copy_[0-9]+)?")
"""A file without synthetic columns, as Hive names it: the number of its task has at least six digits."""

_CHECKSUM = ".crc"
OWN = ".acidctl-"
"""Begins the names of acidctl's locks, logs, trashes and backups."""

NO_BUCKET = -1
"""Hive's bucket id of a file whose name follows no pattern."""


class Role(StrEnum):
    """The kind of rows in a data file."""

    INSERT = "insert"
    DELETE = "delete"
    ORIGINAL = "original"


@dataclass(frozen=True, slots=True)
class DataFile:
    """One data file of a location.

    Attributes:
        path: relative to the location.
        size: bytes on disk.
        role: ``ORIGINAL`` lies at the location itself, the others in an ACID directory.
        directory: the ACID directory it lies in; None for an original file.
        bucket: the number in its name; ``NO_BUCKET`` if the name follows no pattern.
        native_name: named ``bucket_N``: a native ACID file; other names in ACID directories are raw files when
            their schema says so (section 5.2).
        flush_length_path: path of the streaming side file beside it, if there is one (section 12).
    """

    path: str
    size: int
    role: Role
    directory: AcidDirectory | None
    bucket: int
    native_name: bool
    flush_length_path: str | None = None

    @property
    def statement_id(self) -> int:
        """Return the statement id of its directory; -1 without one."""
        return self.directory.statement_id if self.directory else -1

    @property
    def max_write_id(self) -> int:
        """Return the last write id of its directory; 0 for an original file."""
        return self.directory.max_write_id if self.directory else 0

    @property
    def begins(self) -> tuple[int, int]:
        """Return the first write id and the statement id by which Hive 4 chooses its delete deltas (section 4.2)."""
        directory = self.directory
        if directory is None or directory.kind is Kind.BASE:
            return 0, 0
        return directory.min_write_id, max(directory.statement_id, 0)

    @property
    def ends(self) -> tuple[int, int]:
        """Return the last write id and the statement id by which Hive 4 chooses this delete delta (section 4.2)."""
        return self.max_write_id, max(self.statement_id, 0)


def strange_paths(entries: Iterable[Entry], table_type: TableType | None = None) -> Iterator[str]:
    """Yield the paths in an ACID directory or among original files that Hive never writes.

    Hive puts data files into the directory itself or, for a UNION ALL, into a ``HIVE_UNION_SUBDIR_N``; beside them the
    small files of an ACID directory, and the checksums of Hadoop's local file system. Data files of insert-only tables
    keep any name that they had when they were loaded.

    Args:
        entries: a direct child of the location, with everything below it, paths relative to the location.
    """
    any_name = table_type is TableType.INSERT_ONLY
    return (entry.path for entry in entries if not _belongs(entry, any_name=any_name))


def _belongs(entry: Entry, *, any_name: bool) -> bool:
    child, *inside = entry.path.split("/")
    is_acid = child.startswith(ACID_PREFIXES)
    if not inside:
        return (is_acid or is_union_subdirectory(child)) if entry.is_dir else _is_data(child)
    *folders, name = inside
    if len(folders) > is_acid or not all(map(is_union_subdirectory, folders)):
        return False
    if entry.is_dir:
        return is_acid and not folders and is_union_subdirectory(name)
    if is_acid and any_name and not is_hidden(name.removeprefix(".") if name.endswith(_CHECKSUM) else name):
        return True
    return _is_known(name, is_acid and not folders)


def _is_known(name: str, is_acid: bool) -> bool:
    """Return whether Hive gives a file this name; directly in an ACID directory there are more names."""
    if name.startswith(".") and name.endswith(_CHECKSUM):
        return _is_known(name[1 : -len(_CHECKSUM)], is_acid)
    if not is_acid:
        return _is_data(name)
    return name in (ORC_ACID_VERSION, METADATA_ACID) or _is_data(name.removesuffix(FLUSH_LENGTH_SUFFIX), native=True)


def _is_data(name: str, *, native: bool = False) -> bool:
    return _DATA.fullmatch(name) is not None or (native and isinstance(parse_file(name), BucketFile))


def holds_strangers_alone(listing: Listing) -> bool:
    """Return whether a location is not empty, and nothing in it has a name that Hive or acidctl gives."""
    signs = (*ACID_PREFIXES, OWN)
    paths = [entry.path for entry in listing.entries if is_visible_path(entry.path) or entry.path.startswith(OWN)]
    return bool(paths) and not any(path.startswith(signs) or parse_file(path.rpartition("/")[2]) for path in paths)


def tables_below(listing: Listing) -> Iterator[str]:
    """Yield ACID directories that lie deeper than a location's own, in folders of other names: other tables."""
    for entry in listing.entries:
        parts = entry.path.split("/")
        if len(parts) > 1 and entry.is_dir and acid_directory(parts[-1]) and not any(map(_stops, parts[:-1])):
            yield entry.path


def _stops(name: str) -> bool:
    """Return whether nothing below a directory of this name is a table: it is hidden, or in an ACID directory."""
    return is_hidden(name) or acid_directory(name) is not None or is_union_subdirectory(name)


def data_files_of(
    directory: AcidDirectory, files: Iterable[Entry], table_type: TableType | None = None
) -> list[DataFile]:
    """Return the data files of one ACID directory that Hive reads, sorted by path (sections 1.4, 5.2 and 11).

    Args:
        files: everything below the directory, paths relative to the location.
    """
    data, sides = _data_entries(files, table_type)
    # Only an insert delta of several write ids is written by streaming; elsewhere a side file means nothing.
    streams = directory.kind is Kind.DELTA and directory.min_write_id != directory.max_write_id
    streams = streams and not directory.visibility_txn
    # Hive reads a delete delta of an insert-only table as it reads a delta.
    is_delete = directory.kind is Kind.DELETE_DELTA and table_type is not TableType.INSERT_ONLY
    role = Role.DELETE if is_delete else Role.INSERT

    def data_file(entry: Entry, name: str, parsed: BucketFile | OriginalFile | None) -> DataFile:
        bucket, side = parsed.bucket if parsed else NO_BUCKET, entry.path + FLUSH_LENGTH_SUFFIX
        counts = side if streams and side in sides else None
        native = name.startswith("bucket_") and table_type is not TableType.INSERT_ONLY
        return DataFile(entry.path, entry.size, role, directory, bucket, native, counts)

    return [data_file(*parsed) for parsed in data]


def data_bytes_of(files: Iterable[Entry], table_type: TableType | None = None) -> int:
    """Return the total size of the :func:`data_files_of` one ACID directory, without building them."""
    return sum(entry.size for entry, _, _ in _data_entries(files, table_type)[0])


def filled_of(files: Iterable[Entry]) -> tuple[list[str], list[str]]:
    """Return the paths of the :func:`data_files_of` one ACID directory that are not empty: native ones, and others."""
    native: list[str] = []
    raw: list[str] = []
    for entry, name, _ in _data_entries(files, None)[0]:
        if entry.size:
            (native if name.startswith("bucket_") else raw).append(entry.path)
    return native, raw


_Parsed = tuple[Entry, str, BucketFile | OriginalFile | None]
"""A file, its name, and the parsed name."""


def _data_entries(files: Iterable[Entry], table_type: TableType | None) -> tuple[list[_Parsed], set[str]]:
    """Return the data files of one ACID directory, and the paths of its side files."""
    any_name = table_type is TableType.INSERT_ONLY
    data: list[_Parsed] = []
    sides: set[str] = set()
    native = False
    for entry in files:
        path = entry.path
        if not is_visible_path(path):
            continue
        if path.endswith(FLUSH_LENGTH_SUFFIX) and not any_name:
            sides.add(path)
            continue
        name = path.rpartition("/")[2]
        parsed = parse_file(name)
        native = native or (isinstance(parsed, BucketFile) and path.count("/") == 1)
        data.append((entry, name, parsed))
    if any_name:
        return data, sides
    if native:
        # bucket_00000.fixacidindex beside bucket_00000, or a directory renamed into this one: not data
        data = [
            (entry, name, parsed)
            for entry, name, parsed in data
            if (parsed is not None or not name.startswith("bucket_")) and entry.path.count("/") == 1
        ]
    is_full = native or table_type is TableType.FULL_ACID
    return [file for file in data if _is_read(file[0], file[2], is_full=is_full)], sides


def _is_read(entry: Entry, parsed: BucketFile | OriginalFile | None, *, is_full: bool) -> bool:
    """Return whether Hive reads a visible file, judged by its name and place.

    In a base it reads any name, in a delta only Hive's own names, in a delete delta only bucket files at its top.
    """
    if entry.path.startswith("delete_delta_"):
        return isinstance(parsed, BucketFile) and entry.path.count("/") == 1
    return parsed is not None or not is_full or not entry.path.startswith("delta_")


def original_files(entries: Iterable[Entry]) -> list[DataFile]:
    """Return the non-empty original files of a location in the order that numbers their rows (section 5.1)."""
    files = []
    for entry in sorted(entries, key=lambda e: e.path):
        parsed = parse_file(entry.path.rpartition("/")[2])
        bucket = parsed.bucket if isinstance(parsed, OriginalFile) else NO_BUCKET
        if entry.size:
            files.append(DataFile(entry.path, entry.size, Role.ORIGINAL, None, bucket, False))
    return files


def current_files(state: AcidState, listing: Listing) -> list[DataFile]:
    """Return every data file that a reader of the state opens: base, originals, then deltas in read order."""
    children = listing.files_by_child
    files = list(original_files(state.originals))
    for verdict in (state.base, *state.deltas):
        if verdict and verdict.directory:
            files += data_files_of(verdict.directory, children.get(verdict.name, ()), listing.table_type)
    return files


def empty_files(listing: Listing, state: AcidState) -> list[str]:
    """Return the paths of current ``bucket_N`` of 0 bytes: a writer died, or a store lost their rows."""
    names = state.current_names
    return sorted(
        entry.path
        for entry in listing.entries
        if not (entry.size or entry.is_dir)
        and entry.path.partition("/")[0] in names
        and isinstance(parse_file(entry.path.partition("/")[2]), BucketFile)
    )


# --- directories that lie across a write id ------------------------------------------------------------------------
#
# A compaction's last write id must not lie inside a directory that it does not merge whole, even if the snapshot does
# not see that directory: other readers do, and return its rows beside those of the result (section 13.1, rule V9).


def straddles(directory: AcidDirectory, write_id: int) -> bool:
    """Return whether a delta begins at or below a write id, and ends above it."""
    return directory.kind is not Kind.BASE and directory.min_write_id <= write_id < directory.max_write_id


def below_all(directories: Iterable[AcidDirectory], write_id: int) -> tuple[int, tuple[AcidDirectory, ...]]:
    """Return the highest write id, at most the given one, that lies inside no delta; and the deltas that lowered it.

    Args:
        directories: all directories of a location.
    """
    deltas = sorted(
        (d for d in directories if d.kind is not Kind.BASE and d.min_write_id <= d.max_write_id),
        key=lambda d: (-d.max_write_id, -d.min_write_id, d.name),
    )
    lowered = []
    # From the highest end down: later deltas in this order can only lower the result further.
    for delta in deltas:
        if straddles(delta, write_id):
            write_id = delta.min_write_id - 1
            lowered.append(delta)
    return write_id, tuple(lowered)


def crossing(directories: Iterable[AcidDirectory], low: int, high: int) -> AcidDirectory | None:
    """Return a directory that shares write ids with a compacted delta and would be read beside it; else None.

    Rows would appear twice: those of a base that ends inside it, of a delta that begins below it and ends inside, and
    of another compaction's delta of the same range, since Hive reads all of these.

    Args:
        directories: the directories that the delta is not made from.
    """
    for directory in sorted(directories, key=lambda d: d.name):
        is_base = directory.kind is Kind.BASE
        is_inside = low <= directory.max_write_id < high and (is_base or directory.min_write_id < low)
        is_compacted_delta = directory.range == (low, high) and directory.statement_id == NO_STATEMENT
        if is_inside or (not is_base and is_compacted_delta):
            return directory
    return None


class Overlaps:
    """Finds the directories that hold write ids of a range without checking all others."""

    def __init__(self, directories: Iterable[AcidDirectory]) -> None:
        self._by_width: dict[int, list[AcidDirectory]] = {}  # by the bits of their widths; each list by start
        for directory in sorted(directories, key=_first_of):
            width = directory.max_write_id - directory.min_write_id
            self._by_width.setdefault(width.bit_length(), []).append(directory)

    def meeting(self, low: int, high: int) -> Iterator[AcidDirectory]:
        """Yield the directories with a write id from `low` to `high`."""
        for bits, directories in self._by_width.items():
            start = bisect_left(directories, low - (1 << bits), key=_first_of)
            near = directories[start : bisect_right(directories, high, key=_first_of)]
            yield from (directory for directory in near if directory.max_write_id >= low)


def _first_of(directory: AcidDirectory) -> int:
    return directory.min_write_id


# --- files that look like data of a location, but that Hive ignores (format sections 1.4, 5 and 11) ------------------
#
# No compaction includes them, because Hive does not read them. They are reported because their author probably expects
# otherwise.


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
    is_full = listing.is_full_acid
    for verdict in (state.base, *state.deltas):
        if is_full and verdict and verdict.directory:
            for entry in listing.files_by_child.get(verdict.name, ()):
                if not _is_data_name(verdict.directory, entry):
                    why = reason(Code.STRAY_FILE, by=(verdict.name,), path=entry.path, how="name")
                    yield PassedOver(entry.path, why)


def union_folders(listing: Listing, state: AcidState) -> Iterator[PassedOver]:
    """Yield the folders of a UNION ALL in current bases and deltas: Hive 4 reads their files, and Hive 3 does not."""
    for verdict in (state.base, *state.deltas):
        paths = (entry.path for entry in listing.files_by_child.get(verdict.name, ())) if verdict else ()
        found = {folder for path in paths if is_visible_path(path) and (folder := union_folder_of(path))}
        for folder in sorted(found):
            yield PassedOver(folder, reason(Code.STRAY_FILE, path=folder, how="union"), is_certain=False)


def union_folder_of(path: str) -> str:
    """Return the folder of a UNION ALL in which a file of a base or delta lies; empty if it lies in none."""
    directory, _, inside = path.partition("/")
    folder, slash, _ = inside.partition("/")
    is_union = slash and directory.startswith(ACID_PREFIXES) and is_union_subdirectory(folder)
    return f"{directory}/{folder}" if is_union else ""


def _beside_directories(listing: Listing, state: AcidState) -> Iterator[PassedOver]:
    """Yield original files and folders of an insert-only table, or of one that may be insert-only."""
    originals = [verdict.name for verdict in state.verdicts if verdict.kind is EntryKind.ORIGINAL]
    if listing.table_type is TableType.INSERT_ONLY:
        deep = {path.partition("/")[0] for path in tables_below(listing)}  # another problem, for Hive 4 reads it
        for name in originals:
            if name not in deep:
                yield PassedOver(name, reason(Code.BESIDE_DIRECTORIES))
        return
    has_directories = any(verdict.directory for verdict in state.verdicts)
    if originals and has_directories and listing.table_type is None and not listing.shows_full_acid:
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
