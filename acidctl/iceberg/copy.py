"""Bring an Iceberg table up to the state of a Hive table: plan what differs, write the files, commit one snapshot.

The first copy is the same work as every later one: at first the copy has no rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from acidctl.acid.writeids import ValidWriteIds
from acidctl.base import parallel
from acidctl.base.errors import AcidctlError, ConflictError, RefusedError
from acidctl.compaction.proof.checksum import RowProof
from acidctl.iceberg.difference import SourceFile, TargetFile, Wanted, difference, source_file
from acidctl.iceberg.directories import by_directories
from acidctl.iceberg.fields import Field
from acidctl.iceberg.keys import RUNS, FileKeys, Longs, Runs
from acidctl.iceberg.orc_files.metrics import metrics_of
from acidctl.iceberg.orc_files.splice import FileColumns, Splice, file_columns
from acidctl.iceberg.target import FILE_PATH, POSITION, CopiedFile, NewDeletes, NewFile, Target, Values
from acidctl.location.snapshot import Snapshot
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.tail import read_tail
from acidctl.orc.types import OrcType
from acidctl.rows.convert.matching import fields_of
from acidctl.rows.foreign.format import Format
from acidctl.rows.read.events import EventFile
from acidctl.rows.read.visibility import load_deletes, open_sources
from acidctl.storage.port import FileSystem, join
from acidctl.storage.registry import open_location

_NO_ROWS = np.zeros(0, np.int64)
_DELETES = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": str(FILE_PATH)}),
        pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": str(POSITION)}),
    ]
)


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file that is going to be copied."""

    wanted: Wanted
    columns: FileColumns
    values: Values


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """Everything that differs.

    Attributes:
        files: to copy.
        gone: for files of the copy, positions of rows that are not shown any more, with the values of the partition.
        copied: the files of the copy as they are.
        source: the number and the checksum of the keys that the source shows, by partition.
        has_keys: the keys of both are the same; those of an insert-only table change when it is compacted.
    """

    files: tuple[PlannedFile, ...] = ()
    gone: tuple[tuple[str, Longs, Values], ...] = ()
    copied: Mapping[Values, Sequence[TargetFile]] = field(default_factory=dict)
    source: Mapping[Values, RowProof] = field(default_factory=dict)
    has_keys: bool = True

    @property
    def is_empty(self) -> bool:
        """Return whether both tables show the same rows."""
        return not self.files and not self.gone

    @property
    def rows(self) -> int:
        """Return the number of new rows."""
        return sum(file.wanted.rows for file in self.files)

    @property
    def deleted(self) -> int:
        """Return the number of rows of the copy that are gone."""
        return sum(len(positions) for _, positions, _ in self.gone)

    @property
    def bytes(self) -> int:
        """Return the bytes of the stripes to copy."""
        total = 0
        for file in self.files:
            stripes = file.wanted.source.events.tail.stripes
            chosen = range(len(stripes)) if file.wanted.stripes is None else file.wanted.stripes
            total += sum(stripes[at].indexLength + stripes[at].dataLength for at in chosen)
        return total

    @property
    def encoded(self) -> dict[str, str]:
        """Return the columns that are encoded again, at least in one file, with the reason."""
        columns = (column for file in self.files for column in file.columns.encoded)
        return {column.field.name: column.why for column in columns}


@dataclass(frozen=True, slots=True)
class Partition:
    """One location of the source.

    Attributes:
        values: of its partition, as the manifests of the target have them.
    """

    snapshot: Snapshot
    values: Values


def plan_copy(
    partitions: Iterable[Partition],
    row: OrcType,
    fields: Sequence[Field | None],
    copied: Mapping[Values, list[TargetFile]],
    added: Collection[int] = (),
    *,
    lists: Sequence[ValidWriteIds] = (),
) -> CopyPlan:
    """Compare a Hive table with its copy.

    Args:
        row: the columns of the Hive table, without those of partitions.
        fields: those of the copy in the same order; None for columns that are left out.
        copied: the files of the copy, by partition.
        added: the positions in `row` of columns that the copy does not have yet.
        lists: the write-id lists that the copy shows.

    Raises:
        RefusedError: a file cannot be copied; it is named.
        BadDataError: a file cannot be read.
    """
    sources: dict[Values, list[SourceFile]] = {}
    snapshots: dict[Values, list[Snapshot]] = {}
    for part in partitions:  # two directories may have one value: p=1 and p=01
        sources.setdefault(part.values, []).extend(_sources(part.snapshot, is_again=bool(copied)))
        snapshots.setdefault(part.values, []).append(part.snapshot)
    has_keys = all(snapshot.listing.is_full_acid for here in snapshots.values() for snapshot in here)
    files: list[PlannedFile] = []
    gone: list[tuple[str, Longs, Values]] = []
    for values in {**sources, **copied}:  # also partitions that the source no longer has
        here = sources.get(values, [])
        if has_keys or not copied:
            found = difference(here, copied.get(values, ()))
        else:
            found = by_directories(snapshots.get(values, ()), here, copied.get(values, ()), lists)
        _require_values_of_old_rows(here, found.wanted, row, added)
        files += [PlannedFile(one, file_columns(one.source.events, row, fields), values) for one in found.wanted]
        gone += [(url, positions, values) for url, positions in found.gone]
    shown = {values: sum((file.keys.proof() for file in here), RowProof()) for values, here in sources.items()}
    return CopyPlan(tuple(files), tuple(gone), copied, shown, has_keys)


def _require_values_of_old_rows(
    sources: Sequence[SourceFile], wanted: Sequence[Wanted], row: OrcType, added: Collection[int]
) -> None:
    """Refuse new columns with values in rows that were copied without them: those rows are not copied again.

    Raises:
        RefusedError: a file may have such rows, by the statistics of its columns.
    """
    new_rows = {id(one.source): one.rows for one in wanted}
    for source in sources if added else ():
        if new_rows.get(id(source), 0) == source.keys.runs.rows - len(source.keys.dead):
            continue
        own = source.events.row_type
        places = fields_of(own, row, is_top=True)
        for place in (place for at in added if (place := places[at]) is not None):
            statistics = source.events.tail.true_statistics(own.children[place].column_id)
            if statistics is None or not statistics.HasField("numberOfValues") or statistics.numberOfValues:
                why = f"{source.events.shown} may have values of {own.names[place]} in rows that were copied without it"
                raise RefusedError("cannot catch up", why, "migrate into a new table")


def _sources(snapshot: Snapshot, *, is_again: bool) -> Iterator[SourceFile]:
    """Yield the data files of a location with their keys."""
    events = open_sources(snapshot)
    deletes = load_deletes(events, snapshot.write_ids)
    for file in events:
        if file.is_delete or not file.rows:
            continue
        if file.format is not Format.ORC:
            raise _refused(file, f"it is {file.format}, and only ORC is copied so far")
        found = source_file(file, snapshot, deletes)
        if is_again and found.has_changes:
            raise _refused(file, "rows were updated in place, as Hive 2 did")
        yield found


def _refused(file: EventFile, why: str) -> RefusedError:
    return RefusedError(f"{file.shown} cannot be copied to Iceberg", why, "let an engine write the table to Iceberg")


def copied_files(target: Target, storage: Mapping[str, str] | None) -> dict[Values, list[TargetFile]]:
    """Return the files of the copy with their keys, by partition.

    Raises:
        BadDataError: a file has no keys, or damaged ones: acidctl did not write it.
    """
    files = list(target.files())
    deleted = _deleted((url for file in files for url in file.delete_urls), storage)
    return _with_keys(files, deleted, storage)


def written_files(
    plan: CopyPlan, new: NewFiles, storage: Mapping[str, str] | None
) -> tuple[dict[Values, list[TargetFile]], dict[Values, list[TargetFile]]]:
    """Return the files of the copy as its next snapshot has them: all of them, and the new ones.

    The new files are read again: the keys of their rows, and the positions of deleted rows.
    """
    deleted = _deleted((file.url for file in new.deletes), storage)
    added = _with_keys(new.files, deleted, storage)
    shown = {
        values: [
            TargetFile(file.url, FileKeys(file.keys.runs, np.union1d(file.keys.dead, deleted.get(file.url, _NO_ROWS))))
            for file in files
        ]
        for values, files in plan.copied.items()
    }
    for values, files in added.items():
        shown[values] = [*shown.get(values, ()), *files]
    return shown, added


def _with_keys(
    files: Sequence[CopiedFile | NewFile], deleted: Mapping[str, Longs], storage: Mapping[str, str] | None
) -> dict[Values, list[TargetFile]]:
    def with_keys(file: CopiedFile | NewFile) -> TargetFile:
        fs, path = open_file(file.url, storage)
        raw = read_tail(ByteSource(fs, path)).user_metadata.get(RUNS)
        if raw is None:
            why = "it has no keys of the Hive table: acidctl did not write it"
            raise RefusedError(f"cannot compare {file.url} with its source", why, "migrate into a new table")
        return TargetFile(file.url, FileKeys(Runs.from_bytes(raw, file.url), deleted.get(file.url, _NO_ROWS)))

    found: dict[Values, list[TargetFile]] = {}
    for file, made in zip(files, parallel.results(with_keys, files), strict=True):
        found.setdefault(file.values, []).append(made)
    return found


def open_file(url: str, storage: Mapping[str, str] | None) -> tuple[FileSystem, str]:
    """Return the store and the path of a file of the copy."""
    folder, _, name = url.rpartition("/")
    fs, path = open_location(folder, storage)
    return fs, join(path, name)


def _deleted(files: Iterable[str], storage: Mapping[str, str] | None) -> dict[str, Longs]:
    """Return the sorted positions of deleted rows by data file, from files with positions."""
    urls = dict.fromkeys(files)

    def read(url: str) -> pa.Table:
        fs, path = open_file(url, storage)
        with fs.open_input(path) as file:
            return pq.read_table(file, columns=["file_path", "pos"])

    parts: dict[str, list[Longs]] = {}
    for table in parallel.results(read, urls):
        paths = table["file_path"].combine_chunks().dictionary_encode()
        codes, positions = paths.indices.to_numpy(), table["pos"].to_numpy()
        for code, url in enumerate(paths.dictionary.to_pylist()):
            parts.setdefault(url, []).append(positions[codes == code])
    return {url: np.unique(np.concatenate(found)).astype(np.int64) for url, found in parts.items()}


class NewFiles:
    """Files that are written for a snapshot; they are removed again if the block that writes them fails.

    Attributes:
        fs, folder: the store and the directory for them.
        files, deletes: what the snapshot gets.
        may_be_shown: the commit has begun; then only a conflict says for sure that no snapshot has them.
    """

    may_be_shown = False

    def __init__(self, fs: FileSystem, folder: str) -> None:
        self.fs, self.folder = fs, folder
        self.files: list[NewFile] = []
        self.deletes: list[NewDeletes] = []
        self._paths: list[str] = []

    def __enter__(self) -> NewFiles:
        self.fs.make_dirs(self.folder)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if kind is None or (self.may_be_shown and not isinstance(error, ConflictError)):
            return
        for path in self._paths:
            with suppress(AcidctlError):
                self.fs.remove_tree(path)

    def new_path(self, suffix: str) -> str:
        """Return a path that no file has."""
        path = f"{self.folder}/acidctl-{uuid.uuid4()}{suffix}"
        self._paths.append(path)
        return path


def write_copy(
    plan: CopyPlan, target: Target, new: NewFiles, jobs: int, on_bytes: Callable[[int], None] = lambda _: None
) -> None:
    """Write the files of a plan.

    Args:
        new: takes the files.
        jobs: files at a time.
        on_bytes: called with the bytes of each file that was copied.

    Raises:
        BadDataError, StorageError, VerifyError: a file cannot be read or written.
    """
    by_id = {node.id: node for top in target.columns for node in top.walk()}

    def write(planned: PlannedFile) -> NewFile:
        path = new.new_path(".orc")
        copy = Splice(planned.wanted.source.events, planned.columns, planned.wanted.stripes)
        made = copy.write(new.fs, path, {RUNS: planned.wanted.runs.to_bytes()})
        on_bytes(made.tail.file_length)
        return NewFile(target.url_of(new.fs, path), planned.values, metrics_of(made, by_id))

    dead = []
    for planned, file in zip(plan.files, parallel.results(write, plan.files, jobs), strict=True):
        new.files.append(file)
        if len(planned.wanted.dead):
            dead.append((file.url, planned.wanted.dead, planned.values))
    new.deletes.extend(parallel.results(partial(_write_deletes, target, new), [*plan.gone, *dead], jobs))


def _write_deletes(target: Target, new: NewFiles, gone: tuple[str, Longs, Values]) -> NewDeletes:
    """Write one file with the positions of deleted rows of one data file."""
    url, positions, values = gone
    path = new.new_path("-deletes.parquet")
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(positions), np.int32)), [url]).cast(pa.string())
    with new.fs.open_output(path) as sink:
        pq.write_table(pa.table([column, pa.array(positions)], schema=_DELETES), sink, compression="zstd")
    return NewDeletes(target.url_of(new.fs, path), url, values, len(positions), new.fs.stat(path).size)
