"""Evidence that a location belongs to a transactional table.

A directory called ``base_5`` proves nothing: exports and tables of other formats have such names, too. What Hive wrote
shows in its files: their names and places, the small files beside them, and the ACID columns inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from acidctl.acid.layout import DataFile, data_files_of, strange_paths, tables_below
from acidctl.acid.listing import Entry, TableType
from acidctl.acid.names import (
    METADATA_ACID,
    NO_STATEMENT,
    ORC_ACID_VERSION,
    AcidDirectory,
    Kind,
    acid_directory,
    is_hidden,
    is_visible_path,
)
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.sidefiles import parse_flush_length
from acidctl.base.errors import AcidctlError, RefusedError
from acidctl.location.other_formats import FormatDetector, other_format_within
from acidctl.location.snapshot import DirectoryListing
from acidctl.storage.options import StorageOptions
from acidctl.storage.port import FileSystem, base_name, join
from acidctl.storage.ranged import MOST_LENGTHS, read_small
from acidctl.storage.registry import open_location
from acidctl.storage.remote import END
from acidctl.wording import text_of

_LOOKED_INTO = 4
"""The number of files to try: some are damaged, or not ORC."""

_OTHER_WRITERS = (b"org.apache.spark", b"parquet.avro.schema", b"iceberg.schema")
"""Marks in the footers of files that Hive never wrote."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence that a location belongs to a transactional table, or that it may not.

    Attributes:
        table_type: None if it is not known.
    """

    is_known: bool
    reason: Reason
    table_type: TableType | None = None

    @property
    def may_change(self) -> bool:
        """Return whether commands that change tables may work on the location: an empty one is in no danger."""
        return self.is_known or self.reason.code is Code.EMPTY

    @property
    def text(self) -> str:
        """Return the reason as a sentence without a full stop."""
        return text_of(self.reason)


def not_known(shown: str, evidence: Evidence) -> RefusedError:
    """Return the error for a location that was named itself, or planned, and may not be changed."""
    hint = "if it is one, say so: --table-type full-acid or --table-type insert-only"
    if evidence.reason.code in (Code.TABLES_BELOW, Code.OTHER_FORMAT_BELOW, Code.INSIDE_A_TABLE):
        hint = "give the table itself, or move away what does not belong to this folder"
    return RefusedError(f"{shown} is not known to be a transactional table", evidence.text, hint)


def refuse_part_of_others(url: str, storage: Mapping[str, str], formats: FormatDetector) -> None:
    """Refuse to change anything in a table of another format, in an export or in a trash.

    Args:
        url: a path that the user gave; a walk from there skips such directories by itself.
        formats: caches what lies above other paths.

    Raises:
        RefusedError: the path lies in such a directory.
    """
    options = storage.of(url) if isinstance(storage, StorageOptions) else storage
    fs, path = open_location(url, options)  # not the one for changes, which sees nothing above the path
    if container := formats.of(fs, path):
        above, what = container
        raise RefusedError(
            f"{fs.display(path)} is not a table of its own",
            f"{fs.display(above)} is {what}",
            "acidctl changes nothing there",
        )


def evidence_of(fs: FileSystem, path: str, look: DirectoryListing, given_type: TableType | None = None) -> Evidence:
    """Return what is known of a location; read the end of a file or two if names and side files do not suffice.

    Args:
        given_type: the table type that the user gave.

    Returns:
        Not known if tables of any format stand deeper below the location: their files are not its own.
    """
    below = next(iter(tables_below(look.listing)), None)
    if below is not None:
        return _unknown(Code.TABLES_BELOW, path=below)
    if other := other_format_within(fs, path, look.listing):
        return _unknown(Code.OTHER_FORMAT_BELOW, path=other[0], what=other[1])
    children = look.listing.by_child
    if given_type is not None:
        if acid_directory(base_name(path)) and not any(map(acid_directory, children)):
            return _unknown(Code.INSIDE_A_TABLE, how="name")
        return Evidence(True, reason(Code.SAID, table_type=given_type.value), given_type)
    if all(map(is_hidden, children)):
        return _unknown(Code.EMPTY)
    directories = [directory for name in sorted(children) if (directory := acid_directory(name))]
    if not directories:
        return _unknown(Code.NO_EVIDENCE, how="directories")
    strange = {d.name: next(_strange(children[d.name]), "") for d in directories}
    sound = [d for d in directories if not strange[d.name]]
    if not sound:
        return _unknown(Code.NO_EVIDENCE, how="names", path=strange[directories[0].name])
    return (
        _by_side_files(look, sound, children)
        or _by_columns(fs, path, sound, children)
        or _by_layout(fs, path, directories, sound, children)
        or _unknown(Code.NO_EVIDENCE, how="columns", by=(sound[0].name,))
    )


def type_by_files(fs: FileSystem, path: str, look: DirectoryListing) -> TableType | None:
    """Return the table type that the files show; None if they show none, or if Hive reads both types alike.

    The beginning of a file is read only if files lie beside ACID directories and the names show no type.
    """
    listing = look.listing
    if listing.shows_full_acid:
        return TableType.FULL_ACID
    directories = [directory for name in listing.by_child if (directory := acid_directory(name))]
    originals = (
        entry
        for entry in listing.entries
        if not entry.is_dir and acid_directory(entry.path.partition("/")[0]) is None and is_visible_path(entry.path)
    )
    if not directories or next(originals, None) is None:
        return None
    files = (file for file in _data_files(directories, listing.by_child) if file.size)
    for file in islice(files, _LOOKED_INTO):
        with suppress(AcidctlError):
            if fs.read_bytes(join(path, file.path), 0, min(3, file.size)) not in (b"", b"ORC"):
                return TableType.INSERT_ONLY
    return None


def _unknown(code: Code, by: tuple[str, ...] = (), **values: object) -> Evidence:
    return Evidence(False, Reason(code, by, values=tuple(values.items())))


def _strange(entries: Iterable[Entry]) -> Iterator[str]:
    """Return the paths in an ACID directory that are not Hive's; a nested ACID directory was renamed there by Hive."""
    return (path for path in strange_paths(entries) if acid_directory(path.partition("/")[2].partition("/")[0]) is None)


def _by_side_files(
    look: DirectoryListing, sound: Iterable[AcidDirectory], children: Mapping[str, list[Entry]]
) -> Evidence | None:
    kind = TableType.FULL_ACID if look.listing.shows_full_acid else None
    for directory in sound:
        sizes = {entry.path.partition("/")[2]: entry.size for entry in children[directory.name]}
        if sizes.get(ORC_ACID_VERSION):
            why = reason(Code.BY_FILES, how="side-file", by=(directory.name,), file=ORC_ACID_VERSION)
            return Evidence(True, why, TableType.FULL_ACID)
        if directory.name in look.base_formats:
            why = reason(Code.BY_FILES, how="side-file", by=(directory.name,), file=METADATA_ACID)
            return Evidence(True, why, kind)
    return None


def _by_columns(
    fs: FileSystem, path: str, sound: Iterable[AcidDirectory], children: Mapping[str, list[Entry]]
) -> Evidence | None:
    files = (file for file in _data_files(sound, children) if file.native_name and file.size)
    for file in islice(files, _LOOKED_INTO):
        if _has_acid_columns(fs, path, file):
            return Evidence(True, reason(Code.BY_FILES, how="columns", path=file.path), TableType.FULL_ACID)
    return None


def _has_acid_columns(fs: FileSystem, path: str, file: DataFile) -> bool:
    from acidctl.orc.byte_source import ByteSource  # noqa: PLC0415 - most locations need no tail for it
    from acidctl.orc.tail import read_tail  # noqa: PLC0415 - ORC's messages

    try:
        length = None
        if file.flush_length_path:
            side = join(path, file.flush_length_path)
            length = parse_flush_length(read_small(fs, side, MOST_LENGTHS), side)
        return read_tail(ByteSource(fs, join(path, file.path), length, file.size)).is_acid
    except AcidctlError:  # the error is reported when the rows are read
        return False


def _by_layout(
    fs: FileSystem,
    path: str,
    directories: list[AcidDirectory],
    sound: list[AcidDirectory],
    children: Mapping[str, list[Entry]],
) -> Evidence | None:
    """Recognize an insert-only table, or a full ACID table of loaded files alone, by Hive's names.

    Every file must lie where Hive puts it, and there must be a delta. Names like ``base_5`` and ``delta_1_1`` prove
    nothing; but only Hive writes the number of a statement or a transaction, or pads write ids to seven digits. Delete
    deltas are excluded because their files always have the ACID columns.
    """
    kinds = {directory.kind for directory in directories}
    if len(sound) < len(directories) or Kind.DELTA not in kinds or Kind.DELETE_DELTA in kinds:
        return None
    for directory in directories:
        has_more = directory.statement_id != NO_STATEMENT or directory.visibility_txn
        if not has_more and directory.name != directory.canonical_name:
            return None
    files = [file for file in _data_files(reversed(directories), children) if file.size]
    if not files or any(file.native_name for file in files):
        return None
    for file in files[:_LOOKED_INTO]:
        if kind := _format_of(fs, path, file):
            table_type = TableType.INSERT_ONLY if kind == "Parquet" else None
            return Evidence(True, reason(Code.BY_FILES, how="layout", path=file.path, format=kind), table_type)
    return None


def _format_of(fs: FileSystem, path: str, file: DataFile) -> str:
    """Return ``ORC`` or ``Parquet``; empty for any other format, and for a file of another writer."""
    full = join(path, file.path)
    try:
        begin, end = fs.read_bytes(full, 0, 4), fs.read_bytes(full, max(0, file.size - END), min(END, file.size))
    except AcidctlError:
        return ""
    if any(mark in end for mark in _OTHER_WRITERS):
        return ""
    if begin == end[-4:] == b"PAR1":
        return "Parquet"
    return "ORC" if begin[:3] == b"ORC" else ""


def _data_files(directories: Iterable[AcidDirectory], children: Mapping[str, list[Entry]]) -> Iterator[DataFile]:
    for directory in directories:
        yield from data_files_of(directory, (entry for entry in children[directory.name] if not entry.is_dir))
