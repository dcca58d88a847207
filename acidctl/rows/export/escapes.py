"""Search for characters in columns of UTF-8 bytes and replacement by escapes, with NumPy only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acidctl.base.printable import RANGES, json_escape_of

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

# Bytes of the longest escape: `\udb40\udc41`.
_LONGEST = 12
_BLOCK = 1 << 16

_HIGH = [(max(first, 0x80), last) for first, last in RANGES if last >= 0x80 and first != 0xD800]
_FIRSTS, _LASTS = np.array(_HIGH, np.int64).T


def _beginnings() -> dict[int, dict[bytes, list[tuple[int, int]]]]:
    """Return ranges of the last (at most the third) byte of the characters' UTF-8, by the bytes before it."""
    ends: dict[bytes, set[int]] = {}
    for first, last in _HIGH:
        for code in (*range(first, last, 64 if first > 0xFFFF else 1), last):
            start = chr(code).encode()[:3]
            ends.setdefault(start[:-1], set()).add(start[-1])
    beginnings: dict[int, dict[bytes, list[tuple[int, int]]]] = {}
    for start, last_bytes in sorted(ends.items()):
        beginnings.setdefault(start[0], {})[start[1:]] = list(_runs(sorted(last_bytes)))
    return beginnings


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    start = numbers[0]
    for number, following in zip(numbers, [*numbers[1:], -1], strict=True):
        if following != number + 1:
            yield start, number
            start = following


_BEGINNINGS = _beginnings()


@dataclass(frozen=True, slots=True)
class UnsafeCharacters:
    """Characters that need escapes, ascending.

    Attributes:
        starts: the position of the first byte of each.
        widths: bytes of each.
        codes: code points.
    """

    starts: Ints
    widths: Ints
    codes: Ints

    def __len__(self) -> int:
        return len(self.starts)

    def merged(self, other: UnsafeCharacters) -> UnsafeCharacters:
        """Merge two disjoint sets of characters."""
        if not len(other):
            return self
        starts = np.concatenate([self.starts, other.starts])
        order = np.argsort(starts, kind="stable")
        widths, codes = np.concatenate([self.widths, other.widths]), np.concatenate([self.codes, other.codes])
        return UnsafeCharacters(starts[order], widths[order], codes[order])


def json_escape(code: int) -> str:
    """Return the escape of a character in JSON."""
    return _JSON_SHORT.get(code) or json_escape_of(code)


_JSON_SHORT = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 0x22: '\\"', 0x5C: "\\\\"}


def replaced(data: Bytes, characters: UnsafeCharacters, escape: Callable[[int], str]) -> tuple[Bytes, Ints]:
    """Replace characters with escapes; also return the growth before each of the characters, and in total."""
    texts, lengths, which = _texts(characters.codes, escape)
    sizes = lengths[which]
    grown = np.concatenate(([0], np.cumsum(sizes - characters.widths)))
    result = np.empty(len(data) + int(grown[-1]), np.uint8)
    ordinary = np.ones(len(result), np.bool_)
    kept = np.ones(len(data), np.bool_)
    starts = characters.starts + grown[:-1]
    for place in range(int(sizes.max())):
        rows = slice(None) if place < sizes.min() else sizes > place
        result[starts[rows] + place] = texts[which[rows], place]
        ordinary[starts[rows] + place] = False
    for place in range(int(characters.widths.max())):
        kept[characters.starts[characters.widths > place] + place] = False
    result[ordinary] = data[kept]
    return result, grown


def unsafe(data: Bytes, more: bytes = b"") -> UnsafeCharacters:
    """Find the characters of valid UTF-8 that `printable` escapes, and the bytes `more`."""
    # C0, DEL and everything beyond ASCII: the subtraction wraps around.
    special = (data - np.uint8(0x20)) >= 0x5F
    is_ascii = data.max(initial=0) < 0x80
    if not is_ascii:
        special &= data < 0x80
    for byte in more:
        special |= data == byte
    places = np.flatnonzero(special)
    low = UnsafeCharacters(places, np.ones(len(places), np.int64), data[places].astype(np.int64))
    return low if is_ascii else low.merged(_beyond_ascii(data))


def _beyond_ascii(data: Bytes) -> UnsafeCharacters:
    """Find characters of two bytes and more, block by block, so that the compared bytes stay in the cache."""
    places: list[Ints] = []
    for start in range(0, len(data), _BLOCK):
        # A character that begins in the block may end after it.
        block = data[start : start + _BLOCK + 2]
        text = block.tobytes()
        if not text.isascii():
            places += [start + begins[begins < _BLOCK] for begins in _beginnings_in(block, text)]
    return _decoded(data, np.sort(np.concatenate([np.zeros(0, np.int64), *places])))


def _beginnings_in(block: Bytes, text: bytes) -> Iterator[Ints]:
    for lead, starts in _BEGINNINGS.items():
        if lead not in text:
            continue
        leads = block == lead
        for second, ends in starts.items():
            begins = leads
            if second:
                begins = leads[:-1] & (block[1:] == second[0])
                if not begins.any():
                    continue
            yield np.flatnonzero(_followed(begins, block[1 + len(second) :], ends))


def _followed(begins: Flags, data: Bytes, ends: list[tuple[int, int]]) -> Flags:
    """Return a mask of the beginnings that are followed by a byte in one of the ranges."""
    mask = np.zeros(len(data), np.bool_)
    for first, last in ends:
        mask |= (data - np.uint8(first)) <= last - first
    mask &= begins[: len(data)]
    return mask


def _decoded(data: Bytes, leads: Ints) -> UnsafeCharacters:
    """Decode the characters at these positions, and keep those that need escapes."""
    first = data[leads].astype(np.int64)
    widths = 2 + (first >= 0xE0) + (first >= 0xF0)
    codes = first & np.array([0x1F, 0x0F, 0x07])[widths - 2]
    for place in (1, 2, 3):
        rows = widths > place
        codes[rows] = codes[rows] << 6 | data[leads[rows] + place] & 0x3F
    hit = codes <= _LASTS[np.searchsorted(_FIRSTS, codes, side="right") - 1]
    return UnsafeCharacters(leads[hit], widths[hit], codes[hit])


def _texts(codes: Ints, escape: Callable[[int], str]) -> tuple[Bytes, Ints, Ints]:
    """Return the distinct escapes, padded to one length; their lengths; and the index of each code's escape."""
    occurs = np.bincount(codes) > 0
    texts = [escape(code).encode() for code in np.flatnonzero(occurs).tolist()]
    padded = np.frombuffer(b"".join(text.ljust(_LONGEST) for text in texts), np.uint8).reshape(-1, _LONGEST)
    return padded, np.array([len(text) for text in texts], np.int64), (np.cumsum(occurs) - 1)[codes]
