"""Thrift's compact protocol, as far as looking at messages before a native reader takes memory for them needs it."""

from __future__ import annotations

from typing import Any

from acidctl.orc.varint import signed, unsigned

STRUCT, LIST = 12, 9
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _SET, _MAP = 1, 2, 3, 7, 8, 10, 11
_INTEGERS = frozenset((4, 5, 6))
_FIXED = {_BYTE: 1, _DOUBLE: 8, 13: 16}
_DEEPEST = 64


class ThriftError(ValueError):
    """No message of this protocol."""


def fields_of(data: bytes, at: int) -> tuple[dict[int, Any], int]:
    """Integers, booleans and structs of the struct at a place by the number of their field, and where it ends.

    Of equal numbers the last counts, parts of structs each for itself, as in the libraries that Thrift generates.

    Raises:
        ThriftError: it is none, or nested too deep.
        IndexError: it is cut short.
    """
    return _fields(data, at, 0)


def skip(data: bytes, at: int, kind: int) -> int:
    """Where a value ends that begins at a place; errors as for :func:`fields_of`."""
    return _value(data, at, kind, 0)[1]


def _fields(data: bytes, at: int, depth: int) -> tuple[dict[int, Any], int]:
    found: dict[int, Any] = {}
    number = 0
    while True:
        number, kind, at = next_field(data, at, number)
        if not kind:
            return found, at
        value, at = _value(data, at, kind, depth)
        earlier = found.get(number)
        if isinstance(value, dict) and isinstance(earlier, dict):
            found[number] = earlier | value
        elif value is not None:
            found[number] = value


def next_field(data: bytes, at: int, last: int) -> tuple[int, int, int]:
    """Number and kind of the field at a place, and where its value begins; kind 0 at the end of the struct.

    Args:
        last: the number of the field before.
    """
    head = data[at]
    at += 1
    if not head & 15:
        if head:
            raise ThriftError("a field has no type")
        return last, 0, at
    if head >> 4:
        return last + (head >> 4), head & 15, at
    number, at = signed(data, at)
    return number, head & 15, at


def list_head(data: bytes, at: int) -> tuple[int, int, int]:
    """How many elements a list has, their kind, and where they begin."""
    head = data[at]
    if head >> 4 < 15:
        return head >> 4, head & 15, at + 1
    count, at = unsigned(data, at + 1)
    return count, head & 15, at


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    """An integer, boolean or struct, None for what else there is; and where it ends."""
    if kind in _INTEGERS:
        return signed(data, at)
    if kind == _BINARY:
        length, at = unsigned(data, at)
        return None, at + length
    if kind in (_TRUE, _FALSE):
        return kind == _TRUE, at
    if kind in _FIXED:
        return None, at + _FIXED[kind]
    if depth >= _DEEPEST:
        raise ThriftError("a message is nested too deep")
    if kind == STRUCT:
        return _fields(data, at, depth + 1)
    if kind in (LIST, _SET):
        count, inner, at = list_head(data, at)
        return None, _skip_elements(data, at, count, (inner,), depth)
    if kind == _MAP:
        count, at = unsigned(data, at)
        return None, _skip_elements(data, at + 1, count, (data[at] >> 4, data[at] & 15), depth) if count else at
    raise ThriftError("a field has an unknown type")


def _skip_elements(data: bytes, at: int, count: int, kinds: tuple[int, ...], depth: int) -> int:
    if count > len(data) - at:
        raise IndexError("a list claims more elements than there are bytes")
    if count and not {0, 14, 15}.isdisjoint(kinds):
        raise ThriftError("elements have an unknown type")
    kinds = tuple(_BYTE if kind in (_TRUE, _FALSE) else kind for kind in kinds)
    for _ in range(count):
        for kind in kinds:
            at = _value(data, at, kind, depth + 1)[1]
    return at
