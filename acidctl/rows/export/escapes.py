"""Characters found in columns of UTF-8 bytes, and escapes put in their place, with NumPy only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acidctl.printable import RANGES, json_escape_of

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

_LONGEST = 12
r"""Bytes of the longest escape: ``\udb40\udc41``."""

_BLOCK = 1 << 16

_HIGH = [(max(first, 0x80), last) for first, last in RANGES if last >= 0x80 and first != 0xD800]
_FIRSTS, _LASTS = np.array(_HIGH, np.int64).T


def _beginnings() -> dict[int, dict[bytes, list[tuple[int, int]]]]:
    """By the first byte of the UTF-8 of one of the characters: the bytes up to the last, or to the third of four, and
    ranges of that one.
    """
    ends: dict[bytes, set[int]] = {}
    for first, last in _HIGH:
        for code in (*range(first, last, 64 if first > 0xFFFF else 1), last):
            start = chr(code).encode()[:3]
            ends.setdefault(start[:-1], set()).add(start[-1])
    found: dict[int, dict[bytes, list[tuple[int, int]]]] = {}
    for start, known in sorted(ends.items()):
        found.setdefault(start[0], {})[start[1:]] = list(_runs(sorted(known)))
    return found


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    start = numbers[0]
    for number, following in zip(numbers, [*numbers[1:], -1], strict=True):
        if following != number + 1:
            yield start, number
            start = following


_BEGINNINGS = _beginnings()


@dataclass(frozen=True, slots=True)
class UnsafeCharacters:
    """Characters to be replaced, ascending.

    Attributes:
        starts: the place of the first byte of each.
        widths: bytes of each.
        codes: code points.
    """

    starts: Ints
    widths: Ints
    codes: Ints

    def __len__(self) -> int:
        return len(self.starts)

    def merged(self, other: UnsafeCharacters) -> UnsafeCharacters:
        """Both together."""
        if not len(other):
            return self
        starts = np.concatenate([self.starts, other.starts])
        order = np.argsort(starts, kind="stable")
        widths, codes = np.concatenate([self.widths, other.widths]), np.concatenate([self.codes, other.codes])
        return UnsafeCharacters(starts[order], widths[order], codes[order])


def json_escape(code: int) -> str:
    """What takes the place of a character in JSON."""
    return _JSON_SHORT.get(code) or json_escape_of(code)


_JSON_SHORT = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 0x22: '\\"', 0x5C: "\\\\"}


def replaced(data: Bytes, found: UnsafeCharacters, escape: Callable[[int], str]) -> tuple[Bytes, Ints]:
    """The bytes with escapes; and how much longer it is before each of the characters, and at the end."""
    texts, lengths, which = _texts(found.codes, escape)
    sizes = lengths[which]
    grown = np.concatenate(([0], np.cumsum(sizes - found.widths)))
    result = np.empty(len(data) + int(grown[-1]), np.uint8)
    ordinary = np.ones(len(result), np.bool_)
    kept = np.ones(len(data), np.bool_)
    starts = found.starts + grown[:-1]
    for place in range(int(sizes.max())):
        rows = slice(None) if place < sizes.min() else sizes > place
        result[starts[rows] + place] = texts[which[rows], place]
        ordinary[starts[rows] + place] = False
    for place in range(int(found.widths.max())):
        kept[found.starts[found.widths > place] + place] = False
    result[ordinary] = data[kept]
    return result, grown


def unsafe(data: Bytes, more: bytes = b"") -> UnsafeCharacters:
    """What :func:`acidctl.printable.printable` escapes in valid UTF-8, and the bytes `more`."""
    # C0 and DEL, and all that is not ASCII: the subtraction wraps around.
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
    """Those of two bytes and more, block by block: whole columns are compared, which stay in the cache."""
    places: list[Ints] = []
    for start in range(0, len(data), _BLOCK):
        # What begins in the block may end behind it.
        block = data[start : start + _BLOCK + 2]
        text = block.tobytes()
        if not text.isascii():
            places += [start + found[found < _BLOCK] for found in _beginnings_in(block, text)]
    return _decoded(data, np.sort(np.concatenate([np.zeros(0, np.int64), *places])))


def _beginnings_in(block: Bytes, text: bytes) -> Iterator[Ints]:
    """Where the characters may begin."""
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
    """Which of them are followed by a byte in one of the ranges."""
    found = np.zeros(len(data), np.bool_)
    for first, last in ends:
        found |= (data - np.uint8(first)) <= last - first
    found &= begins[: len(data)]
    return found


def _decoded(data: Bytes, leads: Ints) -> UnsafeCharacters:
    """The characters that begin at these places, as far as they are to be escaped."""
    first = data[leads].astype(np.int64)
    widths = 2 + (first >= 0xE0) + (first >= 0xF0)
    codes = first & np.array([0x1F, 0x0F, 0x07])[widths - 2]
    for place in (1, 2, 3):
        rows = widths > place
        codes[rows] = codes[rows] << 6 | data[leads[rows] + place] & 0x3F
    hit = codes <= _LASTS[np.searchsorted(_FIRSTS, codes, side="right") - 1]
    return UnsafeCharacters(leads[hit], widths[hit], codes[hit])


def _texts(codes: Ints, escape: Callable[[int], str]) -> tuple[Bytes, Ints, Ints]:
    """The escapes, padded to one length; their lengths; and which of them is that of each code."""
    occurs = np.bincount(codes) > 0
    texts = [escape(code).encode() for code in np.flatnonzero(occurs).tolist()]
    padded = np.frombuffer(b"".join(text.ljust(_LONGEST) for text in texts), np.uint8).reshape(-1, _LONGEST)
    return padded, np.array([len(text) for text in texts], np.int64), (np.cumsum(occurs) - 1)[codes]
