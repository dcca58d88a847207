"""What is known of the columns of a condition in one stripe of one file, before it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from acidctl.orc.types import OrcType, arrow_type
from acidctl.rows.convert.matching import is_missing, place_in, type_at
from acidctl.rows.read.events import EventFile
from acidctl.rows.scan.columns import ColumnSource, PartitionColumn, ScanColumn
from acidctl.rows.scan.predicate import Path
from acidctl.rows.scan.pruning import ColumnBounds, integers, stripe_bounds


def known_of_partition(column: ScanColumn, partition: Sequence[PartitionColumn]) -> ColumnBounds | None:
    """Of a partition column, its one value; of any other None."""
    return partition[column.place[0]].bounds if column.kind is ColumnSource.PARTITION else None


def known_of_stripe(
    source: EventFile,
    stripe: int,
    columns: Mapping[Path, ScanColumn],
    row_type: OrcType,
    partition: Sequence[PartitionColumn],
) -> Callable[[Path], ColumnBounds | None]:
    """A function that says what is known of a column in a stripe; None where nothing is.

    Args:
        columns: of the condition, by their paths.
        row_type: that the rows are read as.
    """
    of_data = stripe_bounds(source.tail, stripe)

    def bounds(path: Path) -> ColumnBounds | None:
        column = columns[path]
        if column.kind is ColumnSource.PARTITION:
            return known_of_partition(column, partition)
        if column.kind is ColumnSource.DATA:
            target = type_at(row_type, column.place)
            own = own_column(source.row_type, column, row_type)
            if own is not None:
                return of_data(own, target)
            missing = is_missing(source.row_type, column.place, row_type)
            return ColumnBounds(arrow_type(target), nulls=True, values=False) if missing else None
        known = source.ranges[stripe]
        if known is None or not column.place:
            return None
        return integers(arrow_type(column.type), (known.original, known.bucket, known.row_id)[column.place[0]])

    return bounds


def own_column(own: OrcType, column: ScanColumn, row_type: OrcType) -> OrcType | None:
    """A column of the rows of `row_type`, or a field inside one, as a file has it; None where the file has none."""
    found = place_in(own, column.place, row_type)
    return None if found is None else type_at(own, found)
