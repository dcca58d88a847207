"""One file of a copy from plan to metrics: in which format, and the function that writes it in any process."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from acidctl.base import parallel
from acidctl.base.errors import RefusedError
from acidctl.iceberg.difference import ClosedFile, opened
from acidctl.iceberg.fields import DAY_KINDS, Field, may_have_old_days
from acidctl.iceberg.keys import RUNS, Longs
from acidctl.iceberg.orc_files.metrics import Metrics, metrics_of
from acidctl.iceberg.orc_files.splice import FileColumns, Splice, file_columns
from acidctl.iceberg.parquet_files.encode import EncodedFile, write_parquet
from acidctl.orc.types import OrcType
from acidctl.rows.convert.matching import fields_of
from acidctl.rows.foreign.format import Format
from acidctl.rows.read.events import EventFile
from acidctl.storage.port import FileSystem


class CopyFormat(StrEnum):
    """The format of the data files of a copy."""

    ORC = "orc"
    PARQUET = "parquet"


AUTO = "auto"
"""The word by which the files of the source decide."""


@dataclass(frozen=True, slots=True)
class AsOrc:
    """Tell whether a file can be copied to ORC, and how.

    Attributes:
        columns: None if it cannot be copied.
        refused: why it cannot.
        why_not: why auto does not choose ORC; empty if it does.
        old_days: a sentence about a column with days that Spark does not find there; empty if there is none.
    """

    columns: FileColumns | None
    refused: RefusedError | None
    why_not: str
    old_days: str

    @classmethod
    def of(cls, source: EventFile, row: OrcType, fields: Sequence[Field | None]) -> AsOrc:
        """Look at a file; for `row` and `fields` see :func:`file_columns`."""
        if source.format is not Format.ORC:
            what, why = f"{source.shown} cannot be copied to Iceberg as ORC", f"it is {source.format}"
            refused = RefusedError(what, why, "migrate into a new table with --format parquet")
            return cls(None, refused, f"{source.shown} is {source.format}", "")
        old_days = _old_days(source, row, fields)
        try:
            return cls(file_columns(source, row, fields), None, old_days, old_days)
        except RefusedError as error:
            return cls(None, error, f"{error.what}: {error.why}", old_days)


def chosen_format(asked: str, files: Iterable[AsOrc]) -> tuple[CopyFormat, str]:
    """Return the format of a copy, and a sentence: why a new copy gets it, or what is wrong with ORC.

    Args:
        asked: a format or :data:`AUTO`.
    """
    if asked == CopyFormat.PARQUET:
        return CopyFormat.PARQUET, ""
    if asked == CopyFormat.ORC:
        why = next((one.old_days for one in files if one.old_days), "")
        return CopyFormat.ORC, f"the copy has ORC files: {why}" if why else ""
    if why := next((one.why_not for one in files if one.why_not), ""):
        return CopyFormat.PARQUET, f"the copy gets Parquet files: {why}"
    return CopyFormat.ORC, ""


def _old_days(source: EventFile, row: OrcType, fields: Sequence[Field | None]) -> str:
    """Return which column may have days that Spark does not find in ORC files; an empty text if there is none."""
    own = source.row_type
    for place, into in zip(fields_of(own, row, is_top=True), fields, strict=True):
        nodes = own.children[place].walk() if place is not None and into else ()
        if into and any(node.kind in DAY_KINDS and may_have_old_days(node, source.tail) for node in nodes):
            return f"{into.name} may have days before 1582-10-15, which Spark does not find in ORC files of Iceberg"
    return ""


@dataclass(frozen=True, slots=True)
class FileTask:
    """A file to write; it can be pickled and sent to another process.

    Attributes:
        stripes: the numbers of those to copy; None for all.
        dead: positions in these stripes of rows that the copy must not show.
        keys: of the rows of the new file, as its footer has them.
        fields: the columns of the copy.
        fs, start: the store and the beginning of the path; each attempt adds an end of its own.
        weight: the bytes of the stripes.
    """

    source: ClosedFile | EventFile
    columns: FileColumns | EncodedFile
    stripes: tuple[int, ...] | None
    dead: Longs
    keys: bytes
    fields: tuple[Field, ...]
    fs: FileSystem
    start: str
    weight: int


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """The file that an attempt wrote."""

    path: str
    metrics: Metrics


Engine = Callable[[Sequence[FileTask]], Iterator[tuple[int, WrittenFile]]]
"""Yields the index and the result of each task, as they end, and raises the error of one that fails."""


def in_threads(jobs: int) -> Engine:
    """Return an engine that writes files in this process, in `jobs` threads."""
    return lambda tasks: enumerate(parallel.results(write_file, tasks, jobs))


def write_file(task: FileTask) -> WrittenFile:
    """Write a file, and compare its bytes.

    Raises:
        BadDataError, StorageError, VerifyError: a file cannot be read or written.
        ConflictError: the file of the source is another one now.
        RefusedError: Iceberg cannot hold a time.
    """
    source, columns, path = opened(task.source), task.columns, f"{task.start}-{uuid.uuid4()}"
    if isinstance(columns, EncodedFile):
        path = f"{path}.parquet"
        metrics = write_parquet(source, columns, task.fs, path, stripes=task.stripes, dead=task.dead, keys=task.keys)
        return WrittenFile(path, metrics)
    path = f"{path}.orc"
    made = Splice(source, columns, task.stripes).write(task.fs, path, {RUNS: task.keys})
    return WrittenFile(path, metrics_of(made, {node.id: node for top in task.fields for node in top.walk()}))
