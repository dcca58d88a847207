"""Lines of text as rows, by the delimiters that the metastore has for them: the rules of Hive's LazySimpleSerDe.

A value is a span of bytes of the block that was read. Spans are cut by the places of delimiters, all rows at once and
level by level; only the leaves become values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from acidctl.errors import BadDataError
from acidctl.location.declared import TextLayout
from acidctl.orc.types import OrcType
from acidctl.rows.foreign.text_values import Bytes, Longs, gathered, places_within, values_of

Bools = NDArray[np.bool_]

_TEXTS = ("string", "char", "varchar")


@dataclass(frozen=True, slots=True)
class _Spans:
    """Where values begin and end; of missing ones the end is before the begin."""

    starts: Longs
    ends: Longs

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, chosen: Bools) -> _Spans:
        return _Spans(self.starts[chosen], self.ends[chosen])


class DelimitedBlock:
    """Some lines of a file.

    Args:
        data: the bytes that they are in.
        starts, ends: of each line, without its line end.
        path: for errors.
    """

    def __init__(self, data: Bytes, starts: Longs, ends: Longs, layout: TextLayout, path: str) -> None:
        self._data, self._lines = data, _Spans(starts, ends)
        self._layout, self._path = layout, path
        self._places: dict[int, Longs] = {}

    def columns(self, row: OrcType, names: Sequence[str] | None) -> pa.RecordBatch:
        """The columns of some names, all without any; each line a row.

        Raises:
            BadDataError: types or values that acidctl does not read from text.
        """
        wanted = [place for place, name in enumerate(row.names) if names is None or name in names]
        fields = self._fields(self._lines, 0, len(row.names), takes_rest=self._layout.takes_rest, wanted=wanted)
        arrays = [self._value(spans, row.children[place], 1) for place, spans in zip(wanted, fields, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, names=[row.names[place] for place in wanted])

    # -- where ---------------------------------------------------------------------------------------------------

    def _delimiters(self, level: int) -> Longs:
        """The places of the delimiter of a level, but where the byte before takes its meaning."""
        if level >= len(self._layout.separators):
            raise BadDataError(
                f"{self._path} cannot be read", "its types are nested too deep for text", "read it with Hive"
            )
        byte = self._layout.separators[level]
        if byte not in self._places:
            is_there = self._data == byte
            if self._layout.escape is not None:
                is_there &= ~self._escaped
            self._places[byte] = np.flatnonzero(is_there)
        return self._places[byte]

    @cached_property
    def _escaping(self) -> Bools:
        """The escape bytes that count: of several in a row every other one."""
        is_escape = self._data == self._layout.escape
        places = np.arange(len(self._data))
        starts = is_escape.copy()
        starts[1:] &= ~is_escape[:-1]
        first = np.maximum.accumulate(np.where(starts, places, 0))
        found: Bools = is_escape & ((places - first) % 2 == 0)
        return found

    @cached_property
    def _escaped(self) -> Bools:
        """The bytes behind them."""
        found = np.zeros(len(self._data), np.bool_)
        found[1:] = self._escaping[:-1]
        return found

    def _fields(
        self, spans: _Spans, level: int, count: int, *, takes_rest: bool = False, wanted: Sequence[int]
    ) -> list[_Spans]:
        """Some of the fields of each of the spans, of which there may be fewer or more than `count`."""
        places = self._delimiters(level)
        low = np.searchsorted(places, spans.starts)
        high = np.maximum(np.searchsorted(places, spans.ends), low)
        padded = np.append(places, 0)
        found = []
        for place in wanted:
            is_missing = (place > high - low) | (spans.ends < spans.starts)
            starts = spans.starts if place == 0 else padded[np.minimum(low + place - 1, len(places))] + 1
            ends = np.where(low + place < high, padded[np.minimum(low + place, len(places))], spans.ends)
            if takes_rest and place == count - 1:
                ends = spans.ends
            found.append(_Spans(np.where(is_missing, 1, starts), np.where(is_missing, 0, ends)))
        return found

    def _items(self, spans: _Spans, level: int) -> tuple[Longs, _Spans]:
        """The items of each span, one after the other, and how many each has: none where it is empty."""
        places = self._delimiters(level)
        low = np.searchsorted(places, spans.starts)
        high = np.maximum(np.searchsorted(places, spans.ends), low)
        counts = np.where(spans.ends > spans.starts, high - low + 1, 0)
        firsts = np.cumsum(counts) - counts
        total = int(counts.sum())
        # Which delimiter stands behind each item; behind the last of a span none.
        number = places_within(low, counts)
        is_first, is_last = np.zeros(total, np.bool_), np.zeros(total, np.bool_)
        filled = counts > 0
        is_first[firsts[filled]] = True
        is_last[(firsts + counts - 1)[filled]] = True
        padded = np.append(places, 0)
        starts = padded[np.clip(number - 1, 0, len(places))] + 1
        starts[is_first] = spans.starts[filled]
        ends = padded[np.minimum(number, len(places))]
        ends[is_last] = spans.ends[filled]
        return counts, _Spans(starts, ends)

    # -- what ----------------------------------------------------------------------------------------------------

    def _is_null(self, spans: _Spans) -> Bools:
        """Missing ones, and those that are the text for NULL."""
        null = np.frombuffer(self._layout.null, np.uint8)
        lengths = spans.ends - spans.starts
        is_null = lengths < 0
        alike = np.flatnonzero(lengths == len(null))
        if len(alike) and len(null):
            alike = alike[(self._data[spans.starts[alike][:, None] + np.arange(len(null))] == null).all(1)]
        is_null[alike] = True
        return is_null

    def _value(self, spans: _Spans, kind: OrcType, level: int) -> pa.Array:
        is_null = self._is_null(spans)
        if kind.kind == "struct":
            return self._structs(spans, is_null, kind, level)
        if kind.kind in ("array", "map"):
            spans = _Spans(np.where(is_null, 0, spans.starts), np.where(is_null, 0, spans.ends))
            return (self._lists if kind.kind == "array" else self._maps)(spans, is_null, kind, level)
        spans = _Spans(np.where(is_null, 0, spans.starts), np.where(is_null, 0, spans.ends))
        raw = (
            self._unescaped(spans)
            if kind.kind in _TEXTS
            else gathered(self._data, spans.starts, spans.ends, pa.binary())
        )
        if is_null.any():
            raw = pa.Array.from_buffers(pa.binary(), len(raw), [_validity(is_null), *raw.buffers()[1:]])
        return values_of(raw, kind, self._path)

    def _unescaped(self, spans: _Spans) -> pa.Array:
        """The bytes without escapes: ``\\n`` and ``\\r`` are line ends, all others what stands behind the escape."""
        if self._layout.escape is None or not self._escaping.any():
            return gathered(self._data, spans.starts, spans.ends, pa.binary())
        lengths = spans.ends - spans.starts
        places = places_within(spans.starts, lengths)
        # One that nothing follows in its field stands for itself.
        is_last = np.zeros(len(self._data) + 1, np.bool_)
        is_last[spans.ends[lengths > 0] - 1] = True
        dropped = self._escaping[places] & ~is_last[places]
        bytes_ = self._data[places].copy()
        behind = np.zeros(len(places), np.bool_)
        behind[1:] = dropped[:-1]
        bytes_[behind & (bytes_ == ord("n"))] = ord("\n")
        bytes_[behind & (bytes_ == ord("r"))] = ord("\r")
        before = np.concatenate([[0], np.cumsum(dropped)])
        ends = np.cumsum(lengths)
        kept = lengths - (before[ends] - before[ends - lengths])
        offsets = np.zeros(len(spans) + 1, np.int32)
        np.cumsum(kept, out=offsets[1:])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(bytes_[~dropped])]
        return pa.Array.from_buffers(pa.binary(), len(spans), buffers)

    def _structs(self, spans: _Spans, is_null: Bools, kind: OrcType, level: int) -> pa.Array:
        count = len(kind.names)
        spans = _Spans(np.where(is_null, 1, spans.starts), np.where(is_null, 0, spans.ends))
        fields = self._fields(spans, level, count, wanted=range(count))
        children = [self._value(field, child, level + 1) for field, child in zip(fields, kind.children, strict=True)]
        mask = pa.array(is_null) if is_null.any() else None
        return pa.StructArray.from_arrays(children, fields=_fields_of(kind, children), mask=mask)

    def _lists(self, spans: _Spans, is_null: Bools, kind: OrcType, level: int) -> pa.Array:
        counts, items = self._items(spans, level)
        values = self._value(items, kind.children[0], level + 1)
        target = pa.list_(pa.field("item", values.type))
        return pa.Array.from_buffers(target, len(spans), [_validity(is_null), _offsets(counts)], children=[values])

    def _maps(self, spans: _Spans, is_null: Bools, kind: OrcType, level: int) -> pa.Array:
        counts, items = self._items(spans, level)
        places = self._delimiters(level + 1)
        following = np.append(places, np.iinfo(np.int64).max)[np.searchsorted(places, items.starts)]
        has_value = following < items.ends
        key_ends = np.where(has_value, following, items.ends)
        keys = self._value(_Spans(items.starts, key_ends), kind.children[0], level + 2)
        rows = np.repeat(np.arange(len(spans)), counts)
        kept = _first_of_keys(rows, keys)
        pairs = _Spans(np.where(has_value, key_ends + 1, 1), np.where(has_value, items.ends, 0)).take(kept)
        values = self._value(pairs, kind.children[1], level + 2)
        counts = np.bincount(rows[kept], minlength=len(spans))
        keys = keys.filter(pa.array(kept))
        target = pa.map_(keys.type, values.type)
        pairs_array = pa.StructArray.from_arrays([keys, values], fields=[target.key_field, target.item_field])
        return pa.Array.from_buffers(target, len(spans), [_validity(is_null), _offsets(counts)], children=[pairs_array])


def _first_of_keys(rows: Longs, keys: pa.Array) -> Bools:
    """Which entries of maps count: those that have a key, and of equal keys of one map the first."""
    kept = np.asarray(keys.is_valid())
    codes = keys.dictionary_encode().indices
    numbers = np.asarray(pc.fill_null(codes, 0), np.int64)
    chosen = np.flatnonzero(kept)
    _, first = np.unique(rows[chosen] * (len(keys) + 1) + numbers[chosen], return_index=True)
    found = np.zeros(len(keys), np.bool_)
    found[chosen[first]] = True
    return found


def _fields_of(kind: OrcType, children: Sequence[pa.Array]) -> list[pa.Field]:
    return [pa.field(name, child.type) for name, child in zip(kind.names, children, strict=True)]


def _validity(is_null: Bools) -> pa.Buffer | None:
    return pa.py_buffer(np.packbits(~is_null, bitorder="little")) if is_null.any() else None


def _offsets(counts: Longs) -> pa.Buffer:
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return pa.py_buffer(offsets)
