"""The columns that a scan can return: ROW__ID, columns of the rows and fields inside them, and partition columns."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acidctl.base.errors import BadDataError, NotFoundError
from acidctl.base.nearest import did_you_mean
from acidctl.location.metastore_schema import Declared
from acidctl.orc.arrow import null_where
from acidctl.orc.read.wide_timestamps import as_nanoseconds, widened
from acidctl.orc.types import OrcType, arrow_type, row_of
from acidctl.rows.convert.conform import How, all_null, convert
from acidctl.rows.convert.matching import Place, is_missing, place_in, type_at
from acidctl.rows.foreign.format import Format
from acidctl.rows.read.events import EventFile, Ids
from acidctl.rows.scan.compare import Literal, Moment
from acidctl.rows.scan.partition_values import PartitionValue
from acidctl.rows.scan.predicate import Path
from acidctl.rows.scan.pruning import ColumnBounds, constant, integers, stripe_bounds

ROW_ID = "ROW__ID"
ROW_ID_TYPE = pa.struct([("writeid", pa.int64()), ("bucketid", pa.int32()), ("rowid", pa.int64())])
"""Hive's virtual column; its bucketid is the encoded value (format section 4)."""

ROW_ID_ORC = row_of([("writeid", OrcType("bigint")), ("bucketid", OrcType("int")), ("rowid", OrcType("bigint"))])


class ColumnSource(Enum):
    """The source of a column."""

    ROW_ID = "row id"
    DATA = "data"
    PARTITION = "partition"


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """A partition column of a primitive type and its value in one location; the value None is NULL."""

    name: str
    type: OrcType
    value: PartitionValue

    @property
    def bounds(self) -> ColumnBounds | None:
        """Return the bounds that the value sets; None for floating-point types, because NaN has no place in bounds."""
        if self.type.kind in ("float", "double"):
            return None
        return constant(arrow_type(self.type), self._literal)

    @property
    def _literal(self) -> Literal:
        if isinstance(self.value, np.datetime64):
            return Moment(int(self.value.astype("datetime64[ns]").astype(np.int64)))
        if isinstance(self.value, datetime.date):
            return Moment.of(self.value)
        assert not isinstance(self.value, float)
        return self.value


@dataclass(frozen=True, slots=True)
class ScanColumn:
    """A column that a scan can return.

    Attributes:
        name: in the result; dotted for a field.
        place: positions from its source's root.
    """

    name: str
    type: OrcType
    kind: ColumnSource
    place: Place


class Namespace:
    """All columns of a scan by name, ignoring case.

    A column of the rows hides a partition column of the same name.
    """

    def __init__(self, row_type: OrcType, partition: Sequence[PartitionColumn] = ()) -> None:
        taken = {name.lower() for name in row_type.names}
        self.tops = [
            ScanColumn(name, child, ColumnSource.DATA, (i,)) for i, (name, child) in enumerate(row_type.fields())
        ]
        self.tops += [
            ScanColumn(column.name, column.type, ColumnSource.PARTITION, (i,))
            for i, column in enumerate(partition)
            if column.name.lower() not in taken
        ]
        self.row_id = ScanColumn(ROW_ID, ROW_ID_ORC, ColumnSource.ROW_ID, ())
        self._by_name = {column.name.lower(): column for column in reversed([*self.tops, self.row_id])}

    @property
    def struct(self) -> OrcType:
        """Return the columns that a condition may use."""
        columns = [*self.tops, self.row_id]
        return row_of((column.name, column.type) for column in columns)

    def find(self, name: str, shown: str) -> ScanColumn:
        """Return the column of a name, dotted for a field inside a struct.

        Raises:
            NotFoundError: it does not exist; the hint has similar names.
        """
        whole = self._by_name.get(name.lower())
        if whole is not None:
            return whole
        parts = name.split(".")
        for cut in range(len(parts) - 1, 0, -1):  # names may have dots themselves
            column = self._by_name.get(".".join(parts[:cut]).lower())
            if column is not None:
                return self._inside(column, parts[cut:], name, shown)
        raise _unknown(name, [column.name for column in self.tops], shown)

    def find_path(self, path: Sequence[str]) -> ScanColumn:
        """Return the column of a path that exists."""
        return self._inside(self._by_name[path[0].lower()], path[1:], ".".join(path), "the condition")

    def _inside(self, column: ScanColumn, parts: Sequence[str], name: str, shown: str) -> ScanColumn:
        for part in parts:
            folded = {field.lower(): i for i, field in reversed(list(enumerate(column.type.names)))}
            place = folded.get(part.lower())
            if place is None:
                raise _unknown(name, [f"{column.name}.{field}" for field in column.type.names], shown, column)
            field = column.type.names[place]
            column = ScanColumn(
                f"{column.name}.{field}", column.type.children[place], column.kind, (*column.place, place)
            )
        return column


def _unknown(name: str, names: Sequence[str], shown: str, inside: ScanColumn | None = None) -> NotFoundError:
    if inside:
        why = f"{inside.name} is of type {inside.type.kind}" + (f" with {', '.join(names)}" if names else "")
    else:
        why = f"its columns are {', '.join(names) or 'unknown: there is no data file'}"
    return NotFoundError(f"no column {name!r} in {shown}", why, did_you_mean(name, names))


class FileColumns:
    """The columns to read of one file, and their conversion to the result's types.

    Columns are matched by :mod:`acidctl.rows.convert.matching`; a file may be older than a column.

    Args:
        own: the row type of the file.
        target: the row type of the result.
        places: the data columns wanted, in `target`.
        format_: of the file.
        declared: the table in the metastore: values are converted as its Hive does it.
        for_good: see :class:`~acidctl.rows.convert.conform.How`.

    Attributes:
        names: to read, dotted for fields, as the file spells them; None for all.
    """

    def __init__(
        self,
        own: OrcType,
        target: OrcType,
        places: Sequence[Place],
        format_: Format = Format.ORC,
        declared: Declared | None = None,
        *,
        for_good: bool = False,
    ) -> None:
        self._own = own
        by = declared.hive if declared else None
        self._how = How(parquet=format_ is Format.PARQUET, for_good=for_good, by=by)
        self._target = target
        self._found = {place: place_in(own, place, target) for place in places}
        existing = [place for place in self._found.values() if place]
        # A field that the file lacks is NULL; a top-level column around it is read whole.
        around = (place_in(own, place[:1], target) for place, found in self._found.items() if not found)
        apart = [place for place in around if place]
        self._whole = {place[0] for place in (*existing, *apart) if len(place) == 1 or not self._can_pick(place)}
        picked = {place for place in existing if place[0] not in self._whole}
        self._tops = sorted({place[0] for place in (*existing, *apart)})
        self._where = {top: i for i, top in enumerate(self._tops)}
        self.names: list[str] | None = None
        if not len(self._tops) == len(own.names) == len(self._whole):
            self.names = [own.names[top] for top in self._tops if top in self._whole]
            spelled = ([type_at(own, place[:i]).names[p] for i, p in enumerate(place)] for place in picked)
            self.names += sorted({".".join(names) for names in spelled})

    def _can_pick(self, place: Place) -> bool:
        """Return whether a field can be read alone: it is in structs only, and its name is unique and has no dot."""
        node = self._own
        for position in place:
            name = node.names[position]
            if node.names.count(name) > 1 or "." in name:
                return False
            node = node.children[position]
        return True

    def get(self, rows: pa.StructArray, place: Place, path: str) -> pa.Array:
        """Return a column of `rows`, which were read by :attr:`names`, as the result's type.

        Raises:
            BadDataError: its values cannot be converted.
        """
        target, own_place = type_at(self._target, place), self._found[place]
        name = type_at(self._target, place[:-1]).names[place[-1]]
        if own_place is None:
            if is_missing(self._own, place, self._target):
                return all_null(len(rows), arrow_type(target))
            raise BadDataError(f"cannot read {name} of {path}", "it lies in something other than a struct there", "")
        array = rows.field(self._where[own_place[0]])
        node, missing = self._own.children[own_place[0]], None
        for position in own_place[1:]:
            if array.null_count:
                here = array.is_null()
                missing = here if missing is None else pc.or_(missing, here)
            # If fields were picked, others may be missing, but names are unique; otherwise all fields were read.
            is_picked = own_place[0] not in self._whole
            array = array.field(array.type.get_field_index(node.names[position]) if is_picked else position)
            node = node.children[position]
        if missing is not None:
            array = null_where(array, missing)
        return convert(array, node, target, name, path, how=self._how)


def row_id_array(column: ScanColumn, ids: Ids) -> pa.Array:
    """Return ROW__ID, or one of its fields, of some events."""
    keys = ids.keys
    parts = [pa.array(keys.original), pa.array(keys.bucket.astype(np.int32)), pa.array(keys.row_id)]
    return parts[column.place[0]] if column.place else pa.StructArray.from_arrays(parts, fields=list(ROW_ID_TYPE))


@dataclass(frozen=True, slots=True)
class StripeRows:
    """Rows of a stripe, as they were read.

    Attributes:
        ids: None if nothing needs them.
        files: the columns by which `rows` were read.
    """

    source: EventFile
    ids: Ids | None
    rows: pa.StructArray
    files: FileColumns

    def array(self, column: ScanColumn, partition: Sequence[PartitionColumn]) -> pa.Array:
        """Return the values of a column in the type of the result.

        Raises:
            BadDataError: its values cannot be converted.
        """
        if column.kind is ColumnSource.DATA:
            return self.files.get(self.rows, column.place, self.source.shown)
        if column.kind is ColumnSource.PARTITION:
            return repeated(partition[column.place[0]].value, arrow_type(column.type), len(self.rows))
        assert self.ids is not None
        return row_id_array(column, self.ids)


def repeated(value: PartitionValue, kind: pa.DataType, count: int) -> pa.Array:
    """Return a column of one value; a time beyond 64 bits of nanoseconds has the type of such times."""
    is_time = isinstance(value, datetime.datetime)
    found = pa.repeat(pa.scalar(value, pa.timestamp("us") if is_time else kind), count)
    return as_nanoseconds(widened(found)) if is_time else found


def known_of_partition(column: ScanColumn, partition: Sequence[PartitionColumn]) -> ColumnBounds | None:
    """Return the bounds of a partition column; None for other columns."""
    return partition[column.place[0]].bounds if column.kind is ColumnSource.PARTITION else None


def known_of_stripe(
    source: EventFile,
    stripe: int,
    columns: Mapping[Path, ScanColumn],
    row_type: OrcType,
    partition: Sequence[PartitionColumn],
) -> Callable[[Path], ColumnBounds | None]:
    """Return a function from a column of a condition to its bounds in a stripe; None if they are unknown.

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
        keys = source.ranges[stripe]
        if keys is None or not column.place:
            return None
        return integers(arrow_type(column.type), (keys.original, keys.bucket, keys.row_id)[column.place[0]])

    return bounds


def own_column(own: OrcType, column: ScanColumn, row_type: OrcType) -> OrcType | None:
    """Return the file's type of a column of `row_type`, or of a field inside one; None if the file lacks it."""
    place = place_in(own, column.place, row_type)
    return None if place is None else type_at(own, place)
