"""Whether a location is known to be of a transactional table: by evidence only.

A directory called ``base_5`` is nothing yet: exports and tables of other formats have such names, too. What Hive wrote
shows it by its files: their names and places, the small files beside them, and the ACID columns inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from acidctl.acid.layout import DataFile, data_files_of, shows_full_acid, strange_paths, tables_below
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
from acidctl.errors import AcidctlError, RefusedError
from acidctl.location.neighbours import Surroundings, other_format_within
from acidctl.location.snapshot import Look
from acidctl.storage.options import StorageOptions
from acidctl.storage.port import FileSystem, base_name, join
from acidctl.storage.ranged import MOST_LENGTHS, read_small
from acidctl.storage.registry import open_location
from acidctl.storage.remote import END
from acidctl.wording import text_of

_LOOKED_INTO = 4
"""Of files that are damaged, or not ORC, so many are tried."""

_OTHER_WRITERS = (b"org.apache.spark", b"parquet.avro.schema", b"iceberg.schema")
"""What stands in the footers of files that Hive never wrote."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a location.

    Attributes:
        is_known: it is of a transactional table.
        reason: by what it is known, or why it is not.
        table_type: None where that is not known.
    """

    is_known: bool
    reason: Reason
    table_type: TableType | None = None

    @property
    def may_change(self) -> bool:
        """Whether commands that change tables may look at it: where nothing is, nothing is in danger."""
        return self.is_known or self.reason.code is Code.EMPTY

    @property
    def text(self) -> str:
        """The reason as a sentence without a full stop."""
        return text_of(self.reason)


def not_known(shown: str, evidence: Evidence) -> RefusedError:
    """The error for a location that was named itself, or planned, and may not be changed."""
    hint = "if it is one, say so: `table_type='full-acid'` or `table_type='insert-only'`"
    if evidence.reason.code in (Code.TABLES_BELOW, Code.OTHER_FORMAT_BELOW, Code.INSIDE_A_TABLE):
        hint = "give the table itself, or move away what does not belong to this folder"
    return RefusedError(f"{shown} is not known to be a transactional table", evidence.text, hint)


def refuse_part_of_others(url: str, storage: Mapping[str, str], surroundings: Surroundings) -> None:
    """Refuse to change what lies in a table of another format, in an export, in a trash.

    Args:
        url: what a user gives; what a walk meets on its way down from there it leaves out by itself.
        storage: options of the store.
        surroundings: what was found above other paths.

    Raises:
        RefusedError: it does.
    """
    options = storage.of(url) if isinstance(storage, StorageOptions) else storage
    fs, path = open_location(url, options)  # not the one for changes, which sees nothing above the path
    if found := surroundings.of(fs, path):
        above, what = found
        raise RefusedError(
            f"{fs.display(path)} is not a table of its own",
            f"{fs.display(above)} is {what}",
            "acidctl changes nothing there",
        )


def evidence_of(fs: FileSystem, path: str, look: Look, said: TableType | None = None) -> Evidence:
    """What is known of a location; reads the end of a file or two where names and side files do not tell.

    Args:
        look: at the location.
        said: what the user says that the table is.

    Returns:
        Never known where tables stand deeper below it, of whatever format: their files are not its own.
    """
    below = next(iter(tables_below(look.listing)), None)
    if below is not None:
        return _unknown(Code.TABLES_BELOW, path=below)
    if found := other_format_within(fs, path, look.listing):
        return _unknown(Code.OTHER_FORMAT_BELOW, path=found[0], what=found[1])
    children = look.listing.by_child
    if said is not None:
        if acid_directory(base_name(path)) and not any(map(acid_directory, children)):
            return _unknown(Code.INSIDE_A_TABLE, how="name")
        return Evidence(True, reason(Code.SAID, table_type=said.value), said)
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


def type_by_files(fs: FileSystem, path: str, look: Look) -> TableType | None:
    """The table type that the files show; None if they show none, or if it makes no difference to what Hive reads.

    The beginning of a file is read only if files lie beside ACID directories and the names show no type.
    """
    listing = look.listing
    if shows_full_acid(listing):
        return TableType.FULL_ACID
    directories = [directory for name in listing.by_child if (directory := acid_directory(name))]
    if not directories or not any(map(_is_original, listing.entries)):
        return None
    files = (file for file in _data_files(directories, listing.by_child) if file.size)
    formats = (_begins(fs, path, file) for file in islice(files, _LOOKED_INTO))
    return TableType.INSERT_ONLY if any(begin not in (b"", b"ORC") for begin in formats) else None


def _is_original(entry: Entry) -> bool:
    return not entry.is_dir and acid_directory(entry.path.partition("/")[0]) is None and is_visible_path(entry.path)


def _begins(fs: FileSystem, path: str, file: DataFile) -> bytes:
    try:
        return fs.read_bytes(join(path, file.path), 0, min(3, file.size))
    except AcidctlError:
        return b""


def _unknown(code: Code, by: tuple[str, ...] = (), **values: object) -> Evidence:
    return Evidence(False, Reason(code, by, values=tuple(values.items())))


def _strange(entries: Iterable[Entry]) -> Iterator[str]:
    """What is not Hive's in an ACID directory; one that a rename put into another is."""
    return (path for path in strange_paths(entries) if acid_directory(path.partition("/")[2].partition("/")[0]) is None)


def _by_side_files(look: Look, sound: Iterable[AcidDirectory], children: Mapping[str, list[Entry]]) -> Evidence | None:
    kind = TableType.FULL_ACID if shows_full_acid(look.listing) else None
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
    except AcidctlError:  # whoever reads the rows says what is wrong with it
        return False


def _by_layout(
    fs: FileSystem,
    path: str,
    directories: list[AcidDirectory],
    sound: list[AcidDirectory],
    children: Mapping[str, list[Entry]],
) -> Evidence | None:
    """An insert-only table, or a full one of loaded files alone: nothing but what Hive names, a delta among it.

    Of ``base_5`` and ``delta_1_1`` that says nothing; but nobody else writes the number of a statement, or of a
    transaction, or pads write ids to seven digits. What deletes rows has the ACID columns, always.
    """
    kinds = {directory.kind for directory in directories}
    if len(sound) < len(directories) or Kind.DELTA not in kinds or Kind.DELETE_DELTA in kinds:
        return None
    if not all(map(_is_as_hive_spells, directories)):
        return None
    files = [file for file in _data_files(reversed(directories), children) if file.size]
    if not files or any(file.native_name for file in files):
        return None
    for file in files[:_LOOKED_INTO]:
        if kind := _format_of(fs, path, file):
            known = TableType.INSERT_ONLY if kind == "Parquet" else None
            return Evidence(True, reason(Code.BY_FILES, how="layout", path=file.path, format=kind), known)
    return None


def _is_as_hive_spells(directory: AcidDirectory) -> bool:
    has_more = directory.statement_id != NO_STATEMENT or directory.visibility_txn
    return bool(has_more) or directory.name == directory.canonical_name


def _format_of(fs: FileSystem, path: str, file: DataFile) -> str:
    """ORC or Parquet; empty for any other format, and for a file of another writer."""
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
