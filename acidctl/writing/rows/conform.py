"""Match the rows of any source to a table: columns by name, and each value unchanged or refused."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from acidctl.base.errors import BadDataError, UsageProblem
from acidctl.base.nearest import did_you_mean
from acidctl.orc.arrow import below, with_children
from acidctl.orc.read.wide_timestamps import WideTimestamp, as_nanoseconds, wide, widened
from acidctl.orc.types import OrcType, arrow_type, hive_type
from acidctl.wording import some_of
from acidctl.writing.rows.partition_values import place_read_as_null
from acidctl.writing.rows.sources import RowPart


def column_hint(name: str, names: Sequence[str]) -> str:
    """Return similar names of columns, or the first names."""
    return did_you_mean(name, names, f"the columns are {some_of(names, 8)}")


class RowConformer:
    """Turns batches of a source into columns of a table.

    Args:
        names, types: the columns of the table, partition keys included.
        part: the source of the rows; None for rows that were computed.
        keys: the partition keys among `names`.
        not_null: the columns that are NOT NULL.

    Raises:
        UsageProblem: the source has a column that the table lacks, or two of one name.
    """

    def __init__(
        self,
        source: pa.Schema,
        names: Sequence[str],
        types: Sequence[OrcType],
        part: RowPart | None = None,
        *,
        keys: Collection[str] = (),
        not_null: Collection[str] = (),
    ) -> None:
        self._names, self._types, self._keys, self._not_null = names, types, keys, not_null
        self._of_part = part.of if part else ""
        self._is_text = part is not None and part.is_text
        lower = [name.lower() for name in source.names]
        for name in lower:
            if lower.count(name) > 1:
                raise UsageProblem(f"the rows have two columns {name}", "Hive's names have no case", "rename one")
            if name not in names:
                raise UsageProblem(f"the table has no column {name}", "", column_hint(name, names))
        self._places = [lower.index(name) if name in lower else -1 for name in names]
        self._rows = 0

    def columns(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Return the table's columns; one that the source lacks is NULL.

        They have the types of :func:`acidctl.orc.types.arrow_type`, but timestamps are WideTimestamp in a batch with
        one that 64 bits of nanoseconds cannot hold.

        Raises:
            BadDataError: a value does not fit its column; the message has the number of its row, from 1.
        """
        columns = []
        for name, kind, place in zip(self._names, self._types, self._places, strict=True):
            if place < 0:
                columns.append(pa.nulls(batch.num_rows, arrow_type(kind)))
            else:
                columns.append(self._fit(name, batch.column(place), kind))
            is_key, is_not_null = name in self._keys, name in self._not_null
            if bad := unwritable(name, columns[-1], kind, is_key=is_key, is_not_null=is_not_null):
                raise self._row_error(*bad)
        self._rows += batch.num_rows
        return columns

    def all_columns(self, batches: Iterable[pa.RecordBatch]) -> list[pa.Array]:
        """Return the table's columns of all batches together, as :meth:`columns` does for one."""
        parts = [self.columns(batch) for batch in batches]
        if not parts:
            return [pa.nulls(0, arrow_type(kind)) for kind in self._types]
        return [joined(column) for column in zip(*parts, strict=True)]

    def _fit(self, name: str, column: pa.Array, kind: OrcType) -> pa.Array:
        target = arrow_type(kind)
        column = decoded(column)
        if isinstance(column.type, WideTimestamp) and kind.kind == "timestamp" and not column.type.instant:
            return as_nanoseconds(column)
        is_parsed = self._is_text and not pa.types.is_nested(target)
        if not is_parsed and not _is_fitting(column.type, target):
            raise BadDataError(
                f"column {name} cannot take values of the type {column.type}",
                f"it is {kind.kind} in the table, and nothing is converted that could change a value",
                "convert it first, e.g. by CAST",
            )
        try:
            fitted = _cast(column, target)
        except pa.ArrowInvalid as error:
            raise self._bad(name, column, target, kind) from error
        if kind.kind == "char":
            fitted = pc.utf8_rtrim(fitted, characters=" ")  # blanks at its end do not count
        if kind.max_length and kind.kind in ("char", "varchar"):
            too_long = pc.greater(pc.utf8_length(fitted), kind.max_length)
            if pc.any(too_long).as_py():
                raise self._refused(name, kind, int(pc.index(too_long, True).as_py()), column)
        return fitted

    def _bad(self, name: str, column: pa.Array, target: pa.DataType, kind: OrcType) -> BadDataError:
        low, high = 0, len(column)
        while high - low > 1:  # find the first value that does not fit
            middle = (low + high) // 2
            try:
                _cast(column.take(pa.array(range(low, middle))), target)  # of a slice, Arrow casts all nested values
            except pa.ArrowInvalid:
                high = middle
            else:
                low = middle
        return self._refused(name, kind, low, column)

    def _refused(self, name: str, kind: OrcType, place: int, column: pa.Array) -> BadDataError:
        value = str(column[place].as_py())
        shown = value if len(value) <= 60 else f"{value[:60]}..."
        words = kind.kind if kind.children else hive_type(kind)
        return self._row_error(place, f"column {name} is {words} and cannot hold {shown!r}")

    def _row_error(self, place: int, why: str) -> BadDataError:
        """Return the error of a row of the batch that is being converted."""
        what = f"row {self._rows + place + 1:,}{self._of_part} does not fit into the table"
        return BadDataError(what, why, "nothing was written; correct the row")


def unwritable(
    name: str, column: pa.Array, kind: OrcType, *, is_key: bool, is_not_null: bool
) -> tuple[int, str] | None:
    """Return the place of the first value that the column can hold, but not in this table, and why; None if all fit.

    Args:
        is_key: the column is a partition key.
        is_not_null: the column is NOT NULL.
    """
    if is_not_null and column.null_count:
        return pc.index(column.is_null(), True).as_py(), f"it has no value in {name}, which is NOT NULL in the table"
    if is_key and pa.types.is_string(column.type) and (place := place_read_as_null(column, kind)) >= 0:
        text = column[place].as_py().rstrip(" ") or "an empty text"
        return place, f"{text} in the partition key {name} would be read as NULL"
    return None


def fitted(name: str, value: pa.Array | pa.Scalar, kind: OrcType, count: int) -> pa.Array:
    """Return computed values of a column; a scalar is repeated, and a decimal for a FLOAT or DOUBLE is rounded.

    Args:
        count: the number of rows.

    Raises:
        BadDataError: a value does not fit the column.
    """
    if isinstance(value, pa.Scalar):
        value = pa.repeat(value, count) if value.is_valid else pa.nulls(count)
    if pa.types.is_decimal(value.type) and kind.kind in ("float", "double"):
        value = value.cast(arrow_type(kind))  # 0.5 is a decimal in SQL
    batch = pa.record_batch([value], names=[name])
    try:
        return RowConformer(batch.schema, [name], [kind]).columns(batch)[0]
    except BadDataError as error:  # its number of a row means nothing here
        what = f"a new value of {name} does not fit into the table"
        raise BadDataError(what, error.why, "nothing was written; correct the expression") from error


def _cast(column: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.string())  # Arrow parses no views
    if pa.types.is_integer(column.type) and pa.types.is_decimal(target):
        column = column.cast(pa.decimal256(20 + target.scale, target.scale))  # else room for all integers is required
    try:
        return column.cast(target)
    except pa.ArrowInvalid:
        if (coarse := _in_microseconds(target)) == target:
            raise
    # Years up to 9999, as Hive has them.
    return _parsed_times(column) if _is_text(column.type) else _with_wide_times(column.cast(coarse))


def _parsed_times(texts: pa.Array) -> pa.Array:
    """Return WideTimestamp of texts, which may have years up to 9999 and nine digits after the second.

    Raises:
        pa.ArrowInvalid: a text is not a timestamp.
    """
    seconds = pc.utf8_slice_codeunits(texts, 0, 19).cast(pa.timestamp("s"))
    fraction = pc.utf8_slice_codeunits(texts, 19)
    if pc.any(pc.invert(pc.match_substring_regex(fraction, r"^(\.[0-9]{1,9})?$"))).as_py():
        raise pa.ArrowInvalid("no timestamp")
    digits = pc.utf8_rpad(pc.utf8_slice_codeunits(fraction, 1), 9, "0")
    whole, nanos = (pc.fill_null(part.cast(pa.int64()), 0).to_numpy() for part in (seconds, digits))
    return wide(whole, nanos, seconds, instant=False)


def _in_microseconds(kind: pa.DataType) -> pa.DataType:
    """Return a type with its timestamps in microseconds."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_in_microseconds(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_in_microseconds(kind.key_type), _in_microseconds(kind.item_type))
    return pa.list_(kind.value_field.with_type(_in_microseconds(kind.value_type))) if pa.types.is_list(kind) else kind


def _with_wide_times(array: pa.Array) -> pa.Array:
    """Return an array with all its timestamps as WideTimestamp."""
    if pa.types.is_timestamp(array.type):
        return widened(array)
    children = below(array)
    return with_children(array, [_with_wide_times(child) for child in children]) if children else array


def decoded(column: pa.Array) -> pa.Array:
    """Return a column of a dictionary as a column of its values, and any other column unchanged."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def joined(parts: Sequence[pa.Array]) -> pa.Array:
    """Return the parts of one column as one array; its timestamps are WideTimestamp if those of any part are."""
    if len({part.type for part in parts}) > 1:
        parts = [_with_wide_times(part) for part in parts]
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def _is_fitting(source: pa.DataType, target: pa.DataType) -> bool:
    """Return whether Arrow's cast keeps every value or fails; it reads dates and times in ISO form, without a zone."""
    if pa.types.is_dictionary(source):
        source = source.value_type
    if source == target or pa.types.is_null(source):
        return True
    if pa.types.is_integer(source):
        return any(test(target) for test in (pa.types.is_integer, pa.types.is_decimal, pa.types.is_floating))
    if pa.types.is_floating(source):
        return bool(pa.types.is_floating(target)) and target.bit_width >= source.bit_width
    if pa.types.is_decimal(source):
        return bool(pa.types.is_decimal(target))
    if _is_text(source):
        return _is_text(target) or bool(pa.types.is_date(target)) or target == pa.timestamp("ns")
    if _is_bytes(source):
        return _is_bytes(target)
    if pa.types.is_date(source):
        return bool(pa.types.is_date(target))
    if pa.types.is_timestamp(source):
        return bool(pa.types.is_timestamp(target)) and (source.tz is None) == (target.tz is None)
    if pa.types.is_nested(source) and source.num_fields == target.num_fields and source.id == target.id:
        return all(_is_fitting(source.field(at).type, target.field(at).type) for at in range(source.num_fields))
    return _is_list(source) and _is_list(target) and _is_fitting(source.value_type, target.value_type)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))
