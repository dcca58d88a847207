"""Values of Hive as Iceberg's types hold them."""

from __future__ import annotations

import pyarrow as pa

from acidctl.iceberg.fields import fields_for
from acidctl.iceberg.orc_files.plain_values import plain_values
from acidctl.orc.types import OrcType, row_of


def test_char_loses_its_padding_also_if_it_is_not_utf8() -> None:
    kind = OrcType("char", max_length=5)
    (field,) = fields_for(row_of([("c", kind)]))
    raw = pa.array([b"\xff\xfe ", "\u00e9  ".encode(), b" ", None, b"a\t"], pa.binary())
    column = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    found = plain_values(column, kind, field)
    assert found.cast(pa.binary()).to_pylist() == [b"\xff\xfe", "\u00e9".encode(), b"", None, b"a\t"]
