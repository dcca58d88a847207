"""The search for events of one file whose rows meet a condition, whatever the state of the rows is now."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acidctl.location.metastore_schema import Declared
from acidctl.orc.types import OrcType
from acidctl.rows.past.bloom_filters import with_bloom_filters
from acidctl.rows.read.delete_set import Bools
from acidctl.rows.read.events import EventFile, EventReader, Ids
from acidctl.rows.scan.columns import (
    ColumnSource,
    FileColumns,
    Namespace,
    PartitionColumn,
    ScanColumn,
    StripeRows,
    known_of_stripe,
    own_column,
    row_id_array,
)
from acidctl.rows.scan.predicate import PartialCondition, Path
from acidctl.rows.scan.pruning import ColumnBounds, stripe_bounds


@dataclass(frozen=True, slots=True)
class Matched:
    """The result for one file.

    Attributes:
        events: number of events with a row that meets the condition.
        undecided: number of further events that depend on a column which the file does not have.
        stripes: number of stripes.
        read: number of stripes whose rows were read; statistics rule out the others.
        places: numbers of the stripes with such events.
        lacks: names of the columns of the condition that the file does not have.
    """

    events: int = 0
    undecided: int = 0
    stripes: int = 0
    read: int = 0
    places: tuple[int, ...] = ()
    lacks: tuple[str, ...] = ()


class EventSearch:
    """A condition, and the columns that it uses.

    Args:
        row_type: the columns of the table.
        partition: the partition columns, with their values in the location of the files.
        unknown: names of the partition columns whose values are not known.
        declared: what a metastore says about the table.
    """

    def __init__(
        self,
        predicate: PartialCondition,
        row_type: OrcType,
        partition: Sequence[PartitionColumn] = (),
        unknown: Collection[str] = (),
        declared: Declared | None = None,
    ) -> None:
        names = Namespace(row_type, partition)
        self._predicate, self._row_type, self._partition = predicate, row_type, tuple(partition)
        self._unknown, self._declared = {name.lower() for name in unknown}, declared
        self._used = {path: names.find_path(path) for path in predicate.paths}

    def search(self, source: EventFile, *, by_name: bool = False) -> Matched:
        """Search one file, a stripe at a time.

        Args:
            by_name: a column counts as missing if the file has another name at its position, because the file may not
                belong to the table.

        Raises:
            BadDataError, NotFoundError, AccessError, StorageError: the file cannot be read.
            UsageProblem: its columns cannot be compared with the values of the condition.
        """
        missing = {path for path, column in self._used.items() if self._is_missing(source, column, by_name=by_name)}
        sure = self._predicate.without(missing, hopeful=False)
        maybe = self._predicate.without(missing, hopeful=True)
        lacks = tuple(".".join(path) for path in sorted(missing))
        count = len(source.tail.stripes)
        wanted = [stripe for stripe in range(count) if self._may_hold(source, stripe, maybe)]
        if not wanted:
            return Matched(stripes=count, lacks=lacks)
        events = undecided = 0
        places = []
        with source.open() as reader:
            for stripe in wanted:
                held, possible = self._counts(reader, stripe, sure, maybe)
                events, undecided = events + held, undecided + possible - held
                places += [stripe] * bool(possible)
        return Matched(events, undecided, count, len(wanted), tuple(places), lacks)

    def find_ids(self, source: EventFile) -> tuple[list[Ids], int]:
        """Return the ids of the events of a file, deletes included, whose ROW__ID meets the condition.

        Returns:
            The ids of each stripe with a match, and the number of stripes whose id columns were read.

        Raises:
            BadDataError, NotFoundError, AccessError, StorageError: the file cannot be read.
        """
        count = len(source.tail.stripes)
        wanted = [stripe for stripe in range(count) if self._predicate.may_match(self._bounds(source, stripe))]
        matching: list[Ids] = []
        if wanted:
            with source.open() as reader:
                matching = [self._matching(reader.ids(stripe)) for stripe in wanted]
        return [ids for ids in matching if len(ids.current)], len(wanted)

    def _matching(self, ids: Ids) -> Ids:
        return ids.take(_true(self._predicate.mask(lambda path: row_id_array(self._used[path], ids))))

    def _bounds(self, source: EventFile, stripe: int) -> Callable[[Path], ColumnBounds | None]:
        return known_of_stripe(source, stripe, self._used, self._row_type, self._partition)

    def _is_missing(self, source: EventFile, column: ScanColumn, *, by_name: bool) -> bool:
        if column.kind is ColumnSource.PARTITION:
            return column.name.lower() in self._unknown
        if column.kind is ColumnSource.ROW_ID:
            return source.synthetic is not None  # numbered by the files beside it, which may be gone
        if own_column(source.row_type, column, self._row_type) is None:
            return True
        top = column.place[0]
        return by_name and source.row_type.names[top].lower() != self._row_type.names[top].lower()

    def _may_hold(self, source: EventFile, stripe: int, condition: PartialCondition | bool) -> bool:
        if not condition or _holds_no_row(source, stripe):
            return False
        if isinstance(condition, bool):
            return True
        bounds = self._bounds(source, stripe)
        if not condition.may_match(bounds):
            return False
        return condition.may_match(with_bloom_filters(bounds, source, stripe, self._used, self._row_type))

    def _counts(
        self, reader: EventReader, stripe: int, sure: PartialCondition | bool, maybe: PartialCondition | bool
    ) -> tuple[int, int]:
        """Return the number of events of a stripe that hold such a row, and of those that may."""
        paths = [path for condition in (sure, maybe) if not isinstance(condition, bool) for path in condition.paths]
        columns = [self._used[path] for path in dict.fromkeys(paths)]
        row_type = reader.source.row_type
        places = [column.place for column in columns if column.kind is ColumnSource.DATA]
        if not places and reader.source.synthetic is None and row_type.names:
            places = [(0,)] if self._row_type.names else []  # the row of a delete event is NULL
        files = FileColumns(row_type, self._row_type, places, reader.source.format, self._declared)
        ids = None
        if any(column.kind is ColumnSource.ROW_ID for column in columns):
            ids, rows = reader.ids_with_rows(stripe, files.names)
        else:
            rows = reader.rows(stripe, files.names)
        filled = np.asarray(rows.is_valid().to_numpy(zero_copy_only=False), np.bool_)
        read = StripeRows(reader.source, ids, rows, files)

        def count(condition: PartialCondition | bool) -> int:
            if isinstance(condition, bool):
                return int(np.count_nonzero(filled)) if condition else 0
            mask = condition.mask(lambda path: read.array(self._used[path], self._partition))
            return int(np.count_nonzero(filled & _true(mask)))

        held = count(sure)
        return held, held if maybe is sure else count(maybe)


def _true(mask: pa.BooleanArray) -> Bools:
    return np.asarray(pc.fill_null(mask, False).to_numpy(zero_copy_only=False), np.bool_)


def _holds_no_row(source: EventFile, stripe: int) -> bool:
    """Return whether trustworthy statistics show that all events of a stripe are deletes without a row."""
    if source.synthetic is not None:
        return False
    row_type = source.row_type
    bounds = stripe_bounds(source.tail, stripe)(row_type, row_type)
    return bounds is not None and not bounds.values
