"""Event files by path, for looking at single files and directories whatever their state."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from acidctl.acid.layout import NO_BUCKET, DataFile, Role, data_files_of, original_files
from acidctl.acid.names import (
    FLUSH_LENGTH_SUFFIX,
    AcidDirectory,
    acid_directory,
    is_union_subdirectory,
    is_visible_path,
)
from acidctl.acid.sidefiles import parse_flush_length
from acidctl.errors import AcidctlError, NotFoundError
from acidctl.location.snapshot import take_snapshot
from acidctl.orc.byte_source import ByteSource
from acidctl.rows.foreign.format import Format, read_any_tail
from acidctl.rows.read.events import EventFile, open_event_files
from acidctl.storage.port import FileSystem, base_name, parent_of
from acidctl.storage.small_files import MOST_LENGTHS, read_small


def event_files_at(fs: FileSystem, path: str) -> list[EventFile]:
    """The data files at a path: one file, an ACID directory, or a location with everything in it.

    Rows without ids are numbered as readers of the location number them, so its other files may be looked at too.

    Raises:
        NotFoundError: nothing is there, or no data file.
        BadDataError: a file is damaged, or not of a format that acidctl reads.
    """
    entry = fs.stat(path)
    if not entry.is_dir:
        length = _flush_length(fs, path)
        if length != 0:
            found = read_any_tail(ByteSource(fs, path, length, entry.size))
            tail = found.tail
            if tail.is_acid and found.format is Format.ORC:
                directory = _acid_directory(parent_of(path))
                role = Role.DELETE if directory and directory.kind == "delete_delta" else Role.INSERT
                file = DataFile(base_name(path), entry.size, role, directory, NO_BUCKET, True)
                return [EventFile(fs, file, path, length, tail, None)]
    below = [source for source in _of_location(fs, path, entry.is_dir) if _is_below(source.path, path)]
    if not below and entry.is_dir:
        raise NotFoundError(f"no data file in {fs.display(path)}", "it holds no file that a reader would open")
    return below


def _flush_length(fs: FileSystem, path: str) -> int | None:
    directory = _acid_directory(parent_of(path))
    if directory is None or directory.min_write_id == directory.max_write_id or directory.kind != "delta":
        return None
    side = path + FLUSH_LENGTH_SUFFIX
    if not fs.exists(side):
        return None
    return parse_flush_length(read_small(fs, side, MOST_LENGTHS), fs.display(side))


def _acid_directory(path: str) -> AcidDirectory | None:
    return acid_directory(base_name(path))


def _of_location(fs: FileSystem, path: str, is_dir: bool) -> list[EventFile]:
    """The data files below `path` in their location, and before them those whose rows are counted to number theirs."""
    location = _location_of(path, is_dir)
    snapshot = take_snapshot(fs, location, on_bad_metadata=_no_matter)
    files: list[DataFile] = []
    originals = []
    for name, entries in snapshot.listing.files_by_child.items():
        directory = _acid_directory(name)
        if directory is not None and any("/" in entry.path for entry in entries):
            files += data_files_of(directory, entries)
        else:
            originals += [entry for entry in entries if is_visible_path(entry.path)]
    files = original_files(originals) + sorted(files, key=_by_write_id)
    return open_event_files(snapshot, _needed(files, lambda file: _is_below(f"{location}/{file.path}", path)))


def _no_matter(path: str, error: AcidctlError) -> None:
    """What a base is does not change the events in its files."""


def _needed(files: Sequence[DataFile], is_wanted: Callable[[DataFile], bool]) -> list[DataFile]:
    """The wanted files, and those that come before one of the same directory and bucket where rows have no ids."""
    needed: list[DataFile] = []
    counters = set()
    for file in reversed(files):
        counter = (file.directory, file.bucket)
        if is_wanted(file):
            needed.append(file)
            counters.add(counter)
        elif not file.native_name and counter in counters:
            needed.append(file)
    return needed[::-1]


def _by_write_id(file: DataFile) -> tuple[int, bool, str]:
    """As the table was written; an update's delete events before its new rows."""
    directory = file.directory
    assert directory is not None
    return directory.max_write_id, directory.kind == "delta", file.path


def _location_of(path: str, is_dir: bool) -> str:
    """The location a path belongs to: the parent of the ACID directory around it, or of its original files."""
    at = path if is_dir else parent_of(path)
    ancestor = at
    while ancestor != parent_of(ancestor):
        if _acid_directory(ancestor) is not None:
            return parent_of(ancestor)
        ancestor = parent_of(ancestor)
    return parent_of(at) if is_union_subdirectory(base_name(at)) else at


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")
