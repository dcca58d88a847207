"""Structs of Thrift that keep every field that a server sent, also those that acidctl does not know.

A table that is altered through the structs of :mod:`acidctl.metastore.interface` would lose the rest of its fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from thrift.Thrift import TType

from acidctl.base.printable import printable
from acidctl.metastore.errors import Unreadable

_MOST_WORDS = 100


class Value(NamedTuple):
    """A value with its type on the wire.

    Attributes:
        code: a TType.
        payload: a number, bytes, a :class:`RawStruct`, ``(code, items)`` of a list or set, or
            ``(key code, value code, pairs)`` of a map; the items of containers have no type of their own.
    """

    code: int
    payload: Any


class RawStruct:
    """A struct of any type: its fields by number.

    Its methods raise Unreadable if a field is of another type than they return.
    """

    __slots__ = ("fields",)
    thrift_spec = None

    def __init__(self, fields: dict[int, Value] | None = None) -> None:
        self.fields: dict[int, Value] = fields or {}

    def read(self, source: Any) -> None:
        """Take all fields from a protocol of Thrift."""
        source.readStructBegin()
        while True:
            _, code, number = source.readFieldBegin()
            if code == TType.STOP:
                break
            self.fields[number] = Value(code, _read(source, code))
            source.readFieldEnd()
        source.readStructEnd()

    def write(self, out: Any) -> None:
        """Write all fields to a protocol of Thrift."""
        out.writeStructBegin("")
        for number, (code, payload) in sorted(self.fields.items()):
            out.writeFieldBegin("", code, number)
            _write(out, code, payload)
            out.writeFieldEnd()
        out.writeFieldStop()
        out.writeStructEnd()

    def _payload(self, number: int, *codes: int) -> Any:
        """Return the payload of a field; None if it is missing. What was read from a server is not trusted."""
        value = self.fields.get(number)
        if value and value.code not in codes:
            raise _unreadable(f"a field has the type {value.code}, and not {codes[0]}")
        return value.payload if value else None

    def number(self, number: int) -> int:
        """Return a number or a truth value; 0 if it is missing."""
        return int(self._payload(number, TType.I64, TType.I32, TType.I16, TType.BYTE, TType.BOOL) or 0)

    def struct(self, number: int) -> RawStruct:
        """Return a struct; an empty one if it is missing."""
        found: RawStruct = self._payload(number, TType.STRUCT) or RawStruct()
        return found

    def text(self, number: int) -> str:
        """Return a text; an empty one if it is missing."""
        return _text(self._payload(number, TType.STRING) or b"")

    def text_list(self, number: int) -> list[str]:
        """Return a list of texts; an empty one if it is missing."""
        _, items = self._payload(number, TType.LIST) or (TType.STRING, ())
        return [_text(item) for item in items]

    def structs(self, number: int) -> list[RawStruct]:
        """Return a list of structs; an empty one if it is missing."""
        code, items = self._payload(number, TType.LIST) or (TType.STRUCT, ())
        if items and code != TType.STRUCT:
            raise _unreadable(f"a list has items of the type {code}, and not {TType.STRUCT}")
        return list(items)

    def texts(self, number: int) -> dict[str, str]:
        """Return a map of texts; an empty one if it is missing."""
        _, _, pairs = self._payload(number, TType.MAP) or (TType.STRING, TType.STRING, ())
        return {_text(key): _text(text) for key, text in pairs}

    def set_texts(self, number: int, texts: dict[str, str]) -> None:
        """Replace a map of texts."""
        pairs = [(key.encode(), text.encode()) for key, text in texts.items()]
        self.fields[number] = Value(TType.MAP, (TType.STRING, TType.STRING, pairs))

    def set_long(self, number: int, value: int) -> None:
        """Replace a field of 64 bits."""
        self.fields[number] = Value(TType.I64, value)


def _text(data: Any) -> str:
    try:
        return str(data.decode())
    except (AttributeError, UnicodeDecodeError) as error:  # a number, or bytes of another encoding
        raise _unreadable(f"a text is none: {data!r}"[:_MOST_WORDS]) from error


def _unreadable(why: str) -> Unreadable:
    what = "the metastore sent something that cannot be read"
    return Unreadable(what, printable(why), "check that it is a metastore of Hive")


def struct_value(struct: RawStruct) -> Value:
    """Return a struct for a field."""
    return Value(TType.STRUCT, struct)


def structs_value(structs: Sequence[RawStruct]) -> Value:
    """Return a list of structs for a field."""
    return Value(TType.LIST, (TType.STRUCT, list(structs)))


def text_value(text: str) -> Value:
    """Return a text for a field."""
    return Value(TType.STRING, text.encode())


def texts_value(texts: Sequence[str]) -> Value:
    """Return a list of texts for a field."""
    return Value(TType.LIST, (TType.STRING, [text.encode() for text in texts]))


_NAMES = {
    TType.BOOL: "Bool", TType.BYTE: "Byte", TType.I16: "I16", TType.I32: "I32", TType.I64: "I64",
    TType.DOUBLE: "Double", TType.STRING: "Binary",
}  # fmt: skip


def _read(source: Any, code: int) -> Any:
    if code == TType.STRUCT:
        struct = RawStruct()
        struct.read(source)
        return struct
    if code in (TType.LIST, TType.SET):
        name = "List" if code == TType.LIST else "Set"
        item, count = getattr(source, f"read{name}Begin")()
        items = [_read(source, item) for _ in range(count)]
        getattr(source, f"read{name}End")()
        return item, items
    if code == TType.MAP:
        key, value, count = source.readMapBegin()
        pairs = [(_read(source, key), _read(source, value)) for _ in range(count)]
        source.readMapEnd()
        return key, value, pairs
    return getattr(source, f"read{_NAMES[code]}")()


def _write(out: Any, code: int, payload: Any) -> None:
    if code == TType.STRUCT:
        payload.write(out)
    elif code in (TType.LIST, TType.SET):
        name = "List" if code == TType.LIST else "Set"
        item, items = payload
        getattr(out, f"write{name}Begin")(item, len(items))
        for each in items:
            _write(out, item, each)
        getattr(out, f"write{name}End")()
    elif code == TType.MAP:
        key, value, pairs = payload
        out.writeMapBegin(key, value, len(pairs))
        for left, right in pairs:
            _write(out, key, left)
            _write(out, value, right)
        out.writeMapEnd()
    else:
        getattr(out, f"write{_NAMES[code]}")(payload)
