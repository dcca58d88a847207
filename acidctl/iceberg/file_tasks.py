"""One file of a copy from plan to metrics: in which format, and the function that writes it in any process."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from acidctl.base import parallel
from acidctl.base.errors import RefusedError
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


def chosen_format(
    asked: str, sources: Iterable[EventFile], row: OrcType, fields: Sequence[Field | None]
) -> tuple[CopyFormat, str]:
    """Return the format of a copy, and a sentence: why a new copy gets it, or what is wrong with ORC.

    Args:
        asked: a format or :data:`AUTO`.
        row, fields: see :func:`file_columns`.
    """
    if asked == CopyFormat.PARQUET:
        return CopyFormat.PARQUET, ""
    if asked == CopyFormat.ORC:
        why = next((why for source in sources if (why := _old_days(source, row, fields))), "")
        return CopyFormat.ORC, f"the copy has ORC files: {why}" if why else ""
    why = next((why for source in sources if (why := _why_not_orc(source, row, fields))), "")
    if why:
        return CopyFormat.PARQUET, f"the copy gets Parquet files: {why}"
    return CopyFormat.ORC, ""


def _why_not_orc(source: EventFile, row: OrcType, fields: Sequence[Field | None]) -> str:
    """Return why a file must not be copied as ORC; an empty text if it may be."""
    if source.format is not Format.ORC:
        return f"{source.shown} is {source.format}"
    try:
        file_columns(source, row, fields)
    except RefusedError as error:
        return f"{error.what}: {error.why}"
    return _old_days(source, row, fields)


def _old_days(source: EventFile, row: OrcType, fields: Sequence[Field | None]) -> str:
    """Return which column may have days that Spark does not find in ORC files; an empty text if there is none."""
    own = source.row_type
    for place, into in zip(fields_of(own, row, is_top=True), fields, strict=True):
        nodes = own.children[place].walk() if place is not None and into else ()
        if into and any(node.kind in DAY_KINDS and may_have_old_days(node, source.tail) for node in nodes):
            return f"{into.name} may have days before 1582-10-15, which Spark does not find in ORC files of Iceberg"
    return ""


def columns_of(
    source: EventFile, row: OrcType, fields: Sequence[Field | None], kind: CopyFormat
) -> FileColumns | EncodedFile:
    """Return how the columns of a file get into the copy.

    Args:
        row, fields: see :func:`file_columns`.

    Raises:
        RefusedError: the file cannot be copied in this format.
    """
    if kind is CopyFormat.PARQUET:
        return EncodedFile(row, tuple(fields))
    if source.format is not Format.ORC:
        what, why = f"{source.shown} cannot be copied to Iceberg as ORC", f"it is {source.format}"
        raise RefusedError(what, why, "migrate into a new table with --format parquet")
    return file_columns(source, row, fields)


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

    source: EventFile
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
        RefusedError: Iceberg cannot hold a time.
    """
    source, columns, path = task.source, task.columns, f"{task.start}-{uuid.uuid4()}"
    if isinstance(columns, EncodedFile):
        path = f"{path}.parquet"
        metrics = write_parquet(source, columns, task.fs, path, stripes=task.stripes, dead=task.dead, keys=task.keys)
        return WrittenFile(path, metrics)
    path = f"{path}.orc"
    made = Splice(source, columns, task.stripes).write(task.fs, path, {RUNS: task.keys})
    return WrittenFile(path, metrics_of(made, {node.id: node for top in task.fields for node in top.walk()}))
