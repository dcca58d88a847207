"""The columns that a scan can be asked for: ROW__ID, those of the rows and fields inside them, those of partitions."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acidctl.errors import BadDataError, NotFoundError
from acidctl.location.declared import Declared
from acidctl.nearest import did_you_mean
from acidctl.orc.arrow import null_where
from acidctl.orc.types import OrcType, arrow_type, row_of
from acidctl.rows.convert.conform import How, all_null, convert
from acidctl.rows.convert.matching import Place, is_missing, place_in, type_at
from acidctl.rows.foreign.format import Format
from acidctl.rows.scan.compare import Literal, Moment
from acidctl.rows.scan.partition_values import PartitionValue
from acidctl.rows.scan.pruning import ColumnBounds, constant

ROW_ID = "ROW__ID"
ROW_ID_TYPE = pa.struct([("writeid", pa.int64()), ("bucketid", pa.int32()), ("rowid", pa.int64())])
"""Hive's virtual column; the bucket id is the encoded one (format section 4)."""

ROW_ID_ORC = row_of([("writeid", OrcType("bigint")), ("bucketid", OrcType("int")), ("rowid", OrcType("bigint"))])


class ColumnSource(Enum):
    """Where a column comes from."""

    ROW_ID = "row id"
    DATA = "data"
    PARTITION = "partition"


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """A partition column and its value in one location.

    Attributes:
        type: a primitive one.
        value: None for NULL.
    """

    name: str
    type: OrcType
    value: PartitionValue

    @property
    def bounds(self) -> ColumnBounds | None:
        """What the value says of the column's rows; None for floating-point ones, among which NaN has no place."""
        if self.type.kind in ("float", "double"):
            return None
        return constant(arrow_type(self.type), self._literal)

    @property
    def _literal(self) -> Literal:
        """The value as conditions know it."""
        if isinstance(self.value, np.datetime64):
            return Moment(int(self.value.astype("datetime64[ns]").astype(np.int64)))
        if isinstance(self.value, datetime.date):
            return Moment.of(self.value)
        assert not isinstance(self.value, float)
        return self.value


@dataclass(frozen=True, slots=True)
class ScanColumn:
    """A column that can be had.

    Attributes:
        name: in the result; dotted for a field.
        type: its type.
        kind: where it comes from.
        place: positions from its kind's root.
    """

    name: str
    type: OrcType
    kind: ColumnSource
    place: Place


class Namespace:
    """All columns of a scan by name, whatever the case.

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
        """Everything that a condition may use."""
        columns = [*self.tops, self.row_id]
        return row_of((column.name, column.type) for column in columns)

    def find(self, name: str, shown: str) -> ScanColumn:
        """The column of a name, dotted for a field inside a struct.

        Raises:
            NotFoundError: there is none; the hint has the nearest names.
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
        """The column of a path that is known to be there."""
        return self._inside(self._by_name[path[0].lower()], path[1:], ".".join(path), "the condition")

    def _inside(self, column: ScanColumn, parts: Sequence[str], name: str, shown: str) -> ScanColumn:
        for part in parts:
            folded = {own.lower(): i for i, own in reversed(list(enumerate(column.type.names)))}
            place = folded.get(part.lower())
            if place is None:
                raise _unknown(name, [f"{column.name}.{own}" for own in column.type.names], shown, column)
            own = column.type.names[place]
            column = ScanColumn(
                f"{column.name}.{own}", column.type.children[place], column.kind, (*column.place, place)
            )
        return column


def _unknown(name: str, known: Sequence[str], shown: str, inside: ScanColumn | None = None) -> NotFoundError:
    if inside:
        why = f"{inside.name} is of type {inside.type.kind}" + (f" with {', '.join(known)}" if known else "")
    else:
        why = f"its columns are {', '.join(known) or 'unknown: there is no data file'}"
    return NotFoundError(f"no column {name!r} in {shown}", why, did_you_mean(name, known))


class FileColumns:
    """What to read of one file for some columns, and how to get them out of what was read.

    Columns are matched as :mod:`acidctl.rows.convert.matching` says; a file may be older than a column.

    Args:
        own: the row type of the file.
        target: the row type of the result.
        places: the data columns wanted, in `target`.
        format_: of the file.
        declared: what a metastore says of the table: values are converted as its Hive does it.
    """

    def __init__(
        self,
        own: OrcType,
        target: OrcType,
        places: Sequence[Place],
        format_: Format = Format.ORC,
        declared: Declared | None = None,
    ) -> None:
        self._own = own
        self._how = How(parquet=format_ is Format.PARQUET, by=declared.hive if declared else None)
        self._target = target
        self._found = {place: place_in(own, place, target) for place in places}
        known = [place for place in self._found.values() if place]
        # A field that the file lacks is NULL; where the struct around it is there, nothing is read for it.
        around = (place_in(own, place[:1], target) for place, found in self._found.items() if not found)
        apart = [place for place in around if place]
        self._whole = {place[0] for place in (*known, *apart) if len(place) == 1 or not self._can_pick(place)}
        picked = {place for place in known if place[0] not in self._whole}
        self._tops = sorted({place[0] for place in (*known, *apart)})
        self._where = {top: i for i, top in enumerate(self._tops)}
        self.names: list[str] | None = None
        """Names to read, dotted for fields, as the file spells them; None for all."""
        if not len(self._tops) == len(own.names) == len(self._whole):
            self.names = [own.names[top] for top in self._tops if top in self._whole]
            self.names += sorted({".".join(self._spelled(place)) for place in picked})

    def _can_pick(self, place: Place) -> bool:
        """Whether a field can be read alone: it is in structs only, and its name is the only one such."""
        node = self._own
        for position in place:
            name = node.names[position]
            if node.names.count(name) > 1 or "." in name:
                return False
            node = node.children[position]
        return True

    def _spelled(self, place: Place) -> list[str]:
        return [type_at(self._own, place[:depth]).names[position] for depth, position in enumerate(place)]

    def get(self, rows: pa.StructArray, place: Place, path: str) -> pa.Array:
        """A column of `rows`, which were read by :attr:`names`, as the result's type.

        Raises:
            BadDataError: its values cannot be converted.
        """
        target, found = type_at(self._target, place), self._found[place]
        name = type_at(self._target, place[:-1]).names[place[-1]]
        if found is None:
            if is_missing(self._own, place, self._target):
                return all_null(len(rows), arrow_type(target))
            raise BadDataError(f"cannot read {name} of {path}", "it lies in something other than a struct there", "")
        array = rows.field(self._where[found[0]])
        node, missing = self._own.children[found[0]], None
        for position in found[1:]:
            if array.null_count:
                here = array.is_null()
                missing = here if missing is None else pc.or_(missing, here)
            # Beside a picked field others may have been left out: there names are unique, elsewhere all fields are.
            is_picked = found[0] not in self._whole
            array = array.field(array.type.get_field_index(node.names[position]) if is_picked else position)
            node = node.children[position]
        if missing is not None:
            array = null_where(array, missing)
        return convert(array, node, target, name, path, how=self._how)
