"""Write columns that pyarrow cannot write as they are, as structs that stand in for them.

* A union: if a struct around it is null, pyarrow ends the whole process.  ORC stores a union as a stream of tags, in
  the encoding of TINYINT, and for each alternative the values that were chosen, packed.  So it is written as a struct
  of a TINYINT and one list (of no or one value) per alternative.
* A timestamp: ORC stores whole seconds and, separately, the nanoseconds of the second.  Arrow's nanoseconds of 64 bits
  end in 2262 (and begin in 1677), Hive's timestamps in 9999; and pyarrow cuts a timestamp before 1970 toward zero and
  gives ORC negative nanoseconds, which only ORC C++ reads back unchanged.  So a column is written in nanoseconds if
  that is exact, in microseconds if that is exact, and otherwise as a struct of two timestamps, one with the right
  seconds, the other with the right nanoseconds.

Then the column gets the streams that ORC has for it, and all other streams are dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acidctl.base.errors import BadDataError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.arrow import tags_of, union_buffer
from acidctl.orc.read.union_nulls import has_null_member
from acidctl.orc.read.wide_timestamps import WideTimestamp, parts
from acidctl.orc.types import OrcType, renumbered
from acidctl.orc.write.stripe_editor import StripeParts, set_repeated

HALVES = ("seconds", "nanos")
_TAG = OrcType("tinyint")
# The error of the seconds alone: a second and its fraction downward (times before 1970), a fraction upward.
_MILLIS_DOWN, _MILLIS_UP = 1000, 999


def as_struct(array: pa.UnionArray, alternatives: list[pa.Array], nulls: pa.BooleanArray | None) -> pa.StructArray:
    """Return a union as the struct that is written.

    Args:
        alternatives: the chosen values of each alternative, see :func:`chosen_values`.
        nulls: the rows in which a column around the union is null, so that the union has no value.
    """
    tags = tags_of(array)
    absent = tags == len(alternatives)  # NULLs, see union_nulls.py
    if absent.any():
        nulls = pa.array(absent) if nulls is None else pc.or_(nulls, pa.array(absent))
        tags = np.where(absent, np.int8(0), tags)
    columns = [pa.array(tags, pa.int8())]
    if nulls is not None:
        columns = [pc.if_else(nulls, None, columns[0])]
    for i, values in enumerate(alternatives):
        ends = np.cumsum((tags == i) & ~absent, dtype=np.int32)
        offsets = pa.array(np.concatenate(([0], ends)), pa.int32())
        columns.append(pa.ListArray.from_arrays(offsets, values, mask=nulls))
    names = ["tag", *(f"alternative{i}" for i in range(len(alternatives)))]
    return pa.StructArray.from_arrays(columns, names=names, mask=nulls)


def chosen_values(array: pa.UnionArray) -> list[pa.Array]:
    """Return the values of the rows that have each alternative of a union, without the alternative for NULL."""
    tags = tags_of(array)
    values = []
    for i in range(array.type.num_fields - has_null_member(array.type)):
        rows = np.flatnonzero(tags == i)
        if array.type.mode == "dense":
            rows = union_buffer(array, 2, np.dtype(np.int32))[rows]
        values.append(array.field(i).take(pa.array(rows, pa.int64())))
    return values


def _written(tree: OrcType, halved: Collection[int]) -> OrcType:
    if tree.column_id in halved:
        return OrcType("struct", children=(tree, tree), names=HALVES)
    children = tuple(_written(child, halved) for child in tree.children)
    if tree.kind != "uniontype":
        return replace(tree, children=children)
    lists = tuple(OrcType("array", children=(child,)) for child in children)
    names = ("tag", *(f"alternative{i}" for i in range(len(lists))))
    return OrcType("struct", children=(_TAG, *lists), names=names)


class SurrogateColumns:
    """The columns that are written in place of a file's columns.

    Args:
        tree: the true types, numbered from 0.
        halved: the ids of timestamps that are written in two halves.

    Attributes:
        written: the types that are written, numbered from 0.
        speaking: for each column id of `tree`, the id of the written column whose encoding and statistics it gets.
    """

    def __init__(self, tree: OrcType, halved: Collection[int]) -> None:
        self.written = renumbered(_written(tree, halved))
        self.speaking: list[int] = []
        self._halved = halved
        # By written column: the column that gets its streams, and the kind of stream; None for all kinds.
        self._owners: dict[int, tuple[int, int | None]] = {}
        # By written struct: columns inside with positions of a stream that is kept, and its place counted from the end.
        self._positions: dict[int, list[tuple[int, int]]] = {}
        self._visit(self.written, tree)

    def _visit(self, written: OrcType, final: OrcType) -> None:
        """Walk both trees in pre-order, the order of the ids."""
        written_id, owner = written.column_id, final.column_id
        self._owners[written_id] = owner, None
        self.speaking.append(written_id)
        inside = [child.column_id for child in written.children]
        pairs = list(zip(written.children, final.children, strict=False))
        if owner in self._halved:
            self._owners |= {inside[0]: (owner, pb.Stream.DATA), inside[1]: (owner, pb.Stream.SECONDARY)}
            self._positions[written_id] = [(inside[0], 2), (inside[1], 1)]
            self.speaking[owner] = inside[0]
        elif final.kind == "uniontype":
            self._owners[inside[0]] = owner, pb.Stream.DATA
            self._positions[written_id] = [(inside[0], 1)]
            pairs = [(lst.children[0], child) for lst, child in zip(written.children[1:], final.children, strict=True)]
        for pair in pairs:
            self._visit(*pair)

    def fold(self, parts: StripeParts, statistics: pb.StripeStatistics) -> pb.StripeStatistics:
        """Turn a stripe of the written columns into a stripe of the true columns, and return the latter's statistics.

        Args:
            parts: the stripe, changed in place.
            statistics: the statistics of the written columns.
        """
        for struct, inside in self._positions.items():
            _join_index(parts, struct, inside)
        streams, kept = parts.streams, []
        parts.streams = {}
        for stream in parts.footer.streams:
            owner, kind = self._owners.get(stream.column, (0, -1))
            if kind in (None, stream.kind):
                raw = parts.streams[owner, stream.kind] = streams[stream.column, stream.kind]
                kept.append(pb.Stream(kind=stream.kind, column=owner, length=len(raw)))
        set_repeated(parts.footer.streams, kept)
        set_repeated(parts.footer.columns, [parts.footer.columns[i] for i in self.speaking])
        folded = pb.StripeStatistics(colStats=[statistics.colStats[i] for i in self.speaking])
        for column in self._halved:
            _loosen(folded.colStats[column])
        return folded


def _join_index(parts: StripeParts, struct: int, inside: Sequence[tuple[int, int]]) -> None:
    """Add positions of columns inside a struct to its row index, and the statistics of a timestamp's seconds."""
    index, others = parts.row_index(struct), [parts.row_index(column) for column, _ in inside]
    if index is None:
        return
    for other, (_, from_end) in zip(others, inside, strict=True):
        for entry, inner in zip(index.entry, other.entry if other else (), strict=True):
            first = len(inner.positions) - from_end * parts.width
            entry.positions.extend(inner.positions[first : first + parts.width])
            if from_end > 1:  # the seconds of a timestamp
                entry.statistics.CopyFrom(inner.statistics)
                _loosen(entry.statistics)
    parts.streams[struct, pb.Stream.ROW_INDEX] = memoryview(parts.stored(index))


def _loosen(statistics: pb.ColumnStatistics) -> None:
    """Widen bounds that were taken from seconds alone until they hold for the whole timestamps."""
    if not statistics.HasField("timestampStatistics"):
        return
    block = statistics.timestampStatistics
    for field in ("minimumNanos", "maximumNanos"):
        block.ClearField(field)  # absent means the widest
    for field in ("minimum", "minimumUtc"):
        if block.HasField(field):
            setattr(block, field, getattr(block, field) - _MILLIS_DOWN)
    for field in ("maximum", "maximumUtc"):
        if block.HasField(field):
            setattr(block, field, getattr(block, field) + _MILLIS_UP)


_NANOS = 10**9
# The last second whose microseconds fit 64 bits, and the last whose milliseconds do, the unit of statistics.
_MAX_MICRO_SECOND = (2**63 - 1) // 10**6 - 1
_MAX_SECOND = (2**63 - 1) // 10**3 - 2
# A writer adds a second to a time before 1970 with more nanoseconds than this; a reader subtracts it again.
_ROUNDED_NANOS = 999_999

Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]


class TimestampForm(IntEnum):
    """How a timestamp column is passed to pyarrow."""

    NANOSECONDS = 0
    MICROSECONDS = 1
    HALVES = 2


def choose_form(arrays: Sequence[pa.Array]) -> TimestampForm:
    """Return the form that is exact for all arrays of one column of one stripe."""
    wide = any(isinstance(array.type, WideTimestamp) or array.type.unit != "ns" for array in arrays)
    least = [pc.min(array).cast(pa.int64()).as_py() for array in arrays] if not wide else [-1]
    if all(first is None or first >= 0 for first in least):
        return TimestampForm.NANOSECONDS
    for array in arrays:
        seconds, nanos, _ = seconds_and_nanos(array)
        if bool(((seconds < 0) & (nanos != 0)).any()):
            return TimestampForm.HALVES
        if wide and bool(((nanos % 1000 != 0) | (np.abs(seconds) > _MAX_MICRO_SECOND)).any()):
            return TimestampForm.HALVES
    return TimestampForm.MICROSECONDS if wide else TimestampForm.NANOSECONDS


def in_form(array: pa.Array, form: TimestampForm, zone: str | None) -> pa.Array:
    """Return `array` as Arrow timestamps that pyarrow writes exactly, or a struct of two halves.

    Args:
        array: timestamps of any unit, or wide timestamps.
        form: the form that :func:`choose_form` returned for the column.
        zone: the time zone of the result's type: ``UTC`` for TIMESTAMP WITH LOCAL TIME ZONE, else None.

    Raises:
        BadDataError: ORC cannot represent a time.
    """
    if form is TimestampForm.NANOSECONDS:
        return array
    seconds, nanos, nulls = seconds_and_nanos(array)
    if form is TimestampForm.MICROSECONDS:
        return _timestamps(seconds * 10**6 + nanos // 1000, nulls, "us", zone)
    rounded = (seconds < 0) & (nanos > _ROUNDED_NANOS)
    _refuse(
        seconds, rounded & (seconds == -1), "a time in the last second before 1970, which ORC stores as one in 1970"
    )
    _refuse(seconds, np.abs(seconds) > _MAX_SECOND, "a time some hundred million years away")
    halves = [_timestamps(seconds + rounded, nulls, "s", zone), _timestamps(nanos, nulls, "ns", zone)]
    return pa.StructArray.from_arrays(halves, names=HALVES, mask=None if nulls is None else pa.array(nulls))


def seconds_and_nanos(array: pa.Array) -> tuple[Int64, Int64, Bool | None]:
    """Return seconds since 1970 (rounded down), nanoseconds (0 to 999999999), and where nulls are.

    A null has 0 seconds and 0 nanoseconds.
    """
    nulls = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    seconds, nanos = parts(array)
    # The maker of a wide timestamp may have counted more than a second of nanoseconds, or less than none.
    carry, nanos = np.divmod(nanos, _NANOS)
    return seconds + carry, nanos, nulls


def _timestamps(values: Int64, nulls: Bool | None, unit: str, zone: str | None) -> pa.Array:
    return pa.array(values, pa.int64(), mask=nulls).cast(pa.timestamp(unit, tz=zone))


def _refuse(seconds: Int64, where: Any, what: str) -> None:
    if where.any():
        why = f"{what} ({seconds[where][0]} seconds from 1970)"
        hint = "correct the value in the table; no ORC file can hold it"
        raise BadDataError("a timestamp cannot be written to ORC", why, hint)
