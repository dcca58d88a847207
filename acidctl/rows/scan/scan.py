"""Merge-on-read of the rows that a reader of one snapshot sees in one location (format sections 4 to 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from acidctl.base.errors import UsageProblem
from acidctl.location.snapshot import Snapshot
from acidctl.orc.read.wide_timestamps import WideTimestamp
from acidctl.orc.types import OrcType, arrow_type, row_of
from acidctl.rows.convert.matching import Place, table_row_type
from acidctl.rows.read.delete_set import Bools, DeleteSet, StripeRange
from acidctl.rows.read.events import ID_COLUMNS, EventFile, EventReader, Ids, read_ids
from acidctl.rows.read.selection import kept_rows, without_places
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
from acidctl.rows.scan.columns import (
    ColumnSource,
    FileColumns,
    Namespace,
    PartitionColumn,
    ScanColumn,
    StripeRows,
    known_of_partition,
    known_of_stripe,
    repeated,
)
from acidctl.rows.scan.predicate import Path, Predicate, RowCondition
from acidctl.rows.scan.pruning import ColumnBounds


class Scan:
    """The rows of one location, in Arrow batches, a stripe at a time.

    Args:
        columns, where, row_id, deleted, on_loss: see :meth:`acidctl.rows.scan.table.Table.scan`. A column may also be
            a :class:`ScanColumn`. Stripes that cannot hold rows for which the condition is true are not read.
        skipping: a condition that skips stripes like `where`, but does not filter the rows of the stripes it keeps.
        only: numbers of the stripes to read, by the file's path relative to the location; files without an entry are
            not read. The deletes do not depend on it. None for all.
        partition: further columns with the same value in all rows.
        row_type: of the result; by default the common type of the location's files.
        sources: the files of the snapshot, if they are open already.
        deletes: returns the delete set, if the caller may have loaded it already.
        late: read the columns of the condition first, and the others only of stripes where a row meets it.
        known: finds what is known of a column in a stripe, as :func:`known_of_stripe` does.

    Attributes:
        where: the parsed condition.
        columns: of the result, in order.

    Raises:
        HistoryError: the snapshot needs history that a compaction destroyed.
        NotFoundError: no file has a column of this name; the hint has similar names.
        UsageProblem: the condition cannot be used, or a column is requested twice.
        BadDataError: a file cannot be read.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        columns: Sequence[str | ScanColumn] | None = None,
        *,
        row_id: bool = False,
        only: Mapping[str, Sequence[int]] | None = None,
        where: str | RowCondition | None = None,
        skipping: Predicate | None = None,
        deleted: bool = False,
        partition: Sequence[PartitionColumn] = (),
        row_type: OrcType | None = None,
        sources: Sequence[EventFile] | None = None,
        deletes: Callable[[], DeleteSet] | None = None,
        on_loss: OnLoss | None = None,
        late: bool = False,
        known: Callable[..., Callable[[Path], ColumnBounds | None]] = known_of_stripe,
    ) -> None:
        snapshot.require_history()
        self.snapshot = snapshot
        self._known = known
        self._only = only
        self.deleted = deleted
        self._on_loss = on_loss
        self._given_deletes = deletes
        self.sources = list(open_sources(snapshot, on_loss) if sources is None else sources)
        self.row_type = row_type or table_row_type(snapshot.declared, row_types(self.sources))
        self._partition = tuple(partition)
        self._names = Namespace(self.row_type, self._partition)
        shown = snapshot.shown
        chosen = self._names.tops
        if columns is not None:
            chosen = [self._names.find(column, shown) if isinstance(column, str) else column for column in columns]
            twice = [name for name, count in Counter(column.name for column in chosen).items() if count > 1]
            if twice:  # the output would be ambiguous, and JSON cannot hold it
                what = f"column {twice[0]} is asked for twice"
                raise UsageProblem(what, "names ignore case", "name every column once")
        first = [self._names.row_id] if row_id and self._names.row_id not in chosen else []
        self.columns = [*first, *chosen]
        if isinstance(where, str):
            from acidctl.rows.scan.condition import parse_condition  # noqa: PLC0415 - it imports sqlglot, which is slow

            where = parse_condition(where, self._names.struct)
        self.where: RowCondition | None = where
        self._late = late and where is not None
        self._skipping = self.where or skipping
        self._used = {path: self._names.find_path(path) for path in (self._skipping.paths if self._skipping else ())}
        where_columns = list(self._used.values()) if self.where else []
        self._where_data = [column.place for column in where_columns if column.kind is ColumnSource.DATA]
        self._where_ids = any(column.kind is ColumnSource.ROW_ID for column in where_columns)

    @cached_property
    def output_type(self) -> OrcType:
        """Return the type of the resulting rows, including ROW__ID and partition columns."""
        return row_of((column.name, column.type) for column in self.columns)

    def far_times(self) -> list[int]:
        """Return the positions of the columns that are partition keys with times beyond 64 bits of nanoseconds."""
        keys = [(at, column) for at, column in enumerate(self.columns) if column.kind is ColumnSource.PARTITION]
        values = ((at, self._partition[column.place[0]].value, column.type) for at, column in keys)
        return [
            at for at, value, kind in values if isinstance(repeated(value, arrow_type(kind), 1).type, WideTimestamp)
        ]

    @cached_property
    def schema(self) -> pa.Schema:
        """Return the schema of the batches, apart from wider types that :mod:`acidctl.rows.scan.table_scan` adds."""
        return pa.schema(list(arrow_type(self.output_type)))

    def batches(self, first: int = 0) -> Iterator[pa.RecordBatch]:
        """Yield the rows.

        Args:
            first: the caller may need only this many rows: they are then read without the rest of their stripe.
                0 for all.

        Raises:
            BadDataError: a file cannot be read; the error names the file.
            UsageProblem: an empty list of columns was given.
        """
        if not self.columns:
            if not self.row_type.names:
                return  # a location without any data file: empty, truncated, or never written to
            shown = self.snapshot.shown
            raise UsageProblem(f"no column of {shown} was chosen", "", "name one, or leave out `columns` to read all")
        for number, (events, stripe, files) in enumerate(self._stripes(self.columns)):
            with self._loss_reported(events.source, stripe):
                yielded = 0
                if first and not number and not stripe and files.names is None:
                    for batch in self._first(events, first, files):
                        yielded += batch.num_rows
                        yield batch
                for batch in self._stripe(events, stripe, files):
                    repeated = min(yielded, batch.num_rows)
                    yielded -= repeated
                    if repeated < batch.num_rows:
                        yield batch.slice(repeated)

    def _first(self, events: EventReader, count: int, files: FileColumns) -> Iterator[pa.RecordBatch]:
        """Yield the rows among the first `count` events of a file, if the rest of their stripe can stay unread."""
        few = events.first(count) if self.where is None and not self.deleted else None
        if few is None or any(few.column(name).null_count for name in ID_COLUMNS):
            return  # reading the whole stripe decides whether rows without ids are an error
        ids, rows = read_ids(few, events.source.shown), few.column("row")
        live = self._live(events.source, ids)
        if live is not None:
            ids, rows = ids.take(live), kept_rows(rows, live)
        yield from self._finish(StripeRows(events.source, ids, rows, files))

    def count(self) -> int:
        """Count the rows of :meth:`batches`, from footers alone if possible, else from as few columns as possible.

        Raises:
            BadDataError: a file cannot be read.
        """
        return sum(self.counts())

    def counts(self) -> Iterator[int]:
        """Yield the number of rows of each stripe."""
        for events, stripe, files in self._stripes([]):
            rows = 0
            with self._loss_reported(events.source, stripe):
                rows = self._count(events, stripe, files)
            yield rows

    def _stripes(self, columns: Sequence[ScanColumn]) -> Iterator[tuple[EventReader, int, FileColumns]]:
        """Yield the stripes that may hold rows of the result, and the columns to read of them."""
        for source, wanted, files in self._wanted(columns):
            with ExitStack() as stack:
                events = None
                with self._loss_reported(source, None):
                    refuse_changed(source)
                    events = stack.enter_context(source.open())
                if events is None:
                    continue
                for stripe in wanted:
                    yield events, stripe, files

    def pieces(self) -> Iterator[Callable[[], list[pa.RecordBatch]]]:
        """Yield a function for each stripe, in order, that reads its rows; threads may call them in parallel.

        Each raises the errors of :meth:`batches`; `on_loss` is called in the thread that meets the loss.
        """
        if not self.columns:
            yield lambda: list(self.batches())
            return
        _ = self._deletes  # load it before threads need it
        for source, wanted, files in self._wanted(self.columns):
            yield from (partial(self._piece, source, stripe, files) for stripe in wanted)

    def _piece(self, source: EventFile, stripe: int, files: FileColumns) -> list[pa.RecordBatch]:
        with self._loss_reported(source, stripe):
            refuse_changed(source)
            with source.open() as events:
                return list(self._stripe(events, stripe, files))
        return []  # lost, and reported

    def wanted_stripes(self) -> dict[str, Sequence[int]]:
        """Return the numbers of the stripes that may hold rows of the result, by the file's path, without reading."""
        return {source.file.path: stripes for source, stripes, _ in self._wanted([])}

    def _wanted(self, columns: Sequence[ScanColumn]) -> Iterator[tuple[EventFile, Sequence[int], FileColumns]]:
        """Yield files, the numbers of their stripes that may hold rows of the result, and the columns to read."""
        places = [column.place for column in columns if column.kind is ColumnSource.DATA]
        places += [] if self._late else self._where_data
        if self._skipping and not self._skipping.may_match(
            lambda path: known_of_partition(self._used[path], self._partition)
        ):
            return
        for source in self.sources:
            if source.is_delete or (self._only is not None and source.file.path not in self._only):
                continue
            stripes = range(len(source.tail.stripes)) if self._only is None else self._only[source.file.path]
            wanted = [stripe for stripe in stripes if self._may_match(source, stripe)]
            if stripes and not wanted:
                continue
            yield source, wanted, self._file_columns(source, places)

    def _file_columns(self, source: EventFile, places: Sequence[Place]) -> FileColumns:
        unique = list(dict.fromkeys(places))
        return FileColumns(source.row_type, self.row_type, unique, source.format, self.snapshot.declared)

    def _may_match(self, source: EventFile, stripe: int) -> bool:
        return self._skipping is None or self._skipping.may_match(
            self._known(source, stripe, self._used, self.row_type, self._partition)
        )

    @cached_property
    def _deletes(self) -> DeleteSet:
        if self._given_deletes is not None:
            return self._given_deletes()
        return load_deletes(self.sources, self.snapshot.write_ids, on_loss=self._on_loss)

    @contextmanager
    def _loss_reported(self, source: EventFile, stripe: int | None) -> Iterator[None]:
        """Report an error as the loss of a stripe's rows, or raise it; without a stripe, of all rows of the file."""
        try:
            yield
        except Unreadable as error:
            problem = changed(source) or error
            loss = loss_of(source, stripe, problem)
            if self._on_loss is None:
                raise with_loss(problem, lost_rows(loss, stripe, source)) from error
            self._on_loss(loss)

    def _stripe(self, events: EventReader, stripe: int, files: FileColumns) -> Iterator[pa.RecordBatch]:
        source = events.source
        wants_ids = self._where_ids or any(column.kind is ColumnSource.ROW_ID for column in self.columns)
        keys = self._key_range(source, stripe)
        if self._is_out(keys):
            return
        all_live = self._all_live(source, keys)
        if not (all_live or wants_ids or self.where) and (places := self._dead_places(source, keys)) is not None:
            for batch in self._finish(StripeRows(source, None, events.rows(stripe, files.names), files)):
                yield from without_places(batch, places, joined="uniontype" not in source.tail.schema.kinds)
            return
        read, live = self._read(events, stripe, files, ids=wants_ids or not all_live, all_live=all_live)
        if live is not None and not live.all():
            if not live.any():
                return
            ids = read.ids.take(live) if read.ids is not None else None
            read = StripeRows(source, ids, kept_rows(read.rows, live), files)
        yield from self._finish(read)

    def _read(
        self, events: EventReader, stripe: int, files: FileColumns, *, ids: bool, all_live: bool
    ) -> tuple[StripeRows, Bools | None]:
        """Return the rows of a stripe, with `ids` or without, and a mask of the result's rows; None for all."""
        matching = None
        if self._late:
            first = self._file_columns(events.source, self._where_data)
            read = self._rows(events, stripe, first, ids=self._where_ids)
            matching = self._matching(read)
            if matching is not None and not matching.any():
                return read, matching
        read = self._rows(events, stripe, files, ids=ids)
        live = None if all_live or read.ids is None else self._live(events.source, read.ids)
        matching = matching if self._late else self._matching(read)
        return read, live if matching is None else matching if live is None else live & matching

    @staticmethod
    def _rows(events: EventReader, stripe: int, files: FileColumns, *, ids: bool) -> StripeRows:
        if ids:
            return StripeRows(events.source, *events.ids_with_rows(stripe, files.names), files)
        return StripeRows(events.source, None, events.rows(stripe, files.names), files)

    def _matching(self, read: StripeRows) -> Bools | None:
        if self.where is None:
            return None
        mask = self.where.mask(lambda path: read.array(self._used[path], self._partition))
        return np.asarray(pc.fill_null(mask, False).to_numpy(zero_copy_only=False), np.bool_)

    def _count(self, events: EventReader, stripe: int, files: FileColumns) -> int:
        source = events.source
        keys = self._key_range(source, stripe)
        if self._is_out(keys):
            return 0
        all_live = self._all_live(source, keys)
        rows = source.tail.stripes[stripe].numberOfRows
        if self.where is None:
            if all_live:
                return rows
            places = self._dead_places(source, keys)
            if places is not None:
                return rows - len(places)
        _, live = self._read(events, stripe, files, ids=self._where_ids or not all_live, all_live=all_live)
        return rows if live is None else int(np.count_nonzero(live))

    def _key_range(self, source: EventFile, stripe: int) -> StripeRange | None:
        """Return the keys of a stripe by its statistics, if deletes or the write-id list make them matter."""
        if self._deletes.size or not self.snapshot.write_ids.is_everything:
            return source.ranges[stripe]
        return None

    def _is_out(self, keys: StripeRange | None) -> bool:
        """Return whether statistics rule out that a row of the stripe is in the result."""
        if not self.deleted:
            return False
        return not self._deletes.size or (keys is not None and not self._deletes.may_hit(keys))

    def _all_live(self, source: EventFile, keys: StripeRange | None) -> bool:
        """Return whether statistics prove that all rows of the stripe are live and visible."""
        if self.deleted or source.may_hold_changes:
            return False
        write_ids, deletes = self.snapshot.write_ids, self._deletes
        valid = write_ids.is_everything or (keys is not None and keys.is_all_valid(write_ids))
        return valid and (not deletes.size or (keys is not None and not deletes.may_hit(keys)))

    def _dead_places(self, source: EventFile, keys: StripeRange | None) -> NDArray[np.intp] | None:
        """Return the positions of the dead rows if statistics show them, and that all other rows are visible."""
        if self.deleted or source.may_hold_changes or keys is None or not keys.is_dense:
            return None
        if not self._deletes.is_absolute or not keys.is_all_valid(self.snapshot.write_ids):
            return None
        return self._deletes.places(keys)

    def _live(self, source: EventFile, ids: Ids) -> Bools | None:
        choose = dead_rows if self.deleted else live_rows
        return choose(source, ids, self.snapshot.write_ids, self._deletes)

    def _finish(self, read: StripeRows) -> Iterator[pa.RecordBatch]:
        if not len(read.rows):
            return
        columns = [read.array(column, self._partition) for column in self.columns]
        # Not by the schema: a stripe whose timestamps need the wide form has another type.
        yield pa.RecordBatch.from_arrays(columns, names=self.output_type.names)

    def _chosen(
        self, source: EventFile, ids: Ids, rows: pa.StructArray, files: FileColumns, chosen: Bools
    ) -> Iterator[pa.RecordBatch]:
        yield from self._finish(StripeRows(source, ids.take(chosen), kept_rows(rows, chosen), files))
