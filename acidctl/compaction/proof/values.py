"""An order-independent checksum over all values of rows: proof that no value was lost, changed or given to another row.

Every value becomes a word of 64 bits in each of two independent lanes, a row is a sum of its columns' mixed words, and
the rows, mixed with their keys, are added up.  Only what is a different value to Hive counts: the same instant in
either form of timestamps is alike, and so are all NaNs; NULL is like nothing else, and -0.0 is not 0.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from acidctl.compaction.proof.checksum import SEEDS, add, key_checksum, key_hashes, mix
from acidctl.errors import BadDataError
from acidctl.orc.arrow import tags_of
from acidctl.orc.read.union_nulls import has_null_member
from acidctl.orc.read.wide_timestamps import WideTimestamp, parts
from acidctl.orc.types import OrcType
from acidctl.orc.write.stand_ins import chosen_values
from acidctl.rows.read.delete_set import Keys
from acidctl.rows.read.events import Ids

Words = NDArray[np.uint64]
Lanes = tuple[Words, Words]
"""One word a value in each lane; the same array twice where lanes part only when they are mixed."""

_MOST_ROWS: Final = 32 * 1024
_MOST_BYTES: Final = 4 << 20
"""Rows are hashed in slices of no more than these, unless a single row is larger: so that memory stays small, and most
of it in the processor's cache."""

_PIECE: Final = 64 * 1024
"""Words of strings that are hashed at a time."""

_NULLS: Final = (0x8CB92BA72F3D8DD7, 0xC3A5C85C97CB3127)
_PLACES: Final = 4096
_NANOS: Final = 1_000_000_000
_ERA_SECONDS: Final = 2**64 / _NANOS
_ODD: Final = np.uint64(0xA24BAED4963EE407)
_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": _NANOS}


def value_checksum(keys: Keys | None, rows: pa.Array, row: OrcType | None = None) -> int:
    """128 bits that tell whether two sets of rows hold the same values under the same keys.

    The checksum of two disjoint sets is :func:`acidctl.compaction.proof.checksum.add` of theirs.
    Columns count by their place, not by their name.

    Args:
        keys: of the rows; None hashes rows alone, as insert-only tables have them.
        rows: structs of the table's columns, of any types that a reader of acidctl gives; NULL where there is no row.
        row: their types; with them the spaces at the end of CHAR do not count, which writers add as needed.

    Raises:
        BadDataError: a column is of a type that no reader gives.
    """
    total, start = 0, 0
    for part in _slices(rows):
        count = len(part)
        low, high = (
            int(_finished(lane, words, keys, slice(start, start + count)).sum(dtype=np.uint64))
            for lane, words in enumerate(_words(part, row))
        )
        total = add(total, high << 64 | low)
        start += count
    return total


def event_checksum(ids: Ids, rows: pa.Array, row: OrcType) -> int:
    """128 bits of all that events hold: their values under their keys, and their operations and current write ids.

    Args:
        ids: of the events.
        rows, row: see :func:`value_checksum`.
    """
    others = Keys(ids.current, ids.operation, ids.keys.row_id)
    return add(value_checksum(ids.keys, rows, row), key_checksum(others))


def _finished(lane: int, words: Words, keys: Keys | None, part: slice) -> Words:
    if keys is None:
        return mix(words ^ np.uint64(SEEDS[lane]))
    return mix(words * _ODD ^ key_hashes(keys.take(part), SEEDS[lane]))


def _slices(rows: pa.Array) -> Iterator[pa.Array]:
    """The rows, halved until a slice is small enough."""
    count = len(rows)
    if count > _MOST_ROWS or (count > 1 and rows.nbytes > _MOST_BYTES):
        half = _MOST_ROWS * (count // _MOST_ROWS // 2 or 1) if count > _MOST_ROWS else count // 2
        yield from _slices(rows.slice(0, half))
        yield from _slices(rows.slice(half))
    elif count:
        yield rows


def _words(array: pa.Array, tree: OrcType | None) -> Lanes:
    """A word for each value in each lane, NULLs included."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _words(array.dictionary_decode(), tree)
    if pa.types.is_null(kind):
        return _constant(_NULLS[0], len(array)), _constant(_NULLS[1], len(array))
    if pa.types.is_union(kind):
        return _union(array, tree)  # its NULLs are an alternative
    if pa.types.is_struct(kind):
        lanes = _struct(array, tree)
    elif pa.types.is_map(kind):
        lanes = _map(array, tree)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        lanes = _list(array, tree)
    elif isinstance(kind, WideTimestamp):
        lanes = _wide(*parts(array))
    elif isinstance(kind, pa.BaseExtensionType):
        return _words(array.storage, tree)
    else:
        lanes = _leaf(array, tree)
    if not array.null_count:
        return lanes
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    return _or_null(lanes[0], nulls, 0), _or_null(lanes[1], nulls, 1)


def _constant(word: int, count: int) -> Words:
    return np.full(count, word, np.uint64)


def _or_null(words: Words, nulls: NDArray[np.bool_], lane: int) -> Words:
    """No value has these two words: lanes that part only when mixed are equal, the others are mixed."""
    return np.where(nulls, np.uint64(_NULLS[lane]), words)


def _mixed(words: Words, place: Words | np.uint64, lane: int) -> Words:
    """Words of a lane that tell where they stand."""
    return mix(words ^ (place ^ np.uint64(SEEDS[lane])))


@cache
def _table() -> Words:
    return mix(np.arange(1, _PLACES + 1, dtype=np.uint64) * _ODD)


def _places(numbers: NDArray[np.int64]) -> Words:
    """A word for each place, counted from 0."""
    if not len(numbers) or int(numbers.max()) < _PLACES:
        return _table()[numbers]
    return mix((numbers.astype(np.uint64) + np.uint64(1)) * _ODD)


def _both(array: Words) -> Lanes:
    return array, array


# --- nested --------------------------------------------------------------------------------------------------------


def _struct(array: pa.StructArray, tree: OrcType | None) -> Lanes:
    count = array.type.num_fields
    trees = _children(tree, "struct", count)
    low, high = _constant(count, len(array)), _constant(count, len(array))
    places = _places(np.arange(count))
    for i in range(count):
        lanes = _words(array.field(i), trees[i])
        low += _mixed(lanes[0], places[i], 0)
        high += _mixed(lanes[1], places[i], 1)
    return low, high


def _union(array: pa.UnionArray, tree: OrcType | None) -> Lanes:
    members = array.type.num_fields - has_null_member(array.type)
    trees = _children(tree, "uniontype", members)
    tags = tags_of(array)
    low, high = _constant(_NULLS[0], len(array)), _constant(_NULLS[1], len(array))
    places = _places(np.arange(members))
    for i, values in enumerate(chosen_values(array)):
        rows = np.flatnonzero(tags == i)
        lanes = _words(values, trees[i])
        low[rows] = _mixed(lanes[0], places[i], 0)
        high[rows] = _mixed(lanes[1], places[i], 1)
    return low, high


def _list(array: pa.Array, tree: OrcType | None) -> Lanes:
    if pa.types.is_fixed_size_list(array.type):
        array = array.cast(pa.list_(array.type.value_type))
    offsets = array.offsets.to_numpy().astype(np.int64)
    (child,) = _children(tree, "array", 1)
    return _sequences(_words(array.values.slice(offsets[0], offsets[-1] - offsets[0]), child), offsets)


def _map(array: pa.MapArray, tree: OrcType | None) -> Lanes:
    offsets = array.offsets.to_numpy().astype(np.int64)
    key, item = _children(tree, "map", 2)
    first, count = offsets[0], offsets[-1] - offsets[0]
    one = _words(array.keys.slice(first, count), key)
    other = _words(array.items.slice(first, count), item)
    places = _places(np.arange(2))
    low, high = (_mixed(one[i], places[0], i) + _mixed(other[i], places[1], i) for i in (0, 1))
    return _sequences((low, high), offsets)


def _sequences(lanes: Lanes, offsets: NDArray[np.int64]) -> Lanes:
    """A word for each list of elements."""
    counts = np.diff(offsets)
    places = _places(np.arange(offsets[-1] - offsets[0]) - np.repeat(offsets[:-1] - offsets[0], counts))
    bounds = offsets - offsets[0]
    low, high = (
        mix(_sums(_mixed(lanes[i], places, i), bounds) + counts.astype(np.uint64) * np.uint64(SEEDS[i])) for i in (0, 1)
    )
    return low, high


def _sums(words: Words, bounds: NDArray[np.int64]) -> Words:
    """The sum of each range of words."""
    running = np.zeros(len(words) + 1, np.uint64)
    np.cumsum(words, out=running[1:])
    return running[bounds[1:]] - running[bounds[:-1]]


def _children(tree: OrcType | None, kind: str, count: int) -> Sequence[OrcType | None]:
    known = tree is not None and tree.kind == kind and len(tree.children) == count
    return tree.children if tree is not None and known else (None,) * count


# --- leaves --------------------------------------------------------------------------------------------------------


def _leaf(array: pa.Array, tree: OrcType | None) -> Lanes:
    kind = array.type
    if pa.types.is_decimal(kind):
        return _decimals(array)
    if pa.types.is_timestamp(kind):
        return _timestamps(array)
    if pa.types.is_floating(kind):
        return _both(_floats(array))
    if pa.types.is_boolean(kind):
        return _both(array.cast(pa.uint8()).fill_null(0).to_numpy(zero_copy_only=False).astype(np.uint64))
    if pa.types.is_integer(kind):
        numbers = array.fill_null(0).to_numpy(zero_copy_only=False)
        return _both(numbers.astype(np.int64, copy=False).view(np.uint64))
    if pa.types.is_date32(kind):
        return _leaf(array.cast(pa.int32()), None)
    if pa.types.is_time32(kind):
        return _leaf(array.cast(pa.int32()), None)
    if pa.types.is_time64(kind):
        return _leaf(array.cast(pa.int64()), None)
    return _strings(array, trimmed=tree is not None and tree.kind == "char")


def _floats(array: pa.Array) -> Words:
    values = array.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
    words: Words = np.where(np.isnan(values), np.float64("nan"), values).view(np.uint64)
    return words


def _decimals(array: pa.Array) -> Lanes:
    if not pa.types.is_decimal128(array.type):
        array = array.cast(pa.decimal128(38, array.type.scale))
    halves = np.frombuffer(array.buffers()[1], np.uint64)[2 * array.offset : 2 * (array.offset + len(array))]
    low, high = halves[::2], halves[1::2]
    # Nearly all numbers fit the lower half: then the upper one is but its sign.
    small = high == (low.view(np.int64) >> 63).view(np.uint64)
    if small.all():
        return _both(low.copy())
    one, other = (np.where(small, low, mix(low ^ np.uint64(seed)) + high * _ODD) for seed in SEEDS[::-1])
    return one, other


def _timestamps(array: pa.Array) -> Lanes:
    ticks = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    if array.type.unit == "ns":
        return _both(ticks.view(np.uint64))
    per_second = _PER_SECOND[array.type.unit]
    seconds, rest = np.divmod(ticks, per_second)
    return _wide(seconds, rest * (_NANOS // per_second))


def _wide(seconds: Any, nanos: Any) -> Lanes:
    """Instants as nanoseconds of 64 bits, which wrap around, and how often they did: never for ``timestamp[ns]``."""
    wrapped = seconds.astype(np.int64) * np.int64(_NANOS) + nanos.astype(np.int64)
    eras = np.rint((seconds - wrapped / _NANOS) / _ERA_SECONDS).astype(np.int64).view(np.uint64)
    if not eras.any():
        return _both(wrapped.view(np.uint64))
    words = wrapped.view(np.uint64)
    one, other = (np.where(eras == 0, words, mix(words ^ np.uint64(seed)) + mix(eras)) for seed in SEEDS[::-1])
    return one, other


# --- strings -------------------------------------------------------------------------------------------------------


def _strings(array: pa.Array, *, trimmed: bool) -> Lanes:
    """Eight bytes are a word, the last one filled with zeros; a string is a list of words, and its length."""
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
        return _both(np.zeros(len(array), np.uint64))
    lengths = np.diff(offsets)
    data = np.frombuffer(data, np.uint8)
    low, high = np.zeros(len(array), np.uint64), np.zeros(len(array), np.uint64)
    counts = lengths + 7 >> 3
    ends = np.concatenate(([0], np.cumsum(counts)))
    for start in range(0, int(ends[-1]), _PIECE):
        _add_words(data, offsets, ends, start, (low, high))
    sizes = lengths.astype(np.uint64)
    one, other = (mix(words + sizes * np.uint64(SEEDS[i])) for i, words in enumerate((low, high)))
    return one, other


def _add_words(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], ends: NDArray[np.int64], start: int, into: Lanes
) -> None:
    """Add a piece of all strings' words to the strings they are of.

    Args:
        data: the bytes of all strings.
        offsets: where each string begins and the last one ends.
        ends: number of the first word of each string, and of the one after the last.
        start: number of the piece's first word.
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
    places = _places(numbers)
    for lane, sums in enumerate(into):
        sums[first:last] += _sums(_mixed(words, places, lane), bounds - start)


_MASKS: Final = np.array([(1 << 8 * count) - 1 for count in range(8)], np.uint64)
_WORD: Final = np.dtype("V8")


def _gathered(data: NDArray[np.uint8], at: NDArray[np.int64]) -> Words:
    """The eight bytes from each place on; whatever they are behind the end of the data."""
    size = len(data)
    if size < 8:
        data = np.concatenate((data, np.zeros(8, np.uint8)))
        size = len(data)
    behind = at > size - 8
    # Places need not be multiples of eight: a view of overlapping items, which NumPy copies as bytes.
    view = np.ndarray((size - 7,), _WORD, data, strides=(1,))
    if not behind.any():
        return view[at].view("<u8")
    words = view[np.minimum(at, size - 8)].view("<u8")
    shift = (at[behind] - (size - 8)).astype(np.uint64) << np.uint64(3)
    words[behind] >>= shift
    return words
