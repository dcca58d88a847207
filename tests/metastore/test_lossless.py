"""Structs of any type: what a server sent comes back byte for byte, also fields that nobody knows."""

from __future__ import annotations

from typing import Any

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

from acidctl.metastore.errors import Unreadable
from acidctl.metastore.lossless import RawStruct, Value, text_value, texts_value

INNER = RawStruct({2: text_value("x")})
FIELDS = {
    1: Value(TType.BOOL, True), 2: Value(TType.BYTE, 7), 3: Value(TType.I16, -3), 4: Value(TType.I32, 2**31 - 1),
    5: Value(TType.I64, -(2**63)), 6: Value(TType.DOUBLE, 0.5), 7: Value(TType.STRING, b"\xff not UTF-8"),
    8: Value(TType.STRUCT, INNER), 9: texts_value(["a", ""]), 10: Value(TType.SET, (TType.I64, [1, 2])),
    11: Value(TType.LIST, (TType.STRUCT, [INNER, INNER])),
    12: Value(TType.MAP, (TType.STRING, TType.LIST, [(b"k", (TType.BOOL, [True, False]))])),
    300: Value(TType.I32, 0),
}  # fmt: skip


def written(protocol: Any, struct: RawStruct) -> bytes:
    buffer = TMemoryBuffer()
    struct.write(protocol(buffer))
    return bytes(buffer.getvalue())


@pytest.mark.parametrize("protocol", [TBinaryProtocol, TCompactProtocol])
def test_every_field_comes_back(protocol: Any) -> None:
    sent = written(protocol, RawStruct(FIELDS))
    read = RawStruct()
    read.read(protocol(TMemoryBuffer(sent)))
    assert (list(read.fields), written(protocol, read)) == (list(FIELDS), sent)


def test_a_map_and_a_number_are_replaced_and_nothing_else() -> None:
    struct = RawStruct(dict(FIELDS))
    struct.set_texts(12, {"k": "v"})
    struct.set_long(13, 5)
    assert (struct.texts(12), struct.texts(14)) == ({"k": "v"}, {})
    assert struct.fields == FIELDS | {12: struct.fields[12], 13: Value(TType.I64, 5)}


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (RawStruct.text, Value(TType.I64, 1)),
        (RawStruct.text, Value(TType.STRING, b"\xff not UTF-8")),
        (RawStruct.text_list, texts_value([])._replace(code=TType.SET)),
        (RawStruct.text_list, Value(TType.LIST, (TType.I32, [1]))),
        (RawStruct.texts, Value(TType.MAP, (TType.I32, TType.STRING, [(1, b"v")]))),
        (RawStruct.texts, text_value("x")),
        (RawStruct.struct, text_value("x")),
        (RawStruct.number, text_value("1")),
    ],
)
def test_a_field_of_another_type_cannot_be_read(read: Any, value: Value) -> None:
    with pytest.raises(Unreadable):
        read(RawStruct({1: value}), 1)
    assert not getattr(read(RawStruct(), 1), "fields", read(RawStruct(), 1)), "what is missing is empty"
