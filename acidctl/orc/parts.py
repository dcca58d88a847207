"""Count the messages and texts inside a protobuf message without parsing it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, TypeAlias

from google.protobuf.descriptor import FieldDescriptor

from acidctl.orc.varint import unsigned

LEAST_PART: Final = 2
"""Bytes of an empty message or text; parsed, it takes a hundred bytes of memory."""

_LENGTHS, _NUMBER = 2, 0
_FIXED: Final = {1: 8, 5: 4}

Shape: TypeAlias = "dict[int, Shape]"
"""The fields that count, by number, each with the shape of its own message."""


def count_parts(kind: Any, plain: bytes, most: int) -> int:
    """Return the number of parts; counting stops as soon as there are more than `most`.

    Args:
        kind: the descriptor of the message.
        plain: the bytes of the message.

    Raises:
        ValueError: the bytes are not a message.
    """
    try:
        return _count(_shape(kind), plain, most)
    except IndexError as error:
        raise ValueError("a message is cut short") from error


def _count(shape: Shape, plain: bytes, most: int) -> int:
    count = at = 0
    end = len(plain)
    above: list[tuple[int, Shape]] = []
    while count <= most:
        while at >= end:
            if not above:
                break
            end, shape = above.pop()
        if at >= end:
            break
        key, at = unsigned(plain, at)
        wire = key & 7
        if wire == _LENGTHS:
            length, at = unsigned(plain, at)
            inner = shape.get(key >> 3)
            if inner is not None:
                count += 1
            if inner and length:
                above.append((end, shape))
                end, shape = min(end, at + length), inner
            else:
                at += length
        elif wire == _NUMBER:
            _, at = unsigned(plain, at)
        elif wire in _FIXED:
            at += _FIXED[wire]
        else:
            raise ValueError("groups, which ORC does not have")
    return count


@lru_cache(maxsize=64)
def _shape(kind: Any) -> Shape:
    shape: Shape = {}
    for field in kind.fields:
        if field.type == FieldDescriptor.TYPE_MESSAGE and field.message_type is not kind:
            shape[field.number] = _shape(field.message_type)
        elif field.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES):
            shape[field.number] = {}
    return shape
