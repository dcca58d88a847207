"""An order-independent checksum over all values of rows: proof that no value was lost, changed or given to another row.

Every value becomes a word of 64 bits in each of two independent lanes, a row is a sum of its columns' mixed words, and
the rows, mixed with their keys, are added up. Values are equal if they are equal to Hive: the same instant in either
form of timestamps, and all NaNs; NULL equals no other value, and -0.0 is not 0.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from acidctl.base.errors import BadDataError
from acidctl.compaction.proof.checksum import SEEDS, add, key_checksum, key_hashes, mix
from acidctl.orc.arrow import tags_of
from acidctl.orc.read.union_nulls import has_null_member
from acidctl.orc.read.wide_timestamps import WideTimestamp, parts
from acidctl.orc.types import OrcType, hive_type, row_of
from acidctl.orc.write.surrogate_columns import chosen_values
from acidctl.rows.read.delete_set import Keys
from acidctl.rows.read.events import Ids

if TYPE_CHECKING:
    from acidctl.rows.scan.table_scan import TableScan

Words = NDArray[np.uint64]
"""One row of words per lane and one word per value; a single row if lanes differ only after mixing."""

_MOST_ROWS: Final = 32 * 1024
_MOST_BYTES: Final = 4 << 20
"""Rows are hashed in slices up to these sizes, or singly, so that most memory stays in the processor's cache."""

_PIECE: Final = 32 * 1024
"""Words of strings that are hashed together."""

_FEW: Final = 4
"""Words of a string."""

_NULLS: Final = np.array([[0x8CB92BA72F3D8DD7], [0xC3A5C85C97CB3127]], np.uint64)
"""No value has these two words: its lanes are equal before mixing, or mixed."""

_LANES: Final = np.array(SEEDS, np.uint64)[:, np.newaxis]
_PLACES: Final = 4096
_NANOS: Final = 1_000_000_000
_ERA_SECONDS: Final = 2**64 / _NANOS
_ODD: Final = np.uint64(0xA24BAED4963EE407)


def row_and_column_checksums(keys: Keys | None, rows: pa.StructArray) -> tuple[int, list[int]]:
    """Return the :func:`value_checksum` of rows, and the :func:`column_checksum` of each of their columns."""
    total, columns, start = 0, [0] * rows.type.num_fields, 0
    for part in _slices(rows):
        count = len(part)
        words = np.full((2, count), len(columns), np.uint64)
        for at, terms in enumerate(_terms(part, _children(None, "struct", len(columns)))):
            columns[at] = add(columns[at], _sum_of(terms))
            words += terms
        total = add(total, _sum_of(_finished(words, keys, slice(start, start + count))))
        start += count
    return total, columns


def column_checksum(column: pa.Array, number: int) -> int:
    """Return 128 bits that are equal for two columns with the same values in any order.

    Args:
        number: the place of the column in its table; the same values at another place have another checksum.
    """
    place, total = _places(np.array([number]))[0], 0
    for part in _slices(column):
        total = add(total, _sum_of(_mixed(_words(part, None), place)))
    return total


def _sum_of(words: Words) -> int:
    low, high = words.sum(axis=1, dtype=np.uint64)
    return int(high) << 64 | int(low)


def value_checksum(keys: Keys | None, rows: pa.Array, row: OrcType | None = None) -> int:
    """Return 128 bits that are equal for two sets of rows with the same values under the same keys.

    The checksum of two disjoint sets is the :func:`acidctl.compaction.proof.checksum.add` of theirs. The order of
    columns counts, their names do not.

    Args:
        keys: the keys of the rows; None for rows without keys, as in insert-only tables.
        rows: structs of the table's columns, of any types that acidctl's readers return; NULL for an event without row.
        row: their types; with them the spaces at the end of CHAR do not count, because writers may add these.

    Raises:
        BadDataError: a column has a type that no reader returns.
    """
    total, start = 0, 0
    for part in _slices(rows):
        count = len(part)
        total = add(total, _sum_of(_finished(_words(part, row), keys, slice(start, start + count))))
        start += count
    return total


def event_checksum(ids: Ids, rows: pa.Array, row: OrcType) -> int:
    """Return 128 bits of events: their values under their keys, their operations and their current write ids.

    For `rows` and `row` see :func:`value_checksum`.
    """
    others = Keys(ids.current, ids.operation, ids.keys.row_id)
    return add(value_checksum(ids.keys, rows, row), key_checksum(others))


def spread_checksum(ids: Ids, rows: pa.Array, row: OrcType) -> int:
    """Return 128 bits of rows that get new buckets and row ids: their values and their write ids.

    For `rows` and `row` see :func:`value_checksum`.
    """
    original = ids.keys.original
    return add(value_checksum(None, rows, row), key_checksum(Keys(original, original, original)))


def _finished(words: Words, keys: Keys | None, part: slice) -> Words:
    if keys is None:
        return mix(words ^ _LANES)
    hashes = [key_hashes(keys.take(part), seed) for seed in SEEDS]
    return mix(words * _ODD ^ np.stack(hashes))


def _slices(rows: pa.Array) -> Iterator[pa.Array]:
    count = len(rows)
    if count > _MOST_ROWS or (count > 1 and rows.nbytes > _MOST_BYTES):
        half = _MOST_ROWS * (count // _MOST_ROWS // 2 or 1) if count > _MOST_ROWS else count // 2
        yield from _slices(rows.slice(0, half))
        yield from _slices(rows.slice(half))
    elif count:
        yield rows


def _words(array: pa.Array, tree: OrcType | None) -> Words:
    """Return a word for each value in each lane, NULLs included."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _words(array.dictionary_decode(), tree)
    if pa.types.is_null(kind):
        return _constants(_NULLS, len(array))
    if pa.types.is_union(kind):
        return _union(array, tree)  # its NULLs are an alternative
    if isinstance(kind, pa.BaseExtensionType) and not isinstance(kind, WideTimestamp):
        return _words(array.storage, tree)
    words = np.atleast_2d(_of_values(array, tree))
    return np.where(array.is_null().to_numpy(zero_copy_only=False), _NULLS, words) if array.null_count else words


def _of_values(array: pa.Array, tree: OrcType | None) -> Words:
    """Return the words of values; those of NULLs are arbitrary."""
    kind = array.type
    if pa.types.is_struct(kind):
        return _struct(array, tree)
    if pa.types.is_map(kind):
        return _map(array, tree)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        if pa.types.is_fixed_size_list(array.type):
            array = array.cast(pa.list_(array.type.value_type))
        offsets = array.offsets.to_numpy().astype(np.int64)
        (child,) = _children(tree, "array", 1)
        return _sequences(_words(array.values.slice(offsets[0], offsets[-1] - offsets[0]), child), offsets)
    if isinstance(kind, WideTimestamp):
        return _wide(*parts(array))
    return _leaf(array, tree)


def _constants(words: Words, count: int) -> Words:
    return np.repeat(words, count, axis=1)


def _mixed(words: Words, place: Words | np.uint64) -> Words:
    return mix(words ^ (place ^ _LANES))


@cache
def _table() -> Words:
    return mix(np.arange(1, _PLACES + 1, dtype=np.uint64) * _ODD)


def _places(numbers: NDArray[np.int64]) -> Words:
    """Return a word for each position, counted from 0."""
    if not len(numbers) or int(numbers.max()) < _PLACES:
        return _table()[numbers]
    return mix((numbers.astype(np.uint64) + np.uint64(1)) * _ODD)


# --- nested --------------------------------------------------------------------------------------------------------


def _struct(array: pa.StructArray, tree: OrcType | None) -> Words:
    count = array.type.num_fields
    words = np.full((2, len(array)), count, np.uint64)
    for terms in _terms(array, _children(tree, "struct", count)):
        words += terms
    return words


def _terms(array: pa.StructArray, trees: Sequence[OrcType | None]) -> Iterator[Words]:
    """Yield the words that each column adds to those of its rows."""
    for i, place in enumerate(_places(np.arange(len(trees)))):
        yield _mixed(_words(array.field(i), trees[i]), place)


def _union(array: pa.UnionArray, tree: OrcType | None) -> Words:
    members = array.type.num_fields - has_null_member(array.type)
    trees = _children(tree, "uniontype", members)
    tags = tags_of(array)
    words = _constants(_NULLS, len(array))
    places = _places(np.arange(members))
    for i, values in enumerate(chosen_values(array)):
        words[:, tags == i] = _mixed(_words(values, trees[i]), places[i])
    return words


def _map(array: pa.MapArray, tree: OrcType | None) -> Words:
    offsets = array.offsets.to_numpy().astype(np.int64)
    first, count = offsets[0], offsets[-1] - offsets[0]
    pairs = zip((array.keys, array.items), _children(tree, "map", 2), _places(np.arange(2)), strict=True)
    one, other = (_mixed(_words(part.slice(first, count), kind), place) for part, kind, place in pairs)
    return _sequences(one + other, offsets)


def _sequences(words: Words, offsets: NDArray[np.int64]) -> Words:
    """Return a word for each list of elements."""
    bounds = offsets - offsets[0]
    counts = np.diff(bounds)
    places = _places(np.arange(bounds[-1]) - np.repeat(bounds[:-1], counts))
    return mix(_sums(_mixed(words, places), bounds) + counts.astype(np.uint64) * _LANES)


def _sums(words: Words, bounds: NDArray[np.int64]) -> Words:
    running = np.zeros((2, words.shape[1] + 1), np.uint64)
    for lane in (0, 1):  # NumPy is much slower along an axis
        np.cumsum(words[lane], out=running[lane, 1:])
    return np.diff(running.take(bounds, axis=1))


def _children(tree: OrcType | None, kind: str, count: int) -> Sequence[OrcType | None]:
    if tree is not None and tree.kind == kind and len(tree.children) == count:
        return tree.children
    return (None,) * count


# --- leaves --------------------------------------------------------------------------------------------------------


def _leaf(array: pa.Array, tree: OrcType | None) -> Words:
    kind = array.type
    if pa.types.is_decimal(kind):
        return _decimals(array)
    if pa.types.is_timestamp(kind) and kind.unit != "ns":
        return _wide(*parts(array))
    if pa.types.is_floating(kind):
        values = array.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
        return _bits(np.where(np.isnan(values), np.float64("nan"), values))
    if pa.types.is_boolean(kind):
        array = array.cast(pa.uint8())
    elif pa.types.is_date32(kind) or pa.types.is_time32(kind):
        array = array.cast(pa.int32())
    elif pa.types.is_time64(kind) or pa.types.is_timestamp(kind):
        array = array.cast(pa.int64())
    if pa.types.is_integer(array.type):
        return _bits(array.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64, copy=False))
    return _strings(array, trimmed=tree is not None and tree.kind == "char")


def _bits(numbers: NDArray[Any]) -> Words:
    return numbers.view(np.uint64)


def _decimals(array: pa.Array) -> Words:
    if not pa.types.is_decimal128(array.type):
        array = array.cast(pa.decimal128(38, array.type.scale))
    halves = np.frombuffer(array.buffers()[1], np.uint64)[2 * array.offset : 2 * (array.offset + len(array))]
    low, high = halves[::2], halves[1::2]
    # Nearly all numbers fit into the lower half; then the upper half is only the sign.
    small = high == (low.view(np.int64) >> 63).view(np.uint64)
    if small.all():
        return low.copy()
    return np.where(small, low, mix(low ^ _LANES[::-1]) + high * _ODD)


def _wide(seconds: Any, nanos: Any) -> Words:
    """Return instants in nanoseconds modulo 2**64, mixed with the number of overflows, if that is not 0."""
    wrapped = seconds.astype(np.int64) * np.int64(_NANOS) + nanos.astype(np.int64)
    eras = np.rint((seconds - wrapped / _NANOS) / _ERA_SECONDS).astype(np.int64).view(np.uint64)
    words = _bits(wrapped)
    if not eras.any():
        return words
    return np.where(eras == 0, words, mix(words ^ _LANES[::-1]) + mix(eras))


# --- strings -------------------------------------------------------------------------------------------------------


def _strings(array: pa.Array, *, trimmed: bool) -> Words:
    """Return a word for each string, from its length and its words of eight bytes, the last one padded with zeros."""
    kind = array.type
    if pa.types.is_string_view(kind) or pa.types.is_large_string(kind) or pa.types.is_string(kind):
        array = array.cast(pa.large_string())
        if trimmed:
            array = pc.ascii_rtrim(array, characters=" ")
    elif pa.types.is_binary_view(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary(kind):
        array = array.cast(pa.large_binary())
    elif pa.types.is_fixed_size_binary(kind):
        array = array.cast(pa.binary()).cast(pa.large_binary())
    else:
        raise BadDataError(f"a column of Arrow's type {kind} cannot be proven", "no reader of acidctl gives it")
    _, offset_buffer, data = array.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[array.offset : array.offset + len(array) + 1]
    if data is None or offsets[-1] == offsets[0]:
        return np.zeros(len(array), np.uint64)
    lengths = np.diff(offsets)
    data = np.frombuffer(data, np.uint8)
    sums = np.zeros((2, len(array)), np.uint64)
    counts = lengths + 7 >> 3
    if int(counts.max()) <= _FEW:
        _add_few_words(data, offsets, counts, sums)
        return mix(sums + lengths.astype(np.uint64) * _LANES)
    ends = np.concatenate(([0], np.cumsum(counts)))
    for start in range(0, int(ends[-1]), _PIECE):
        _add_words(data, offsets, ends, start, sums)
    return mix(sums + lengths.astype(np.uint64) * _LANES)


def _add_few_words(data: NDArray[np.uint8], offsets: NDArray[np.int64], counts: NDArray[np.int64], into: Words) -> None:
    """Add all strings' words to the sums of their strings, which is the fastest way if each has few.

    Args:
        counts: the number of words of each string; for the others see :func:`_add_words`.
    """
    for number, place in enumerate(_places(np.arange(_FEW))):
        some = counts > number
        if not some.any():
            return
        chosen = slice(None) if some.all() else np.flatnonzero(some)
        at = offsets[:-1][chosen] + 8 * number
        words = _gathered(data, at) & _MASKS[np.minimum(offsets[1:][chosen] - at, 8)]
        into[:, chosen] += _mixed(words, place)


def _add_words(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], ends: NDArray[np.int64], start: int, into: Words
) -> None:
    """Add some of all strings' words to the sums of their strings.

    Args:
        data: the bytes of all strings.
        offsets: the first byte of each string, and the end of the last.
        ends: index of the first word of each string, and the end of the last.
        start: index of the first word to add.
    """
    end = min(start + _PIECE, int(ends[-1]))
    first = int(np.searchsorted(ends, start, "right")) - 1
    last = int(np.searchsorted(ends, end, "left"))
    bounds = np.clip(ends[first : last + 1], start, end)
    counts = np.diff(bounds)
    numbers = np.arange(start, end) - np.repeat(ends[first:last], counts)
    at = np.repeat(offsets[first:last], counts) + 8 * numbers
    left = np.repeat(offsets[first + 1 : last + 1], counts) - at
    words = _gathered(data, at)
    partial = np.flatnonzero(left < 8)
    words[partial] &= _MASKS[left[partial]]
    into[:, first:last] += _sums(_mixed(words, _places(numbers)), bounds - start)


_MASKS: Final = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)
_WORD: Final = np.dtype("V8")


def _gathered(data: NDArray[np.uint8], at: NDArray[np.int64]) -> Words:
    """Return the eight bytes from each position on; bytes beyond the end of the data are arbitrary."""
    size = len(data)
    if size < 8:
        data = np.concatenate((data, np.zeros(8, np.uint8)))
        size = len(data)
    behind = at > size - 8
    # Positions need not be multiples of eight, so NumPy copies bytes from a view of overlapping items.
    view = np.ndarray((size - 7,), _WORD, data, strides=(1,))
    if not behind.any():
        return view[at].view("<u8")
    words = view[np.minimum(at, size - 8)].view("<u8")
    shift = (at[behind] - (size - 8)).astype(np.uint64) << np.uint64(3)
    words[behind] >>= shift
    return words


@dataclass(frozen=True, slots=True)
class RowDigest:
    """The checksums of some rows; no order of rows or files changes them.

    Attributes:
        values: 128 bits of all values, row by row, as hexadecimal digits.
        row_ids: 128 bits of all values with their ROW__IDs.
        columns: names and types.
    """

    rows: int
    values: str
    row_ids: str
    columns: str


def row_digest(scan: TableScan) -> RowDigest:
    """Digest all rows of a scan, a stripe at a time.

    Args:
        scan: has ROW__ID as its first column.

    Raises:
        BadDataError, NotFoundError, HistoryError: not all rows can be read.
    """
    kinds = list(scan.output_type.fields())[1:]
    row = row_of(kinds)
    count = values = row_ids = 0
    for batch in scan.batches_as_read() if kinds else ():
        rows = pa.StructArray.from_arrays(batch.columns[1:], fields=list(batch.schema)[1:])
        values = add(values, value_checksum(None, rows, row))
        ids = (batch.column(0).field(i).to_numpy(zero_copy_only=False) for i in range(3))
        keys = Keys(*(np.asarray(column, np.int64) for column in ids))
        row_ids = add(row_ids, value_checksum(keys, rows, row))
        count += batch.num_rows
    columns = ", ".join(f"{name} {hive_type(kind)}" for name, kind in kinds)
    return RowDigest(count, f"{values:032x}", f"{row_ids:032x}", columns)
