"""Merge-on-read: the rows a reader of one snapshot sees in one location (format sections 4 to 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from acidctl.errors import BadDataError, UsageProblem
from acidctl.location.snapshot import Snapshot
from acidctl.orc.types import OrcType, arrow_type, row_of
from acidctl.rows.read.delete_set import Bools, DeleteSet
from acidctl.rows.read.events import ID_COLUMNS, EventFile, EventReader, Ids, read_ids
from acidctl.rows.read.schema_evolution import table_row_type
from acidctl.rows.read.selection import kept_rows, without_places
from acidctl.rows.read.stripe_key_ranges import StripeRange
from acidctl.rows.read.visibility import (
    OnLoss,
    Unreadable,
    changed,
    dead_rows,
    live_rows,
    load_deletes,
    loss_of,
    lost_rows,
    open_sources,
    refuse_changed,
    row_types,
    with_loss,
)
from acidctl.rows.scan.columns import ROW_ID_TYPE, ColumnSource, FileColumns, Namespace, PartitionColumn, ScanColumn
from acidctl.rows.scan.predicate import Path, Predicate
from acidctl.rows.scan.pruning import ColumnBounds
from acidctl.rows.scan.stripe_columns import known_of_partition, known_of_stripe


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read of a stripe; `ids` where they are needed."""

    source: EventFile
    ids: Ids | None
    rows: pa.StructArray
    files: FileColumns


def _parsed(where: str, row: OrcType) -> Predicate:
    from acidctl.rows.scan.condition import parse_condition  # noqa: PLC0415 - with sqlglot: only for a condition

    return parse_condition(where, row)


class Scan:
    """The rows of one location, in Arrow batches, a stripe at a time.

    Args:
        snapshot: what is read, and which write ids count.
        columns, where, row_id, deleted, on_loss: as for :meth:`acidctl.rows.scan.table.Table.scan`, or a column itself;
            stripes that cannot hold rows for which the condition is true are not read.
        skipping: a condition by which stripes are skipped as by `where`; rows that do not meet it are given all
            the same.
        only: numbers of the stripes to read by the file's path relative to the location; files that are not named are
            not read. What is deleted does not depend on it. None for all.
        partition: further columns with the same value in all rows.
        row_type: of the result; by default that of the location's files together.
        sources: the files of the snapshot, when they have been opened already.
        deletes: gives what kills its rows, where somebody else may have read that already.

    Attributes:
        where: the condition, parsed.
        deleted: as given.
        sources: the files of the snapshot.
        columns: of the result, in its order.

    Raises:
        HistoryError: the snapshot needs history that a compaction destroyed.
        NotFoundError: a column that no file has, with the nearest names.
        UsageProblem: a condition that cannot be used, or a column asked for twice.
        BadDataError: a file cannot be read.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        columns: Sequence[str | ScanColumn] | None = None,
        *,
        row_id: bool = False,
        only: Mapping[str, Sequence[int]] | None = None,
        where: str | Predicate | None = None,
        skipping: Predicate | None = None,
        deleted: bool = False,
        partition: Sequence[PartitionColumn] = (),
        row_type: OrcType | None = None,
        sources: Sequence[EventFile] | None = None,
        deletes: Callable[[], DeleteSet] | None = None,
        on_loss: OnLoss | None = None,
    ) -> None:
        snapshot.require_history()
        self._snapshot = snapshot
        self._only = only
        self.deleted = deleted
        self._on_loss = on_loss
        self._given_deletes = deletes
        self.sources = list(open_sources(snapshot, on_loss) if sources is None else sources)
        self.row_type = row_type or table_row_type(snapshot.declared, row_types(self.sources))
        self._partition = tuple(partition)
        self._names = Namespace(self.row_type, self._partition)
        shown = snapshot.fs.display(snapshot.path)
        chosen = self._names.tops
        if columns is not None:
            chosen = [self._names.find(one, shown) if isinstance(one, str) else one for one in columns]
            _refuse_twice([column.name for column in chosen])
        first = [self._names.row_id] if row_id and self._names.row_id not in chosen else []
        self.columns = [*first, *chosen]
        self.where = _parsed(where, self._names.struct) if isinstance(where, str) else where
        self._skipping = self.where or skipping
        self._used = {path: self._names.find_path(path) for path in (self._skipping.paths if self._skipping else ())}
        where_columns = list(self._used.values()) if self.where else []
        self._where_data = [column.place for column in where_columns if column.kind is ColumnSource.DATA]
        self._where_ids = any(column.kind is ColumnSource.ROW_ID for column in where_columns)

    @cached_property
    def output_type(self) -> OrcType:
        """The type of the rows that come out, ROW__ID and partition columns included."""
        return row_of((column.name, column.type) for column in self.columns)

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of the batches; for values that need another type see :mod:`acidctl.rows.scan.arrow_types`."""
        return pa.schema(list(arrow_type(self.output_type)))

    def batches(self, first: int = 0) -> Iterator[pa.RecordBatch]:
        """The rows.

        Args:
            first: so many may be all that is wanted: then the first batch may have few more rows than these, and is
                read without the rest of its stripe.

        Raises:
            BadDataError: a file cannot be read; it names the file.
        """
        if not self.columns:
            if not self.row_type.names:
                return  # a location without any data file: empty, truncated, or never written to
            raise BadDataError(f"{self._snapshot.fs.display(self._snapshot.path)} has no columns")
        for number, (events, stripe, files) in enumerate(self._stripes(self.columns)):
            with self._guarded(events.source, stripe):
                given = 0
                if first and not number and not stripe and files.names is None:
                    for batch in self._first(events, first, files):
                        given += batch.num_rows
                        yield batch
                for batch in self._stripe(events, stripe, files):
                    left_out = min(given, batch.num_rows)
                    given -= left_out
                    if left_out < batch.num_rows:
                        yield batch.slice(left_out)

    def _first(self, events: EventReader, count: int, files: FileColumns) -> Iterator[pa.RecordBatch]:
        """Rows out of the first `count` events of a file, where these can be read without the rest of their stripe."""
        few = events.first(count) if self.where is None and not self.deleted else None
        if few is None or any(few.column(name).null_count for name in ID_COLUMNS):
            return  # who reads the stripe knows whether rows without ids matter
        ids, rows = read_ids(few, events.source.fs.display(events.source.path)), few.column("row")
        live = self._live(events.source, ids)
        if live is not None:
            ids, rows = ids.take(live), kept_rows(rows, live)
        yield from self._finish(_Read(events.source, ids, rows, files))

    def count(self) -> int:
        """How many rows :meth:`batches` gives: from footers where they settle it, else from as few columns as can be.

        Raises:
            BadDataError: a file cannot be read.
        """
        return sum(self.counts())

    def counts(self) -> Iterator[int]:
        """The same stripe by stripe, for who needs rows without columns."""
        for events, stripe, files in self._stripes([]):
            rows = 0
            with self._guarded(events.source, stripe):
                rows = self._count(events, stripe, files)
            yield rows

    def _stripes(self, columns: Sequence[ScanColumn]) -> Iterator[tuple[EventReader, int, FileColumns]]:
        """The stripes that may hold rows of the result, and what to read of them for the columns and the condition."""
        for source, wanted, files in self._wanted(columns):
            with ExitStack() as stack:
                events = None
                with self._guarded(source, None):
                    refuse_changed(source)
                    events = stack.enter_context(source.open())
                if events is None:
                    continue
                for stripe in wanted:
                    yield events, stripe, files

    def pieces(self) -> Iterator[Callable[[], list[pa.RecordBatch]]]:
        """The rows of :meth:`batches` in parts that threads may read side by side, a stripe each, in order.

        Each raises what :meth:`batches` raises; losses are told by the thread that meets them.
        """
        if not self.columns:
            yield lambda: list(self.batches())
            return
        _ = self._deletes  # loaded once
        for source, wanted, files in self._wanted(self.columns):
            yield from (partial(self._piece, source, stripe, files) for stripe in wanted)

    def _piece(self, source: EventFile, stripe: int, files: FileColumns) -> list[pa.RecordBatch]:
        with self._guarded(source, stripe):
            refuse_changed(source)
            with source.open() as events:
                return list(self._stripe(events, stripe, files))
        return []  # lost, and told

    def wanted_stripes(self) -> dict[str, Sequence[int]]:
        """Numbers of the stripes that may hold rows of the result, by the file's path; none is read for it."""
        return {source.file.path: stripes for source, stripes, _ in self._wanted([])}

    def _wanted(self, columns: Sequence[ScanColumn]) -> Iterator[tuple[EventFile, Sequence[int], FileColumns]]:
        """Files, the numbers of their stripes that may hold rows of the result, and what to read of them."""
        places = [column.place for column in columns if column.kind is ColumnSource.DATA] + self._where_data
        if self._skipping and not self._skipping.may_match(self._constant_bounds):
            return
        for source in self.sources:
            if source.is_delete or (self._only is not None and source.file.path not in self._only):
                continue
            stripes = range(len(source.tail.stripes)) if self._only is None else self._only[source.file.path]
            wanted = [stripe for stripe in stripes if self._may_match(source, stripe)]
            if stripes and not wanted:
                continue
            yield (
                source,
                wanted,
                FileColumns(
                    source.row_type,
                    self.row_type,
                    list(dict.fromkeys(places)),
                    source.format,
                    self._snapshot.declared,
                ),
            )

    def _may_match(self, source: EventFile, stripe: int) -> bool:
        """Whether a stripe may hold rows that meet the condition."""
        return self._skipping is None or self._skipping.may_match(self._stripe_bounds(source, stripe))

    @cached_property
    def _deletes(self) -> DeleteSet:
        if self._given_deletes is not None:
            return self._given_deletes()
        return load_deletes(self.sources, self._snapshot.write_ids, on_loss=self._on_loss)

    @contextmanager
    def _guarded(self, source: EventFile, stripe: int | None) -> Iterator[None]:
        """An error in it is a loss of a stripe's rows, or of the file's, and says so."""
        try:
            yield
        except Unreadable as error:
            problem = changed(source) or error
            loss = loss_of(source, stripe, problem)
            if self._on_loss is None:
                raise with_loss(problem, lost_rows(loss, stripe, source)) from error
            self._on_loss(loss)

    def _stripe(self, events: EventReader, stripe: int, files: FileColumns) -> Iterator[pa.RecordBatch]:
        """The rows of one stripe that belong to the result."""
        source = events.source
        wants_ids = self._where_ids or any(column.kind is ColumnSource.ROW_ID for column in self.columns)
        known = self._known(source, stripe)
        if self._is_out(known):
            return
        all_live = self._all_live(source, known)
        if not (all_live or wants_ids or self.where) and (places := self._dead_places(source, known)) is not None:
            for batch in self._finish(_Read(source, None, events.rows(stripe, files.names), files)):
                yield from without_places(batch, places, joined="uniontype" not in source.tail.schema.kinds)
            return
        read, live = self._read(events, stripe, files, ids=wants_ids or not all_live, all_live=all_live)
        if live is not None and not live.all():
            if not live.any():
                return
            ids = read.ids.take(live) if read.ids is not None else None
            read = _Read(source, ids, kept_rows(read.rows, live), files)
        yield from self._finish(read)

    def _read(
        self, events: EventReader, stripe: int, files: FileColumns, *, ids: bool, all_live: bool
    ) -> tuple[_Read, Bools | None]:
        """The rows of a stripe, with `ids` or without, and which of them belong to the result; None for all."""
        if ids:
            read = _Read(events.source, *events.ids_with_rows(stripe, files.names), files)
        else:
            read = _Read(events.source, None, events.rows(stripe, files.names), files)
        live = None if all_live or read.ids is None else self._live(events.source, read.ids)
        if self.where is None:
            return read, live
        matching = self._matching(read)
        return read, matching if live is None else live & matching

    def _count(self, events: EventReader, stripe: int, files: FileColumns) -> int:
        source = events.source
        known = self._known(source, stripe)
        if self._is_out(known):
            return 0
        all_live = self._all_live(source, known)
        rows = source.tail.stripes[stripe].numberOfRows
        if self.where is None:
            if all_live:
                return rows
            places = self._dead_places(source, known)
            if places is not None:
                return rows - len(places)
        _, live = self._read(events, stripe, files, ids=self._where_ids or not all_live, all_live=all_live)
        return rows if live is None else int(np.count_nonzero(live))

    def _known(self, source: EventFile, stripe: int) -> StripeRange | None:
        """The keys of a stripe by its statistics, where they can matter."""
        if self._deletes.size or not self._snapshot.write_ids.is_everything:
            return source.ranges[stripe]
        return None

    def _is_out(self, known: StripeRange | None) -> bool:
        """Whether no row of the stripe can be in the result, known without reading it."""
        if not self.deleted:
            return False
        return not self._deletes.size or (known is not None and not self._deletes.may_hit(known))

    def _all_live(self, source: EventFile, known: StripeRange | None) -> bool:
        """Whether all rows of the stripe are there and visible, known without reading it."""
        if self.deleted or source.may_hold_changes:
            return False
        write_ids, deletes = self._snapshot.write_ids, self._deletes
        valid = write_ids.is_everything or (known is not None and known.is_all_valid(write_ids))
        return valid and (not deletes.size or (known is not None and not deletes.may_hit(known)))

    def _dead_places(self, source: EventFile, known: StripeRange | None) -> NDArray[np.intp] | None:
        """Where the dead rows of the stripe lie, when that is known without reading it and all others are visible."""
        if self.deleted or source.may_hold_changes or known is None or not known.is_dense:
            return None
        if not self._deletes.is_absolute or not known.is_all_valid(self._snapshot.write_ids):
            return None
        return self._deletes.places(known)

    def _live(self, source: EventFile, ids: Ids) -> Bools | None:
        choose = dead_rows if self.deleted else live_rows
        return choose(source, ids, self._snapshot.write_ids, self._deletes)

    def _matching(self, read: _Read) -> Bools:
        """For which rows the condition is true."""
        assert self.where is not None
        found = self.where.mask(lambda path: self._array(self._used[path], read))
        return np.asarray(pc.fill_null(found, False).to_numpy(zero_copy_only=False), np.bool_)

    def _finish(self, read: _Read) -> Iterator[pa.RecordBatch]:
        """The batch that comes out, unless it is empty."""
        if not len(read.rows):
            return
        columns = [self._array(column, read) for column in self.columns]
        # Not by the schema: a stripe whose timestamps need the wide form has a type of its own.
        yield pa.RecordBatch.from_arrays(columns, names=self.output_type.names)

    def _chosen(
        self, source: EventFile, ids: Ids, rows: pa.StructArray, files: FileColumns, chosen: Bools
    ) -> Iterator[pa.RecordBatch]:
        """The batch of some rows of a stripe, read by who chose them."""
        yield from self._finish(_Read(source, ids.take(chosen), kept_rows(rows, chosen), files))

    def _array(self, column: ScanColumn, read: _Read) -> pa.Array:
        if column.kind is ColumnSource.DATA:
            return read.files.get(read.rows, column.place, read.source.fs.display(read.source.path))
        if column.kind is ColumnSource.PARTITION:
            value = self._partition[column.place[0]].value
            return pa.repeat(pa.scalar(value, arrow_type(column.type)), len(read.rows))
        assert read.ids is not None
        keys = read.ids.keys
        parts = [pa.array(keys.original), pa.array(keys.bucket.astype(np.int32)), pa.array(keys.row_id)]
        if column.place:
            return parts[column.place[0]]
        return pa.StructArray.from_arrays(parts, fields=list(ROW_ID_TYPE))

    def _constant_bounds(self, path: Path) -> ColumnBounds | None:
        """What is known of a column in the whole location."""
        return known_of_partition(self._used[path], self._partition)

    def _stripe_bounds(self, source: EventFile, stripe: int) -> Callable[[Path], ColumnBounds | None]:
        """What is known of the columns in a stripe."""
        return known_of_stripe(source, stripe, self._used, self.row_type, self._partition)


def _refuse_twice(names: Sequence[str]) -> None:
    """Two columns of one name could not be told apart in what comes out; JSON cannot even hold them."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise UsageProblem(f"column {twice[0]} is asked for twice", "names ignore case", "name every column once")
