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
from acidctl.nearest import did_you_mean
from acidctl.orc.arrow import null_where
from acidctl.orc.types import OrcType, arrow_type, row_of
from acidctl.rows.read.schema_evolution import all_null, conform, fit_text
from acidctl.rows.scan.compare import Literal, Moment
from acidctl.rows.scan.partition_values import PartitionValue
from acidctl.rows.scan.pruning import ColumnBounds, constant

ROW_ID = "ROW__ID"
ROW_ID_TYPE = pa.struct([("writeid", pa.int64()), ("bucketid", pa.int32()), ("rowid", pa.int64())])
"""Hive's virtual column; the bucket id is the encoded one (format section 4)."""

ROW_ID_ORC = row_of([("writeid", OrcType("bigint")), ("bucketid", OrcType("int")), ("rowid", OrcType("bigint"))])

Place = tuple[int, ...]
"""A column by its position in the row type, and those of the fields inside it."""


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

    Columns are matched by position at every level; a file may be older than a column.

    Args:
        own: the row type of the file.
        target: the row type of the result.
        places: the data columns wanted.
    """

    def __init__(self, own: OrcType, target: OrcType, places: Sequence[Place]) -> None:
        self._own = own
        self._target = target
        whole = {place[0] for place in places if len(place) == 1 or not self._can_pick(place)}
        self._picked = {place for place in places if place[0] not in whole and place[0] < len(own.names)}
        self._tops = sorted({place[0] for place in places if place[0] < len(own.names)})
        self._where = {top: i for i, top in enumerate(self._tops)}
        self.names: list[str] | None = None
        """Names to read, dotted for fields, as the file spells them; None for all."""
        if not len(self._tops) == len(own.names) == len(whole & set(self._tops)):
            self.names = [own.names[top] for top in self._tops if top in whole]
            self.names += sorted({".".join(self._spelled(place)) for place in self._picked})

    def _can_pick(self, place: Place) -> bool:
        """Whether a field can be read alone: it is there, in structs, and its name is the only one such."""
        node = self._own
        for position in place:
            if node.kind != "struct" or position >= len(node.names):
                return False
            name = node.names[position]
            if node.names.count(name) > 1 or "." in name:
                return False
            node = node.children[position]
        return True

    def _spelled(self, place: Place) -> list[str]:
        node, names = self._own, []
        for position in place:
            names.append(node.names[position])
            node = node.children[position]
        return names

    def get(self, rows: pa.StructArray, place: Place, path: str) -> pa.Array:
        """A column of `rows`, which were read by :attr:`names`, as the result's type.

        Raises:
            BadDataError: its values cannot be converted.
        """
        target = self._target
        for position in place:
            name, target = target.names[position], target.children[position]
        field = pa.field(name, arrow_type(target))
        if place[0] >= len(self._own.names):
            return all_null(len(rows), field.type)
        array = rows.field(self._where[place[0]])
        node, missing = self._own.children[place[0]], None
        for position in place[1:]:
            if node.kind != "struct":
                raise BadDataError(f"cannot read {name} of {path}", f"it lies in a {node.kind} there", "")
            if array.null_count:
                here = array.is_null()
                missing = here if missing is None else pc.or_(missing, here)
            if position >= len(node.names):
                return all_null(len(rows), field.type)
            # Beside a picked field others may have been left out: there names are unique, elsewhere all fields are.
            is_picked = place in self._picked
            array = array.field(array.type.get_field_index(node.names[position]) if is_picked else position)
            node = node.children[position]
        if missing is not None:
            array = null_where(array, missing)
        one = pa.StructArray.from_arrays([array], fields=[pa.field(name, array.type)])
        return fit_text(conform(one, pa.struct([field]), path).field(0), node, target)
