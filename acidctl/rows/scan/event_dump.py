"""The events of data files with their synthetic columns, deleted and aborted ones included, and the files at a path."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from acidctl.acid.layout import NO_BUCKET, DataFile, Role, data_files_of, original_files
from acidctl.acid.listing import TableType
from acidctl.acid.names import (
    FLUSH_LENGTH_SUFFIX,
    METADATA_ACID,
    ORC_ACID_VERSION,
    AcidDirectory,
    acid_directory,
    is_native_data_file,
    is_union_subdirectory,
    is_visible_path,
)
from acidctl.acid.sidefiles import parse_flush_length
from acidctl.base.errors import AcidctlError, BadDataError, NotFoundError
from acidctl.base.nearest import did_you_mean
from acidctl.location.snapshot import list_location, take_snapshot
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.tail import read_tail
from acidctl.orc.types import OrcType, row_of
from acidctl.rows.convert.conform import How, select_fields
from acidctl.rows.convert.matching import merge_row_types
from acidctl.rows.foreign.format import Format, sniff
from acidctl.rows.read.bucket_numbers import decode_all
from acidctl.rows.read.events import ID_COLUMNS, EventFile, ids_batch, open_event_files, read_ids
from acidctl.storage.port import FileSystem, base_name, parent_of
from acidctl.storage.ranged import MOST_LENGTHS, read_small

_KINDS = dict(zip(ID_COLUMNS, ("int", "bigint", "int", "bigint", "bigint"), strict=True))
_DECODED = {"operationName": "string", "bucketId": "int", "statementId": "int"}


class EventDump:
    """The events of some files in one row type.

    Args:
        columns: synthetic columns, ``row``, or ``row.NAME``; None for all.
        where: a condition in SQL over the synthetic columns.
        decode: add the operation's name, and the bucket and statement id of `bucket`.
        on_error: receives the error of each file that cannot be read, if there are several.

    Attributes:
        types: the row type of the batches.
        files: how many there are.

    Raises:
        NotFoundError: a column does not exist.
        UsageProblem: the condition cannot be used.
    """

    def __init__(
        self,
        sources: Sequence[EventFile],
        columns: Sequence[str] | None,
        where: str | None,
        *,
        decode: bool,
        on_error: Callable[[AcidctlError], None],
    ) -> None:
        self._sources, self._decode, self._on_error = sources, decode, on_error
        self.files = len(sources)
        self._rows = merge_row_types([source.row_type for source in sources] or [OrcType("struct")])
        kinds = {name: OrcType(kind) for name, kind in (_KINDS | (_DECODED if decode else {})).items()}
        self._ids, self._fields = _chosen(columns, list(kinds), self._rows)
        self._predicate = None
        if where is not None:
            from acidctl.rows.scan.condition import parse_condition  # noqa: PLC0415 - it imports sqlglot, which is slow

            self._predicate = parse_condition(where, row_of(kinds.items()))
        fields = [(name, kinds[name]) for name in self._ids]
        wanted = self._rows.names if self._fields is None else self._fields
        self._has_row = self._fields is None or bool(self._fields)
        if self._has_row:
            fields.append(("row", row_of((n, t) for n, t in self._rows.fields() if n in wanted)))
        self.types = row_of(fields)

    def batches(self, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the events, stripe by stripe, at least `limit` of them if there are that many.

        The first `limit` events are read without the rest of their stripe if the first file has that many.

        Raises:
            BadDataError: the only file cannot be read.
        """
        for number, source in enumerate(self._sources):
            try:
                with source.open() as events:
                    first = events.first(limit) if limit and number == 0 and self._predicate is None else None
                    if first is not None:
                        if not self._has_row:
                            first = ids_batch(read_ids(first, source.shown))  # checks the ids
                        yield self._projected(_decoded(first) if self._decode else first, source)
                        return
                    for stripe in range(events.stripes):
                        batch = events.batch(stripe) if self._has_row else ids_batch(events.ids(stripe))
                        batch = _decoded(batch) if self._decode else batch
                        yield self._projected(self._predicate.apply(batch) if self._predicate else batch, source)
            except BadDataError as error:
                if len(self._sources) == 1:
                    raise
                self._on_error(error)

    def _projected(self, batch: pa.RecordBatch, source: EventFile) -> pa.RecordBatch:
        columns = {name: batch.column(name) for name in self._ids}
        if self._fields is None:
            columns["row"] = batch.column("row")  # as the file has it
        elif self._fields:
            how, path = How(parquet=source.format is Format.PARQUET), source.shown
            rows = batch.column("row")
            columns["row"] = select_fields(rows, source.row_type, self._fields, self._rows, path, how=how)
        return pa.RecordBatch.from_pydict(columns)


def _chosen(columns: Sequence[str] | None, names: Sequence[str], rows: OrcType) -> tuple[list[str], list[str] | None]:
    """Return the chosen synthetic columns and fields of `row`; None for the whole row."""
    if columns is None:
        return list(names), None
    known = {name.lower(): name for name in (*names, "row", *(f"row.{name}" for name in rows.names))}
    chosen = []
    for column in columns:
        if column.lower() not in known:
            what = f"no column {column!r} in these files"
            raise NotFoundError(what, f"there are {', '.join(known.values())}", did_you_mean(column, known.values()))
        chosen.append(known[column.lower()])
    fields = None if "row" in chosen else [name for name in rows.names if f"row.{name}" in chosen]
    return [name for name in chosen if name in names], fields


def _decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with the decoded columns before `row`; they are -1 if the codec is unknown."""
    parts = decode_all(batch.column("bucket").to_numpy(zero_copy_only=False))
    operation = batch.column("operation").to_numpy(zero_copy_only=False)
    names = pa.array(["INSERT", "UPDATE", "DELETE", "UNKNOWN"])
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    row = columns.pop("row", None)
    columns["operationName"] = names.take(pa.array(np.where((operation >= 0) & (operation <= 2), operation, 3)))
    columns |= {"bucketId": pa.array(parts.bucket, pa.int32()), "statementId": pa.array(parts.statement, pa.int32())}
    return pa.RecordBatch.from_pydict(columns if row is None else {**columns, "row": row})


_SIDE_FILES = {
    METADATA_ACID: "it records what wrote the base around it",
    ORC_ACID_VERSION: "it holds the version of the ACID format",
    FLUSH_LENGTH_SUFFIX: "it holds how many bytes of the file beside it are committed",
}
"""Files of an ACID directory that hold no rows: the end of their names, and their purpose."""


def event_files_at(
    fs: FileSystem,
    path: str,
    on_error: Callable[[AcidctlError], None] | None = None,
    table_type: TableType | None = None,
) -> list[EventFile]:
    """Return the data files at a path: one file, an ACID directory, or all files of a location.

    Rows without ids get the numbers that readers of the location give them, so its other files may be read too.

    Args:
        on_error: receives the error of each file that cannot be opened, if the path is a directory; None raises it.
        table_type: the type of the table; by default the files show it.

    Raises:
        NotFoundError: the path does not exist, or holds no data file.
        BadDataError: the path is a file that is damaged, not ORC, or not where a reader would open it.
    """
    entry = fs.stat(path)
    if not entry.is_dir:
        return _one_file(fs, path, entry.size, table_type)
    errors: list[AcidctlError] = []
    files = _of_location(fs, path, table_type, is_dir=True, on_error=errors.append)
    for error in errors:
        if on_error is None:
            raise error
        on_error(error)
    if not files and not errors:
        raise NotFoundError(f"no data file in {fs.display(path)}", "it holds no file that a reader would open")
    return files


def _one_file(fs: FileSystem, path: str, size: int, table_type: TableType | None) -> list[EventFile]:
    """Return the file itself, or nothing if it has no committed row."""
    directory, name, length = _acid_directory(parent_of(path)), base_name(path), _flush_length(fs, path)
    if size == 0 and directory and is_native_data_file(name):
        return []
    if length == 0:
        return []
    problem: BadDataError | None = None
    source = ByteSource(fs, path, length, size)
    try:
        tail = read_tail(source)
        if tail.is_acid and table_type is not TableType.INSERT_ONLY:
            role = Role.DELETE if directory and directory.kind == "delete_delta" else Role.INSERT
            file = DataFile(name, size, role, directory, NO_BUCKET, True)
            return [EventFile(fs, file, path, length, tail, None)]
    except BadDataError as error:
        problem = error
    # Only insert-only tables have data files of another format, all of them in ACID directories.
    side = next((_SIDE_FILES[end] for end in _SIDE_FILES if directory and name.endswith(end)), "")
    if problem and side:
        raise _of_other_format(fs.display(path), side)
    if problem and _enclosing(path) is None:
        format_ = sniff(source)
        raise problem if format_ is Format.ORC else _of_other_format(fs.display(path), f"it is {format_}")
    errors: list[AcidctlError] = []
    files = _of_location(fs, path, table_type, is_dir=False, on_error=errors.append)
    if files:
        return files
    if errors:
        raise errors[0]
    why = "readers ignore it because of its name or its place"
    raise problem or BadDataError(f"{fs.display(path)} is not a data file", why)


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


def _of_location(
    fs: FileSystem,
    path: str,
    table_type: TableType | None,
    *,
    is_dir: bool,
    on_error: Callable[[AcidctlError], None],
) -> list[EventFile]:
    """Return the data files below `path`. Files before them are also opened if row numbers depend on their counts.

    Args:
        on_error: receives the error of each file below `path` that cannot be opened.
    """
    location = path if is_dir else parent_of(path)
    if enclosing := _enclosing(location):
        location = parent_of(enclosing)
    elif is_union_subdirectory(base_name(location)):
        location = parent_of(location)
    # Bad metadata of a base does not change the events in its files.
    look = list_location(fs, location).of_type(table_type)
    snapshot = take_snapshot(fs, location, on_bad_metadata=lambda _path, _error: None, look=look)
    files: list[DataFile] = []
    originals = []
    for name, entries in snapshot.listing.files_by_child.items():
        directory = _acid_directory(name)
        if directory is not None and any("/" in entry.path for entry in entries):
            files += data_files_of(directory, entries, table_type)
        else:
            originals += [entry for entry in entries if is_visible_path(entry.path)]
    files = original_files(originals) + sorted(files, key=_by_write_id)

    def is_wanted(file: DataFile) -> bool:
        absolute = snapshot.absolute(file.path)
        return absolute == path or absolute.startswith(path.rstrip("/") + "/")

    def failed(file: DataFile, error: AcidctlError) -> None:
        if is_wanted(file):
            on_error(error)

    opened = open_event_files(snapshot, _needed(files, is_wanted), failed)
    sources = []
    for source in opened:
        if source.format is not Format.ORC and source.file.role is Role.ORIGINAL:
            failed(source.file, _of_other_format(fs.display(source.path), f"it is {source.format}"))
        elif is_wanted(source.file):
            sources.append(source)
    return sources


def _of_other_format(shown: str, why: str) -> BadDataError:
    hint = "only ORC files of ACID tables, and data files of insert-only tables, hold events"
    return BadDataError(f"{shown} is not an ORC file", why, hint)


def _needed(files: Sequence[DataFile], is_wanted: Callable[[DataFile], bool]) -> list[DataFile]:
    """Return the wanted files, and files before them whose row counts determine their row ids."""
    needed: list[DataFile] = []
    counters = set()
    for file in reversed(files):
        counter = (file.directory, file.bucket)
        if is_wanted(file):
            needed.append(file)
            counters.add(counter)
        elif not file.native_name and file.bucket != NO_BUCKET and counter in counters:
            needed.append(file)
    return needed[::-1]


def _by_write_id(file: DataFile) -> tuple[int, bool, str]:
    """Sort in the order of writing; an update's delete events come before its new rows."""
    directory = file.directory
    assert directory is not None
    return directory.max_write_id, directory.kind == "delta", file.path


def _enclosing(path: str) -> str | None:
    """Return the innermost ACID directory that is the path or contains it; None if there is none."""
    while path != parent_of(path):
        if _acid_directory(path) is not None:
            return path
        path = parent_of(path)
    return None
