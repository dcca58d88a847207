"""The work of Spark's tasks for DELETE, UPDATE and MERGE by the rows of a DataFrame.

Tasks write the source to files that no reader sees, one row for each key. Others look for these keys in a part of the
table each, and write the delete events and the new versions of the rows that they find. At last the source rows that
nobody found are inserted. Only counts, names of files, and a bit for each source row come to the driver.
"""

from __future__ import annotations

import pickle
import uuid
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from acidctl.acid.names import Kind, format_directory
from acidctl.orc.types import OrcType
from acidctl.rows.read.delete_set import Keys
from acidctl.rows.scan.predicate import RowCondition
from acidctl.spark.splits import LocationSplit
from acidctl.spark.writing.share import (
    MOST_SHARES,
    ROUTE,
    Attempt,
    InsertTask,
    conformed,
    pickled,
    staging,
    without_route,
)
from acidctl.storage.port import join
from acidctl.storage.registry import open_file_system
from acidctl.writing.merge import MergeRule, MergeSource
from acidctl.writing.rows.bucket_hashes import hash_column
from acidctl.writing.rows.deleted_keys import DeletedKeys
from acidctl.writing.rows.files import StagedRows, write_deletes
from acidctl.writing.rows.key_filter import KeyFilter
from acidctl.writing.rows.key_lookup import comparable
from acidctl.writing.targets import rows_of

_CHUNK_BYTES = 128 << 20
"""A task holds about this many bytes of the source at a time, and indexes of its keys; it reads its part once more for
each further chunk."""

_BATCH_ROWS = 10_000
_MOST_VALUES = 100_000
_MULTIPLIER = np.uint32(31)


@dataclass(frozen=True, slots=True)
class SourceShare:
    """The rows of one Spark partition of the source.

    Attributes:
        path: their file, relative to the room.
        partitions: their values of the table's partition keys that are part of the key, each once; None if these are
            unknown or too many.
    """

    path: str
    rows: int
    bytes: int
    partitions: pa.Table | None


@dataclass(frozen=True, slots=True)
class MergeTask:
    """All that tasks know of the statement.

    Attributes:
        insert: the room, and the form of new files.
        rule: None if all rows are keys of rows to delete.
        shares: the source, once it is written.
    """

    insert: InsertTask
    rule: MergeRule | None
    shares: tuple[SourceShare, ...] = ()

    @property
    def chunks(self) -> Iterator[tuple[SourceShare, ...]]:
        """Yield the shares that a task holds together."""
        chunk, size = list[SourceShare](), 0
        for share in self.shares:
            if chunk and size + share.bytes > _CHUNK_BYTES:
                yield tuple(chunk)
                chunk, size = [], 0
            chunk.append(share)
            size += share.bytes
        if chunk:
            yield tuple(chunk)


@dataclass(frozen=True, slots=True)
class TablePart:
    """A part of the table, for one task.

    Attributes:
        number: from 0.
        splits: with the names of their partitions.
    """

    number: int
    splits: tuple[tuple[str, LocationSplit], ...]


@dataclass(frozen=True, slots=True)
class Changed:
    """The changes of one part of the table.

    Attributes:
        updated: the number of rows that got a new version.
        found: for each share by its path a mask of its rows that were found and do not delete, packed.
    """

    attempt: Attempt
    updated: int
    found: dict[str, bytes]


def packed(bits: NDArray[np.uint8]) -> bytes:
    """Return the bits of a mask, eight rows a byte, in few bytes."""
    return zlib.compress(bits.tobytes(), 1)


def unpacked(mask: bytes) -> NDArray[np.uint8]:
    """Return the bits that :func:`packed` got."""
    return np.frombuffer(zlib.decompress(mask), np.uint8)


def mask_of(bits: NDArray[np.uint8], rows: int) -> NDArray[np.bool_]:
    """Return the mask of `rows` rows that has these bits."""
    return np.unpackbits(bits, count=rows).astype(np.bool_)


# --- the source --------------------------------------------------------------------------------------------------


def with_key_route(task: MergeTask, share: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches with the column ROUTE: a number that equal keys share."""
    routes, extra = task.insert.routes, task.rule.extra if task.rule else []
    names = [name for name in task.insert.names if name.lower() not in extra]
    places = [task.insert.names.index(name) for name in names]
    key = task.rule.key if task.rule else [name.lower() for name in names]
    keys = [(routes.names.index(name), routes.types[routes.names.index(name)]) for name in key]
    pending = list[pa.RecordBatch]()

    def known() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                pending.append(batch)
                yield batch.select(places).rename_columns(names)

    for _, columns in conformed(replace(task.insert, names=()), share, known(), may_delete=True):
        route = np.zeros(len(columns[0]), np.uint32)
        for place, kind in keys:
            route = route * _MULTIPLIER + _hash(columns[place], kind)
        yield pending.pop().append_column(ROUTE, pa.array(route.astype(np.int64)))


def _hash(column: pa.Array, kind: OrcType) -> NDArray[np.uint32]:
    if kind.kind in ("float", "double"):
        (column,) = comparable([column])
    if kind.kind == "binary":  # Hive's own hash is not known, and any will do here
        column, kind = column.view(pa.string()), OrcType("string")
    return hash_column(column, kind, 2)


def written_source(task: MergeTask, share: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write a share of the source, and yield a row with its pickled :class:`SourceShare`, unless it has no rows."""
    yield from map(pickled, write_source(task, share, without_route(batches)))


def write_source(task: MergeTask, share: int, batches: Iterable[pa.RecordBatch]) -> Iterator[SourceShare]:
    """Write one row for each key of a share.

    Raises:
        BadDataError: nothing says which row of a key counts, or a value cannot be used.
    """
    held = [batch.rename_columns(task.insert.names) for batch in batches if batch.num_rows]
    if not held:
        return
    rows = pa.Table.from_batches(held)
    rows = rows.rename_columns([name.lower() for name in rows.column_names])
    if task.rule:
        rows = rows.take(pa.array(MergeSource(task.rule, rows).chosen))
    fs, path = open_file_system(task.insert.storage), f"source-{share}-{uuid.uuid4().hex}"
    with fs.open_output(join(task.insert.room, path)) as sink, pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows, _BATCH_ROWS)
    yield SourceShare(path, rows.num_rows, rows.nbytes, _partition_values(task, rows))


def _partition_values(task: MergeTask, rows: pa.Table) -> pa.Table | None:
    keys = rows.column_names if task.rule is None else task.rule.key
    names = [column.name for column in task.insert.new_files.table.partition_keys if column.name in keys]
    values = rows.select(names).group_by(names).aggregate([]) if names else None
    return values if values is not None and values.num_rows <= _MOST_VALUES else None


def _read(task: MergeTask, share: SourceShare) -> pa.Table:
    with open_file_system(task.insert.storage).open_input(join(task.insert.room, share.path)) as file:
        return pa.ipc.open_stream(file).read_all()


# --- the table ---------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _chunk(task: bytes, at: int) -> tuple[KeyFilter, MergeSource | None]:
    """Return a chunk of the source; the next task of this process often needs the same one."""
    opened: MergeTask = pickle.loads(task)
    rows = pa.concat_tables([_read(opened, share) for share in list(opened.chunks)[at]])
    if opened.rule is None:
        return KeyFilter.of(opened.insert.new_files.table, rows), None
    source = MergeSource(opened.rule, rows)
    return source.filter, source


def changed_parts(task: MergeTask, _: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Change the table's parts that are pickled in the rows, and yield a row with the pickled result for each."""
    for batch in batches:
        for part in batch.column(0).to_pylist():
            yield pickled(change_part(task, pickle.loads(part)))


def change_part(task: MergeTask, part: TablePart) -> Changed:
    """Find the rows of a part that have keys of the source, and write their delete events and new versions.

    Raises:
        BadDataError: a source row would replace several rows, a new version does not fit, or a file cannot be read.
    """
    insert, attempt, sent = task.insert, uuid.uuid4().hex, pickle.dumps(task)
    stage, new_files, routes = staging(insert, attempt), insert.new_files, insert.routes
    statement, number = divmod(part.number, MOST_SHARES) if not new_files.table.buckets else (part.number + 1, 0)
    gone: defaultdict[str, DeletedKeys] = defaultdict(DeletedKeys)
    updated, found = 0, dict[str, bytes]()
    with closing(StagedRows(stage, *new_files.of_statement(statement), flat=True)) as staged:
        for at, chunk in enumerate(task.chunks):
            keys_of, source = _chunk(sent, at)
            seen = np.zeros(sum(share.rows for share in chunk), np.bool_)
            for name, split in part.splits:
                for here, keys, rows in _matches(split, keys_of, source):
                    gone[name].add(keys)
                    if source:
                        assert isinstance(here, KeyFilter)
                        places = here.find(rows.select([path[0] for path in here.paths]).columns)
                        source.meet(seen, places)
                        columns = source.replaced(places, rows)
                        if len(columns[0]):
                            insert.constraints.require_values(routes.names, columns)
                            routes.write(columns, staged, number)
            if source:
                seen &= ~source.is_delete
                updated += int(seen.sum())
                ends = np.cumsum([share.rows for share in chunk])
                for share, mask in zip(chunk, np.split(seen, ends[:-1]), strict=True):
                    if mask.any():
                        found[share.path] = packed(np.packbits(mask))
        directory = format_directory(Kind.DELETE_DELTA, new_files.write_id, new_files.write_id, 0)
        files = [
            file
            for name, keys in gone.items()
            for file in write_deletes(
                stage, name, directory, keys, row=new_files.row, write_id=new_files.write_id, flat=True
            )
        ]
        return Changed(Attempt(attempt, (*files, *staged.finish())), updated, found)


def _matches(
    split: LocationSplit, where: KeyFilter, source: MergeSource | None
) -> Iterator[tuple[RowCondition | None, Keys, pa.RecordBatch]]:
    columns = [path[0] for path in where.paths] + (source.kept if source else [])
    here, batches = rows_of(split.snapshot, split.partition, columns, where, split.only)
    for keys, rows in batches:
        yield here, keys, rows


# --- source rows that are not in the table -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Missing:
    """A share of the source, and a packed mask of its rows that were found in the table."""

    share: SourceShare
    found: bytes


def all_missing(task: MergeTask, _: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows to insert of the shares that are pickled in the rows."""
    for batch in batches:
        for missing in batch.column(0).to_pylist():
            for rows in missing_rows(task, pickle.loads(missing)):
                yield rows.rename_columns([f"c{place}" for place in range(rows.num_columns)])


def missing_rows(task: MergeTask, missing: Missing) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a share that were not found and do not delete, without columns that the table lacks."""
    rule = task.rule
    assert rule
    rows = _read(task, missing.share)
    wanted = ~MergeSource(rule, rows).is_delete & ~mask_of(unpacked(missing.found), rows.num_rows)
    yield from rows.drop_columns(rule.extra).filter(pa.array(wanted)).to_batches(_BATCH_ROWS)
