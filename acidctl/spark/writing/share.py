"""The work of one Spark task: its share of the rows of an INSERT becomes files that no reader sees.

A task may run twice at the same time, so each attempt writes to a directory of its own. The driver takes the files of
one attempt for each task, the one whose result Spark accepted.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import pyarrow as pa

from acidctl.acid.bucket import MAX_BUCKET, MAX_STATEMENT
from acidctl.base.errors import RefusedError
from acidctl.storage.port import FileSystem, FileSystemSpec, join
from acidctl.storage.registry import open_file_system
from acidctl.writing.constraints import Constraints
from acidctl.writing.rows.conform import RowConformer
from acidctl.writing.rows.files import StagedFile, StagedRows
from acidctl.writing.rows.routes import Routes
from acidctl.writing.rows.sources import RowPart
from acidctl.writing.write import NewFiles

ROUTE = "__acidctl_route"
"""The column by which rows of the same file are brought together."""

MOST_SHARES = MAX_BUCKET + 1
"""A base has files for at most this many tasks, if the table has no buckets."""


@dataclass(frozen=True, slots=True)
class InsertTask:
    """All that tasks know of an INSERT.

    Attributes:
        storage: the store of the table.
        room: the hidden directory for files of all attempts.
        is_routed: rows of the same bucket are in the same share.
        first: the number of the first share, if lower ones are taken.
        names: the names of the columns, if batches have others: PySpark cannot map a DataFrame with a dot in a name.
    """

    routes: Routes
    constraints: Constraints
    new_files: NewFiles
    storage: FileSystemSpec
    room: str
    is_routed: bool = False
    names: tuple[str, ...] = ()
    first: int = 0


@dataclass(frozen=True, slots=True)
class Attempt:
    """The files of one attempt of a task.

    Attributes:
        name: its directory in the room.
    """

    name: str
    files: tuple[StagedFile, ...]

    def with_paths(self) -> Iterator[tuple[str, StagedFile]]:
        """Yield each file with its path, relative to the room."""
        for file in self.files:
            yield join(self.name, file.flat_name), file


def write_share(task: InsertTask, share: int, batches: Iterable[pa.RecordBatch]) -> Attempt:
    """Write the rows of one share.

    Args:
        share: its number, from 0; each share has files of its own.

    Raises:
        BadDataError: a row does not fit into the table.
        RefusedError: there are too many shares, or a partition value cannot be written.
    """
    attempt, number, statement = uuid.uuid4().hex, 0, 0
    if not task.new_files.table.buckets:
        statement, number = divmod(task.first + share, MOST_SHARES)
    elif not task.is_routed:
        statement = share
    if statement > (0 if task.new_files.replaces else MAX_STATEMENT):
        why = "every one needs a file of its own, and a table has no names for more"
        raise RefusedError("the DataFrame has too many partitions", why, "coalesce it, or call acidctl.spark.insert")
    routes = task.routes
    with closing(StagedRows(staging(task, attempt), *task.new_files.of_statement(statement), flat=True)) as rows:
        for _, columns in conformed(task, share, batches):
            routes.write(columns, rows, number)
        return Attempt(attempt, tuple(rows.finish()))


def staging(task: InsertTask, attempt: str) -> Callable[[str], tuple[FileSystem, str]]:
    """Make the directory for all files of an attempt; return a function from any location to its store and itself."""
    fs, directory = open_file_system(task.storage), join(task.room, attempt)
    fs.make_dirs(directory, below=task.room)  # the driver removes the room when a task fails, and others still run
    return lambda _: (fs, directory)


def conformed(
    task: InsertTask, share: int, batches: Iterable[pa.RecordBatch], *, may_delete: bool = False
) -> Iterator[tuple[pa.RecordBatch, list[pa.Array]]]:
    """Yield each batch that has rows with its columns as the table has them.

    Args:
        may_delete: the rows may have values that the table could not have, because they need not be written.
    """
    routes, conformer = task.routes, None
    for batch in batches:
        if batch.num_rows:
            if conformer is None:
                schema = batch.rename_columns(task.names).schema if task.names else batch.schema
                part = RowPart(f"partition {share} of the DataFrame", pa.RecordBatchReader.from_batches(schema, []))
                if may_delete:
                    conformer = RowConformer(schema, routes.names, routes.types, part)
                else:
                    conformer = routes.conformer(schema, part, task.constraints.not_null)
            yield batch, conformer.columns(batch)


def with_route(task: InsertTask, share: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches with the column ROUTE: a number that all rows of one file share."""
    for batch, columns in conformed(task, share, batches):
        files, which = task.routes.files(columns)
        numbers = np.array([crc32(f"{location}/{bucket}".encode()) for location, bucket in files], np.int64)
        yield batch.append_column(ROUTE, pa.array(numbers[which]))


def written(task: InsertTask, share: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write a share, and yield one row: the pickled attempt."""
    yield pickled(write_share(task, share, without_route(batches) if task.is_routed else batches))


def pickled(value: object) -> pa.RecordBatch:
    """Return a row for the driver, with the column `value`."""
    return pa.record_batch([pa.array([pickle.dumps(value)])], names=["value"])


def without_route(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches without the column ROUTE."""
    for batch in batches:
        yield batch.drop_columns([ROUTE])
