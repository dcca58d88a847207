"""Bring an Iceberg table up to the state of a Hive table: plan what differs, write the files, commit one snapshot.

The first copy is the same work as every later one: at first the copy has no rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from acidctl.acid.writeids import ValidWriteIds
from acidctl.base import parallel
from acidctl.base.errors import AcidctlError, ConflictError, RefusedError
from acidctl.compaction.proof.checksum import RowProof
from acidctl.iceberg.difference import (
    ClosedFile,
    SourceFile,
    TargetFile,
    Wanted,
    difference,
    opened,
    replaced,
    source_file,
)
from acidctl.iceberg.directories import by_directories
from acidctl.iceberg.fields import Field
from acidctl.iceberg.file_tasks import (
    AUTO,
    AsOrc,
    CopyFormat,
    Engine,
    FileTask,
    WrittenFile,
    chosen_format,
    in_threads,
)
from acidctl.iceberg.keys import RUNS, FileKeys, Longs, Runs, without
from acidctl.iceberg.orc_files.splice import FileColumns
from acidctl.iceberg.parquet_files.encode import EncodedFile, pieces
from acidctl.iceberg.parquet_files.read import read_keys, text_of
from acidctl.iceberg.private_api import url_of
from acidctl.iceberg.target import FILE_PATH, POSITION, CopiedFile, NewDeletes, NewFile, Target, Values
from acidctl.location.snapshot import Snapshot
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.tail import read_tail
from acidctl.orc.types import OrcType
from acidctl.rows.convert.matching import fields_of
from acidctl.rows.foreign.format import Format
from acidctl.rows.foreign.parquet_reader import open_parquet, window_on
from acidctl.rows.read.events import EventFile
from acidctl.rows.read.visibility import load_deletes, open_sources
from acidctl.storage.port import FileSystem, base_name, join
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
    columns: FileColumns | EncodedFile
    values: Values

    @property
    def keys(self) -> FileKeys:
        """Return the keys of its rows in the copy; Parquet files get no dead rows."""
        runs, dead = self.wanted.runs, self.wanted.dead
        return FileKeys(without(runs, dead)[0], _NO_ROWS) if self.is_parquet else FileKeys(runs, dead)

    @property
    def is_parquet(self) -> bool:
        """Return whether all of its columns are encoded again."""
        return isinstance(self.columns, EncodedFile)

    @property
    def bytes(self) -> int:
        """Return the bytes of the stripes to copy."""
        sizes, chosen = self.wanted.source.sizes, self.wanted.stripes
        return sum(sizes if chosen is None else (sizes[at] for at in chosen))


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """Everything that differs.

    Attributes:
        files: to copy.
        gone: for files of the copy, positions of rows that are not shown any more, with the values of the partition.
        copied: the files of the copy as they are.
        source: the number and the checksum of the keys that the source shows, by partition.
        has_keys: the keys of both are the same; those of an insert-only table change when it is compacted.
        format: of the files of the copy.
        why: see :func:`chosen_format`.
    """

    files: tuple[PlannedFile, ...] = ()
    gone: tuple[tuple[str, Longs, Values], ...] = ()
    copied: Mapping[Values, Sequence[TargetFile]] = field(default_factory=dict)
    source: Mapping[Values, RowProof] = field(default_factory=dict)
    has_keys: bool = True
    format: CopyFormat = CopyFormat.ORC
    why: str = ""

    @property
    def is_empty(self) -> bool:
        """Return whether both tables show the same rows."""
        return not self.files and not self.gone

    @property
    def rows(self) -> int:
        """Return the number of new rows."""
        return sum(file.wanted.rows for file in self.files)

    @property
    def dead(self) -> int:
        """Return the number of rows in the stripes to copy that the copy does not show."""
        return sum(len(file.wanted.dead) for file in self.files)

    @property
    def deleted(self) -> int:
        """Return the number of rows of the copy that are gone."""
        return sum(len(positions) for _, positions, _ in self.gone)

    @property
    def bytes(self) -> int:
        """Return the bytes of the stripes to copy."""
        return sum(file.bytes for file in self.files)

    @property
    def encoded(self) -> dict[str, str]:
        """Return the columns that are encoded again, at least in one file, with the reason."""
        some = (file.columns for file in self.files)
        columns = (column for one in some if isinstance(one, FileColumns) for column in one.encoded)
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
    changed: Mapping[int, str | None] | None = None,
    *,
    has_others: Callable[[Values, Sequence[SourceFile], Sequence[TargetFile]], bool] = lambda *_: False,
    lists: Sequence[ValidWriteIds] = (),
    asked: str = AUTO,
) -> CopyPlan:
    """Compare a Hive table with its copy.

    Args:
        row: the columns of the Hive table, without those of partitions.
        fields: those of the copy in the same order; None for columns that are left out.
        copied: the files of the copy, by partition.
        changed: by their position in `row`, the names that columns have in the copy; None for those that it lacks.
        has_others: tells whether files of a partition have other values than its copy, under the same keys if rows have
            keys; then all rows of the partition are copied again.
        lists: the write-id lists that the copy shows.
        asked: the format of the copy; auto lets the files decide.

    Raises:
        RefusedError: a file cannot be copied; it is named.
        BadDataError: a file cannot be read.
    """
    known: dict[int, AsOrc] = {}
    shared: dict[FileColumns | None, FileColumns | None] = {}

    def look_at(events: EventFile) -> AsOrc:
        found = AsOrc.of(events, row, fields)
        return replace(found, columns=shared.setdefault(found.columns, found.columns))

    sources: dict[Values, list[SourceFile]] = {}
    snapshots: dict[Values, list[Snapshot]] = {}
    for part in partitions:  # two directories may have one value: p=1 and p=01
        here = sources.setdefault(part.values, [])
        for source, events in _sources(part.snapshot, is_again=bool(copied)):
            here.append(source)
            if not copied:  # all of them are going to be copied: their footers are not read once more
                known[id(source)] = look_at(events)
        snapshots.setdefault(part.values, []).append(part.snapshot)
    has_keys = rows_have_keys(snapshot for here in snapshots.values() for snapshot in here)
    wanted: list[tuple[Wanted, Values]] = []
    gone: list[tuple[str, Longs, Values]] = []
    for values in {**sources, **copied}:  # also partitions that the source no longer has
        here, there = sources.get(values, []), copied.get(values, [])
        if copied and not has_keys:
            found = by_directories(snapshots.get(values, ()), here, there, lists, partial(has_others, values))
        else:
            is_other = here and there and has_others(values, here, there)
            found = (replaced if is_other else difference)(here, there)
        _require_values_of_old_rows(here, found.wanted, row, changed or {})
        wanted += [(one, values) for one in found.wanted]
        gone += [(url, positions, values) for url, positions in found.gone]
    looked_at = parallel.results(
        lambda source: known.get(id(source)) or look_at(opened(source.events)),
        [] if asked == CopyFormat.PARQUET else [one.source for one, _ in wanted],
    )
    found_as = {id(one): as_orc for (one, _), as_orc in zip(wanted, looked_at, strict=False)}
    kind, why = chosen_format(asked, found_as.values())
    files: list[PlannedFile] = []
    for one, values in wanted:
        if kind is CopyFormat.PARQUET:
            files += (PlannedFile(piece, EncodedFile(row, tuple(fields)), values) for piece in pieces(one))
        elif (as_orc := found_as[id(one)]).columns is None:
            assert as_orc.refused
            raise as_orc.refused
        else:
            files.append(PlannedFile(one, as_orc.columns, values))
    shown = {values: sum((file.keys.proof() for file in here), RowProof()) for values, here in sources.items()}
    return CopyPlan(tuple(files), tuple(gone), copied, shown, has_keys, kind, why)


def rows_have_keys(snapshots: Iterable[Snapshot]) -> bool:
    """Return whether the rows of a table keep their keys: not those of an insert-only one.

    Without a metastore a location of a full-ACID table does not show its type if it has only original files, or none.
    """
    known = {snapshot.listing.is_full_acid for snapshot in snapshots}
    return True in known or not known


def _require_values_of_old_rows(
    sources: Sequence[SourceFile], wanted: Sequence[Wanted], row: OrcType, changed: Mapping[int, str | None]
) -> None:
    """Refuse changes of columns that give rows which were copied before other values: they are not copied again.

    Raises:
        RefusedError: a file may have such rows, by the statistics of its columns, or by their names.
    """
    new_rows = {id(one.source): one.rows for one in wanted}
    for source in sources if changed else ():
        if new_rows.get(id(source), 0) == source.keys.runs.rows - len(source.keys.dead):
            continue
        events, why = opened(source.events), ""
        place_in = _finder(events)
        for at, old in changed.items():
            name, place = row.names[at], place_in(row, at)
            if old is None:
                if place is not None and _may_have_values(events, place):
                    why = f"{events.shown} may have values of {name} in rows that were copied without it"
            elif place != place_in(replace(row, names=(*row.names[:at], old, *row.names[at + 1 :])), at):
                why = f"Hive finds columns by name in {events.shown}, and {name} was {old} when it was copied"
            if why:
                raise RefusedError("cannot catch up", why, "migrate into a new table")


def _finder(events: EventFile) -> Callable[[OrcType, int], int | str | None]:
    """Return a function of columns and a position that says where a file has this column; None if it lacks it."""
    if events.format is not Format.PARQUET:
        return lambda row, at: fields_of(events.row_type, row, is_top=True)[at]
    source = events.tail.source  # its row type has all columns of the table
    with open_parquet(source, window=window_on(source)) as file:
        names = {name.lower() for name in file.schema_arrow.names}
    return lambda row, at: name if (name := row.names[at].lower()) in names else None


def _may_have_values(events: EventFile, place: int | str) -> bool:
    if isinstance(place, str):
        return True
    found = events.tail.true_statistics(events.row_type.children[place].column_id)
    return found is None or not found.HasField("numberOfValues") or found.numberOfValues > 0


def _sources(snapshot: Snapshot, *, is_again: bool) -> Iterator[tuple[SourceFile, EventFile]]:
    """Yield the data files of a location with their keys, each also with its footer, which is not to be kept."""
    events = open_sources(snapshot)
    deletes = load_deletes(events, snapshot.write_ids)
    for file in events:
        if file.is_delete or not file.rows:
            continue
        found = source_file(file, snapshot, deletes)
        if is_again and found.has_changes:
            raise _refused(file, "rows were updated in place, as Hive 2 did")
        yield replace(found, events=ClosedFile.of(file)) if file.format is Format.ORC else found, file


def _refused(file: EventFile, why: str) -> RefusedError:
    return RefusedError(f"{file.shown} cannot be copied to Iceberg", why, "let an engine write the table to Iceberg")


def copied_files(target: Target, storage: Mapping[str, str] | None) -> dict[Values, list[TargetFile]]:
    """Return the files of the copy with their keys, by partition.

    Raises:
        BadDataError: a file has no keys, or damaged ones: acidctl did not write it.
    """
    files = list(target.files())
    deleted = _deleted((url for file in files for url in file.delete_urls), storage)
    return _with_keys(files, deleted, storage, target.format)


def written_files(
    plan: CopyPlan, new: NewFiles, storage: Mapping[str, str] | None
) -> tuple[dict[Values, list[TargetFile]], dict[Values, list[TargetFile]]]:
    """Return the files of the copy as its next snapshot has them: all of them, and the new ones.

    The new files are read again: the keys of their rows, and the positions of deleted rows.
    """
    deleted = _deleted((file.url for file in new.deletes), storage)
    added = _with_keys(new.files, deleted, storage, plan.format)
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
    files: Sequence[CopiedFile | NewFile],
    deleted: Mapping[str, Longs],
    storage: Mapping[str, str] | None,
    kind: str,
) -> dict[Values, list[TargetFile]]:
    def with_keys(file: CopiedFile | NewFile) -> TargetFile:
        fs, path = open_file(file.url, storage)
        is_orc = kind == CopyFormat.ORC
        raw = read_tail(ByteSource(fs, path)).user_metadata.get(RUNS) if is_orc else read_keys(fs, path)
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

    Args:
        location: the URL of the table's directory, as its metadata has it: its engines may know no other spelling of
            the scheme.

    Attributes:
        fs, folder: the store and the directory for them.
        files, deletes: what the snapshot gets.
        may_be_shown: the commit has begun; then only a conflict says for sure that no snapshot has them.
    """

    may_be_shown = False

    def __init__(self, location: str, storage: Mapping[str, str] | None) -> None:
        self.fs, path = open_location(location, storage)
        self.folder = join(path, "data")
        self._url = f"{location.rstrip('/')}/data" if "://" in location else url_of(self.fs, self.folder)
        self.files: list[NewFile] = []
        self.deletes: list[NewDeletes] = []
        self._run = f"acidctl-{uuid.uuid4()}"

    def __enter__(self) -> NewFiles:
        self.fs.make_dirs(self.folder)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if kind is None or (self.may_be_shown and not isinstance(error, ConflictError)):
            return
        self.remove()

    def url_of(self, path: str) -> str:
        """Return the path of a file as the metadata of the table has it."""
        return f"{self._url}/{base_name(path)}"

    def start_of(self, number: int) -> str:
        """Return the beginning of the path of a file of this run."""
        return f"{self.folder}/{self._run}-{number}"

    def remove(self, kept: Collection[str] = ()) -> None:
        """Remove the files of this run but those that are kept, whichever process wrote them."""
        with suppress(AcidctlError):
            for entry in self.fs.list_dir(self.folder).entries:
                path = join(self.folder, base_name(entry.path))
                if base_name(path).startswith(self._run) and path not in kept:
                    self.fs.remove_tree(path)


def write_copy(
    plan: CopyPlan,
    target: Target,
    new: NewFiles,
    jobs: int,
    on_bytes: Callable[[int], None] = lambda _: None,
    *,
    engine: Engine | None = None,
) -> None:
    """Write the files of a plan.

    Args:
        new: takes the files.
        jobs: files at a time in this process.
        on_bytes: called with the bytes that were read for each file.
        engine: writes the data files instead of this process; the same file may then be written more than once.

    Raises:
        BadDataError, StorageError, VerifyError: a file cannot be read or written.
    """
    tasks = [_task(planned, target, new, number) for number, planned in enumerate(plan.files)]
    made: dict[int, WrittenFile] = {}
    for number, written in (engine or in_threads(jobs))(tasks):
        made[number] = written
        on_bytes(tasks[number].weight)
    if engine:
        new.remove({written.path for written in made.values()})
    gone = list(plan.gone)
    for number, planned in enumerate(plan.files):
        file = NewFile(new.url_of(made[number].path), planned.values, made[number].metrics)
        new.files.append(file)
        if len(planned.keys.dead):
            gone.append((file.url, planned.keys.dead, planned.values))
    write = partial(_write_deletes, new)
    new.deletes.extend(parallel.results(write, list(enumerate(gone)), jobs))


def _task(planned: PlannedFile, target: Target, new: NewFiles, number: int) -> FileTask:
    wanted, keys = planned.wanted, planned.keys.runs.to_bytes()
    return FileTask(
        wanted.source.events,
        planned.columns,
        wanted.stripes,
        wanted.dead,
        text_of(keys) if planned.is_parquet else keys,
        target.columns,
        new.fs,
        new.start_of(number),
        planned.bytes,
    )


def _write_deletes(new: NewFiles, gone: tuple[int, tuple[str, Longs, Values]]) -> NewDeletes:
    """Write one file with the positions of deleted rows of one data file."""
    number, (url, positions, values) = gone
    path = f"{new.start_of(number)}-deletes.parquet"
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(positions), np.int32)), [url]).cast(pa.string())
    with new.fs.open_output(path) as sink:
        pq.write_table(pa.table([column, pa.array(positions)], schema=_DELETES), sink, compression="zstd")
    return NewDeletes(new.url_of(path), url, values, len(positions), new.fs.stat(path).size)
