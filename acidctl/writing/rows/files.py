"""Write new rows and delete events to staged files, one for each location and bucket, hidden from readers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import BinaryIO, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from acidctl.acid.bucket import encode
from acidctl.acid.names import ORC_ACID_VERSION, format_bucket
from acidctl.acid.sidefiles import ORC_ACID_VERSION_2
from acidctl.base import parallel
from acidctl.base.errors import AcidctlError
from acidctl.metastore.client import batches
from acidctl.metastore.tables import BATCH
from acidctl.orc.types import OrcType
from acidctl.orc.write.acid_writer import AcidWriter
from acidctl.orc.write.writer_settings import WriterSettings
from acidctl.rows.read.delete_set import DELETE, Keys
from acidctl.rows.read.events import Ids, with_ids
from acidctl.storage.port import FileSystem
from acidctl.writing.rows.deleted_keys import DeletedKeys
from acidctl.writing.rows.spilled_rows import SpilledRows

_AT_ONCE = 8
"""Files that are written in parallel at the end: most stores take longer to open a small file than to write it."""

FileKey = tuple[str, int]
"""The key of a location, and a bucket number."""


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A file that was written to a staging directory.

    Attributes:
        location: the key of its location, as :class:`StagedRows` got it.
        directory: ``delta_0000007_0000007_0000``.
        name: ``bucket_00000``.
    """

    location: str
    directory: str
    name: str
    rows: int
    bytes: int
    is_delete: bool = False

    @property
    def flat_name(self) -> str:
        """Return its name in a directory with the files of all locations."""
        return flat_name(self.location, self.directory, self.name)


def flat_name(*parts: str) -> str:
    """Return a name that stands for a path; escaped, the path may be too long for a name."""
    return blake2b("/".join(parts).encode(), digest_size=16).hexdigest()


class RowsFile(Protocol):
    """A data file that is being written."""

    def write(self, rows: pa.StructArray) -> None:
        """Append rows: the table's columns in their order and types."""

    def close(self) -> tuple[int, int]:
        """Write the rest, and return the numbers of rows and bytes written; the stream stays open."""


class FileKind(Protocol):
    """The format and the names of a table's new data files."""

    def prepare(self, fs: FileSystem, directory: str) -> None:
        """Write the files that a new directory has besides data files."""

    def name(self, bucket: int) -> str:
        """Return the name of a bucket's file."""

    def open(self, out: BinaryIO, bucket: int) -> RowsFile:
        """Return a new file that is written to a stream."""


class AcidFiles:
    """ORC files with row ids: the files of full-ACID tables.

    Args:
        statement: the statement id, which is in the name of the directory and in the ids of the rows.
    """

    def __init__(self, row: OrcType, write_id: int, statement: int = 0) -> None:
        self._row, self._write_id, self._statement = row, write_id, statement

    def prepare(self, fs: FileSystem, directory: str) -> None:
        """Write the side file ``_orc_acid_version``."""
        fs.write_bytes(f"{directory}/{ORC_ACID_VERSION}", ORC_ACID_VERSION_2)

    def name(self, bucket: int) -> str:
        """Return ``bucket_00000``."""
        return format_bucket(bucket)

    def open(self, out: BinaryIO, bucket: int) -> RowsFile:
        """Return a new file that is written to a stream."""
        writer = AcidWriter(out, self._row, WriterSettings.for_delta())
        return _AcidFile(writer, self._write_id, encode(bucket, self._statement))


class _AcidFile:
    def __init__(self, writer: AcidWriter, write_id: int, property_: int) -> None:
        self._writer, self._write_id, self._property = writer, write_id, property_
        self._rows = 0

    def write(self, rows: pa.StructArray) -> None:
        count = len(rows)
        ids = np.arange(self._rows, self._rows + count, dtype=np.int64)
        keys = Keys(np.full(count, self._write_id), np.full(count, self._property, np.int64), ids)
        self._writer.write(with_ids(Ids(np.zeros(count, np.int64), keys, np.full(count, self._write_id)), rows))
        self._rows += count

    def close(self) -> tuple[int, int]:
        result = self._writer.close()
        return result.rows, result.bytes


class _Open(NamedTuple):
    """A file that is being written, and its stream."""

    sink: BinaryIO
    rows: RowsFile


class StagedRows:
    """Writes the inserted rows of one statement.

    Few files are open at a time, because each holds a stripe in memory. The rows of all others wait on the local disk.

    Args:
        stage: returns the store of a location and the path of its staging directory, which it makes.
        directory: the name of the directory that the files will appear in.
        kind: the format of the files.
        expect: called with many locations before they are staged, to look them up in few calls.
        most_open: the number of files that may be open at a time.
        flat: all files get their :attr:`StagedFile.flat_name` in the directories that `stage` returns, from which
            somebody else moves them.
    """

    def __init__(
        self,
        stage: Callable[[str], tuple[FileSystem, str]],
        directory: str,
        kind: FileKind,
        *,
        expect: Callable[[Sequence[str]], None] = lambda _: None,
        most_open: int = 32,
        flat: bool = False,
    ) -> None:
        self._stage, self._directory, self._kind = stage, directory, kind
        self._expect, self._most_open, self._flat = expect, most_open, flat
        self._directories: dict[str, tuple[FileSystem, str]] = {}
        self._open: dict[FileKey, _Open] = {}
        self._late: dict[FileKey, int] = {}
        self._spilled = SpilledRows()

    def write(self, location: str, bucket: int, rows: pa.StructArray) -> None:
        """Append rows to the file of a location and a bucket.

        Args:
            rows: the table's columns in their order and types.
        """
        self.write_mixed(rows, [(location, bucket)], np.zeros(len(rows), np.int64))

    def ensure(self, locations: Iterable[str]) -> None:
        """Add a file without rows for each location without a file, so that an overwrite leaves an empty base there."""
        filled = {location for location, _ in (*self._open, *self._late)}
        for file in ((location, 0) for location in locations if location not in filled):
            if not self._may_open(file):
                self._late[file] = len(self._late)

    def write_mixed(self, rows: pa.StructArray, files: Sequence[FileKey], which: NDArray[np.int64]) -> None:
        """Append rows, each to its file.

        Args:
            files: location and bucket number of each file, which all get rows.
            which: the index in `files` for each row.

        Raises:
            StorageError: the temporary directory is full.
        """
        is_late = np.array([not self._may_open(file) for file in files], np.bool_)
        for at in map(int, np.flatnonzero(~is_late)):
            chosen = rows if len(files) == 1 else rows.filter(pa.array(which == at))
            self._open[files[at]].rows.write(chosen)
        if is_late.any():
            numbers = np.full(len(files), -1)
            for at in map(int, np.flatnonzero(is_late)):
                numbers[at] = self._late.setdefault(files[at], len(self._late))
            self._spilled.add(rows.filter(pa.array(is_late[which])), numbers[which[is_late[which]]])

    def _may_open(self, file: FileKey) -> bool:
        if file not in self._open and file not in self._late and len(self._open) < self._most_open:
            self._open[file] = self._begin(file)
        return file in self._open

    def _begin(self, file: FileKey) -> _Open:
        location, bucket = file
        if location not in self._directories:
            self._directories[location] = self._made(location)
        fs, directory = self._directories[location]
        name = self._kind.name(bucket)
        name = flat_name(location, self._directory, name) if self._flat else name
        sink = fs.open_output(f"{directory}/{name}")
        return _Open(sink, self._kind.open(sink, bucket))

    def _made(self, location: str) -> tuple[FileSystem, str]:
        fs, staging = self._stage(location)
        if self._flat:
            return fs, staging
        directory = f"{staging}/{self._directory}"
        fs.make_dirs(directory)
        self._kind.prepare(fs, directory)
        return fs, directory

    def finish(self) -> list[StagedFile]:
        """Complete all files, and return them."""
        files = []
        for key in list(self._open):
            files.append(self._finished(key, self._open[key]))
            del self._open[key]
        self._spilled.seal()
        for batch in batches(sorted(self._late), BATCH):
            locations = [name for name in dict.fromkeys(name for name, _ in batch) if name not in self._directories]
            self._expect(locations)
            self._directories.update(zip(locations, parallel.results(self._made, locations), strict=True))
            files += parallel.results(self._write_late, batch, _AT_ONCE)
        self._late.clear()
        self._spilled.close()
        self._spilled = SpilledRows()
        return files

    def _write_late(self, key: FileKey) -> StagedFile:
        file = self._begin(key)
        with file.sink:
            for rows in self._spilled.read(self._late[key]):
                file.rows.write(rows)
            return self._finished(key, file)

    def _finished(self, key: FileKey, file: _Open) -> StagedFile:
        with file.sink:
            rows, size = file.rows.close()
        location, bucket = key
        return StagedFile(location, self._directory, self._kind.name(bucket), rows, size)

    def close(self) -> None:
        """Close all files; only those that :meth:`finish` returned are complete."""
        for file in self._open.values():
            with suppress(AcidctlError):  # another error brought the caller here
                file.sink.close()
        self._spilled.close()


def write_deletes(
    stage: Callable[[str], tuple[FileSystem, str]],
    location: str,
    directory: str,
    keys: DeletedKeys,
    *,
    row: OrcType,
    write_id: int,
    flat: bool = False,
) -> Iterable[StagedFile]:
    """Write delete events of one location to staged files, one for each bucket number, in the order of their keys.

    Args:
        stage: returns the store of a location and the path of its staging directory, which it makes.
        keys: the keys of the deleted rows.
        flat: see :class:`StagedRows`.
    """
    fs, path = stage(location)
    if not flat:
        path = f"{path}/{directory}"
        fs.make_dirs(path)
        fs.write_bytes(f"{path}/{ORC_ACID_VERSION}", ORC_ACID_VERSION_2)
    for number, batches_of_keys in keys.by_number():
        name = format_bucket(number)
        with fs.open_output(f"{path}/{flat_name(location, directory, name) if flat else name}") as sink:
            writer = AcidWriter(sink, row, WriterSettings.for_delta())
            for part in batches_of_keys:
                ids = Ids(np.full(len(part), DELETE), part, np.full(len(part), write_id))
                writer.write(with_ids(ids, pa.nulls(len(part))))
            result = writer.close()
        yield StagedFile(location, directory, name, result.rows, result.bytes, is_delete=True)
