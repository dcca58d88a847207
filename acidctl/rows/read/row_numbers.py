"""The ids of rows of files that do not store them: originals and raw files (format section 5)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from acidctl.acid import bucket as codec
from acidctl.acid.layout import NO_BUCKET, DataFile, Role, data_files_of
from acidctl.acid.names import AcidDirectory, Kind, acid_directory
from acidctl.acid.writeids import ValidWriteIds
from acidctl.base.errors import AccessError, AcidctlError, BadDataError, NotFoundError
from acidctl.orc.read.reader import open_orc
from acidctl.orc.tail import Tail

if TYPE_CHECKING:
    from acidctl.location.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Synthetic:
    """The ids of the rows of a file that does not store them.

    Attributes:
        write_id: of every row, as original and current transaction; 0 for original files.
        bucket: encoded; ``NO_BUCKET`` if the file's name has no number.
        first_row_id: of the file's first row.
    """

    write_id: int
    bucket: int
    first_row_id: int


class RowNumbers:
    """Numbers the rows of files without ids, file by file in read order."""

    def __init__(self, snapshot: Snapshot, files: Sequence[DataFile]) -> None:
        self._snapshot, self._files = snapshot, files
        self._next: dict[tuple[str, int], int] = {}
        self._stopped: dict[tuple[str, int], str] = {}

    @cached_property
    def _version(self) -> int:
        """The bucket codec of this location's original files: the one of its other files.

        Hive 3 and newer encode the bucket number (section 5.1). Hive 2 stored the plain number, and its delete events
        refer to originals by it. The first row of any native file decides, even if the snapshot does not see the file,
        because ROW__IDs must be the same in every snapshot. Without native files it is today's codec.
        """
        for file in self._files:
            with suppress(BadDataError, NotFoundError, AccessError):  # opening it raises the error
                version = _codec_of(self._snapshot, file)
                if version is not None:
                    return version
        seen = {file.path for file in self._files}
        directories = (
            (acid_directory(name), entries) for name, entries in self._snapshot.listing.files_by_child.items()
        )
        natives = (data_files_of(directory, entries) for directory, entries in directories if directory is not None)
        for file in itertools.chain.from_iterable(natives):
            if file.path not in seen:
                # A file that the snapshot does not read may be half written or damaged; that must not fail the read.
                with suppress(AcidctlError):
                    version = _codec_of(self._snapshot, file)
                    if version is not None:
                        return version
        return 1

    def stop(self, file: DataFile) -> None:
        """Note a file whose rows cannot be counted, so that the rows after them cannot be numbered."""
        if file.bucket != NO_BUCKET and not file.native_name:
            self._stopped.setdefault(_counter(file), file.path)

    def of(self, file: DataFile, tail: Tail) -> Synthetic:
        """Return the ids of a file's rows; raises BadDataError if it must hold them, or follows an uncounted file."""
        if file.role is Role.DELETE or file.native_name:
            raise BadDataError(
                f"{tail.path} is not an ACID file",
                "it lacks the columns operation, originalTransaction, bucket, rowId, currentTransaction and row",
                "the file does not belong here, or was overwritten: restore it",
            )
        directory, counter = file.directory, _counter(file)
        if counter in self._stopped:
            raise BadDataError(
                f"the rows of {tail.path} cannot be numbered",
                f"they follow those of {self._snapshot.display(self._stopped[counter])}, which cannot be counted",
                "restore that file",
            )
        first = self._next.get(counter, 0)
        self._next[counter] = first + tail.rows
        if file.bucket == NO_BUCKET:
            value = NO_BUCKET
        elif directory is None:
            value = codec.encode(file.bucket, version=self._version)
        else:
            value = codec.encode(file.bucket, directory.statement_id)
        return Synthetic(_raw_write_id(directory, self._snapshot.write_ids) if directory else 0, value, first)


def _counter(file: DataFile) -> tuple[str, int]:
    return file.directory.name if file.directory else "", file.bucket


def _raw_write_id(directory: AcidDirectory, write_ids: ValidWriteIds) -> int:
    """Return the write id of the rows of a raw directory: the last that the snapshot sees.

    A directory that a compaction made has rows of several write ids, and none of aborted ones (section 11): it counts
    as a whole, although its last write id may have been aborted or be open.
    """
    last = directory.max_write_id
    if write_ids.is_valid(last):
        return last
    low = 0 if directory.kind is Kind.BASE else directory.min_write_id
    skipped = set(write_ids.exceptions_in(low, last))
    write_id = min(last, write_ids.high_watermark)
    while write_id in skipped:
        write_id -= 1
    return write_id if write_id >= low else last


def _codec_of(snapshot: Snapshot, file: DataFile) -> int | None:
    """Return the codec of a file's first row; None if it has no rows."""
    length = snapshot.logical_length(file) if file.native_name else 0
    if not file.size or length == 0:
        return None
    with open_orc(snapshot.fs, snapshot.absolute(file.path), length) as orc:
        if not (orc.is_acid and orc.tail.rows):
            return None
        value = orc.read_stripe(0, ["bucket"]).column(0)[0].as_py()
    return codec.decode(value or 0).version
